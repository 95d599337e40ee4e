"""A message on its way in: what SendMessage and each entry of SendMessageBatch check and answer."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from pytest_sqsq import limits
from pytest_sqsq.actions.digests import md5_hex, md5_of_attributes
from pytest_sqsq.actions.message_attributes import (
    TRACE_HEADER,
    parse_attributes,
    parse_system_attributes,
    size_of,
)
from pytest_sqsq.actions.validation import (
    VALID_TEXT,
    WRONG_QUEUE_TYPE,
    check_range,
    encoded,
    identifier_fault,
)
from pytest_sqsq.errors import InvalidMessageContents, InvalidParameterValue
from pytest_sqsq.models import MessageAttribute, OutgoingMessage, QueueSettings, SendReceipt

Entry = Mapping[str, Any]

SEQUENCE_NUMBER_DIGITS = 20


def sequence_text(sequence_number: int) -> str:
    """A sequence number as the wire has it: 20 digits, so that texts sort as numbers do."""
    return f"{sequence_number:0{SEQUENCE_NUMBER_DIGITS}}"


class Draft(NamedTuple):
    """A message as it was sent, before it is checked: its body in UTF-8, and its size in bytes."""

    entry: Entry
    data: bytes
    size: int

    @classmethod
    def of(cls, entry: Entry) -> Draft:
        data = encoded(entry["MessageBody"])
        return cls(entry, data, len(data) + size_of(entry.get("MessageAttributes")))


def deduplication_id(settings: QueueSettings, draft: Draft) -> str:
    """The id by which a FIFO queue tells duplicates: the explicit one, else the body's SHA-256."""
    explicit = draft.entry.get("MessageDeduplicationId")
    if explicit is not None:
        return str(explicit)
    check_deduplication(settings, draft.entry)
    return sha256(draft.data).hexdigest()


def check_deduplication(settings: QueueSettings, entry: Entry) -> None:
    """Raises InvalidParameterValue where a FIFO queue could not tell duplicates of a message."""
    if entry.get("MessageDeduplicationId") is None and not settings.content_based_deduplication:
        raise InvalidParameterValue(
            "The queue should either have ContentBasedDeduplication enabled or"
            " MessageDeduplicationId provided explicitly"
        )


def checked_message(
    settings: QueueSettings, draft: Draft, trace_header: str | None, *, in_batch: bool
) -> OutgoingMessage:
    """The message that a draft becomes in a queue with these settings; raises SqsError.

    ``trace_header`` came with the request and gives way to the message's own.  A batch words some
    faults differently.
    """
    entry = draft.entry
    if not VALID_TEXT.fullmatch(entry["MessageBody"]):
        raise InvalidMessageContents
    delay_seconds = entry.get("DelaySeconds")
    if delay_seconds is not None:
        _check_delay(settings, delay_seconds)
    attributes = entry.get("MessageAttributes")
    parsed = parse_attributes(attributes) if attributes else None
    system_attributes = entry.get("MessageSystemAttributes")
    if system_attributes:
        trace_header = str(parse_system_attributes(system_attributes)[TRACE_HEADER].value)
    duplicate_id = _checked_deduplication_id(settings, draft, in_batch)
    group_id = entry.get("MessageGroupId")
    if group_id is not None:
        _check_identifier(group_id, "MessageGroupId", in_batch)
    if draft.size > settings.maximum_message_size:
        raise InvalidParameterValue(
            f"One or more parameters {'cannot be validated' if in_batch else 'are invalid'}."
            f" Reason: Message must be shorter than {settings.maximum_message_size} bytes."
        )
    return OutgoingMessage(
        entry["MessageBody"],
        parsed,
        None if settings.fifo else delay_seconds,
        group_id,
        duplicate_id,
        trace_header,
    )


def _check_delay(settings: QueueSettings, delay_seconds: int) -> None:
    if not settings.fifo:
        reason = "DelaySeconds must be >= {low} and <= {high}."
        check_range(delay_seconds, limits.DELAY_SECONDS, "DelaySeconds", reason)
    elif delay_seconds:
        raise InvalidParameterValue.for_value(delay_seconds, "DelaySeconds", f"{WRONG_QUEUE_TYPE}.")


def _checked_deduplication_id(settings: QueueSettings, draft: Draft, in_batch: bool) -> str | None:
    explicit = draft.entry.get("MessageDeduplicationId")
    if explicit is not None:
        if not settings.fifo:
            raise _parameter_fault(explicit, "MessageDeduplicationId", WRONG_QUEUE_TYPE, in_batch)
        _check_identifier(explicit, "MessageDeduplicationId", in_batch)
    return deduplication_id(settings, draft) if settings.fifo else None


def _check_identifier(value: str, parameter: str, in_batch: bool) -> None:
    if fault := identifier_fault(value, parameter):
        raise _parameter_fault(value, parameter, fault, in_batch)


def _parameter_fault(
    value: str, parameter: str, reason: str, in_batch: bool
) -> InvalidParameterValue:
    if in_batch:
        return InvalidParameterValue(reason)
    return InvalidParameterValue.for_value(value, parameter, f"{reason}.")


def sent_answer(draft: Draft, message: OutgoingMessage, receipt: SendReceipt) -> dict[str, Any]:
    """What the sender of a message is told; of a duplicate, the original's ids.

    The digests are of what was just sent, also for a duplicate, since SDKs verify them.
    """
    answer: dict[str, Any] = {
        "MessageId": receipt.message_id,
        "MD5OfMessageBody": md5_hex(draft.data),
    }
    if message.attributes:
        answer["MD5OfMessageAttributes"] = md5_of_attributes(message.attributes)
    if message.trace_header is not None and draft.entry.get("MessageSystemAttributes"):
        trace_header = {TRACE_HEADER: MessageAttribute("String", message.trace_header)}
        answer["MD5OfMessageSystemAttributes"] = md5_of_attributes(trace_header)
    if receipt.sequence_number is not None:
        answer["SequenceNumber"] = sequence_text(receipt.sequence_number)
    return answer
