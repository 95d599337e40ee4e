"""The actions on single messages: send, receive, delete, change visibility."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pytest_sqsq import limits
from pytest_sqsq.actions.addresses import resolve
from pytest_sqsq.actions.attributes import QUEUE_ATTRIBUTE_NAMES
from pytest_sqsq.actions.context import ActionContext, Parameters, Result
from pytest_sqsq.actions.digests import md5_of_attributes, md5_of_body
from pytest_sqsq.actions.message_attributes import (
    TRACE_HEADER,
    Filter,
    attribute_filter,
    wire_attributes,
)
from pytest_sqsq.actions.outgoing import Draft, checked_message, sent_answer, sequence_text
from pytest_sqsq.actions.validation import (
    WRONG_QUEUE_TYPE,
    check_range,
    identifier_fault,
    require,
)
from pytest_sqsq.errors import InvalidAttributeName, InvalidParameterValue, MissingParameter
from pytest_sqsq.models import Delivery, QueueSettings, ReceiveRequest

if TYPE_CHECKING:
    from pytest_sqsq.engine.message import Message

#: Who sent every message: an IAM user's id, as AWS shows it.
SENDER_ID = "AIDASSYFHUBOBT7F4XT75"

SYSTEM_ATTRIBUTE_NAMES = frozenset(
    {
        "All",
        "SenderId",
        "SentTimestamp",
        "ApproximateReceiveCount",
        "ApproximateFirstReceiveTimestamp",
        "MessageGroupId",
        "MessageDeduplicationId",
        "SequenceNumber",
        TRACE_HEADER,
        "DeadLetterQueueSourceArn",
    }
)

#: The model types AttributeNames with the names of queue attributes; those choose nothing.
#: Celery's transport asks for ``ALL``.
_ACCEPTED_NAMES = SYSTEM_ATTRIBUTE_NAMES | QUEUE_ATTRIBUTE_NAMES | {"ALL"}


def send_message(context: ActionContext, parameters: Parameters) -> Result:
    """SendMessage."""
    if not parameters.get("MessageBody"):
        raise MissingParameter("MessageBody")
    queue = resolve(context, parameters)
    settings = queue.settings
    if settings.fifo:
        require(parameters, "MessageGroupId")
    draft = Draft.of(parameters)
    message = checked_message(settings, draft, context.trace_header, in_batch=False)
    (receipt,) = context.broker.send(queue, (message,))
    return sent_answer(draft, message, receipt)


def receive_message(context: ActionContext, parameters: Parameters) -> Result:
    """ReceiveMessage: a short poll answers at once, a long one when something has come."""
    queue = resolve(context, parameters)
    wanted = _wanted_names(parameters)
    request = _receive_request(parameters, queue.settings)
    waiter = context.broker.poll(queue, request, context.is_alive)
    if not waiter.resolved:
        context.park(waiter)
    deliveries = waiter.result()
    if not deliveries:
        return {}
    choose = attribute_filter(parameters.get("MessageAttributeNames"))
    return {"Messages": [received_message(delivery, wanted, choose) for delivery in deliveries]}


def _wanted_names(parameters: Parameters) -> frozenset[str] | None:
    """The system attributes asked for, under the old name of the parameter or the new."""
    old, new = parameters.get("AttributeNames"), parameters.get("MessageSystemAttributeNames")
    if not old and not new:
        return None
    names = frozenset((*(old or ()), *(new or ())))
    if not names <= _ACCEPTED_NAMES:
        unknown = next(name for name in (*(old or ()), *(new or ())) if name not in _ACCEPTED_NAMES)
        raise InvalidAttributeName.unknown(unknown)
    return names if names.isdisjoint({"All", "ALL"}) else SYSTEM_ATTRIBUTE_NAMES


def _receive_request(parameters: Parameters, settings: QueueSettings) -> ReceiveRequest:
    count = parameters.get("MaxNumberOfMessages")
    if count is not None:
        reason = "Must be between {low} and {high}, if provided."
        check_range(count, limits.MAX_NUMBER_OF_MESSAGES, "MaxNumberOfMessages", reason)
    reason = "Must be >= {low} and <= {high}, if provided."
    visibility = parameters.get("VisibilityTimeout")
    if visibility is not None:
        check_range(visibility, limits.VISIBILITY_TIMEOUT, "VisibilityTimeout", reason)
    wait = parameters.get("WaitTimeSeconds")
    if wait is not None:
        check_range(wait, limits.RECEIVE_MESSAGE_WAIT_TIME_SECONDS, "WaitTimeSeconds", reason)
    attempt_id = parameters.get("ReceiveRequestAttemptId")
    if attempt_id is not None:
        _check_attempt_id(attempt_id, settings)
    return ReceiveRequest(
        1 if count is None else count,
        visibility,
        settings.receive_message_wait_time_seconds if wait is None else wait,
        attempt_id,
    )


def _check_attempt_id(attempt_id: str, settings: QueueSettings) -> None:
    parameter = "ReceiveRequestAttemptId"
    fault = identifier_fault(attempt_id, parameter) if settings.fifo else WRONG_QUEUE_TYPE
    if fault:
        raise InvalidParameterValue.for_value(attempt_id, parameter, f"{fault}.")


def received_message(
    delivery: Delivery, wanted: frozenset[str] | None, choose: Filter | None
) -> dict[str, Any]:
    """A message of ReceiveMessage's answer, with the attributes asked for."""
    body = delivery.body
    message: dict[str, Any] = {
        "MessageId": delivery.message_id,
        "ReceiptHandle": delivery.receipt_handle,
        "MD5OfBody": md5_of_body(body),
        "Body": body,
    }
    if wanted is not None:
        present = system_attributes(delivery)
        attributes = {name: text for name, text in present.items() if name in wanted}
        if attributes:
            message["Attributes"] = attributes
    if choose is not None and delivery.attributes:
        chosen = choose(delivery.attributes)
        if chosen:
            message["MD5OfMessageAttributes"] = md5_of_attributes(chosen)
            message["MessageAttributes"] = wire_attributes(chosen)
    return message


