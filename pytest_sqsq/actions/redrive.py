"""RedrivePolicy and RedriveAllowPolicy: their JSON, and which source may use which target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_sqsq import limits
from pytest_sqsq.actions.validation import compact_json, json_object
from pytest_sqsq.errors import InvalidAttributeValue, InvalidParameterValue
from pytest_sqsq.models import QueueKey, RedriveAllowPolicy, RedrivePolicy

if TYPE_CHECKING:
    from pytest_sqsq.engine import Broker, Queue

_TARGET = "deadLetterTargetArn"
_COUNT = "maxReceiveCount"
_PERMISSION = "redrivePermission"
_SOURCES = "sourceQueueArns"


def is_arn(text: object) -> bool:
    """Whether a value has the six filled parts of a resource's ARN, of whatever service."""
    if not isinstance(text, str):
        return False
    parts = text.split(":", 5)
    return len(parts) == 6 and parts[0] == "arn" and all(parts)


def parse_redrive_policy(text: str) -> RedrivePolicy | None:
    """The policy in an attribute's JSON text; the empty text removes it.

    Raises InvalidAttributeValue for what is no JSON object, InvalidParameterValue otherwise.
    Whether the target exists is another question: :func:`check_target`.
    """
    if not text:
        return None
    policy = json_object(text)
    if policy is None:
        raise InvalidAttributeValue.for_attribute(
            "RedrivePolicy", "Redrive policy is not a valid JSON map."
        )
    for member in (_TARGET, _COUNT):
        if policy.get(member) is None:
            raise _refused(text, f"Redrive policy does not contain mandatory attribute: {member}.")
    if not policy.keys() <= {_TARGET, _COUNT}:
        raise _refused(text, f"Only following attributes are supported: [{_COUNT}, {_TARGET}].")
    return RedrivePolicy(_target_arn(text, policy[_TARGET]), _receive_count(text, policy[_COUNT]))


def _refused(text: str, reason: str) -> InvalidParameterValue:
    return InvalidParameterValue.for_value(text, "RedrivePolicy", reason)


def _receive_count(text: str, value: Any) -> int:
    allowed = limits.MAX_RECEIVE_COUNT
    count = value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 9:
        count = int(value)
    if isinstance(count, bool) or count not in allowed:
        shown = value if isinstance(value, str) else compact_json(value)
        raise _refused(
            text,
            f"Invalid value for {_COUNT}: {shown}, valid values are from"
            f" {allowed.low} to {allowed.high} both inclusive.",
        )
    return int(count)


def _target_arn(text: str, arn: Any) -> str:
    if not is_arn(arn):
        raise _refused(text, "Dead-letter target ARN should be fully qualified ARN.")
    if arn.split(":")[2] != "sqs":
        raise _refused(text, f"Only SQS queues are valid resources for {_TARGET}.")
    return str(arn)


def check_target(
    broker: Broker, source: QueueKey, fifo: bool, text: str, policy: RedrivePolicy
) -> None:
    """Raises InvalidParameterValue where this source cannot use the policy's target.

    ``text`` is the policy as it was sent.  A queue may be its own target.  The target's
    RedriveAllowPolicy is asked here and never again: later changes leave sources alone.
    """
    arn = policy.dead_letter_target_arn
    key = QueueKey.from_arn(arn)
    if key is not None and key.account_id != source.account_id:
        raise _refused(text, "Dead-letter target owner should be same as the source.")
    target = broker.find_arn(arn)
    if target is None or target.key.region != source.region:
        raise _refused(text, "Dead letter target does not exist.")
    if target.settings.fifo != fifo:
        raise _refused(text, "Dead-letter queue must be same type of queue as the source..")
    if not _allows(target, source.arn):
        # AWS answers with this code; its words for it are not known.
        raise _refused(text, "Queue is not allowed to use the dead-letter target.")


def _allows(target: Queue, source_arn: str) -> bool:
    policy = target.settings.redrive_allow_policy
    if policy is None or policy.redrive_permission == "allowAll":
        return True
    return source_arn in policy.source_queue_arns  # none where everybody is denied


def redrive_policy_text(policy: RedrivePolicy) -> str:
    """The policy as GetQueueAttributes reports it: the count an integer, no white space."""
    return compact_json({_TARGET: policy.dead_letter_target_arn, _COUNT: policy.max_receive_count})


def parse_redrive_allow_policy(text: str) -> RedriveAllowPolicy | None:
    """The policy in an attribute's JSON text; the empty text removes it."""
    if not text:
        return None
    policy = json_object(text)
    if policy is None or not policy.keys() <= {_PERMISSION, _SOURCES}:
        raise _unsupported()
    permission, sources = policy.get(_PERMISSION), policy.get(_SOURCES, [])
    if permission not in ("allowAll", "denyAll", "byQueue"):
        raise _unsupported()
    if not (isinstance(sources, list) and all(map(is_arn, sources))):
        raise _unsupported()
    if fault := _sources_fault(permission, sources):
        raise InvalidParameterValue.for_value(
            text,
            "RedriveAllowPolicy",
            f"Amazon SQS can't create the redrive allow policy. {fault}",
        )
    return RedriveAllowPolicy(permission, tuple(sources))


def _unsupported() -> InvalidAttributeValue:
    return InvalidAttributeValue.for_attribute(
        "RedriveAllowPolicy",
        "Amazon SQS can't create the redrive allow policy, as"
        " it\N{RIGHT SINGLE QUOTATION MARK}s in an unsupported format.",
    )


def _sources_fault(permission: str, sources: list[str]) -> str | None:
    if permission != "byQueue":
        if not sources:
            return None
        return (
            "To specify one or more source queue ARNs, you must set redrivePermission to byQueue."
        )
    if not sources:
        return (
            "When you specify the byQueue permission type, you must also specify one or more"
            " sourceQueueArns values."
        )
    if len(sources) > limits.REDRIVE_ALLOW_SOURCES:
        return (
            "The maximum number of source queue ARNs you can specify is"
            f" {limits.REDRIVE_ALLOW_SOURCES}."
        )
    return None


def redrive_allow_policy_text(policy: RedriveAllowPolicy) -> str:
    """The policy as GetQueueAttributes reports it."""
    members: dict[str, object] = {_PERMISSION: policy.redrive_permission}
    if policy.source_queue_arns:
        members[_SOURCES] = list(policy.source_queue_arns)
    return compact_json(members)
