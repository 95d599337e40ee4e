"""What clients of today do, from the creation of a queue to its dead letters, on either transport.

A low-level client and a resource each go the whole way, through public interfaces alone.
"""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.parametrize("transport", ["http", "direct"])

CONTENT = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}


def redrive_to(arn: str) -> dict[str, str]:
    return {"RedrivePolicy": f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": "2"}}'}


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    return [message["Body"] for message in messages]


def test_a_client_sends_receives_hides_and_deletes(server, transport) -> None:
    client = server.client(transport=transport)
    url = client.create_queue(QueueName="orders")["QueueUrl"]
    sent = client.send_message(
        QueueUrl=url,
        MessageBody="one",
        MessageAttributes={"k": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}},
    )

    [message] = client.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
    assert message["MessageId"] == sent["MessageId"]
    assert message["MessageAttributes"]["k"]["BinaryValue"] == b"\x00\xff"
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]

    handle = {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]}
    client.change_message_visibility(**handle, VisibilityTimeout=60)
    server.advance(59.999)
    assert "Messages" not in client.receive_message(QueueUrl=url)
    server.advance(0.001)
    [again] = client.receive_message(
        QueueUrl=url, MessageSystemAttributeNames=["ApproximateReceiveCount"]
    )["Messages"]
    assert again["Attributes"] == {"ApproximateReceiveCount": "2"}

    client.delete_message(QueueUrl=url, ReceiptHandle=again["ReceiptHandle"])
    server.advance(60)
    server.queue("orders").assert_empty()
    client.delete_queue(QueueUrl=url)
    with pytest.raises(client.exceptions.QueueDoesNotExist):
        client.receive_message(QueueUrl=url)


def test_a_client_works_in_batches(server, transport) -> None:
    client = server.client(transport=transport)
    url = client.create_queue(QueueName="orders")["QueueUrl"]
    sent = client.send_message_batch(
        QueueUrl=url,
        Entries=[
            {"Id": "a", "MessageBody": "one"},
            {"Id": "b", "MessageBody": "two", "DelaySeconds": 901},
            {"Id": "c", "MessageBody": "three"},
        ],
    )
    assert [entry["Id"] for entry in sent["Successful"]] == ["a", "c"]
    assert [(entry["Id"], entry["SenderFault"]) for entry in sent["Failed"]] == [("b", True)]

    received = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert bodies(received) == ["one", "three"]
    handles = [
        {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
        for number, message in enumerate(received)
    ]
    client.change_message_visibility_batch(
        QueueUrl=url, Entries=[{**entry, "VisibilityTimeout": 0} for entry in handles]
    )
    server.queue("orders").assert_counts(visible=2, in_flight=0)
    deleted = client.delete_message_batch(QueueUrl=url, Entries=handles)
    assert [entry["Id"] for entry in deleted["Successful"]] == ["0", "1"]
    server.queue("orders").assert_empty()


def test_a_client_keeps_order_in_fifo_groups(server, transport) -> None:
    client = server.client(transport=transport)
    url = client.create_queue(QueueName="orders.fifo", Attributes=CONTENT)["QueueUrl"]
    for body in ("a", "b", "a"):
        client.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="g")

    [first] = client.receive_message(QueueUrl=url)["Messages"]
    assert "Messages" not in client.receive_message(QueueUrl=url)
    client.delete_message(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"])
    rest = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert [first["Body"], *bodies(rest)] == ["a", "b"]


def test_a_client_finds_what_failed_in_the_dead_letter_queue(server, transport) -> None:
    client = server.client(transport=transport)
    dead_url = client.create_queue(QueueName="dead-orders")["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=dead_url, AttributeNames=["QueueArn"])["Attributes"][
        "QueueArn"
    ]
    url = client.create_queue(QueueName="orders", Attributes=redrive_to(arn))["QueueUrl"]
    assert client.list_dead_letter_source_queues(QueueUrl=dead_url)["queueUrls"] == [url]
    client.send_message(QueueUrl=url, MessageBody="broken")
    for _ in range(2):
        client.receive_message(QueueUrl=url, VisibilityTimeout=30)
        server.advance(30)
    assert "Messages" not in client.receive_message(QueueUrl=url)

    [dead] = client.receive_message(
        QueueUrl=dead_url, MessageSystemAttributeNames=["All"], VisibilityTimeout=0
    )["Messages"]
    assert dead["Attributes"]["ApproximateReceiveCount"] == "3"
    assert dead["Attributes"]["DeadLetterQueueSourceArn"].endswith(":orders")

    client.start_message_move_task(SourceArn=arn)
    [task] = client.list_message_move_tasks(SourceArn=arn)["Results"]
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 1)
    assert bodies(client.receive_message(QueueUrl=url)["Messages"]) == ["broken"]


def test_a_resource_goes_the_whole_way(server, transport) -> None:
    sqs = server.resource(transport=transport)
    dead = sqs.create_queue(QueueName="dead-orders")
    orders = sqs.create_queue(
        QueueName="orders", Attributes=redrive_to(dead.attributes["QueueArn"])
    )
    assert [queue.url for queue in dead.dead_letter_source_queues.all()] == [orders.url]

    orders.send_message(MessageBody="one")
    orders.send_messages(Entries=[{"Id": "a", "MessageBody": "two"}])
    one, two = orders.receive_messages(MaxNumberOfMessages=10, AttributeNames=["All"])
    assert (one.body, two.body) == ("one", "two")
    assert one.attributes["ApproximateReceiveCount"] == "1"
    one.change_visibility(VisibilityTimeout=0)
    two.delete()
    [one] = orders.receive_messages()
    server.advance(30)

    [letter] = dead.receive_messages(AttributeNames=["All"])
    assert letter.body == "one"
    assert letter.attributes["ApproximateReceiveCount"] == "3"
    dead.delete_messages(Entries=[{"Id": "a", "ReceiptHandle": letter.receipt_handle}])
    server.queue("dead-orders").assert_empty()

    fifo = sqs.create_queue(QueueName="orders.fifo", Attributes=CONTENT)
    for body in ("a", "b"):
        fifo.send_message(MessageBody=body, MessageGroupId="g")
    assert [message.body for message in fifo.receive_messages(MaxNumberOfMessages=2)] == ["a", "b"]
    fifo.purge()
    fifo.delete()
    assert {queue.url for queue in sqs.queues.all()} == {orders.url, dead.url}
