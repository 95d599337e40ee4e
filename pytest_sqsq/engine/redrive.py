"""Moves of messages between queues: dead-letter moves and the steps of move tasks.

Only settling moves messages, one at a time, holding exactly the locks of the two queues.
Nothing else holds two queue locks, so that queues that dead-letter into each other, or into
themselves, cannot deadlock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pytest_sqsq.engine.message import Message
from pytest_sqsq.engine.move_tasks import MoveTask
from pytest_sqsq.engine.plans import MovePlan
from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.models import EventKind


@contextmanager
def both_locked(one: Queue, other: Queue) -> Iterator[None]:
    """Hold the locks of two queues, taken in the order of their keys."""
    if one is other:
        with one.lock:
            yield
        return
    first, second = sorted((one, other), key=lambda queue: queue.key)
    with first.lock, second.lock:
        yield


def plan_dead_letter_move(source: Queue, message: Message, target: Queue, now_ms: int) -> MovePlan:
    """What a message becomes in its dead-letter queue.

    Id, content, counts and times stay.  In a FIFO queue it gets a new sequence number, its
    message id as deduplication id, and its retention begins anew; in a standard queue its age
    counts on.
    """
    arriving = message.copy_with_id(message.message_id, message.sent_ms)
    arriving.receive_count = message.receive_count
    arriving.first_received_ms = message.first_received_ms
    arriving.dead_letter_source_arn = source.arn
    arriving.retention_start_ms = message.retention_start_ms
    if target.settings.fifo:
        arriving.sequence_number = target.next_sequence_number()
        arriving.message_deduplication_id = message.message_id
        arriving.retention_start_ms = now_ms
    return _planned(message, arriving, target, now_ms)


def plan_task_move(
    task: MoveTask, message: Message, message_id: str, target: Queue, now_ms: int
) -> MovePlan:
    """What a message becomes when a move task takes it: a new message of the same content."""
    arriving = message.copy_with_id(message_id, now_ms)
    arriving.message_deduplication_id = message.message_deduplication_id
    arriving.sequence_number = target.next_sequence_number()
    plan = _planned(message, arriving, target, now_ms)
    plan.task = task.record_after_move()
    return plan


def _planned(message: Message, arriving: Message, target: Queue, now_ms: int) -> MovePlan:
    arriving.arrival = target.next_arrival
    arriving.carries_delay = False
    return MovePlan(now_ms, message, arriving, target.key)


def apply_dead_letter_move(plan: MovePlan, source: Queue, target: Queue) -> None:
    """Move the message as a dead letter, both queues locked.  O(log n)."""
    source.dead_lettered += 1
    _carry(plan, source, target, "dead_lettered")


def apply_task_move(plan: MovePlan, source: Queue, target: Queue) -> None:
    """Move the message as a step of a move task, both queues locked.  O(log n)."""
    _carry(plan, source, target, "moved")


def _carry(plan: MovePlan, source: Queue, target: Queue, kind: EventKind) -> None:
    # The target may have been looked at later already; each queue tells its own time.
    source.journal.record(source.settled_ms, kind, plan.message, {"target_arn": target.arn})
    source.leave(plan.message)
    target.enter(plan.arriving)
    target.journal.record(plan.now_ms, "moved", plan.arriving, {"source_arn": source.arn})
