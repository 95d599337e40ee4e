"""Faults of the actions on message move tasks: code, status and exact text."""

from __future__ import annotations

import json
from base64 import b64encode

from . import ARN, gone, value

ARN_FORMAT = "arn:<partition>:<service>:<region>:<account-id>:<resource-id>"

NO_ARN = ("dlq", "", "arn:aws:sqs:us-east-1::dlq")

SOURCE_GONE = "The resource that you specified for the SourceArn parameter doesn't exist."


def handle_of(members: object) -> str:
    return b64encode(json.dumps(members).encode()).decode()


FAULTS = [
    *(
        value(
            {"SourceArn": arn},
            action,
            f"You must use this format to specify the SourceArn: {ARN_FORMAT}",
        )
        for action in ("StartMessageMoveTask", "ListMessageMoveTasks")
        for arn in NO_ARN
    ),
    *(
        value(
            {"SourceArn": ARN + "dlq", "DestinationArn": arn},
            "StartMessageMoveTask",
            f"You must use this format to specify the DestinationArn: {ARN_FORMAT}",
        )
        for arn in NO_ARN
    ),
    gone("StartMessageMoveTask", SOURCE_GONE, SourceArn=ARN + "gone"),
    gone("StartMessageMoveTask", SOURCE_GONE, SourceArn="arn:aws:sns:us-east-1:123456789012:dlq"),
    gone("ListMessageMoveTasks", SOURCE_GONE, SourceArn=ARN + "gone"),
    gone("ListMessageMoveTasks", SOURCE_GONE, SourceArn=ARN.replace("aws:", "aws-cn:", 1) + "dlq"),
    gone(
        "StartMessageMoveTask",
        "The resource that you specified for the DestinationArn parameter doesn't exist.",
        SourceArn=ARN + "dlq",
        DestinationArn=ARN + "gone",
    ),
    value(
        {"SourceArn": ARN + "plain", "DestinationArn": ARN + "small"},
        "StartMessageMoveTask",
        "Source queue must be configured as a Dead Letter Queue.",
    ),
    value(
        {"SourceArn": ARN + "dlq", "DestinationArn": ARN + "dlq"},
        "StartMessageMoveTask",
        "Source queue arn and destination queue arn cannot be the same.",
    ),
    value(
        {"SourceArn": ARN + "dlq", "DestinationArn": ARN + "plain.fifo"},
        "StartMessageMoveTask",
        "The source queue and destination queue must be of the same queue type.",
    ),
    *(
        value(
            {"SourceArn": ARN + "dlq", "MaxNumberOfMessagesPerSecond": rate},
            "StartMessageMoveTask",
            "Value for parameter MaxNumberOfMessagesPerSecond is invalid."
            " Reason: You must enter a number that's between 1 and 500.",
        )
        for rate in (0, 501, -1)
    ),
    *(
        value(
            {"SourceArn": ARN + "dlq", "MaxResults": count},
            "ListMessageMoveTasks",
            "Value for parameter MaxResults is invalid."
            " Reason: You must enter a number that's between 1 and 10.",
        )
        for count in (0, 11, -1)
    ),
    *(
        value({"TaskHandle": handle}, "CancelMessageMoveTask",
              "Value for parameter TaskHandle is invalid.")
        for handle in (
            "foobar", "", "é",
            handle_of([]),
            handle_of({}),
            handle_of({"taskId": "x"}),
            handle_of({"taskId": "x", "sourceArn": 5}),
            handle_of({"taskId": 5, "sourceArn": ARN + "dlq"}),
        )
    ),
]  # fmt: skip
