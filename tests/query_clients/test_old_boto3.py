"""What an application saw whose boto3 dates from before November 2023."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from pytest_sqsq import QueueProbe, SqsServer

pytestmark = pytest.mark.sqsq(clock="frozen")


@pytest.fixture
def orders(sqs_server: SqsServer) -> QueueProbe:
    return sqs_server.create_queue("orders", dead_letter_queue="dead-orders", max_receive_count=1)


def test_the_old_client_speaks_query(
    old_client: Any, sqs_server: SqsServer, sqs_queue: QueueProbe
) -> None:
    old_client.send_message(QueueUrl=sqs_queue.url, MessageBody="hello")

    assert old_client.protocol == "query"
    assert [record.protocol for record in sqs_server.requests.calls()] == ["query"]


def test_a_queue_is_created_found_described_and_deleted(
    old_client: Any, sqs_server: SqsServer
) -> None:
    url = old_client.create_queue(
        QueueName="orders", Attributes={"DelaySeconds": "5"}, tags={"team": "a + b", "stage": "x"}
    )["QueueUrl"]

    assert old_client.get_queue_url(QueueName="orders")["QueueUrl"] == url
    assert old_client.list_queues(QueueNamePrefix="ord")["QueueUrls"] == [url]
    assert old_client.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "a + b", "stage": "x"}
    attributes = old_client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert attributes == dict(sqs_server.queue("orders").attributes)

    old_client.delete_queue(QueueUrl=url)
    assert "QueueUrls" not in old_client.list_queues()


def test_attributes_and_tags_are_changed(old_client: Any, sqs_queue: QueueProbe) -> None:
    old_client.set_queue_attributes(
        QueueUrl=sqs_queue.url,
        Attributes={"VisibilityTimeout": "7", "ReceiveMessageWaitTimeSeconds": "3"},
    )
    old_client.tag_queue(QueueUrl=sqs_queue.url, Tags={"a": "1", "b": "2"})
    old_client.untag_queue(QueueUrl=sqs_queue.url, TagKeys=["a"])

    assert sqs_queue.attributes["VisibilityTimeout"] == "7"
    assert sqs_queue.attributes["ReceiveMessageWaitTimeSeconds"] == "3"
    assert sqs_queue.tags == {"b": "2"}


def test_pages_of_queues_are_followed(old_client: Any, sqs_server: SqsServer) -> None:
    for number in range(3):
        sqs_server.create_queue(f"q{number}")

    first = old_client.list_queues(MaxResults=2)
    second = old_client.list_queues(MaxResults=2, NextToken=first["NextToken"])

    assert len(first["QueueUrls"]) == 2
    assert [url.rpartition("/")[2] for url in second["QueueUrls"]] == ["q2"]
    assert "NextToken" not in second


@pytest.mark.parametrize("body", ["hello", 'a <b> & "c"', "zeile\r\n\ttab", "naïve ☃ 𝄞", "]]>"])
def test_a_body_comes_back_as_it_was_sent(
    old_client: Any, sqs_queue: QueueProbe, body: str
) -> None:
    sent = old_client.send_message(QueueUrl=sqs_queue.url, MessageBody=body)
    [message] = old_client.receive_message(QueueUrl=sqs_queue.url)["Messages"]

    assert message["Body"] == body
    assert message["MD5OfBody"] == sent["MD5OfMessageBody"]


def test_message_attributes_come_back_as_they_were_sent(
    old_client: Any, sqs_queue: QueueProbe
) -> None:
    attributes = {
        "text": {"DataType": "String", "StringValue": "naïve <&>"},
        "number": {"DataType": "Number.int", "StringValue": "042"},
        "blob": {"DataType": "Binary.gif", "BinaryValue": bytes(range(256))},
    }

    sent = old_client.send_message(
        QueueUrl=sqs_queue.url,
        MessageBody="hello",
        MessageAttributes=attributes,
        MessageSystemAttributes={
            "AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988"}
        },
    )
    [message] = old_client.receive_message(
        QueueUrl=sqs_queue.url, AttributeNames=["All"], MessageAttributeNames=["All"]
    )["Messages"]

    assert message["MessageAttributes"] == attributes
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert message["Attributes"]["AWSTraceHeader"] == "Root=1-5759e988"
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"


def test_batches_answer_entry_by_entry(old_client: Any, sqs_queue: QueueProbe) -> None:
    sent = old_client.send_message_batch(
        QueueUrl=sqs_queue.url,
        Entries=[
            {"Id": "good", "MessageBody": "hello"},
            {"Id": "bad", "MessageBody": "hello", "DelaySeconds": 901},
        ],
    )
    assert [entry["Id"] for entry in sent["Successful"]] == ["good"]
    assert [entry["Id"] for entry in sent["Failed"]] == ["bad"]
    assert sent["Failed"][0]["SenderFault"] is True

    [message] = old_client.receive_message(QueueUrl=sqs_queue.url)["Messages"]
    handle = message["ReceiptHandle"]
    changed = old_client.change_message_visibility_batch(
        QueueUrl=sqs_queue.url,
        Entries=[{"Id": "a", "ReceiptHandle": handle, "VisibilityTimeout": 60}],
    )
    assert [entry["Id"] for entry in changed["Successful"]] == ["a"]
    sqs_queue.assert_in_flight(body="hello", for_seconds=60)

    deleted = old_client.delete_message_batch(
        QueueUrl=sqs_queue.url,
        Entries=[
            {"Id": "a", "ReceiptHandle": handle},
            {"Id": "b", "ReceiptHandle": "nonsense"},
        ],
    )
    assert [entry["Id"] for entry in deleted["Successful"]] == ["a"]
    assert [entry["Code"] for entry in deleted["Failed"]] == ["ReceiptHandleIsInvalid"]
    sqs_queue.assert_empty()


def test_one_message_is_hidden_shown_and_deleted(old_client: Any, sqs_queue: QueueProbe) -> None:
    sqs_queue.send("hello")
    [message] = old_client.receive_message(QueueUrl=sqs_queue.url)["Messages"]
    handle = {"QueueUrl": sqs_queue.url, "ReceiptHandle": message["ReceiptHandle"]}

    old_client.change_message_visibility(**handle, VisibilityTimeout=0)
    sqs_queue.assert_counts(visible=1, in_flight=0)

    old_client.delete_message(**handle)
    sqs_queue.assert_deleted(body="hello")


def test_a_purged_queue_is_empty(old_client: Any, sqs_queue: QueueProbe) -> None:
    sqs_queue.send("hello")
    old_client.purge_queue(QueueUrl=sqs_queue.url)
    sqs_queue.assert_empty()


def test_fifo_messages_carry_their_sequence(old_client: Any, sqs_fifo_queue: QueueProbe) -> None:
    sent = [
        old_client.send_message(QueueUrl=sqs_fifo_queue.url, MessageBody=body, MessageGroupId="g")[
            "SequenceNumber"
        ]
        for body in ("a", "b")
    ]
    received = old_client.receive_message(
        QueueUrl=sqs_fifo_queue.url, MaxNumberOfMessages=10, AttributeNames=["All"]
    )["Messages"]

    assert [message["Body"] for message in received] == ["a", "b"]
    assert [message["Attributes"]["SequenceNumber"] for message in received] == sent


def test_permissions_are_added_and_removed(old_client: Any, sqs_queue: QueueProbe) -> None:
    old_client.add_permission(
        QueueUrl=sqs_queue.url,
        Label="share",
        AWSAccountIds=["111122223333", "444455556666"],
        Actions=["SendMessage", "ReceiveMessage"],
    )
    [statement] = json.loads(sqs_queue.attributes["Policy"])["Statement"]
    assert statement["Sid"] == "share"

    old_client.remove_permission(QueueUrl=sqs_queue.url, Label="share")
    assert "Policy" not in sqs_queue.attributes


def test_dead_letters_are_moved_back(
    old_client: Any, sqs_server: SqsServer, orders: QueueProbe
) -> None:
    dead = sqs_server.queue("dead-orders")
    sources = old_client.list_dead_letter_source_queues(QueueUrl=dead.url)
    assert sources["queueUrls"] == [orders.url]
    for body in ("a", "b", "c"):
        orders.send(body)
    orders.receive(max_messages=10)
    sqs_server.advance(30)

    task = old_client.start_message_move_task(SourceArn=dead.arn, MaxNumberOfMessagesPerSecond=1)
    sqs_server.advance(2)
    cancelled = old_client.cancel_message_move_task(TaskHandle=task["TaskHandle"])
    assert cancelled["ApproximateNumberOfMessagesMoved"] == 2

    [entry] = old_client.list_message_move_tasks(SourceArn=dead.arn)["Results"]
    assert entry["Status"] == "CANCELLED"
    assert isinstance(entry["StartedTimestamp"], int)
    orders.assert_counts(visible=2)
    dead.assert_counts(visible=1)


@pytest.mark.parametrize(
    ("operation", "arguments", "code", "status"),
    [
        ("get_queue_url", {"QueueName": "none"}, "AWS.SimpleQueueService.NonExistentQueue", 400),
        (
            "send_message_batch",
            {"QueueUrl": "orders", "Entries": []},
            "AWS.SimpleQueueService.EmptyBatchRequest",
            400,
        ),
        (
            "delete_message",
            {"QueueUrl": "orders", "ReceiptHandle": "nonsense"},
            "ReceiptHandleIsInvalid",
            404,
        ),
        (
            "send_message",
            {"QueueUrl": "orders", "MessageBody": "x", "DelaySeconds": 901},
            "InvalidParameterValue",
            400,
        ),
        (
            "set_queue_attributes",
            {"QueueUrl": "orders", "Attributes": {"Nonsense": "1"}},
            "InvalidAttributeName",
            400,
        ),
    ],
)
def test_errors_carry_the_codes_that_old_applications_catch(
    old_client: Any,
    orders: QueueProbe,
    operation: str,
    arguments: dict[str, Any],
    code: str,
    status: int,
) -> None:
    if "QueueUrl" in arguments:
        arguments = {**arguments, "QueueUrl": orders.url}
    with pytest.raises(ClientError) as raised:
        getattr(old_client, operation)(**arguments)

    response = raised.value.response
    assert response["Error"]["Code"] == code
    assert response["Error"]["Type"] == "Sender"
    assert response["ResponseMetadata"]["HTTPStatusCode"] == status
