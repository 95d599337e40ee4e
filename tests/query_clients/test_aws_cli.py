"""What shell scripts do, with the last AWS CLI that spoke the Query protocol and with today's."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_sqsq import QueueProbe, SqsServer

pytestmark = pytest.mark.sqsq(clock="frozen")


def test_a_message_goes_there_and_back(
    aws_cli: Callable[..., Any], cli_protocol: str, sqs_server: SqsServer, sqs_queue: QueueProbe
) -> None:
    url = ("--queue-url", sqs_queue.url)

    sent = aws_cli("send-message", *url, "--message-body", "from a shell & more")
    received = aws_cli("receive-message", *url, "--attribute-names", "All")
    [message] = received["Messages"]
    aws_cli("delete-message", *url, "--receipt-handle", message["ReceiptHandle"])

    assert message["MessageId"] == sent["MessageId"]
    assert message["Body"] == "from a shell & more"
    sqs_queue.assert_deleted(body="from a shell & more")
    assert {record.protocol for record in sqs_server.requests.calls()} == {cli_protocol}


def test_a_queue_is_created_and_its_message_hidden_and_shown(
    aws_cli: Callable[..., Any], sqs_server: SqsServer
) -> None:
    created = aws_cli(
        "create-queue", "--queue-name", "orders", "--attributes", "VisibilityTimeout=7"
    )
    url = ("--queue-url", created["QueueUrl"])
    aws_cli("send-message", *url, "--message-body", "one")
    [message] = aws_cli("receive-message", *url)["Messages"]
    change = ("change-message-visibility", *url, "--receipt-handle", message["ReceiptHandle"])
    orders = sqs_server.queue("orders")

    aws_cli(*change, "--visibility-timeout", "60")
    orders.assert_in_flight(body="one", for_seconds=60)
    aws_cli(*change, "--visibility-timeout", "0")
    orders.assert_counts(visible=1, in_flight=0)


def test_a_batch_goes_into_a_fifo_queue_and_out_of_it(
    aws_cli: Callable[..., Any], sqs_server: SqsServer
) -> None:
    url = ("--queue-url", sqs_server.create_queue("orders.fifo").url)
    entries = [
        f"Id={body},MessageBody={body},MessageGroupId=g,MessageDeduplicationId={identifier}"
        for body, identifier in (("a", "1"), ("b", "2"), ("c", "1"))
    ]

    sent = aws_cli("send-message-batch", *url, "--entries", *entries)["Successful"]
    received = aws_cli("receive-message", *url, "--max-number-of-messages", "10")["Messages"]
    handles = [f"Id={m['Body']},ReceiptHandle={m['ReceiptHandle']}" for m in received]
    deleted = aws_cli("delete-message-batch", *url, "--entries", *handles)

    assert sent[0]["SequenceNumber"] == sent[2]["SequenceNumber"] < sent[1]["SequenceNumber"]
    assert [message["Body"] for message in received] == ["a", "b"]
    assert [entry["Id"] for entry in deleted["Successful"]] == ["a", "b"]
    sqs_server.queue("orders.fifo").assert_empty()


def test_a_failed_message_is_found_among_the_dead_letters_and_moved_back(
    aws_cli: Callable[..., Any], sqs_server: SqsServer
) -> None:
    dead = sqs_server.create_queue("dead-orders")
    policy = json.dumps({"deadLetterTargetArn": dead.arn, "maxReceiveCount": 1})
    created = aws_cli(
        "create-queue",
        "--queue-name",
        "orders",
        "--attributes",
        json.dumps({"RedrivePolicy": policy}),
    )
    url = ("--queue-url", created["QueueUrl"])
    sqs_server.queue("orders").send("broken")

    aws_cli("receive-message", *url, "--visibility-timeout", "5")
    sqs_server.advance(5)
    [letter] = aws_cli(
        "receive-message",
        "--queue-url",
        dead.url,
        "--visibility-timeout",
        "0",
        "--attribute-names",
        "ApproximateReceiveCount",
    )["Messages"]
    aws_cli("start-message-move-task", "--source-arn", dead.arn)

    assert (letter["Body"], letter["Attributes"]["ApproximateReceiveCount"]) == ("broken", "2")
    assert aws_cli("receive-message", *url)["Messages"][0]["Body"] == "broken"


def test_an_error_is_told(aws_cli: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="NonExistentQueue"):
        aws_cli("get-queue-url", "--queue-name", "none")
