"""Faults of AddPermission and RemovePermission: code, status and exact text."""

from __future__ import annotations

from typing import Any

from . import Fault


def permit(code: str, status: int, text: str, **parameters: Any) -> Fault:
    sent = {
        "QueueUrl": "plain",
        "Label": "new",
        "AWSAccountIds": ["111111111111"],
        "Actions": ["SendMessage"],
        **parameters,
    }
    return Fault("AddPermission", sent, code, status, text)


LABEL_TEXT = (
    "Reason: Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length."
)

# What the API reference says cannot be called from another account.
OWNER_ONLY = (
    "AddPermission", "CancelMessageMoveTask", "CreateQueue", "DeleteQueue", "ListMessageMoveTasks",
    "ListQueueTags", "ListQueues", "RemovePermission", "SetQueueAttributes",
    "StartMessageMoveTask", "TagQueue", "UntagQueue",
)  # fmt: skip

FAULTS = [
    permit(
        "InvalidParameterValue",
        400,
        "Value taken for parameter Label is invalid. Reason: Already exists.",
        Label="taken",
    ),
    Fault(
        "RemovePermission",
        {"QueueUrl": "plain", "Label": "x"},
        "InvalidParameterValue",
        400,
        "Value x for parameter Label is invalid. Reason: can't find label on existing policy.",
    ),
    Fault(
        "RemovePermission",
        {"QueueUrl": "small", "Label": "x"},
        "InvalidParameterValue",
        400,
        "Value x for parameter Label is invalid. Reason: can't find label.",
    ),
    permit(
        "OverLimit",
        403,
        "8 Actions were found, maximum allowed is 7.",
        Actions=["SendMessage"] * 8,
    ),
    *(
        permit(
            "InvalidParameterValue",
            400,
            f"Value SQS:{action} for parameter ActionName is invalid."
            " Reason: Only the queue owner is allowed to invoke this action.",
            Actions=["SendMessage", action],
        )
        for action in OWNER_ONLY
    ),
    *(
        permit(
            "InvalidParameterValue",
            400,
            f"Value SQS:{action} for parameter ActionName is invalid."
            " Reason: Please refer to the appropriate WSDL for a list of valid actions.",
            Actions=[action],
        )
        for action in ("FooBar", "SendMessageBatch", "")
    ),
    *(
        permit(
            "InvalidParameterValue",
            400,
            f"Value [{shown}] for parameter PrincipalId is invalid. Reason: Unable to verify.",
            AWSAccountIds=ids,
        )
        for ids, shown in ((["1"], "1"), (["111111111111", "x"], "111111111111, x"))
    ),
    *(
        permit(
            "InvalidParameterValue",
            400,
            f"Value {label} for parameter Label is invalid. {LABEL_TEXT}",
            Label=label,
        )
        for label in ("", "a b", "a" * 81)
    ),
]
