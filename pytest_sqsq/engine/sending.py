"""How messages come into a queue."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_sqsq.engine.deduplication import Accepted, DeduplicationKey
from pytest_sqsq.engine.message import Message
from pytest_sqsq.engine.plans import SendPlan
from pytest_sqsq.engine.queue import SEQUENCE_STEP, Queue
from pytest_sqsq.models import OutgoingMessage, SendReceipt


def plan_send(queue: Queue, messages: Sequence[OutgoingMessage], now_ms: int) -> SendPlan:
    """Work out ids, sequence numbers and duplicates.  O(1) for each message."""
    plan = SendPlan(now_ms)
    fifo = queue.settings.fifo
    for outgoing in messages:
        key = _deduplication_key(queue, outgoing) if fifo else None
        if key is not None:
            first = plan.accepted.get(key) or queue.deduplication.find(key, now_ms)
            if first is not None:
                plan.duplicates.append((first.message_id, outgoing.body))
                plan.receipts.append(
                    SendReceipt(first.message_id, first.sequence_number, duplicate=True)
                )
                continue
        message = _new_message(queue, outgoing, now_ms, len(plan.messages))
        plan.messages.append(message)
        plan.receipts.append(SendReceipt(message.message_id, message.sequence_number))
        if key is not None and message.sequence_number is not None:
            plan.accepted[key] = Accepted(message.message_id, message.sequence_number, now_ms)
    return plan


def apply_send(queue: Queue, plan: SendPlan) -> None:
    """Append the messages and remember their deduplication ids.  O(log n) each."""
    now_ms = plan.now_ms
    for message in plan.messages:
        queue.enter(message)
        delayed = message.state == "delayed"
        queue.journal.record(
            now_ms,
            "sent",
            message,
            {"delayed_until_ms": queue.visible_at_ms(message)} if delayed else None,
        )
    queue.sent += len(plan.messages)
    for key, first in plan.accepted.items():
        queue.deduplication.remember(key, first, first.accepted_ms)
    for message_id, body in plan.duplicates:
        queue.journal.record_duplicate(now_ms, message_id, body)


def _deduplication_key(queue: Queue, outgoing: OutgoingMessage) -> DeduplicationKey | None:
    if outgoing.message_deduplication_id is None:
        return None
    scoped = queue.deduplication_scope == "messageGroup"
    group = outgoing.message_group_id if scoped else None
    return group, outgoing.message_deduplication_id


def _new_message(queue: Queue, outgoing: OutgoingMessage, now_ms: int, index: int) -> Message:
    message = Message(
        queue.new_message_id(),
        outgoing.body,
        now_ms,
        attributes=outgoing.attributes,
        message_group_id=outgoing.message_group_id,
        message_deduplication_id=outgoing.message_deduplication_id,
        trace_header=outgoing.trace_header,
    )
    message.arrival = queue.next_arrival + index
    settings = queue.settings
    if settings.fifo:
        message.sequence_number = queue.next_sequence + index * SEQUENCE_STEP
        delay_seconds = settings.delay_seconds
    else:
        asked = outgoing.delay_seconds
        delay_seconds = settings.delay_seconds if asked is None else asked
    if delay_seconds:
        message.state = "delayed"
        if not settings.fifo:
            message.visible_at_ms = now_ms + delay_seconds * 1000
    return message
