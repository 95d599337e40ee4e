"""Messages as tests see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_sqsq.actions.digests import md5_of_body
from pytest_sqsq.actions.messages import system_attributes
from pytest_sqsq.engine.looking import why_not_deliverable
from pytest_sqsq.engine.message import Message
from pytest_sqsq.models import Event, MessageState, MessageView, instant_text

if TYPE_CHECKING:
    from pytest_sqsq.engine.journal import Content
    from pytest_sqsq.engine.queue import Queue
    from pytest_sqsq.testing.stories import Story


def live_view(queue: Queue, message: Message) -> MessageView:
    """A view of a message in a queue; to be called inside ``broker.entry``."""
    system = system_attributes(message)
    return MessageView(
        message_id=message.message_id,
        body=message.body,
        md5_of_body=md5_of_body(message.body),
        attributes=_plain_attributes(message),
        system_attributes=system,
        state=_live_state(message),
        receive_count=message.receive_count,
        receipt_handle=message.receipt_handle,
        sent_ms=message.sent_ms,
        visible_at_ms=queue.visible_at_ms(message),
        expires_at_ms=queue.expires_at_ms(message),
        message_group_id=message.message_group_id,
        message_deduplication_id=message.message_deduplication_id,
        sequence_number=system.get("SequenceNumber"),
        slot=message.slot,
        dead_letter_source_arn=message.dead_letter_source_arn,
        why_not_deliverable=why_not_deliverable(queue, message),
        queue=queue.key.name,
    )


def gone_view(
    queue_name: str, retention_seconds: int, story: Story, content: Content | None
) -> MessageView:
    """A message that is gone, as it last stood, from what the journal holds about it.

    ``slot`` is ``None``, and ``why_not_deliverable`` says what became of the message.
    """
    state, visible_at_ms = _last_standing(story)
    message = _last_form(story, content)
    system = system_attributes(message)
    return MessageView(
        message_id=story.message_id,
        body=story.body,
        md5_of_body=md5_of_body(story.body),
        attributes=_plain_attributes(message),
        system_attributes=system,
        state=state,
        receive_count=message.receive_count,
        receipt_handle=None,
        sent_ms=message.sent_ms,
        visible_at_ms=visible_at_ms,
        expires_at_ms=message.sent_ms + retention_seconds * 1000,
        message_group_id=message.message_group_id,
        message_deduplication_id=message.message_deduplication_id,
        sequence_number=system.get("SequenceNumber"),
        slot=None,
        dead_letter_source_arn=message.dead_letter_source_arn,
        why_not_deliverable=_what_became(story),
        queue=queue_name,
    )


def _last_form(story: Story, content: Content | None) -> Message:
    """The message as it was when it left, apart from its state; in no queue."""
    message = Message(story.message_id, story.body, story.events[0].at_ms)
    if content is not None:
        message.sent_ms = content.sent_ms
        message.receive_count = content.receive_count
        message.first_received_ms = content.first_received_ms
        message.attributes = content.attributes
        message.message_group_id = content.message_group_id
        message.message_deduplication_id = content.message_deduplication_id
        message.sequence_number = content.sequence_number
        message.trace_header = content.trace_header
        message.dead_letter_source_arn = content.dead_letter_source_arn
    for event in story.of_kind("received"):
        message.receive_count = _integer(event, "receive_count") or message.receive_count
        if message.first_received_ms is None:
            message.first_received_ms = event.at_ms
    return message


def _plain_attributes(message: Message) -> dict[str, str | bytes]:
    return {name: value for name, (_, value) in (message.attributes or {}).items()}


def _live_state(message: Message) -> MessageState:
    assert message.state != "gone", f"{message!r} is in a log and gone"
    return message.state


_HIDING = {"received", "visibility_changed", "delete_lost"}


def _last_standing(story: Story) -> tuple[MessageState, int | None]:
    state: MessageState = "visible"
    visible_at_ms: int | None = None
    for event in story.events:
        if event.kind in _HIDING and "visible_at_ms" in event.detail:
            state, visible_at_ms = "in_flight", _integer(event, "visible_at_ms")
        elif event.kind == "sent" and "delayed_until_ms" in event.detail:
            state, visible_at_ms = "delayed", _integer(event, "delayed_until_ms")
        elif event.kind in {"visible", "returned"}:
            state, visible_at_ms = "visible", None
    return state, visible_at_ms


def _what_became(story: Story) -> str:
    departure = story.departure
    if departure is None:
        return "gone"
    what = "dead-lettered" if departure.kind == "dead_lettered" else departure.kind
    return f"{what} at {instant_text(departure.at_ms)}"


def _integer(event: Event, name: str) -> int | None:
    value = event.detail.get(name)
    return value if isinstance(value, int) else None
