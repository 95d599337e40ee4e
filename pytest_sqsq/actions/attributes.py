"""Queue attributes: one table says what each is called, how it is read, checked and reported."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_sqsq import limits
from pytest_sqsq.actions.redrive import (
    parse_redrive_allow_policy,
    parse_redrive_policy,
    redrive_allow_policy_text,
    redrive_policy_text,
)
from pytest_sqsq.actions.validation import encoded, json_object
from pytest_sqsq.errors import InvalidAttributeName, InvalidAttributeValue, OverLimit
from pytest_sqsq.models import QueueSettings

if TYPE_CHECKING:
    from pytest_sqsq.engine import Broker, Queue

_DIGITS = re.compile("[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute that can be set.

    ``field`` is its place in QueueSettings; ``parse`` turns the wire's text into that field's
    value and raises for what is no such value; ``report`` gives the text back, or ``None`` where
    the queue does not show the attribute; ``same`` compares two values of the field.
    ``standard_fault`` is what a standard queue answers to an attribute that only FIFO queues have.
    """

    name: str
    field: str
    parse: Callable[[str], Any]
    report: Callable[[QueueSettings], str | None]
    same: Callable[[Any, Any], bool] = operator.eq
    standard_fault: InvalidAttributeName | None = None


def _number(name: str, field: str, allowed: limits.Range) -> Attribute:
    def parse(text: str) -> int:
        if not _DIGITS.fullmatch(text) or int(text) not in allowed:
            raise InvalidAttributeValue.for_attribute(name)
        return int(text)

    return Attribute(name, field, parse, lambda settings: str(getattr(settings, field)))


def _boolean_parser(name: str) -> Callable[[str], bool]:
    def parse(text: str) -> bool:
        value = {"true": True, "false": False}.get(text.lower())
        if value is None:
            raise InvalidAttributeValue.for_attribute(name)
        return value

    return parse


def _boolean_text(value: bool) -> str:
    return "true" if value else "false"


def _fifo_boolean(name: str, field: str, parse: Callable[[str], bool]) -> Attribute:
    def report(settings: QueueSettings) -> str | None:
        return _boolean_text(getattr(settings, field)) if settings.fifo else None

    return Attribute(name, field, parse, report, standard_fault=InvalidAttributeName.unknown(name))


def _fifo_choice(name: str, field: str, choices: tuple[str, str]) -> Attribute:
    def parse(text: str) -> str:
        if text not in choices:
            raise InvalidAttributeValue.for_attribute(name)
        return text

    def report(settings: QueueSettings) -> str | None:
        return str(getattr(settings, field)) if settings.fifo else None

    fault = InvalidAttributeName(f"You can specify the {name} only when FifoQueue is set to true.")
    return Attribute(name, field, parse, report, standard_fault=fault)


def _optional(
    name: str,
    field: str,
    parse: Callable[[str], Any],
    text: Callable[[Any], str],
    same: Callable[[Any, Any], bool] = operator.eq,
) -> Attribute:
    """An attribute that the empty text removes."""

    def report(settings: QueueSettings) -> str | None:
        value = getattr(settings, field)
        return None if value is None else text(value)

    return Attribute(name, field, parse, report, same)


def _parse_policy(text: str) -> str | None:
    if not text:
        return None
    policy = json_object(text)
    if policy is None or "Statement" not in policy or len(encoded(text)) > limits.POLICY_BYTES:
        raise InvalidAttributeValue.for_attribute("Policy")
    statements = policy["Statement"]
    if isinstance(statements, dict):
        statements = [statements]
    if not isinstance(statements, list) or not all(isinstance(one, dict) for one in statements):
        raise InvalidAttributeValue.for_attribute("Policy")
    if len(statements) > limits.POLICY_STATEMENTS:
        raise OverLimit(
            f"{len(statements)} statements were found in the submitted policy,"
            f" max allowed is {limits.POLICY_STATEMENTS}"
        )
    return text


def _same_json(one: str | None, other: str | None) -> bool:
    return (one and json_object(one)) == (other and json_object(other))


def _parse_fifo_change(text: str) -> bool:
    if not _boolean_parser("FifoQueue")(text):
        raise InvalidAttributeValue.for_attribute(
            "FifoQueue", "Modifying queue type is not supported."
        )
    return True


def _report_reuse_period(settings: QueueSettings) -> str | None:
    if settings.kms_master_key_id is None:
        return None
    return str(settings.kms_data_key_reuse_period_seconds)


def _table() -> dict[str, Attribute]:
    reuse_period = _number(
        "KmsDataKeyReusePeriodSeconds",
        "kms_data_key_reuse_period_seconds",
        limits.KMS_DATA_KEY_REUSE_PERIOD_SECONDS,
    )
    attributes = (
        _number("DelaySeconds", "delay_seconds", limits.DELAY_SECONDS),
        _number("MaximumMessageSize", "maximum_message_size", limits.MAXIMUM_MESSAGE_SIZE),
        _number(
            "MessageRetentionPeriod", "message_retention_period", limits.MESSAGE_RETENTION_PERIOD
        ),
        _number(
            "ReceiveMessageWaitTimeSeconds",
            "receive_message_wait_time_seconds",
            limits.RECEIVE_MESSAGE_WAIT_TIME_SECONDS,
        ),
        _number("VisibilityTimeout", "visibility_timeout", limits.VISIBILITY_TIMEOUT),
        _optional("Policy", "policy", _parse_policy, str, _same_json),
        _optional("RedrivePolicy", "redrive_policy", parse_redrive_policy, redrive_policy_text),
        _optional(
            "RedriveAllowPolicy",
            "redrive_allow_policy",
            parse_redrive_allow_policy,
            redrive_allow_policy_text,
        ),
        _optional("KmsMasterKeyId", "kms_master_key_id", lambda text: text or None, str),
        replace(reuse_period, report=_report_reuse_period),
        Attribute(
            "SqsManagedSseEnabled",
            "sqs_managed_sse_enabled",
            _boolean_parser("SqsManagedSseEnabled"),
            lambda settings: _boolean_text(settings.sqs_managed_sse_enabled),
        ),
        _fifo_boolean("FifoQueue", "fifo", _parse_fifo_change),
        _fifo_boolean(
            "ContentBasedDeduplication",
            "content_based_deduplication",
            _boolean_parser("ContentBasedDeduplication"),
        ),
        _fifo_choice("DeduplicationScope", "deduplication_scope", ("queue", "messageGroup")),
        _fifo_choice(
            "FifoThroughputLimit", "fifo_throughput_limit", ("perQueue", "perMessageGroupId")
        ),
    )
    return {attribute.name: attribute for attribute in attributes}