def system_attributes(source: Delivery | Message) -> dict[str, str]:
    """All system attributes that a message has; read a Message inside ``broker.entry`` only."""
    attributes = {
        "SenderId": SENDER_ID,
        "SentTimestamp": str(source.sent_ms),
        "ApproximateReceiveCount": str(source.receive_count),
    }
    if source.first_received_ms is not None:
        attributes["ApproximateFirstReceiveTimestamp"] = str(source.first_received_ms)
    if source.message_group_id is not None:
        attributes["MessageGroupId"] = source.message_group_id
    if source.message_deduplication_id is not None:
        attributes["MessageDeduplicationId"] = source.message_deduplication_id
    if source.sequence_number is not None:
        attributes["SequenceNumber"] = sequence_text(source.sequence_number)
    if source.trace_header is not None:
        attributes[TRACE_HEADER] = source.trace_header
    if source.dead_letter_source_arn is not None:
        attributes["DeadLetterQueueSourceArn"] = source.dead_letter_source_arn
    return attributes


def delete_message(context: ActionContext, parameters: Parameters) -> Result:
    """DeleteMessage: no fault where the message is gone already."""
    handle = require(parameters, "ReceiptHandle")
    _raise_first(context.broker.delete(resolve(context, parameters), (handle,)))
    return None


def change_message_visibility(context: ActionContext, parameters: Parameters) -> Result:
    """ChangeMessageVisibility: the seconds count from now."""
    handle = require(parameters, "ReceiptHandle")
    seconds = require(parameters, "VisibilityTimeout")
    queue = resolve(context, parameters)
    check_range(
        seconds, limits.VISIBILITY_TIMEOUT, "VisibilityTimeout", "Must be between {low} and {high}."
    )
    _raise_first(context.broker.change_visibility(queue, ((handle, seconds),)))
    return None


def _raise_first(outcomes: Iterable[Exception | None]) -> None:
    for outcome in outcomes:
        if outcome is not None:
            raise outcome
