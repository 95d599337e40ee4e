"""What there is to tell of a queue and its messages; changes nothing."""

from __future__ import annotations

from pytest_sqsq.engine.message import Message
from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.models import QueueStatistics, instant_text, shortened


def statistics_of(queue: Queue) -> QueueStatistics:
    """Gauges and totals; to be called inside ``broker.entry``.  O(1)."""
    log = queue.log
    return QueueStatistics(
        visible=queue.visible_count,
        in_flight=queue.in_flight_count,
        delayed=queue.delayed_count,
        live_count=log.live_count,
        dead_count=log.dead_count,
        slot_count=log.slot_count,
        compactions=log.compactions,
        receipt_index_size=log.receipt_index_size,
        uuid_index_size=log.uuid_index_size,
        groups=queue.order.group_count,
        parked_polls=len(queue.parked),
        sent=queue.sent,
        received=queue.received,
        deleted=queue.removed,
        expired=queue.expired,
        dead_lettered=queue.dead_lettered,
    )


def why_not_deliverable(queue: Queue, message: Message) -> str | None:
    """Why the next receive cannot take a message; ``None`` if it can."""
    visible_at_ms = queue.visible_at_ms(message)
    if visible_at_ms is not None:
        return _waiting_text(message, visible_at_ms)
    if queue.is_used_up(message):
        return "its receive count is used up: the next receive moves it to the dead-letter queue"
    blocker = queue.order.blocker_of(message)
    if blocker is not None:
        return (
            f"message group {message.message_group_id!r} waits for"
            f" {shortened(blocker.body)!r}, {why_not_deliverable(queue, blocker)}"
        )
    if queue.room_in_flight <= 0:
        return f"the in-flight limit of {queue.in_flight_limit} is reached"
    return None


def _waiting_text(message: Message, visible_at_ms: int) -> str:
    until = f"until {instant_text(visible_at_ms)}"
    if message.move_failed:
        return f"its move to the dead-letter queue failed; it waits {until} to try again"
    if message.state == "in_flight":
        return f"in flight {until} (receive {message.receive_count})"
    return f"delayed {until}"
