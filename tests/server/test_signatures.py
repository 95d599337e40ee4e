"""``signatures="check"``: only what the dummy secret key has signed is answered."""

from __future__ import annotations

import datetime as dt
import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
import time_machine
from botocore.exceptions import ClientError

from pytest_sqsq import SqsServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[SqsServer]:
    with SqsServer(clock="frozen", signatures="check") as server:
        yield server


def post(url: str, headers: dict[str, str], body: bytes = b"{}") -> tuple[int, str, Any]:
    """Status, query-error header and body of an answer."""
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, "", json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["x-amzn-query-error"], json.load(error)


JSON_HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": "AmazonSQS.ListQueues",
}


@pytest.mark.parametrize("transport", ["http", "direct"])
def test_a_client_with_the_dummy_keys_is_answered(server: SqsServer, transport: Any) -> None:
    client = server.client(transport=transport)
    url = client.create_queue(QueueName="orders")["QueueUrl"]
    client.send_message(QueueUrl=url, MessageBody="naïve & <quoted>")
    assert len(client.receive_message(QueueUrl=url)["Messages"]) == 1


def test_another_access_key_is_another_account_and_not_refused(server: SqsServer) -> None:
    client = server.client(aws_access_key_id="123456789012", region_name="eu-west-1")
    assert "/123456789012/" in client.create_queue(QueueName="orders")["QueueUrl"]


@pytest.mark.parametrize("transport", ["http", "direct"])
def test_a_wrong_secret_key_is_refused_as_aws_refuses_it(server: SqsServer, transport: Any) -> None:
    client = server.client(transport=transport, aws_secret_access_key="wrong")
    with pytest.raises(ClientError) as caught:
        client.list_queues()
    assert caught.value.response["Error"]["Code"] == "SignatureDoesNotMatch"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_the_date_of_a_signature_does_not_matter(server: SqsServer) -> None:
    client = server.client()
    with time_machine.travel(dt.datetime(2001, 1, 1, tzinfo=dt.UTC), tick=False):
        assert client.list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_an_unsigned_request_is_denied(server: SqsServer) -> None:
    status, error, body = post(server.url, JSON_HEADERS)
    assert (status, error) == (403, "AccessDenied;Sender")
    assert body["__type"] == "com.amazon.coral.service#AccessDeniedException"


@pytest.mark.parametrize(
    "authorization",
    [
        "Basic abc",
        "AWS4-HMAC-SHA256 nonsense",
        "AWS4-HMAC-SHA256 Credential=AK, SignedHeaders=host, Signature=00",
        "AWS4-HMAC-SHA256 Credential=AK/20300101/us-east-1/sqs/aws4_request, Signature=00",
    ],
)
def test_a_malformed_signature_is_incomplete(server: SqsServer, authorization: str) -> None:
    headers = {
        **JSON_HEADERS,
        "Authorization": authorization,
        "X-Amz-Date": "20300101T000000Z",
    }
    status, error, body = post(server.url, headers)
    assert (status, error) == (400, "IncompleteSignature;Sender")
    assert body["__type"] == "com.amazon.coral.service#IncompleteSignatureException"


def test_a_changed_body_no_longer_fits_its_signature(server: SqsServer) -> None:
    client = server.client()

    def tamper(request: Any, **_: Any) -> None:
        request.body = request.body.replace(b"first", b"other")

    client.meta.events.register("before-send.sqs", tamper)
    client.create_queue(QueueName="other")
    with pytest.raises(ClientError, match="signature we calculated does not match"):
        client.create_queue(QueueName="first")


def test_a_presigned_url_is_answered_and_a_tampered_one_is_not(server: SqsServer) -> None:
    presigned = server.client().generate_presigned_url("list_queues")
    headers = {**JSON_HEADERS, "x-amzn-query-mode": "true"}
    assert post(presigned, headers)[0] == 200
    status, error, _ = post(presigned.replace("us-east-1", "eu-west-1"), headers)
    assert (status, error) == (403, "SignatureDoesNotMatch;Sender")


def test_by_default_anything_is_accepted() -> None:
    with SqsServer(clock="frozen") as server:
        assert post(server.url, JSON_HEADERS)[0] == 200
