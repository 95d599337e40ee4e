"""How messages are handed out."""

from __future__ import annotations

from pytest_sqsq.engine.attempts import Attempt
from pytest_sqsq.engine.plans import ReceivePlan
from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.errors import InvalidParameterValue, OverLimit
from pytest_sqsq.models import Delivery, ReceiveRequest


def plan_receive(queue: Queue, request: ReceiveRequest, now_ms: int) -> ReceivePlan:
    """Take what a receive would hand out.  O(k log n).

    Raises ``OverLimit`` for a short poll on a standard queue with too many in flight, and
    ``InvalidParameterValue`` for an attempt that cannot be repeated any more.
    """
    asked = request.visible_seconds(queue.settings.visibility_timeout)
    visible_at_ms = now_ms + asked * 1000
    attempt_id = request.receive_request_attempt_id
    if attempt_id is not None:
        attempt = _attempt_to_replay(queue, attempt_id, now_ms)
        if attempt is not None:
            return ReceivePlan(
                now_ms,
                visible_at_ms,
                list(attempt.messages),
                list(attempt.handles),
                attempt_id=attempt_id,
                replay=attempt,
            )
    room = queue.room_in_flight
    if room <= 0:
        if not queue.settings.fifo and not request.wait_time_seconds:
            raise OverLimit("Too many messages in flight.")
        return ReceivePlan(now_ms, visible_at_ms, [], [])
    count = min(request.max_number_of_messages, room)
    if queue.loose is not None and not request.wait_time_seconds:
        count = queue.loose.short_poll_count(count)
    taken, used_up = queue.order.take(count, now_ms, queue.used_up_test())
    handles = [queue.handle_for(m, m.receive_count + 1) for m in taken]
    return ReceivePlan(now_ms, visible_at_ms, taken, handles, used_up, attempt_id)


def abandon_receive(queue: Queue, plan: ReceivePlan) -> None:
    """Undo :meth:`plan_receive`: the store could not be written."""
    if plan.replay is None:
        queue.order.put_back([*plan.messages, *plan.used_up])


def apply_receive(queue: Queue, plan: ReceivePlan) -> None:
    """Hide and count what is handed out, and mark what is due to move.  O(k log n)."""
    now_ms, visible_at_ms = plan.now_ms, plan.visible_at_ms
    for message in plan.used_up:
        message.moving = True
        queue.used_up.append(message)
    for message, handle in zip(plan.messages, plan.handles, strict=True):
        if plan.replay is None:
            message.receive_count += 1
            message.receives_here += 1
            if message.first_received_ms is None:
                message.first_received_ms = now_ms
        message.received_ms = now_ms
        queue.hide(message, handle, visible_at_ms)
        queue.journal.record(
            now_ms,
            "received",
            message,
            {
                "receive_count": message.receive_count,
                "visible_at_ms": visible_at_ms,
                "receipt_handle": handle,
            },
        )
    if plan.messages:
        queue.received += len(plan.messages)
        if plan.replay is None:
            queue.order.delivered(plan.messages)
        if plan.attempt_id is not None:
            queue.attempts.remember(
                plan.attempt_id,
                Attempt(tuple(plan.messages), tuple(plan.handles), visible_at_ms),
                now_ms,
            )


def _attempt_to_replay(queue: Queue, attempt_id: str, now_ms: int) -> Attempt | None:
    attempt = queue.attempts.find(attempt_id, now_ms)
    if attempt is None or attempt.has_run_out(now_ms):
        return None
    if not attempt.is_retryable:
        raise InvalidParameterValue.attempt_not_retryable(attempt_id)
    return attempt


def deliveries_of(plan: ReceivePlan) -> list[Delivery]:
    """What an applied plan hands out; to be called before the queue's lock is released."""
    return [
        message.delivery(handle, message.receive_count, message.first_received_ms or plan.now_ms)
        for message, handle in zip(plan.messages, plan.handles, strict=True)
    ]
