"""Faults of RedrivePolicy and RedriveAllowPolicy: code, status and exact text."""

from __future__ import annotations

import json
from typing import Any

from . import ARN, Fault, change, create

R = "Amazon SQS can't create the redrive allow policy. "


def redrive(reason: str, policy: object, queue: str = "plain") -> Fault:
    sent = policy if isinstance(policy, str) else json.dumps(policy)
    text = f"Value {sent} for parameter RedrivePolicy is invalid. Reason: {reason}"
    return change("InvalidParameterValue", text, queue, RedrivePolicy=sent)


def allow(reason: str, policy: dict[str, Any]) -> Fault:
    sent = json.dumps(policy)
    text = f"Value {sent} for parameter RedriveAllowPolicy is invalid. Reason: {R}{reason}"
    return change("InvalidParameterValue", text, RedriveAllowPolicy=sent)


def bad_allow(sent: str) -> Fault:
    return change(
        "InvalidAttributeValue",
        "Invalid value for the parameter RedriveAllowPolicy. Reason: Amazon SQS can't create the"
        " redrive allow policy, as it’s in an unsupported format.",
        RedriveAllowPolicy=sent,
    )


TARGET = {"deadLetterTargetArn": ARN + "dlq", "maxReceiveCount": 3}

NOT_A_MAP = (
    "Invalid value for the parameter RedrivePolicy. Reason: Redrive policy is not a valid JSON map."
)

FAULTS = [
    redrive(
        "Redrive policy does not contain mandatory attribute: deadLetterTargetArn.",
        {"maxReceiveCount": 3},
    ),
    redrive(
        "Redrive policy does not contain mandatory attribute: maxReceiveCount.",
        {"deadLetterTargetArn": ARN + "dlq"},
    ),
    *(
        redrive(
            f"Invalid value for maxReceiveCount: {shown},"
            " valid values are from 1 to 1000 both inclusive.",
            TARGET | {"maxReceiveCount": count},
        )
        for count, shown in (
            (0, "0"),
            (1001, "1001"),
            (-1, "-1"),
            ("0", "0"),
            ("1001", "1001"),
            ("x", "x"),
            (True, "true"),
            (1.5, "1.5"),
            ([1], "[1]"),
            ("", ""),
            ("９", "９"),
            ("1" * 5000, "1" * 5000),
        )
    ),
    redrive("Dead letter target does not exist.", TARGET | {"deadLetterTargetArn": ARN + "gone"}),
    *(
        redrive("Dead letter target does not exist.", TARGET | {"deadLetterTargetArn": target})
        for target in (
            ARN.replace("aws:", "aws-cn:", 1) + "dlq",
            ARN.replace("us-east-1", "eu-west-1") + "dlq",
            ARN + "dlq:more",
        )
    ),
    redrive(
        "Dead-letter target owner should be same as the source.",
        TARGET | {"deadLetterTargetArn": ARN.replace("123456789012", "999999999999") + "dlq"},
    ),
    redrive(
        "Dead-letter queue must be same type of queue as the source..",
        TARGET | {"deadLetterTargetArn": ARN + "dlq.fifo"},
    ),
    redrive(
        "Dead-letter queue must be same type of queue as the source..", TARGET, queue="plain.fifo"
    ),
    *(
        redrive(
            "Dead-letter target ARN should be fully qualified ARN.",
            TARGET | {"deadLetterTargetArn": target},
        )
        for target in (
            "dlq",
            "http://sqs.test/123456789012/dlq",
            "arn:aws:sqs:us-east-1::dlq",
            "arn:aws:sqs:us-east-1:123456789012",
            "urn:aws:sqs:us-east-1:123456789012:dlq",
            5,
        )
    ),
    redrive(
        "Only SQS queues are valid resources for deadLetterTargetArn.",
        TARGET | {"deadLetterTargetArn": "arn:aws:sns:us-east-1:123456789012:dlq"},
    ),
    redrive(
        "Only following attributes are supported: [maxReceiveCount, deadLetterTargetArn].",
        TARGET | {"more": 1},
    ),
    *(
        change("InvalidAttributeValue", NOT_A_MAP, RedrivePolicy=text)
        for text in ("x", "[]", "5", "null", "[" * 100_000)
    ),
    redrive(
        "Queue is not allowed to use the dead-letter target.",
        TARGET | {"deadLetterTargetArn": ARN + "closed"},
    ),
    redrive(
        "Queue is not allowed to use the dead-letter target.",
        TARGET | {"deadLetterTargetArn": ARN + "chosen"},
    ),
    create(
        "InvalidParameterValue",
        f"Value {json.dumps(TARGET)} for parameter RedrivePolicy is invalid."
        " Reason: Dead-letter queue must be same type of queue as the source..",
        "new.fifo",
        FifoQueue="true",
        RedrivePolicy=json.dumps(TARGET),
    ),
    allow(
        "When you specify the byQueue permission type, you must also specify one or more"
        " sourceQueueArns values.",
        {"redrivePermission": "byQueue"},
    ),
    allow(
        "When you specify the byQueue permission type, you must also specify one or more"
        " sourceQueueArns values.",
        {"redrivePermission": "byQueue", "sourceQueueArns": []},
    ),
    *(
        allow(
            "To specify one or more source queue ARNs, you must set redrivePermission to byQueue.",
            {"redrivePermission": permission, "sourceQueueArns": [ARN + "plain"]},
        )
        for permission in ("allowAll", "denyAll")
    ),
    allow(
        "The maximum number of source queue ARNs you can specify is 10.",
        {
            "redrivePermission": "byQueue",
            "sourceQueueArns": [f"{ARN}q{number}" for number in range(11)],
        },
    ),
    *(
        bad_allow(text)
        for text in (
            "x",
            "[]",
            "{}",
            '{"redrivePermission": "some"}',
            '{"redrivePermission": ["denyAll"]}',
            '{"redrivePermission": "denyAll", "more": 1}',
            '{"redrivePermission": "byQueue", "sourceQueueArns": "x"}',
            '{"redrivePermission": "byQueue", "sourceQueueArns": 5}',
            '{"redrivePermission": "byQueue", "sourceQueueArns": {}}',
            '{"redrivePermission": "denyAll", "sourceQueueArns": null}',
            '{"redrivePermission": "byQueue", "sourceQueueArns": ["x"]}',
        )
    ),
]
