"""How changes reach the store: each before it is made, with what the queue owes before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from pytest_sqsq.engine.arrears import Arrears
from pytest_sqsq.engine.plans import MovePlan, Plan
from pytest_sqsq.engine.queue import SEQUENCE_STEP, Queue
from pytest_sqsq.errors import OutcomeUnknown, ServiceUnavailable, StoreError
from pytest_sqsq.models import QueueKey
from pytest_sqsq.store.base import Store
from pytest_sqsq.store.records import (
    ClearMessages,
    PutClock,
    PutMessage,
    PutQueue,
    Record,
    RemoveDeduplication,
    RemoveMessage,
    RemoveMoveTask,
    RemoveQueue,
)

if TYPE_CHECKING:
    from pytest_sqsq.engine.move_tasks import MoveTask

RESERVED_SEQUENCE_NUMBERS = 10_000
"""So many are reserved at once: after a restart numbering goes on behind the reserved ones."""

ARREARS_AT_ONCE = 2_000
"""More than this is not written together with a change, but before it and piece by piece."""

REMOVALS = (RemoveMessage, RemoveQueue, RemoveDeduplication, RemoveMoveTask, ClearMessages)


class Tasks(Protocol):
    """What there is to know of move tasks; callable under a queue's lock."""

    def find_move_task(self, task_id: str) -> MoveTask | None: ...

    def move_task_ids(self, source: QueueKey) -> list[str]: ...


class Writer:
    """Writes to the store for one broker.

    All methods that take queues are called with their locks held.  Without a store that keeps
    anything they return at once.
    """

    def __init__(self, store: Store, now_ms: Callable[[], int], tasks: Tasks) -> None:
        self.store = store
        self._now_ms = now_ms
        self._tasks = tasks
        self._noted_ms = 0
        # Called before each write, also where nothing is kept; raises to refuse it.
        self.refuse: Callable[[], None] | None = None

    def new_arrears(self) -> Arrears | None:
        """What a new queue notes its arrears in; ``None`` where nothing is kept."""
        return Arrears(self.store.emptied) if self.store.keeps else None

    def write_plan(self, plan: Plan, queue: Queue) -> None:
        """Carry what a plan is about to do; raises ``ServiceUnavailable``."""
        if self.store.keeps or self.refuse is not None:
            self.write(plan.records(queue.key), queue)

    def write_move(self, plan: MovePlan, source: Queue, target: Queue) -> None:
        """Carry a move of one message; raises ``ServiceUnavailable``."""
        if not self.store.keeps and self.refuse is None:
            return
        try:
            self.write(plan.records(source.key), source, target)
        except BaseException:
            owing, owed = source.arrears, target.arrears
            if source is not target and owing and owed:
                owed.wait_for(plan.arriving.message_id, owing, plan.message.message_id)
            raise

    def write(self, records: Sequence[Record], *queues: Queue) -> None:
        """Write records about to become true of some queues; raises ``ServiceUnavailable``.

        They are written all or none.  Where that is unknown, the queues note it.
        """
        if self.refuse is not None:
            self.refuse()
        if not self.store.keeps:
            return
        while True:
            emptied = self.store.emptied
            try:
                self._write(records, queues)
            except StoreError as error:
                if self.store.emptied != emptied:
                    continue
                raise ServiceUnavailable(str(error)) from error
            return

    def _write(self, records: Sequence[Record], queues: Sequence[Queue]) -> None:
        batch = [record for queue in dict.fromkeys(queues) for record in self._owed(queue)]
        limits = _sequence_limits(queues, records)
        for queue, limit in limits.items():
            batch.append(PutQueue(queue.key, queue.record()._replace(sequence_limit=limit)))
        batch += records
        # A full store takes removals and nothing else: they go without the time.
        if not all(isinstance(record, REMOVALS) for record in batch):
            batch.append(PutClock(self._now_ms()))
        if batch:
            self._send(batch, records, queues)
        for queue, limit in limits.items():
            queue.sequence_limit = limit

    def _send(
        self, batch: Sequence[Record], records: Sequence[Record], queues: Sequence[Queue]
    ) -> None:
        indebted = [(queue, queue.arrears) for queue in queues if queue.arrears is not None]
        try:
            self.store.write(batch)
        except BaseException as error:
            # An interrupt leaves it as open as a missing answer does.
            if not isinstance(error, StoreError) or isinstance(error, OutcomeUnknown):
                for queue, arrears in indebted:
                    arrears.doubt(records, queue, self._tasks.move_task_ids(queue.key))
            raise
        for queue, arrears in indebted:
            arrears.settle(batch, queue)

    def _owed(self, queue: Queue) -> list[Record]:
        arrears = queue.arrears
        if arrears is None:
            return []
        if arrears.emptied != self.store.emptied:
            arrears.emptied = self.store.emptied
            arrears.owe_everything(queue, self._tasks.move_task_ids(queue.key))
        if not arrears:
            return []
        while len(arrears.messages) > ARREARS_AT_ONCE:
            owed = len(arrears.messages)
            part = arrears.records(queue, self._tasks.find_move_task, ARREARS_AT_ONCE)
            self.store.write(part)
            arrears.settle(part, queue)
            if len(arrears.messages) == owed:
                break
        return arrears.records(queue, self._tasks.find_move_task, ARREARS_AT_ONCE)

    def catch_up(self, queue: Queue) -> None:
        """Write what a queue owes, if the store can be written; raises nothing."""
        arrears = queue.arrears
        if arrears is None or not self.store.keeps:
            return
        if arrears or arrears.emptied != self.store.emptied:
            with suppress(ServiceUnavailable):
                self.write((), queue)

    def note_time(self) -> None:
        """Tell the store what time it is, if it can be written; raises nothing."""
        now_ms = self._now_ms()
        if self.store.keeps and now_ms > self._noted_ms:
            with suppress(StoreError):
                self.store.write([PutClock(now_ms)])
                self._noted_ms = now_ms


def _sequence_limits(queues: Iterable[Queue], records: Iterable[Record]) -> dict[Queue, int]:
    """The queues that have to reserve numbers for these records, and up to where."""
    by_key = {queue.key: queue for queue in queues if queue.settings.fifo}
    limits: dict[Queue, int] = {}
    for record in records if by_key else ():
        if isinstance(record, PutMessage) and record.queue in by_key:
            queue, number = by_key[record.queue], record.message.sequence_number
            if number is not None and number >= limits.get(queue, queue.sequence_limit):
                limits[queue] = number + SEQUENCE_STEP * RESERVED_SEQUENCE_NUMBERS
    return limits
