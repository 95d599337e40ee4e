"""Requests that SQS refuses, and the code, status and text of each refusal.

The requests are made of what the fixture ``prepared`` has prepared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

NAME_TEXT = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"

FIFO_NAME_TEXT = (
    "The name of a FIFO queue can only include alphanumeric characters, hyphens, or"
    " underscores, must end with .fifo suffix and be 1 to 80 in length."
)

NO_DEDUPLICATION = (
    "The queue should either have ContentBasedDeduplication enabled or"
    " MessageDeduplicationId provided explicitly"
)

ARN = "arn:aws:sqs:us-east-1:123456789012:"


class Fault(NamedTuple):
    action: str
    parameters: dict[str, Any]
    code: str
    status: int
    text: str


def value(parameters: dict[str, Any], action: str, text: str) -> Fault:
    return Fault(action, parameters, "InvalidParameterValue", 400, text)


def missing(action: str, parameter: str, **parameters: Any) -> Fault:
    text = f"The request must contain the parameter {parameter}."
    return Fault(action, parameters, "MissingParameter", 400, text)


def gone(action: str, text: str, **parameters: Any) -> Fault:
    return Fault(action, parameters, "ResourceNotFoundException", 404, text)


def send(code: str, text: str, *, queue: str = "plain", **parameters: Any) -> Fault:
    sent = {"QueueUrl": queue, "MessageBody": "body", **parameters}
    return Fault("SendMessage", sent, code, 400, text)


def entries(*ids: str, **members: Any) -> list[dict[str, Any]]:
    return [
        {"Id": entry_id, "MessageBody": "b", "ReceiptHandle": "h", **members} for entry_id in ids
    ]


def create(code: str, text: str, name: str = "new", **attributes: str) -> Fault:
    return Fault("CreateQueue", {"QueueName": name, "Attributes": attributes}, code, 400, text)


def change(code: str, text: str, queue: str = "plain", **attributes: str) -> Fault:
    parameters = {"QueueUrl": queue, "Attributes": attributes}
    return Fault("SetQueueAttributes", parameters, code, 400, text)