#: The attributes that can be set, in the order in which values are checked and compared.
SETTABLE: Mapping[str, Attribute] = _table()

#: The attributes that only the queue itself can answer.
READ_ONLY: Mapping[str, Callable[[Queue], str]] = {
    "QueueArn": lambda queue: queue.arn,
    "CreatedTimestamp": lambda queue: str(queue.created_ms // 1000),
    "LastModifiedTimestamp": lambda queue: str(queue.last_modified_ms // 1000),
    "ApproximateNumberOfMessages": lambda queue: str(queue.visible_count),
    "ApproximateNumberOfMessagesDelayed": lambda queue: str(queue.delayed_count),
    "ApproximateNumberOfMessagesNotVisible": lambda queue: str(queue.in_flight_count),
}

#: Every name that GetQueueAttributes takes.
QUEUE_ATTRIBUTE_NAMES = frozenset({"All", *SETTABLE, *READ_ONLY})


def check_names(names: Mapping[str, object] | list[str]) -> None:
    """Raises InvalidAttributeName for the first that is no queue attribute, nor ``All``."""
    for name in names:
        if name not in QUEUE_ATTRIBUTE_NAMES:
            raise InvalidAttributeName.unknown(name)


def creates_fifo(attributes: Mapping[str, str]) -> bool:
    """Whether CreateQueue is asked for a FIFO queue; raises for every other value but ``true``."""
    text = attributes.get("FifoQueue")
    if text is None:
        return False
    if not _boolean_parser("FifoQueue")(text):
        raise InvalidAttributeName.unknown("FifoQueue")
    return True


def parse_changes(attributes: Mapping[str, str], *, fifo: bool) -> dict[str, Any]:
    """The changes that attributes ask of a queue of this type: values by field of QueueSettings.

    Checks each attribute by itself and for this type of queue: first all names, then the values
    in the table's order.  What depends on the queue's other settings is :func:`changed`.
    """
    for name in attributes:
        attribute = SETTABLE.get(name)
        if attribute is None:
            raise InvalidAttributeName.unknown(name)
        if attribute.standard_fault is not None and not fifo:
            raise InvalidAttributeName(attribute.standard_fault.message)
    changes = {
        attribute.field: attribute.parse(attributes[attribute.name])
        for attribute in SETTABLE.values()
        if attribute.name in attributes
    }
    if changes.get("kms_master_key_id") and changes.get("sqs_managed_sse_enabled"):
        raise InvalidAttributeName(
            "You can use one type of server-side encryption (SSE) at one time."
            " You can either enable KMS SSE or SQS SSE."
        )
    return changes


def changed(settings: QueueSettings, changes: Mapping[str, Any]) -> QueueSettings:
    """The settings after a change; raises InvalidAttributeValue for a combination SQS refuses."""
    result = replace(settings, **{**changes, **_implied_encryption(changes)})
    if (
        result.fifo_throughput_limit == "perMessageGroupId"
        and result.deduplication_scope == "queue"
    ):
        raise InvalidAttributeValue(
            "The perMessageGroupId value is allowed only when the value for"
            " DeduplicationScope is messageGroup"
        )
    return result


def _implied_encryption(changes: Mapping[str, Any]) -> dict[str, Any]:
    """What setting one kind of encryption does to the other: a queue has one of them, or none."""
    if changes.get("kms_master_key_id"):
        return {"sqs_managed_sse_enabled": False}
    implied: dict[str, Any] = {}
    if changes.get("sqs_managed_sse_enabled"):
        implied["kms_master_key_id"] = None
    loses_key = implied or "kms_master_key_id" in changes
    if loses_key and "kms_data_key_reuse_period_seconds" not in changes:
        implied["kms_data_key_reuse_period_seconds"] = (
            limits.DEFAULT_KMS_DATA_KEY_REUSE_PERIOD_SECONDS
        )
    return implied


def first_difference(settings: QueueSettings, changes: Mapping[str, Any]) -> str | None:
    """The name of the first attribute, in the table's order, that a change would change."""
    for attribute in SETTABLE.values():
        if attribute.field in changes and not attribute.same(
            getattr(settings, attribute.field), changes[attribute.field]
        ):
            return attribute.name
    return None


def reported_attributes(broker: Broker, queue: Queue) -> dict[str, str]:
    """All attributes that the queue shows now; raises QueueDoesNotExist if it is gone."""
    with broker.entry(queue):
        settings = queue.settings
        reported = {name: read(queue) for name, read in READ_ONLY.items()}
    for attribute in SETTABLE.values():
        text = attribute.report(settings)
        if text is not None:
            reported[attribute.name] = text
    return reported
