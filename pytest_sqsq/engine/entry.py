"""The one way to a queue: lock first, then read the clock, then let happen what is due."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from pytest_sqsq.engine.due import DueHeap
from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.engine.settling import Settler
from pytest_sqsq.errors import QueueDoesNotExist


class TimeSource(Protocol):
    """All the engine wants of a clock."""

    @property
    def now_ms(self) -> int: ...


class Entry:
    """Holds a queue's lock with everything settled that is due by now.

    The clock is read after the lock is taken, so that nobody acts on an older now than the
    queue has seen.
    """

    __slots__ = ("_clock", "_due", "_queue", "_settler")

    def __init__(self, queue: Queue, clock: TimeSource, settler: Settler, due: DueHeap) -> None:
        self._queue = queue
        self._clock = clock
        self._settler = settler
        self._due = due

    def __enter__(self) -> int:
        queue, settler = self._queue, self._settler
        while True:
            queue.lock.acquire()
            now_ms = max(self._clock.now_ms, queue.settled_ms)
            upstream = queue.upstream
            if len(upstream) == 1:
                settled = queue.next_due_ms > now_ms
            else:
                settled = all(source.next_due_ms > now_ms for source in upstream)
            if queue.deleted:
                queue.lock.release()
                raise QueueDoesNotExist
            if settled and settler.next_task_ms > now_ms:
                break
            queue.lock.release()
            if settler.next_task_ms <= now_ms:
                # Steps of move tasks touch any queue: each has its own instant among the rest.
                settler.settle_all(now_ms)
            else:
                settler.settle_queues(queue.linked, now_ms)
        queue.settled_ms = now_ms
        return now_ms

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._due.publish(self._queue)
        self._queue.lock.release()
