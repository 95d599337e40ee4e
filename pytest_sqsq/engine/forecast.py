"""What will happen next by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_sqsq.engine.queue import NEVER_MS, Queue
from pytest_sqsq.models import Event, EventKind

if TYPE_CHECKING:
    from pytest_sqsq.engine.broker import Broker
    from pytest_sqsq.engine.message import Message


def forecast(broker: Broker) -> Event | None:
    """The next event, as it would be if nobody called until then.  O(queues)."""
    due_ms = broker.next_due_ms()
    if due_ms is None:
        return None
    found: tuple[int, Event] | None = None
    for queue in broker.queues:
        with queue.lock:
            event = _next_in(queue, due_ms, moves_early=broker.dead_letter_on == "tick")
        if event is not None and (found is None or event[0] < found[0]):
            found = event
    if found is not None:
        return found[1]
    for task in broker.running_move_tasks():
        if task.next_step_ms <= due_ms:
            return Event(due_ms, "moved", task.source.name, None, None, {"task_id": task.task_id})
    waiter = broker.due.next_poll_end()
    return None if waiter is None else Event(due_ms, "poll_ended", waiter.queue.key.name)


def _next_in(queue: Queue, due_ms: int, *, moves_early: bool) -> tuple[int, Event] | None:
    """What happens first in a queue at an instant, and the rank of its kind among queues."""
    message = queue.next_expiring()
    if message is not None and queue.expires_at_ms(message) <= due_ms:
        return 0, Event(due_ms, "expired", queue.key.name, message.message_id, message.body)
    message = queue.next_timeout()
    if message is not None and (message.visible_at_ms or 0) <= due_ms:
        moves = (moves_early or message.move_failed) and queue.is_used_up(message)
        kind: EventKind = "dead_lettered" if moves else "visible"
        return 1, Event(due_ms, kind, queue.key.name, message.message_id, message.body)
    message = queue.next_delay()
    if message is not None and (queue.visible_at_ms(message) or 0) <= due_ms:
        return 2, Event(due_ms, "visible", queue.key.name, message.message_id, message.body)
    return None


def next_change(broker: Broker) -> int | None:
    """When a message next comes back, appears or is moved by itself, retention aside."""
    steps = (task.next_step_ms for task in broker.running_move_tasks())
    instants = [step_ms for step_ms in steps if step_ms != NEVER_MS]
    for queue in broker.queues:
        with queue.lock:
            instants += _changes_in(queue)
    return min(instants, default=None)


def _changes_in(queue: Queue) -> Iterator[int]:
    if queue.used_up:
        yield queue.settled_ms
    first = [message for message in (queue.next_timeout(), queue.next_delay()) if message]
    shown = [_shown_ms(queue, message) for message in first]
    if None in shown:
        # Where one that is hidden will be gone before, the next to be shown has to be looked for.
        shown = [_shown_ms(queue, message) for message in queue.log.live_messages()]
    yield from (shown_ms for shown_ms in shown if shown_ms is not None)


def _shown_ms(queue: Queue, message: Message) -> int | None:
    """When a hidden message is visible again or at last, unless retention removes it before."""
    visible_ms = queue.visible_at_ms(message)
    lives = visible_ms is not None and visible_ms < queue.expires_at_ms(message)
    return visible_ms if lives else None
