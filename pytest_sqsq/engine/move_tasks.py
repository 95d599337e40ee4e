"""Message move tasks: from a dead-letter queue back to where its messages came from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pytest_sqsq.engine.queue import NEVER_MS
from pytest_sqsq.limits import MOVE_TASK_DURATION_MS
from pytest_sqsq.models import QueueKey
from pytest_sqsq.store.records import MoveTaskRecord, MoveTaskStatus

DESTINATION_GONE = "AWS.SimpleQueueService.NonExistentQueue"
SOURCE_UNKNOWN = "CouldNotDetermineMessageSource"
TIME_IS_UP = "MaximumDurationExceeded"
"""Amazon documents that a task ends after 36 hours, and not what it says then: our own word."""

ENDED_TASKS_KEPT = 10
"""ListMessageMoveTasks shows at most so many."""


@dataclass(slots=True)
class MoveTask:
    """One task.  Guarded by the lock of its source queue.

    ``to_move`` is the number of messages found at the start and stays; ``rate`` is in messages
    a second, ``None`` for all at once.  ``place`` tells which of two tasks was started first.
    ``not_before_ms`` is when a step that the store refused is tried again.
    """

    task_id: str
    place: int
    source: QueueKey
    destination_arn: str | None
    rate: int | None
    started_ms: int
    to_move: int
    status: MoveTaskStatus = "RUNNING"
    moved: int = 0
    failure_reason: str | None = None
    not_before_ms: int = 0

    @property
    def is_running(self) -> bool:
        """Whether it may still move messages: neither completed, failed nor cancelled."""
        return self.status == "RUNNING"

    @property
    def next_step_ms(self) -> int:
        """When the next message moves: the k-th one k/rate seconds after the start.

        Or when the task's time is up, if that is before.  Never by itself without a rate: whoever
        starts such a task carries it through.
        """
        if not self.is_running or self.rate is None:
            return NEVER_MS
        return min(self._next_move_ms(self.rate), self._latest_ms)

    def is_out_of_time(self, now_ms: int) -> bool:
        """Whether the next message would move more than 36 hours after the start."""
        move_ms = now_ms if self.rate is None else self._next_move_ms(self.rate)
        return move_ms > self._latest_ms

    @property
    def _latest_ms(self) -> int:
        return self.started_ms + MOVE_TASK_DURATION_MS

    def _next_move_ms(self, rate: int) -> int:
        return max(self.started_ms + -(-1000 * (self.moved + 1) // rate), self.not_before_ms)

    def fail(self, reason: str) -> None:
        """End it as FAILED; ``reason`` is the FailureReason that its list entry shows."""
        # The reason first: who lists tasks reads them without a lock.
        self.failure_reason = reason
        self.status = "FAILED"

    def moved_one(self) -> None:
        """Count a message as moved; the last of those found at the start completes the task."""
        self.moved += 1
        if self.moved >= self.to_move:
            self.status = "COMPLETED"

    def record_after_move(self) -> MoveTaskRecord:
        """The task as it stands once one more message has moved."""
        after = replace(self)
        after.moved_one()
        return after.record()

    def record(self) -> MoveTaskRecord:
        """The task as a store keeps it."""
        return MoveTaskRecord(
            self.task_id,
            self.place,
            self.source,
            self.destination_arn,
            self.rate,
            self.status,
            self.started_ms,
            self.moved,
            self.to_move,
            self.failure_reason,
        )


class MoveTaskList:
    """All tasks known, oldest first; of the ended ones of a source the newest ten.

    Guarded by the broker's task lock, a leaf.
    """

    def __init__(self) -> None:
        self._by_source: dict[QueueKey, list[MoveTask]] = {}

    def add(self, task: MoveTask) -> None:
        """Put a task behind all others of its source; those :meth:`outlived` are forgotten."""
        known = self._by_source.setdefault(task.source, [])
        for other in self.outlived(task.source):
            known.remove(other)
        known.append(task)

    def next_place(self) -> int:
        """The place of a task that starts now, behind all known.  O(tasks)."""
        return 1 + max((task.place for task in self._all()), default=0)

    def outlived(self, source: QueueKey) -> list[MoveTask]:
        """The ended tasks that are forgotten when another one of this source is added."""
        ended = [task for task in self._by_source.get(source, ()) if not task.is_running]
        return ended[: max(0, len(ended) - ENDED_TASKS_KEPT + 1)]

    def of_source(self, source: QueueKey) -> list[MoveTask]:
        """The tasks of a queue, newest first.  A copy."""
        return self._by_source.get(source, [])[::-1]

    def find(self, task_id: str) -> MoveTask | None:
        """The task with this id, of whatever source; ``None`` for a forgotten one.  O(tasks)."""
        return next((task for task in self._all() if task.task_id == task_id), None)

    def running(self) -> list[MoveTask]:
        """The running tasks of all sources.  O(tasks)."""
        return [task for task in self._all() if task.is_running]

    def forget_source(self, source: QueueKey) -> None:
        """Drop the tasks of a queue that is deleted, running ones too."""
        self._by_source.pop(source, None)

    def _all(self) -> list[MoveTask]:
        return [task for tasks in self._by_source.values() for task in tasks]
