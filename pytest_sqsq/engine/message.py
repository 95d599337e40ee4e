"""A message as the engine keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pytest_sqsq.models import Delivery, MessageAttribute
from pytest_sqsq.store.records import MessageRecord

if TYPE_CHECKING:
    from pytest_sqsq.engine.fifo import Group

LifeState = Literal["delayed", "visible", "in_flight", "gone"]


class Message:
    """One message in one queue; a move between queues makes a new object.

    All fields are guarded by the lock of the message's queue.  ``visible_at_ms`` is when an
    in-flight message, or a delayed one of a standard queue, becomes visible.  ``receives_here``
    counts receives since the message entered this queue, ``receive_count`` all of them.
    ``received_ms`` is the latest receive, from which the 12-hour limit counts.
    ``carries_delay`` is false for messages that were moved here.  ``moving`` marks a visible
    message whose receive count is used up and whose move to the dead-letter queue is due.
    ``move_failed`` says that such a move was tried and the store refused it.
    """

    __slots__ = (
        "arrival",
        "attributes",
        "body",
        "carries_delay",
        "dead_letter_source_arn",
        "first_received_ms",
        "group",
        "message_deduplication_id",
        "message_group_id",
        "message_id",
        "move_failed",
        "moving",
        "next_in_group",
        "previous_in_group",
        "receipt_handle",
        "receive_count",
        "received_ms",
        "receives_here",
        "retention_start_ms",
        "sent_ms",
        "sequence_number",
        "slot",
        "state",
        "trace_header",
        "visible_at_ms",
    )

    def __init__(
        self,
        message_id: str,
        body: str,
        sent_ms: int,
        *,
        attributes: Mapping[str, MessageAttribute] | None = None,
        message_group_id: str | None = None,
        message_deduplication_id: str | None = None,
        sequence_number: int | None = None,
        trace_header: str | None = None,
    ) -> None:
        self.message_id = message_id
        self.body = body
        self.sent_ms = sent_ms
        self.attributes = attributes
        self.message_group_id = message_group_id
        self.message_deduplication_id = message_deduplication_id
        self.sequence_number = sequence_number
        self.trace_header = trace_header
        self.dead_letter_source_arn: str | None = None
        self.retention_start_ms = sent_ms
        self.receive_count = 0
        self.receives_here = 0
        self.first_received_ms: int | None = None
        self.received_ms: int | None = None
        self.visible_at_ms: int | None = None
        self.receipt_handle: str | None = None
        self.state: LifeState = "visible"
        self.carries_delay = True
        self.moving = False
        self.move_failed = False
        self.arrival = 0
        self.slot = -1
        self.group: Group | None = None
        self.previous_in_group: Message | None = None
        self.next_in_group: Message | None = None

    def __repr__(self) -> str:
        return f"<Message {self.message_id} {self.state} slot={self.slot}>"

    def copy_with_id(self, message_id: str, sent_ms: int) -> Message:
        """A new message of the same content, for another place in a queue."""
        return Message(
            message_id,
            self.body,
            sent_ms,
            attributes=self.attributes,
            message_group_id=self.message_group_id,
            message_deduplication_id=self.message_deduplication_id,
            trace_header=self.trace_header,
        )

    def delivery(self, handle: str, receive_count: int, first_received_ms: int) -> Delivery:
        """What a receive hands out, with the counts as they are after it."""
        return Delivery(
            self.message_id,
            handle,
            self.body,
            self.attributes,
            self.sent_ms,
            receive_count,
            first_received_ms,
            self.message_group_id,
            self.message_deduplication_id,
            self.sequence_number,
            self.trace_header,
            self.dead_letter_source_arn,
        )

    def record(self) -> MessageRecord:
        """The message as a store keeps it."""
        attributes = self.attributes
        return MessageRecord(
            message_id=self.message_id,
            arrival=self.arrival,
            body=self.body,
            attributes=(
                None
                if attributes is None
                else {name: (value.data_type, value.value) for name, value in attributes.items()}
            ),
            sent_ms=self.sent_ms,
            retention_start_ms=self.retention_start_ms,
            delayed=self.state == "delayed",
            delayed_until_ms=self.visible_at_ms if self.state == "delayed" else None,
            receive_count=self.receive_count,
            receives_here=self.receives_here,
            first_received_ms=self.first_received_ms,
            received_ms=self.received_ms,
            visible_at_ms=self.visible_at_ms if self.state == "in_flight" else None,
            receipt_handle=self.receipt_handle,
            message_group_id=self.message_group_id,
            message_deduplication_id=self.message_deduplication_id,
            sequence_number=self.sequence_number,
            trace_header=self.trace_header,
            dead_letter_source_arn=self.dead_letter_source_arn,
            carries_delay=self.carries_delay,
        )
