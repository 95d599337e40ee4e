"""Letting happen what is due: instant by instant, across queues, in one fixed order.

At one instant: retention, then ends of visibility and dead-letter moves, then delays, then steps
of move tasks.  Parked polls are served after that, so that a message that appears at an instant
reaches a poll that ends there.

What is due in one queue happens in pieces, and its lock is free between them.  Whoever takes it
then finds that the queue still has something due, and lets the rest happen before anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from threading import Lock

from pytest_sqsq.engine.due import DueHeap
from pytest_sqsq.engine.message import Message
from pytest_sqsq.engine.move_tasks import (
    DESTINATION_GONE,
    SOURCE_UNKNOWN,
    TIME_IS_UP,
    MoveTask,
    MoveTaskList,
)
from pytest_sqsq.engine.plans import MovePlan
from pytest_sqsq.engine.queue import NEVER_MS, UNLIMITED, Queue
from pytest_sqsq.engine.redrive import (
    apply_dead_letter_move,
    apply_task_move,
    both_locked,
    plan_dead_letter_move,
    plan_task_move,
)
from pytest_sqsq.engine.registry import Registry
from pytest_sqsq.engine.waiters import Waiter
from pytest_sqsq.engine.writing import Writer
from pytest_sqsq.errors import ServiceUnavailable
from pytest_sqsq.models import DeadLetterOn, QueueKey

RETRY_MS = 1000
"""When a move that the store refused is tried again."""

PIECE = 50
"""So many messages change under one hold of a queue's lock, and in one write of removals."""


