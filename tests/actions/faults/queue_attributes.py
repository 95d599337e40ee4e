"""Faults of queue attributes: code, status and exact text."""

from __future__ import annotations

import json

from . import FIFO_NAME_TEXT, NAME_TEXT, Fault, change, create

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
