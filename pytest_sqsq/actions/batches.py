"""The three batch actions.

What is wrong with the request fails it; what is wrong with one entry fails that entry, under
``Failed`` of an answer with status 200.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pytest_sqsq import limits
from pytest_sqsq.actions.addresses import resolve
from pytest_sqsq.actions.context import ActionContext, Parameters, Result
from pytest_sqsq.actions.outgoing import (
    Draft,
    Entry,
    check_deduplication,
    checked_message,
    sent_answer,
)
from pytest_sqsq.actions.validation import check_range, name_pattern
from pytest_sqsq.errors import (
    BatchEntryIdsNotDistinct,
    BatchRequestTooLong,
    EmptyBatchRequest,
    InvalidBatchEntryId,
    InvalidParameterValue,
    MissingParameter,
    SqsError,
    TooManyEntriesInBatchRequest,
)
from pytest_sqsq.models import OutgoingMessage, QueueSettings

_SEND = "SendMessageBatchRequestEntry"
_DELETE = "DeleteMessageBatchRequestEntry"
_CHANGE = "ChangeMessageVisibilityBatchRequestEntry"

_ENTRY_ID = name_pattern(limits.BATCH_ENTRY_ID_LENGTH)

#: What becomes of an entry: what went wrong, or the members of its answer beside Id.
Outcome = SqsError | dict[str, Any]


def send_message_batch(context: ActionContext, parameters: Parameters) -> Result:
    """SendMessageBatch: the entries that are right are sent in one write, in their order."""
    queue = resolve(context, parameters)
    entries = _checked_entries(parameters, _SEND, "MessageBody")
    drafts = [Draft.of(entry) for entry in entries]
    settings = queue.settings
    _check_whole_batch(settings, drafts)
    checked = [
        context.failure_of(draft.entry) or _message_or_error(settings, draft, context.trace_header)
        for draft in drafts
    ]
    messages = [message for message in checked if isinstance(message, OutgoingMessage)]
    receipts = iter(context.broker.send(queue, messages) if messages else ())
    return _answer(
        entries,
        [
            message
            if isinstance(message, SqsError)
            else sent_answer(draft, message, next(receipts))
            for draft, message in zip(drafts, checked, strict=True)
        ],
    )


def _message_or_error(
    settings: QueueSettings, draft: Draft, trace_header: str | None
) -> OutgoingMessage | SqsError:
    try:
        return checked_message(settings, draft, trace_header, in_batch=True)
    except SqsError as error:
        return error


def _check_whole_batch(settings: QueueSettings, drafts: Sequence[Draft]) -> None:
    size = sum(draft.size for draft in drafts)
    if size > limits.BATCH_BYTES:
        raise BatchRequestTooLong(
            f"Batch requests cannot be longer than {limits.BATCH_BYTES} bytes."
            f" You have sent {size} bytes."
        )
    if not settings.fifo:
        return
    for draft in drafts:
        if draft.entry.get("MessageGroupId") is None:
            # The text is MissingParameter's; in a batch, AWS sends it under another code.
            raise InvalidParameterValue(MissingParameter("MessageGroupId").message)
    for draft in drafts:
        check_deduplication(settings, draft.entry)


def delete_message_batch(context: ActionContext, parameters: Parameters) -> Result:
    """DeleteMessageBatch."""
    queue = resolve(context, parameters)
    entries = _checked_entries(parameters, _DELETE, "ReceiptHandle")
    failures = [context.failure_of(entry) for entry in entries]
    handles = [
        entry["ReceiptHandle"]
        for entry, failure in zip(entries, failures, strict=True)
        if failure is None
    ]
    errors = iter(context.broker.delete(queue, handles) if handles else ())
    return _answer(entries, [failure or next(errors) or {} for failure in failures])


def change_message_visibility_batch(context: ActionContext, parameters: Parameters) -> Result:
    """ChangeMessageVisibilityBatch."""
    queue = resolve(context, parameters)
    entries = _checked_entries(parameters, _CHANGE, "ReceiptHandle")
    faults = [
        context.failure_of(entry) or _visibility_fault(number, entry)
        for number, entry in enumerate(entries, 1)
    ]
    changes = [
        (entry["ReceiptHandle"], entry["VisibilityTimeout"])
        for entry, fault in zip(entries, faults, strict=True)
        if fault is None
    ]
    errors = iter(context.broker.change_visibility(queue, changes) if changes else ())
    return _answer(entries, [fault or next(errors) or {} for fault in faults])


def _visibility_fault(number: int, entry: Entry) -> SqsError | None:
    seconds = entry.get("VisibilityTimeout")
    if seconds is None:
        return MissingParameter(f"{_CHANGE}.{number}.VisibilityTimeout")
    reason = "VisibilityTimeout must be an integer between {low} and {high}."
    try:
        check_range(seconds, limits.VISIBILITY_TIMEOUT, "VisibilityTimeout", reason)
    except InvalidParameterValue as error:
        return error
    return None


def _checked_entries(parameters: Parameters, shape: str, member: str) -> Sequence[Entry]:
    """The entries of a batch, which has some, not too many, all with their own Id and a member."""
    entries: Sequence[Entry] | None = parameters.get("Entries")
    if not entries:
        raise EmptyBatchRequest(f"There should be at least one {shape} in the request.")
    if len(entries) > limits.BATCH_ENTRIES:
        raise TooManyEntriesInBatchRequest(
            f"Maximum number of entries per request are {limits.BATCH_ENTRIES}."
            f" You have sent {len(entries)}."
        )
    _check_ids(entries, shape)
    for number, entry in enumerate(entries, 1):
        value = entry.get(member)
        if value is None or (member == "MessageBody" and not value):
            raise MissingParameter(f"{shape}.{number}.{member}")
    return entries


def _check_ids(entries: Sequence[Entry], shape: str) -> None:
    for number, entry in enumerate(entries, 1):
        entry_id = entry.get("Id")
        if entry_id is None:
            raise MissingParameter(f"{shape}.{number}.Id")
        if not _ENTRY_ID.fullmatch(entry_id):
            raise InvalidBatchEntryId(
                "A batch entry id can only contain alphanumeric characters, hyphens and"
                f" underscores. It can be at most {limits.BATCH_ENTRY_ID_LENGTH} letters long."
            )
    met = set()
    for entry in entries:
        if entry["Id"] in met:
            raise BatchEntryIdsNotDistinct(f"Id {entry['Id']} repeated.")
        met.add(entry["Id"])


def _answer(entries: Sequence[Entry], outcomes: Iterable[Outcome]) -> dict[str, Any]:
    successful, failed = [], []
    for entry, outcome in zip(entries, outcomes, strict=True):
        if isinstance(outcome, SqsError):
            failed.append(
                {
                    "Id": entry["Id"],
                    "SenderFault": outcome.fault == "Sender",
                    "Code": outcome.query_code,
                    "Message": outcome.message,
                }
            )
        else:
            successful.append({"Id": entry["Id"], **outcome})
    answer: dict[str, Any] = {}
    if successful:
        answer["Successful"] = successful
    if failed:
        answer["Failed"] = failed
    return answer