class Settler:
    """Runs what is due.  Takes queue locks one by one, two for a move; holds none on entry.

    ``serve`` answers a locked queue's parked polls and returns those to wake.  ``give_way`` is
    called after each piece of work, with no lock held, to let other threads and other queues go
    on meanwhile; it may settle.
    """

    def __init__(
        self,
        registry: Registry,
        due: DueHeap,
        *,
        dead_letter_on: DeadLetterOn,
        writer: Writer,
        serve: Callable[[Queue, int], list[Waiter]],
        new_message_id: Callable[[QueueKey], str],
        give_way: Callable[[], None],
    ) -> None:
        self.tasks = MoveTaskList()
        self.task_lock = Lock()
        self.next_task_ms = NEVER_MS
        self._registry = registry
        self._due = due
        self._moves_early = dead_letter_on == "tick"
        self._writer = writer
        self._serve = serve
        self._new_message_id = new_message_id
        self._give_way = give_way

    def settle_all(self, now_ms: int) -> None:
        """Everything due by ``now_ms`` in all queues, in order.  O(due log queues)."""
        while True:
            instant_ms = self.next_ms()
            if instant_ms is None or instant_ms > now_ms:
                return
            queues = self._due.queues_due_at(instant_ms)
            for queue in queues:
                self._finish_before(queue, instant_ms)
            self._run(instant_ms, queues)

    def _finish_before(self, queue: Queue, instant_ms: int) -> None:
        # Only in a pause can something earlier be left: pieces of what is due in a linked queue.
        if any(linked.next_due_ms < instant_ms for linked in queue.linked):
            self.settle_queues(queue.linked, instant_ms - 1)

    def settle_queues(self, queues: Sequence[Queue], now_ms: int) -> None:
        """Everything due by ``now_ms`` in some queues, in order."""
        while True:
            instant_ms = min(queue.next_due_ms for queue in queues)
            if instant_ms > now_ms:
                return
            self._run(instant_ms, [q for q in queues if q.next_due_ms == instant_ms])

    def next_ms(self) -> int | None:
        """The earliest instant at which a message changes by itself."""
        message_ms = self._due.next_message_ms()
        task_ms = self.next_task_ms
        if message_ms is None:
            return None if task_ms == NEVER_MS else task_ms
        return min(message_ms, task_ms)

    def task_changed(self) -> None:
        """Work out anew when the next step of a move task is due."""
        with self.task_lock:
            self.next_task_ms = min(
                (task.next_step_ms for task in self.tasks.running()), default=NEVER_MS
            )
        if self.next_task_ms != NEVER_MS and self._due.on_earlier is not None:
            self._due.on_earlier(self.next_task_ms)

    def _run(self, instant_ms: int, queues: Sequence[Queue]) -> None:
        touched = {queue.key: queue for queue in queues}
        for queue in queues:
            self._expire(queue, instant_ms)
        for queue in queues:
            self._end_timeouts(queue, instant_ms, touched)
        for queue in queues:
            self._end_delays(queue, instant_ms)
        self._run_tasks(instant_ms, touched)
        self._serve_and_publish(touched.values(), instant_ms)

    def _serve_and_publish(self, queues: Iterable[Queue], instant_ms: int) -> None:
        for queue in queues:
            with queue.lock:
                now_ms = self._at(queue, instant_ms)
                # A message may be too old for the queue it has just been moved to.
                queue.expire_due(now_ms)
                self._writer.catch_up(queue)
                woken = self._serve(queue, now_ms) if len(queue.parked) else ()
                self._due.keep(queue)
            for waiter in woken:
                waiter.wake()

    def _at(self, queue: Queue, instant_ms: int) -> int:
        queue.settled_ms = max(queue.settled_ms, instant_ms)
        return queue.settled_ms

    def _expire(self, queue: Queue, instant_ms: int) -> None:
        while True:
            with queue.lock:
                done = queue.expire_due(self._at(queue, instant_ms), PIECE)
                if not done:
                    self._writer.catch_up(queue)
            if done:
                return
            self._give_way()

    def _end_delays(self, queue: Queue, instant_ms: int) -> None:
        while True:
            with queue.lock:
                done = queue.end_delays(self._at(queue, instant_ms), PIECE)
            if done:
                return
            self._give_way()

    # Ends of visibility and dead-letter moves

    def _end_timeouts(self, queue: Queue, instant_ms: int, touched: dict[QueueKey, Queue]) -> None:
        for rounds in count(1):
            with queue.lock:
                if queue.deleted:  # since it was found to be due: nothing of it can move
                    return
                now_ms = self._at(queue, instant_ms)
                message = self._show_until_one_must_move(queue, now_ms, PIECE)
                if message is None and _next_to_end(queue, now_ms) is None:
                    return
                arn = _target_arn(queue)
            target = None if message is None or arn is None else self._registry.find_arn(arn)
            if message is not None and target is not None:
                self._dead_letter(queue, message, target, instant_ms)
                touched[target.key] = target
            if message is None or rounds % PIECE == 0:
                self._give_way()

    def _show_until_one_must_move(
        self, queue: Queue, now_ms: int, at_most: int = UNLIMITED
    ) -> Message | None:
        for _ in range(at_most):
            message = _next_to_end(queue, now_ms)
            if message is None or self._must_move(queue, message):
                return message
            queue.show(message, now_ms)
        return None

    def _must_move(self, queue: Queue, message: Message) -> bool:
        early = self._moves_early or message.move_failed
        return (message.moving or early) and queue.is_used_up(message)

    def _dead_letter(self, source: Queue, message: Message, target: Queue, instant_ms: int) -> None:
        with both_locked(source, target):
            source_ms = self._at(source, instant_ms)
            due = self._show_until_one_must_move(source, source_ms)
            stale = source.deleted or target.deleted or due is not message
            if stale or _target_arn(source) != target.arn:
                return
            plan = plan_dead_letter_move(source, message, target, self._at(target, source_ms))
            if self._written(plan, source, target):
                apply_dead_letter_move(plan, source, target)
                self._due.publish(target)
            else:
                source.postpone_move(message, source_ms + RETRY_MS)

    def _written(self, plan: MovePlan, source: Queue, target: Queue) -> bool:
        try:
            self._writer.write_move(plan, source, target)
        except ServiceUnavailable:
            return False
        return True

    # Move tasks

    def run_whole_task(self, task: MoveTask, now_ms: int) -> None:
        """Move everything a task without a rate has to move.  O(messages log n)."""
        touched: dict[QueueKey, Queue] = {}
        for steps in count(1):
            if not task.is_running:
                break
            self._step(task, now_ms, touched)
            if steps % PIECE == 0:
                self._give_way()
        self._serve_and_publish(touched.values(), now_ms)

    def _run_tasks(self, instant_ms: int, touched: dict[QueueKey, Queue]) -> None:
        if self.next_task_ms > instant_ms:
            return
        with self.task_lock:
            due = [task for task in self.tasks.running() if task.next_step_ms <= instant_ms]
        for task in due:
            self._step(task, instant_ms, touched)
        self.task_changed()

    def _step(self, task: MoveTask, now_ms: int, touched: dict[QueueKey, Queue]) -> None:
        """Move one message, or end the task."""
        source = self._registry.find(task.source)
        if source is None or source.deleted:
            task.fail(DESTINATION_GONE)
            return
        self._finish_before(source, now_ms)
        with source.lock:
            message = source.order.peek()
            origin = None if message is None else message.dead_letter_source_arn
            arn = task.destination_arn or origin
        touched[source.key] = source
        if message is None:
            self._end(task, source, None)
            return
        if task.is_out_of_time(now_ms):
            self._end(task, source, TIME_IS_UP)
            return
        target = None if arn is None else self._registry.find_arn(arn)
        if target is None or target.deleted:
            reason = SOURCE_UNKNOWN if arn is None else DESTINATION_GONE
            self._end(task, source, reason)
            return
        self._finish_before(target, now_ms)
        self._move_for_task(task, source, message, target, now_ms)
        touched[target.key] = target

    def _move_for_task(
        self, task: MoveTask, source: Queue, message: Message, target: Queue, now_ms: int
    ) -> None:
        with both_locked(source, target):
            stale = source.deleted or target.deleted or source.order.peek() is not message
            if stale or not task.is_running:
                return
            at_ms = self._at(target, self._at(source, now_ms))
            message_id = self._new_message_id(target.key)
            plan = plan_task_move(task, message, message_id, target, at_ms)
            if not self._written(plan, source, target):
                task.not_before_ms = at_ms + RETRY_MS
                if task.rate is None:
                    task.fail("ServiceUnavailable")
                    _owe(source, task)
                return
            apply_task_move(plan, source, target)
            self._due.publish(target)
            task.moved_one()

    def _end(self, task: MoveTask, source: Queue, failure: str | None) -> None:
        with source.lock:
            if not task.is_running:
                return
            _owe(source, task)
            if failure is None:
                task.status = "COMPLETED"
            else:
                task.fail(failure)


def _next_to_end(queue: Queue, now_ms: int) -> Message | None:
    """The first message whose time in flight is over, or that waits to be moved."""
    while queue.used_up:
        message = queue.used_up[0]
        if message.state == "visible" and message.moving:
            return message
        queue.used_up.popleft()
    ending = queue.next_timeout()
    if ending is None or ending.visible_at_ms is None or ending.visible_at_ms > now_ms:
        return None
    return ending


def _owe(source: Queue, task: MoveTask) -> None:
    """The end of a task needs no write to be true."""
    if source.arrears is not None:
        source.arrears.owe_task(task.task_id)


def _target_arn(queue: Queue) -> str | None:
    policy = queue.settings.redrive_policy
    return None if policy is None else policy.dead_letter_target_arn
