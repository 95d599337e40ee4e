"""What consumers do with messages they hold a handle of: delete them, change their visibility.

And what is done to all messages at once: the purge.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_sqsq.engine.message import Message
from pytest_sqsq.engine.plans import PurgePlan, RemovalPlan, VisibilityPlan
from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.engine.receipts import read_handle
from pytest_sqsq.errors import InvalidParameterValue, ReceiptHandleIsInvalid, SqsError
from pytest_sqsq.limits import TOTAL_VISIBILITY_MS


def find_by_handle(queue: Queue, handle: str) -> Message | None:
    """The message a handle of this queue was given for, or ``None`` where it is gone.

    Raises ``ReceiptHandleIsInvalid`` for garbage and for another queue's handle.
    """
    message = queue.log.find_receipt(handle)
    if message is not None:
        return message
    receipt = read_handle(handle)
    if receipt is None:
        raise ReceiptHandleIsInvalid.not_a_handle(handle)
    if receipt.queue_token != queue.token:
        raise ReceiptHandleIsInvalid.of_another_queue(handle)
    message = queue.log.find_uuid(receipt.message_id)
    if message is not None and queue.settings.fifo:
        raise InvalidParameterValue.handle_expired(handle)
    return message


def plan_delete(queue: Queue, handles: Sequence[str], now_ms: int) -> RemovalPlan:
    """Find the messages to remove; a message that is gone already is no error."""
    plan = RemovalPlan(now_ms, [])
    for handle in handles:
        try:
            message = find_by_handle(queue, handle)
        except SqsError as error:
            plan.outcomes.append(error)
            continue
        plan.outcomes.append(None)
        if message is not None and message not in plan.messages:
            plan.messages.append(message)
    return plan


def apply_delete(queue: Queue, plan: RemovalPlan) -> None:
    """Take the messages out.  O(log n) each, amortised."""
    for message in plan.messages:
        queue.journal.record(plan.now_ms, "deleted", message)
        queue.leave(message)
    queue.removed += len(plan.messages)


def plan_visibility(
    queue: Queue, changes: Sequence[tuple[str, int]], now_ms: int
) -> VisibilityPlan:
    """Work out new deadlines, seconds from now; 12 hours after the receive is the limit."""
    plan = VisibilityPlan(now_ms)
    for handle, seconds in changes:
        try:
            message = _message_to_change(queue, handle, seconds, now_ms)
        except SqsError as error:
            plan.outcomes.append(error)
            continue
        plan.outcomes.append(None)
        # To show what is visible is no change, unless an entry before has hidden it.
        if (
            seconds
            or message.state == "in_flight"
            or message in (one for one, _, _ in plan.changes)
        ):
            current = message.receipt_handle or handle
            plan.changes.append((message, current, now_ms + seconds * 1000))
    return plan


def _message_to_change(queue: Queue, handle: str, seconds: int, now_ms: int) -> Message:
    message = find_by_handle(queue, handle)
    if message is None:
        raise InvalidParameterValue.message_unavailable(handle)
    received_ms = message.received_ms if message.received_ms is not None else now_ms
    # Sub-second lag between a receive and the change that follows it is not held against it.
    elapsed_ms = (now_ms - received_ms) // 1000 * 1000
    if elapsed_ms + seconds * 1000 > TOTAL_VISIBILITY_MS:
        raise InvalidParameterValue.beyond_total_visibility(seconds)
    return message


def apply_visibility(queue: Queue, plan: VisibilityPlan) -> None:
    """Hide the messages until their instants; what is due at once is for settling to show."""
    for message, handle, visible_at_ms in plan.changes:
        queue.hide_untaken(message, handle, visible_at_ms)
        queue.journal.record(
            plan.now_ms,
            "returned" if visible_at_ms <= plan.now_ms else "visibility_changed",
            message,
            {"visible_at_ms": visible_at_ms},
        )


def apply_purge(queue: Queue, plan: PurgePlan) -> None:
    """Forget messages of every state, the deduplication memory and the attempts.  O(n)."""
    queue.journal.record(plan.now_ms, "purged", None, {"count": queue.log.live_count})
    queue.drop_all()
    queue.purged_ms = plan.now_ms
    if queue.arrears is not None:
        queue.arrears.settings = True
