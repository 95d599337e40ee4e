"""Whole exchanges, octet for octet, as they go over the socket in both protocols.

A seed and a frozen clock make everything the same in each run but what is blanked here: the
request id, the date and the port.
"""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING

import pytest

from pytest_sqsq import SqsServer

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGE_ID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


@pytest.fixture
def server() -> Iterator[SqsServer]:
    with SqsServer(clock="frozen", seed=1, account_id="123456789012") as server:
        server.create_queue("q")
        yield server


def exchange(server: SqsServer, head: str, body: str) -> str:
    """Send a request and return the answer, what differs between runs blanked."""
    octets = body.encode()
    request = f"{head}\nHost: sqs.test\nContent-Length: {len(octets)}\nConnection: close\n\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode() + octets)
        answer = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
    answer = re.sub(rf"(x-amzn-RequestId: ){MESSAGE_ID}", r"\1ID", answer)
    answer = re.sub(rf"(<RequestId>){MESSAGE_ID}", r"\1ID", answer)
    answer = re.sub(r"Date: [^\r]*", "Date: DATE", answer)
    head, _, content = answer.partition("\r\n\r\n")
    status, *headers = head.split("\r\n")
    # Their order means nothing.
    return "\n".join([status, *sorted(headers, key=str.lower), "", content])


def json_exchange(server: SqsServer, action: str, body: str) -> str:
    return exchange(
        server,
        f"POST / HTTP/1.1\nX-Amz-Target: AmazonSQS.{action}\n"
        "Content-Type: application/x-amz-json-1.0",
        body,
    )


def query_exchange(server: SqsServer, path: str, body: str) -> str:
    return exchange(
        server,
        f"POST {path} HTTP/1.1\nContent-Type: application/x-www-form-urlencoded; charset=utf-8",
        body,
    )


def test_json_send_receive_and_delete(server: SqsServer) -> None:
    sent = json_exchange(
        server,
        "SendMessage",
        '{"QueueUrl":"http://sqs.test/123456789012/q","MessageBody":"test",'
        '"MessageAttributes":{"k":{"DataType":"String","StringValue":"x"}}}',
    )
    (message,) = server.queue("q").messages()
    head = (
        "HTTP/1.1 200 OK\nConnection: close\nContent-Length: {}\n"
        "Content-Type: application/x-amz-json-1.0\nDate: DATE\nx-amzn-RequestId: ID\n\n"
    )
    body = (
        f'{{"MessageId":"{message.message_id}",'
        '"MD5OfMessageBody":"098f6bcd4621d373cade4e832627b4f6",'
        '"MD5OfMessageAttributes":"a45daa70926828a2f0a1db3418e6feb4"}'
    )
    assert sent == head.format(len(body)) + body

    received = json_exchange(server, "ReceiveMessage", '{"QueueUrl":"q"}')
    (message,) = server.queue("q").messages()
    body = (
        f'{{"Messages":[{{"MessageId":"{message.message_id}",'
        f'"ReceiptHandle":"{message.receipt_handle}",'
        '"MD5OfBody":"098f6bcd4621d373cade4e832627b4f6","Body":"test"}]}'
    )
    assert received.partition("\n\n")[2] == body

    deleted = json_exchange(
        server, "DeleteMessage", f'{{"QueueUrl":"q","ReceiptHandle":"{message.receipt_handle}"}}'
    )
    assert deleted == head.format(0)
    assert json_exchange(server, "ReceiveMessage", '{"QueueUrl":"q"}').endswith("\n\n{}")


def test_json_error(server: SqsServer) -> None:
    answer = json_exchange(server, "DeleteMessage", '{"QueueUrl":"q","ReceiptHandle":"garbage"}')
    body = (
        '{"__type":"com.amazonaws.sqs#ReceiptHandleIsInvalid",'
        '"message":"The input receipt handle \\"garbage\\" is not a valid receipt handle."}'
    )
    assert answer == (
        f"HTTP/1.1 404 Not Found\nConnection: close\nContent-Length: {len(body)}\n"
        "Content-Type: application/x-amz-json-1.0\nDate: DATE\n"
        "x-amzn-query-error: ReceiptHandleIsInvalid;Sender\nx-amzn-RequestId: ID\n\n"
        f"{body}"
    )


def test_query_batch_empty_receive_and_a_void_action(server: SqsServer) -> None:
    answer = query_exchange(
        server,
        "/123456789012/q",
        "Action=SendMessageBatch&Version=2012-11-05"
        "&SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageBody=one"
        "&SendMessageBatchRequestEntry.2.Id=b&SendMessageBatchRequestEntry.2.MessageBody=two"
        "&SendMessageBatchRequestEntry.2.MessageAttribute.1.Name=k"
        "&SendMessageBatchRequestEntry.2.MessageAttribute.1.Value.DataType=String"
        "&SendMessageBatchRequestEntry.2.MessageAttribute.1.Value.StringValue=x",
    )
    one, two = server.queue("q").messages()
    space = "http://queue.amazonaws.com/doc/2012-11-05/"
    assert answer.partition("\n\n")[2] == (
        f'<?xml version="1.0"?><SendMessageBatchResponse xmlns="{space}"><SendMessageBatchResult>'
        f"<SendMessageBatchResultEntry><Id>a</Id><MessageId>{one.message_id}</MessageId>"
        "<MD5OfMessageBody>f97c5d29941bfb1b2fdab0874906ab82</MD5OfMessageBody>"
        "</SendMessageBatchResultEntry>"
        f"<SendMessageBatchResultEntry><Id>b</Id><MessageId>{two.message_id}</MessageId>"
        "<MD5OfMessageBody>b8a9f715dbb64fd5c56e7783c6820a61</MD5OfMessageBody>"
        "<MD5OfMessageAttributes>a45daa70926828a2f0a1db3418e6feb4</MD5OfMessageAttributes>"
        "</SendMessageBatchResultEntry></SendMessageBatchResult>"
        "<ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></SendMessageBatchResponse>"
    )

    body = (
        f'<?xml version="1.0"?><PurgeQueueResponse xmlns="{space}">'
        "<ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></PurgeQueueResponse>"
    )
    purged = query_exchange(server, "/123456789012/q", "Action=PurgeQueue")
    assert purged == (
        f"HTTP/1.1 200 OK\nConnection: close\nContent-Length: {len(body) + 34}\n"
        f"Content-Type: text/xml\nDate: DATE\nx-amzn-RequestId: ID\n\n{body}"
    )
    empty = query_exchange(server, "/123456789012/q", "Action=ReceiveMessage")
    assert empty.partition("\n\n")[2] == (
        f'<?xml version="1.0"?><ReceiveMessageResponse xmlns="{space}"><ReceiveMessageResult/>'
        "<ResponseMetadata><RequestId>ID</RequestId></ResponseMetadata></ReceiveMessageResponse>"
    )


def test_query_error(server: SqsServer) -> None:
    answer = query_exchange(server, "/123456789012/nowhere", "Action=SendMessage&MessageBody=a")
    assert answer.startswith("HTTP/1.1 400 Bad Request\n")
    assert answer.partition("\n\n")[2] == (
        '<?xml version="1.0"?><ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/">'
        "<Error><Type>Sender</Type><Code>AWS.SimpleQueueService.NonExistentQueue</Code>"
        "<Message>The specified queue does not exist for this wsdl version.</Message><Detail/>"
        "</Error><RequestId>ID</RequestId></ErrorResponse>"
    )
