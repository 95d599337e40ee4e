"""Back from records to queues, after a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pytest_sqsq.engine.arrears import Arrears
from pytest_sqsq.engine.deduplication import Accepted
from pytest_sqsq.engine.due import DueHeap
from pytest_sqsq.engine.message import Message
from pytest_sqsq.engine.move_tasks import MoveTask
from pytest_sqsq.engine.plans import deduplication_records
from pytest_sqsq.engine.queue import Queue, Surroundings
from pytest_sqsq.engine.registry import Registry
from pytest_sqsq.limits import DEDUPLICATION_WINDOW_MS
from pytest_sqsq.models import MessageAttribute, QueueKey
from pytest_sqsq.store.records import (
    MessageRecord,
    MoveTaskRecord,
    PutDeduplication,
    PutMessage,
    PutMoveTask,
    PutQueue,
    QueueRecord,
    Record,
)


class Loaded(NamedTuple):
    """How much a store had kept."""

    queues: int
    messages: int


class Loading:
    """Builds a broker's queues from records; for a broker that nobody uses yet.

    A queue is settled up to ``settled_ms`` when it is loaded: what time has done since is due.
    ``tasks`` are the move tasks found, oldest first.
    """

    def __init__(
        self, surroundings: Surroundings, registry: Registry, due: DueHeap, settled_ms: int
    ) -> None:
        self.tasks: list[MoveTask] = []
        self._surroundings = surroundings
        self._registry = registry
        self._due = due
        self._settled_ms = settled_ms
        self._queues: dict[QueueKey, Queue] = {}
        self._messages = 0

    @property
    def loaded(self) -> Loaded:
        """How much was taken in."""
        return Loaded(len(self._queues), self._messages)

    def load(self, records: Iterable[Record], new_arrears: Callable[[], Arrears | None]) -> None:
        """Make queues of records, which come in the order that :meth:`Store.load` promises.

        ``new_arrears`` gives each queue what it notes in what the store is owed.  O(n log n).
        """
        for record in records:
            match record:
                case PutQueue(key, queue_record):
                    self._queues[key] = self._make_queue(key, queue_record, new_arrears())
                case PutDeduplication():
                    self._queues[record.queue].deduplication.remember(
                        (record.group, record.deduplication_id),
                        Accepted(record.message_id, record.sequence_number, record.accepted_ms),
                        record.accepted_ms,
                    )
                case PutMessage(key, message):
                    self._take_in(self._queues[key], message)
                case PutMoveTask(task):
                    self.tasks.append(_task(task))
                case _:
                    pass
        for queue in self._queues.values():
            with queue.lock:
                self._due.publish(queue)

    def _make_queue(self, key: QueueKey, record: QueueRecord, arrears: Arrears | None) -> Queue:
        queue = Queue(key, record.settings, record.tags, record.created_ms, self._surroundings)
        queue.note_arrears(arrears)
        queue.last_modified_ms = record.last_modified_ms
        queue.purged_ms = record.purged_ms
        queue.journal.began_late = True
        queue.deduplication_scope = record.deduplication_scope
        queue.settled_ms = max(record.created_ms, self._settled_ms)
        queue.next_sequence = queue.sequence_limit = record.sequence_limit
        self._registry.insert(queue)
        return queue

    def _take_in(self, queue: Queue, record: MessageRecord) -> None:
        if _was_sent_anew(queue, record):
            if queue.arrears is not None:
                queue.arrears.owe_messages((record.message_id,))
            return
        self._messages += 1
        queue.next_arrival = record.arrival
        next_sequence = queue.next_sequence
        message = _message(record)
        queue.enter(message)
        queue.next_sequence = next_sequence
        if record.visible_at_ms is not None and record.receipt_handle is not None:
            queue.hide_untaken(message, record.receipt_handle, record.visible_at_ms)


def _was_sent_anew(queue: Queue, record: MessageRecord) -> bool:
    """Whether a message is what is left of a send that was answered with an error.

    Its sender then sent it again under the same deduplication id, which names that message.
    """
    deduplication_id = record.message_deduplication_id
    if deduplication_id is None or not record.carries_delay or not queue.settings.fifo:
        return False
    group = record.message_group_id if queue.deduplication_scope == "messageGroup" else None
    first = queue.deduplication.known((group, deduplication_id))
    return (
        first is not None
        and first.message_id != record.message_id
        and abs(first.accepted_ms - record.sent_ms) < DEDUPLICATION_WINDOW_MS
    )


def _message(record: MessageRecord) -> Message:
    attributes = record.attributes
    message = Message(
        record.message_id,
        record.body,
        record.sent_ms,
        attributes=(
            None
            if attributes is None
            else {name: MessageAttribute(*value) for name, value in attributes.items()}
        ),
        message_group_id=record.message_group_id,
        message_deduplication_id=record.message_deduplication_id,
        sequence_number=record.sequence_number,
        trace_header=record.trace_header,
    )
    message.retention_start_ms = record.retention_start_ms
    message.receive_count = record.receive_count
    message.receives_here = record.receives_here
    message.first_received_ms = record.first_received_ms
    message.received_ms = record.received_ms
    message.dead_letter_source_arn = record.dead_letter_source_arn
    message.carries_delay = record.carries_delay
    if record.delayed:
        message.state = "delayed"
        message.visible_at_ms = record.delayed_until_ms
    return message


def _task(record: MoveTaskRecord) -> MoveTask:
    return MoveTask(
        record.task_id,
        record.place,
        record.source,
        record.destination_arn,
        record.rate,
        record.started_ms,
        record.to_move,
        record.status,
        record.moved,
        record.failure_reason,
    )


def contents_of(queue: Queue) -> list[Record]:
    """A queue as records that make it again; under its lock.  O(n)."""
    limit = max(queue.sequence_limit, queue.next_sequence)
    records: list[Record] = [PutQueue(queue.key, queue.record()._replace(sequence_limit=limit))]
    records += deduplication_records(queue.key, queue.deduplication.all())
    records += [PutMessage(queue.key, m.record()) for m in queue.log.live_messages()]
    return records
