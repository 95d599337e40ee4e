"""Faults of queue attributes: code, status and exact text."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest


class Fault(NamedTuple):
    action: str
    parameters: dict[str, Any]
    code: str
    status: int
    text: str


NAME_TEXT = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"

FIFO_NAME_TEXT = (
    "The name of a FIFO queue can only include alphanumeric characters, hyphens, or"
    " underscores, must end with .fifo suffix and be 1 to 80 in length."
)


def value(parameters: dict[str, Any], action: str, text: str) -> Fault:
    return Fault(action, parameters, "InvalidParameterValue", 400, text)


def create(code: str, text: str, name: str = "new", **attributes: str) -> Fault:
    return Fault("CreateQueue", {"QueueName": name, "Attributes": attributes}, code, 400, text)


def change(code: str, text: str, queue: str = "plain", **attributes: str) -> Fault:
    parameters = {"QueueUrl": queue, "Attributes": attributes}
    return Fault("SetQueueAttributes", parameters, code, 400, text)


RANGES = {
    "DelaySeconds": ("-1", "901"),
    "MaximumMessageSize": ("1023", "1048577"),
    "MessageRetentionPeriod": ("59", "1209601"),
    "ReceiveMessageWaitTimeSeconds": ("-1", "21"),
    "VisibilityTimeout": ("-45", "43201", "99999"),
    "KmsDataKeyReusePeriodSeconds": ("59", "86401"),
}

NO_NUMBERS = ("", " 6", "6 ", "+6", "544.43", "abc", "٣", "9" * 5000)

READ_ONLY = (
    "QueueArn", "CreatedTimestamp", "LastModifiedTimestamp", "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible", "All", "Foobar",
)  # fmt: skip

QUEUE_ATTRIBUTES = [
    *(
        request("InvalidAttributeName", f"Unknown Attribute {name}.", **{name: "1"})
        for request in (create, change)
        for name in READ_ONLY
    ),
    Fault(
        "GetQueueAttributes",
        {"QueueUrl": "plain", "AttributeNames": ["All", "Foobar"]},
        "InvalidAttributeName",
        400,
        "Unknown Attribute Foobar.",
    ),
    *(
        request("InvalidAttributeValue", f"Invalid value for the parameter {name}.", **{name: text})
        for request in (create, change)
        for name, texts in RANGES.items()
        for text in (*texts, *NO_NUMBERS)
    ),
    *(
        change(
            "InvalidAttributeValue",
            f"Invalid value for the parameter {name}.",
            "plain.fifo",
            **{name: text},
        )
        for name in (
            "SqsManagedSseEnabled",
            "ContentBasedDeduplication",
            "DeduplicationScope",
            "FifoThroughputLimit",
            "FifoQueue",
        )
        for text in ("", "yes")
    ),
    create(
        "InvalidAttributeValue",
        "Invalid value for the parameter FifoQueue.",
        "new.fifo",
        FifoQueue="yes",
    ),
    *(
        change("InvalidAttributeValue", "Invalid value for the parameter Policy.", Policy=text)
        for text in (
            "x",
            "[]",
            "{}",
            '"Statement"',
            '{"Statement": 1}',
            '{"Statement": ["x"]}',
            '{"Statement": [], "Id": "' + "x" * 8192 + '"}',
        )
    ),
    Fault(
        "SetQueueAttributes",
        {"QueueUrl": "plain", "Attributes": {"Policy": json.dumps({"Statement": [{}] * 21})}},
        "OverLimit",
        403,
        "21 statements were found in the submitted policy, max allowed is 20",
    ),
    change(
        "InvalidAttributeName",
        "You can use one type of server-side encryption (SSE) at one time."
        " You can either enable KMS SSE or SQS SSE.",
        KmsMasterKeyId="key",
        SqsManagedSseEnabled="true",
    ),
]

FIFO_ONLY = {
    "ContentBasedDeduplication": ("true", "Unknown Attribute ContentBasedDeduplication."),
    "DeduplicationScope": (
        "queue",
        "You can specify the DeduplicationScope only when FifoQueue is set to true.",
    ),
    "FifoThroughputLimit": (
        "perQueue",
        "You can specify the FifoThroughputLimit only when FifoQueue is set to true.",
    ),
}

THROUGHPUT_TEXT = (
    "The perMessageGroupId value is allowed only when the value for DeduplicationScope is"
    " messageGroup"
)

FIFO_ATTRIBUTES = [
    create("InvalidAttributeName", "Unknown Attribute FifoQueue.", FifoQueue="false"),
    create("InvalidParameterValue", FIFO_NAME_TEXT, FifoQueue="true"),
    create("InvalidParameterValue", NAME_TEXT, "new.fifo"),
    *(
        request("InvalidAttributeName", text, **{name: given})
        for request in (create, change)
        for name, (given, text) in FIFO_ONLY.items()
    ),
    *(
        change("InvalidAttributeName", "Unknown Attribute FifoQueue.", FifoQueue=given)
        for given in ("true", "false")
    ),
    change(
        "InvalidAttributeValue",
        "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.",
        "plain.fifo",
        FifoQueue="false",
    ),
    change(
        "InvalidAttributeValue",
        THROUGHPUT_TEXT,
        "plain.fifo",
        FifoThroughputLimit="perMessageGroupId",
    ),
    create(
        "InvalidAttributeValue",
        THROUGHPUT_TEXT,
        "new.fifo",
        FifoQueue="true",
        DeduplicationScope="queue",
        FifoThroughputLimit="perMessageGroupId",
    ),
]

FAULTS = (*QUEUE_ATTRIBUTES, *FIFO_ATTRIBUTES)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.action)
def test_a_fault_is_answered_with_the_code_status_and_text_of_sqs(wire, fault):
    refusal = wire.refusal(fault.action, fault.parameters)

    assert refusal == (fault.code, fault.status, wire.wording(fault.text))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.action)
def test_a_refused_request_changes_nothing(prepared, fault):
    before = prepared.everything()
    prepared.clock.advance(60)

    prepared.error(fault.action, **fault.parameters)

    assert prepared.everything() == before
