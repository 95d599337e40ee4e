"""The endpoint that shows messages as LocalStack's does."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import boto3
import pytest
import xmltodict
from botocore.exceptions import ClientError

MESSAGES = "/_aws/sqs/messages"
JSON = {"Accept": "application/json"}
START_MS = "1893456000000"


def path_of(queue: Any, **parameters: object) -> str:
    return f"{MESSAGES}?{urlencode({'QueueUrl': queue.url, **parameters})}"


def messages_in(answer: Any) -> Any:
    """What is in an answer in JSON: a list, a single message, or ``None``."""
    return (answer.json["ReceiveMessageResponse"]["ReceiveMessageResult"] or {}).get("Message")


def bodies_in(answer: Any) -> list[str]:
    return [message["Body"] for message in messages_in(answer)]


def attributes_of(message: dict[str, Any]) -> dict[str, str]:
    return {each["Name"]: each["Value"] for each in message["Attribute"]}


def developer_client(server: Any) -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=server.url + MESSAGES,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


@pytest.fixture
def queue(server):
    return server.create_queue("orders")


def test_messages_are_shown_in_xml(remote, queue) -> None:
    queue.send("a")
    second = queue.send("b <&>")

    answer = remote.send("GET", path_of(queue))

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/xml"
    tree = xmltodict.parse(answer.body)["ReceiveMessageResponse"]
    first, other = tree["ReceiveMessageResult"]["Message"]
    assert (first["Body"], other["Body"]) == ("a", "b <&>")
    assert other["MessageId"] == second.message_id
    assert other["ReceiptHandle"] == "SQS/BACKDOOR/ACCESS"
    assert attributes_of(other)["ApproximateReceiveCount"] == "0"


def test_messages_are_shown_in_json(remote, queue) -> None:
    text = {"DataType": "String", "StringValue": "1"}
    view = queue.send(" a\n", MessageAttributes={"x": text})
    queue.send("b")

    answer = remote.send("GET", path_of(queue), headers=JSON)

    assert answer.status == 200
    first, second = messages_in(answer)
    assert first == {
        "MessageId": view.message_id,
        "ReceiptHandle": "SQS/BACKDOOR/ACCESS",
        "MD5OfBody": view.md5_of_body,
        "Body": " a\n",
        "Attribute": first["Attribute"],
        "MD5OfMessageAttributes": first["MD5OfMessageAttributes"],
        "MessageAttribute": {"Name": "x", "Value": {"DataType": "String", "StringValue": "1"}},
    }
    assert attributes_of(first) == {
        "ApproximateFirstReceiveTimestamp": "0",
        "ApproximateReceiveCount": "0",
        "IsDelayed": "false",
        "IsVisible": "true",
        "SenderId": "AIDASSYFHUBOBT7F4XT75",
        "SentTimestamp": START_MS,
    }
    assert second["Body"] == "b"


def test_a_single_message_is_no_list_and_none_is_nothing(remote, queue) -> None:
    assert messages_in(remote.send("GET", path_of(queue), headers=JSON)) is None
    queue.send("a")
    assert messages_in(remote.send("GET", path_of(queue), headers=JSON))["Body"] == "a"


def test_looking_changes_nothing(remote, queue) -> None:
    queue.send("a")
    before = queue.messages(), queue.statistics, queue.history(body="a")

    remote.send("GET", path_of(queue))

    assert (queue.messages(), queue.statistics, queue.history(body="a")) == before


@pytest.mark.parametrize("word", ["True", "true", "TRUE"])
def test_messages_in_flight_are_shown_where_asked_for(remote, queue, word) -> None:
    for body in "abc":
        queue.send(body)
    queue.receive()

    shown = remote.send("GET", path_of(queue, ShowInvisible=False), headers=JSON)
    assert bodies_in(shown) == ["b", "c"]
    shown = remote.send("GET", path_of(queue, ShowInvisible=word), headers=JSON)
    assert bodies_in(shown) == ["a", "b", "c"]
    first, second, _ = map(attributes_of, messages_in(shown))
    assert (first["IsVisible"], second["IsVisible"]) == ("false", "true")
    assert first["ApproximateReceiveCount"] == "1"
    assert first["ApproximateFirstReceiveTimestamp"] == START_MS


def test_delayed_messages_are_shown_where_asked_for(remote, queue) -> None:
    queue.send("a")
    queue.send("b", DelaySeconds=10)

    assert messages_in(remote.send("GET", path_of(queue), headers=JSON))["Body"] == "a"
    shown = remote.send("GET", path_of(queue, ShowDelayed=True), headers=JSON)
    assert [attributes_of(each)["IsDelayed"] for each in messages_in(shown)] == ["false", "true"]


def test_messages_behind_one_in_flight_of_their_group_are_visible(server, remote) -> None:
    queue = server.create_queue("jobs.fifo", attributes={"ContentBasedDeduplication": True})
    for body, group in (("a", "1"), ("b", "1"), ("c", "2")):
        queue.send(body, MessageGroupId=group)
    queue.receive()

    shown = remote.send("GET", path_of(queue), headers=JSON)

    assert bodies_in(shown) == ["b", "c"]
    assert attributes_of(messages_in(shown)[0])["MessageGroupId"] == "1"


def test_the_path_can_name_the_queue(server, remote, queue) -> None:
    queue.send("a")
    server.create_queue("orders", region="eu-west-1").send("b")

    place = f"{MESSAGES}/us-east-1/000000000000/orders"
    assert messages_in(remote.send("GET", place, headers=JSON))["Body"] == "a"
    place = f"{MESSAGES}/eu-west-1/000000000000/orders"
    assert messages_in(remote.send("GET", place, headers=JSON))["Body"] == "b"


def test_it_is_an_endpoint_for_boto3(server, queue) -> None:
    for body in "ab":
        queue.send(body)

    found = developer_client(server).receive_message(QueueUrl=queue.url, MaxNumberOfMessages=1)

    assert [each["Body"] for each in found["Messages"]] == ["a", "b"]
    assert found["Messages"][0]["Attributes"]["ApproximateReceiveCount"] == "0"


def test_it_is_an_endpoint_for_clients_of_the_query_protocol(remote, queue) -> None:
    queue.send("a")
    body = urlencode({"Action": "ReceiveMessage", "QueueUrl": queue.url, "ShowInvisible": "true"})
    headers = {"Content-Type": "application/x-www-form-urlencoded"}

    answer = remote.send("POST", f"{MESSAGES}/", body.encode(), headers)

    tree = xmltodict.parse(answer.body)["ReceiveMessageResponse"]
    assert tree["ReceiveMessageResult"]["Message"]["Body"] == "a"


def test_boto3_is_told_that_nothing_else_can_be_done_here(server, queue) -> None:
    client = developer_client(server)
    for call in (
        lambda: client.send_message(QueueUrl=queue.url, MessageBody="a"),
        lambda: client.create_queue(QueueName="jobs"),
    ):
        with pytest.raises(ClientError) as caught:
            call()
        assert caught.value.response["Error"]["Code"] == "InvalidRequest"
        assert (
            caught.value.response["Error"]["Message"]
            == "This endpoint only accepts ReceiveMessage calls"
        )
    assert [each.name for each in server.queues] == ["orders"]


@pytest.mark.parametrize("action", ["SendMessage", "CreateQueue", "Nonsense", ""])
def test_query_clients_are_told_that_nothing_else_can_be_done_here(remote, action) -> None:
    answer = remote.send("GET", f"{MESSAGES}?Action={action}", headers=JSON)

    assert answer.status == 400
    assert answer.json["ErrorResponse"]["Error"] == {
        "Type": "Sender",
        "Code": "InvalidRequest",
        "Message": "This endpoint only accepts ReceiveMessage calls",
        "Detail": None,
    }


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        (MESSAGES, 400, "AWS.SimpleQueueService.NonExistentQueue"),
        (
            f"{MESSAGES}?QueueUrl=http://localhost/000000000000/nope",
            400,
            "AWS.SimpleQueueService.NonExistentQueue",
        ),
        (
            f"{MESSAGES}/us-east-2/000000000000/orders",
            400,
            "AWS.SimpleQueueService.NonExistentQueue",
        ),
        (f"{MESSAGES}?QueueUrl=http://localhost/nonsense", 404, "InvalidAddress"),
        (f"{MESSAGES}?QueueUrl=orders", 404, "InvalidAddress"),
    ],
)
def test_a_queue_that_is_not_there_is_told(remote, queue, path, status, code) -> None:
    answer = remote.send("GET", path, headers=JSON)

    assert answer.status == status
    assert answer.json["ErrorResponse"]["Error"]["Code"] == code


@pytest.mark.parametrize("path", [f"{MESSAGES}x", f"{MESSAGES}/a/b", f"{MESSAGES}/a/b/c/d"])
def test_there_is_nothing_beside_it(remote, path) -> None:
    assert remote.send("GET", path).error == (404, f"there is nothing at {path}")


def test_other_methods_are_not_possible(remote) -> None:
    answer = remote.send("DELETE", MESSAGES)

    assert answer.error == (405, f"DELETE is not possible at {MESSAGES}; GET, HEAD and POST are")
    assert answer.headers["allow"] == "GET, HEAD, POST"
