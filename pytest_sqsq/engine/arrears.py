"""What a store still has to be told about a queue.

Mostly two things get a queue into arrears.  Time removes something: that happens in memory at its
instant, whether the store can be written or not.  And a write whose outcome is unknown: memory
has not changed, the store perhaps has.  Both are made good in the same way, by writing with the
queue's next change how the things concerned stand in memory then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pytest_sqsq.engine.deduplication import DeduplicationKey
from pytest_sqsq.models import QueueKey
from pytest_sqsq.store.records import (
    ClearMessages,
    PutDeduplication,
    PutMessage,
    PutMoveTask,
    PutQueue,
    Record,
    RemoveDeduplication,
    RemoveMessage,
    RemoveMoveTask,
    RemoveQueue,
)

if TYPE_CHECKING:
    from pytest_sqsq.engine.move_tasks import MoveTask
    from pytest_sqsq.engine.queue import Queue

FindTask = Callable[[str], "MoveTask | None"]


class Arrears:
    """The things of one queue that may stand differently in the store.  Guarded by its lock.

    ``messages`` maps ids to what must be made good before: a message that perhaps arrived by a
    move is not taken out of the store until it is certain that it is in the store where it
    came from, so that it is never in neither.
    """

    __slots__ = ("deduplications", "emptied", "messages", "settings", "tasks")

    def __init__(self, emptied: int) -> None:
        self.emptied = emptied
        self.messages: dict[str, tuple[Arrears, str] | None] = {}
        self.deduplications: dict[DeduplicationKey, None] = {}
        self.tasks: dict[str, None] = {}
        self.settings = False

    def __bool__(self) -> bool:
        return bool(self.settings or self.messages or self.deduplications or self.tasks)

    @property
    def wait_for_others(self) -> bool:
        """Whether something must be made good elsewhere first."""
        return any(map(_must_wait, list(self.messages.values())))

    def owe_messages(self, message_ids: Iterable[str]) -> None:
        """Have the store told how these messages stand; gone ones are removed there."""
        self.messages.update(dict.fromkeys(message_ids))

    def owe_deduplication(self, key: DeduplicationKey) -> None:
        """Have the store told whether this deduplication id is still remembered."""
        self.deduplications[key] = None

    def owe_task(self, task_id: str) -> None:
        """Have the store told how this move task stands."""
        self.tasks[task_id] = None

    def wait_for(self, message_id: str, other: Arrears, original_id: str) -> None:
        """Take a message that perhaps moved here out of the store only after its original is in.

        ``original_id`` is what ``other``, the arrears of the queue it is still in, owes.
        """
        if message_id in self.messages:
            self.messages[message_id] = (other, original_id)

    def owe_everything(self, queue: Queue, task_ids: Iterable[str]) -> None:
        """The store may have nothing left of this queue.  O(n)."""
        self.settings = True
        self.owe_messages(message.message_id for message in queue.log.live_messages())
        self.deduplications.update(dict.fromkeys(key for key, _ in queue.deduplication.all()))
        self.tasks.update(dict.fromkeys(task_ids))

    def doubt(self, records: Iterable[Record], queue: Queue, task_ids: Iterable[str]) -> None:
        """Note what records that were perhaps written have touched of ``queue``."""
        for record in records:
            match _subject(record, queue.key):
                case "message", message_id:
                    self.messages.setdefault(message_id)
                case "deduplication", key:
                    self.owe_deduplication(key)
                case "task", task_id:
                    self.owe_task(task_id)
                case "settings", _:
                    self.settings = True
                case "everything", _:
                    self.owe_everything(queue, task_ids)
                case _:
                    pass

    def records(self, queue: Queue, find_task: FindTask, limit: int) -> list[Record]:
        """Up to about ``limit`` records that make it good."""
        key = queue.key
        if queue.deleted:
            return [RemoveQueue(key)] if self.settings else []
        records: list[Record] = [PutQueue(key, queue.record())] if self.settings else []
        for task_id in self.tasks:
            task = find_task(task_id)
            records.append(
                RemoveMoveTask(key, task_id) if task is None else PutMoveTask(task.record())
            )
        for group, deduplication_id in self.deduplications:
            first = queue.deduplication.known((group, deduplication_id))
            records.append(
                RemoveDeduplication(key, group, deduplication_id)
                if first is None
                else PutDeduplication(key, group, deduplication_id, *first)
            )
        for message_id, before in self.messages.items():
            if len(records) >= limit:
                break
            if not _must_wait(before):
                message = queue.log.find_uuid(message_id)
                records.append(
                    RemoveMessage(key, message_id)
                    if message is None
                    else PutMessage(key, message.record())
                )
        return records

    def settle(self, records: Iterable[Record], queue: Queue) -> None:
        """Forget what has been written."""
        if not self:
            return
        for record in records:
            match _subject(record, queue.key):
                case "message", message_id:
                    self.messages.pop(message_id, None)
                case "deduplication", key:
                    self.deduplications.pop(key, None)
                case "task", task_id:
                    self.tasks.pop(task_id, None)
                case "settings", _:
                    self.settings = False
                case "everything", _:
                    self.messages.clear()
                    self.deduplications.clear()
                    self.settings = False
                case _:
                    pass


def _must_wait(before: tuple[Arrears, str] | None) -> bool:
    return before is not None and before[1] in before[0].messages


def _subject(record: Record, queue: QueueKey) -> tuple[str, Any] | None:
    """What of a queue a record is about: the kind of thing, and which one."""
    subject: tuple[str, Any] | None = None
    match record:
        case PutMessage(key, message) if key == queue:
            subject = "message", message.message_id
        case RemoveMessage(key, message_id) if key == queue:
            subject = "message", message_id
        case PutDeduplication() | RemoveDeduplication() if record.queue == queue:
            subject = "deduplication", (record.group, record.deduplication_id)
        case PutMoveTask(task) if task.source == queue:
            subject = "task", task.task_id
        case RemoveMoveTask(key, task_id) if key == queue:
            subject = "task", task_id
        case PutQueue(key) if key == queue:
            subject = "settings", None
        case ClearMessages(key) | RemoveQueue(key) if key == queue:
            subject = "everything", None
        case _:
            pass
    return subject
