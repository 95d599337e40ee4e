"""AddPermission and RemovePermission: single statements of a queue's Policy.

Policies are kept and reported; they are not enforced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_sqsq import limits
from pytest_sqsq.actions.addresses import resolve
from pytest_sqsq.actions.context import ActionContext, Parameters, Result
from pytest_sqsq.actions.validation import (
    compact_json,
    json_object,
    name_pattern,
    name_rule,
    require,
)
from pytest_sqsq.errors import InvalidParameterValue, MissingParameter, OverLimit
from pytest_sqsq.models import QueueKey, QueueSettings, partition_of

#: The actions that a queue's owner may allow to others; a batch action goes with its single one.
GRANTABLE = frozenset(
    {
        "*",
        "ChangeMessageVisibility",
        "DeleteMessage",
        "GetQueueAttributes",
        "GetQueueUrl",
        "ListDeadLetterSourceQueues",
        "PurgeQueue",
        "ReceiveMessage",
        "SendMessage",
    }
)

OWNER_ONLY = frozenset(
    {
        "AddPermission",
        "CancelMessageMoveTask",
        "CreateQueue",
        "DeleteQueue",
        "ListMessageMoveTasks",
        "ListQueues",
        "ListQueueTags",
        "RemovePermission",
        "SetQueueAttributes",
        "StartMessageMoveTask",
        "TagQueue",
        "UntagQueue",
    }
)

_LABEL = name_pattern(limits.LABEL_LENGTH)
_ACCOUNT_ID = re.compile("[0-9]{12}")
_POLICY_VERSION = "2008-10-17"


def add_permission(context: ActionContext, parameters: Parameters) -> Result:
    """AddPermission: appends a statement to the Policy, which it makes if there is none."""
    label = require(parameters, "Label")
    accounts = _require_list(context, parameters, "AWSAccountIds", "AWSAccountId")
    actions = _require_list(context, parameters, "Actions", "ActionName")
    queue = resolve(context, parameters)
    if not _LABEL.fullmatch(label):
        raise _bad_label(label, f"{name_rule(limits.LABEL_LENGTH)}.")
    _check_accounts(accounts)
    _check_actions(actions)
    statement = _statement(queue.key, label, accounts, actions)

    def append(settings: QueueSettings) -> QueueSettings:
        policy = _policy(settings) or {
            "Version": _POLICY_VERSION,
            "Id": f"{queue.arn}/SQSDefaultPolicy",
        }
        statements = _statements(policy)
        if any(present.get("Sid") == label for present in statements):
            raise _bad_label(label, "Already exists.")
        if len(statements) >= limits.POLICY_STATEMENTS:
            raise OverLimit(
                f"{len(statements) + 1} Statements were found, maximum allowed is"
                f" {limits.POLICY_STATEMENTS}."
            )
        return _with_statements(settings, policy, [*statements, statement])

    context.broker.change_settings(queue, append)
    return None


def remove_permission(context: ActionContext, parameters: Parameters) -> Result:
    """RemovePermission: drops the statement with that label, the Policy with the last one."""
    label = require(parameters, "Label")
    queue = resolve(context, parameters)

    def drop(settings: QueueSettings) -> QueueSettings:
        policy = _policy(settings)
        if policy is None:
            raise _bad_label(label, "can't find label.")
        statements = _statements(policy)
        left = [present for present in statements if present.get("Sid") != label]
        if len(left) == len(statements):
            raise _bad_label(label, "can't find label on existing policy.")
        return _with_statements(settings, policy, left)

    context.broker.change_settings(queue, drop)
    return None


def _require_list(
    context: ActionContext, parameters: Parameters, name: str, query_name: str
) -> Sequence[str]:
    values: Sequence[str] | None = parameters.get(name)
    if not values:
        raise MissingParameter(name if context.protocol == "json" else query_name)
    return values


def _bad_label(label: str, reason: str) -> InvalidParameterValue:
    return InvalidParameterValue.for_value(label, "Label", reason)


def _check_accounts(accounts: Sequence[str]) -> None:
    if not all(_ACCOUNT_ID.fullmatch(account) for account in accounts):
        raise InvalidParameterValue.for_value(
            f"[{', '.join(accounts)}]", "PrincipalId", "Unable to verify."
        )


def _check_actions(actions: Sequence[str]) -> None:
    if len(actions) > limits.STATEMENT_ACTIONS:
        raise OverLimit(
            f"{len(actions)} Actions were found, maximum allowed is {limits.STATEMENT_ACTIONS}."
        )
    for action in actions:
        if action in OWNER_ONLY:
            raise _bad_action(action, "Only the queue owner is allowed to invoke this action.")
        if action not in GRANTABLE:
            raise _bad_action(
                action, "Please refer to the appropriate WSDL for a list of valid actions."
            )


def _bad_action(action: str, reason: str) -> InvalidParameterValue:
    return InvalidParameterValue.for_value(f"SQS:{action}", "ActionName", reason)


def _statement(
    key: QueueKey, label: str, accounts: Sequence[str], actions: Sequence[str]
) -> dict[str, Any]:
    partition = partition_of(key.region)
    return {
        "Sid": label,
        "Effect": "Allow",
        "Principal": {
            "AWS": _one_or_list([f"arn:{partition}:iam::{account}:root" for account in accounts])
        },
        "Action": _one_or_list([f"SQS:{action}" for action in actions]),
        "Resource": key.arn,
    }


def _one_or_list(values: list[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else values


def _policy(settings: QueueSettings) -> dict[str, Any] | None:
    return None if settings.policy is None else json_object(settings.policy)


def _statements(policy: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A policy's statements; JSON has a single one outside a list, too."""
    statements = policy.get("Statement", [])
    return [statements] if isinstance(statements, dict) else list(statements)


def _with_statements(
    settings: QueueSettings, policy: Mapping[str, Any], statements: list[dict[str, Any]]
) -> QueueSettings:
    if not statements:
        return replace(settings, policy=None)
    return replace(settings, policy=compact_json({**policy, "Statement": statements}))
