from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from pytest_sqsq.clock import Clock
from pytest_sqsq.direct import attach
from pytest_sqsq.engine import Broker
from pytest_sqsq.errors import InvalidSignature
from pytest_sqsq.gateway.gate import RequestGate
from pytest_sqsq.gateway.gateway import Gateway
from pytest_sqsq.gateway.requests import RequestLog
from pytest_sqsq.protocol import HttpRequest, HttpResponse

LONG = 5.0
# Nothing listens there, and nothing has to.
URL = "http://127.0.0.1:1"
SESSION = boto3.Session(
    aws_access_key_id="test", aws_secret_access_key="test", region_name="eu-west-1"
)


class Service:
    """The whole service without a socket, with a clock that stands still."""

    def __init__(self) -> None:
        self.gate = RequestGate()
        self.log = RequestLog()
        self.broker = Broker(Clock("frozen"))
        self.gateway = Gateway(self.broker, self.gate, self.log)

    def client(self, handle: Callable[[HttpRequest], HttpResponse] | None = None, **config):
        application = self.gateway if handle is None else _Application(handle)
        client = SESSION.client("sqs", endpoint_url=URL, config=Config(**config))
        attach(client, application, self.gate)
        return client


class _Application:
    def __init__(self, handle: Callable[[HttpRequest], HttpResponse]) -> None:
        self.handle = handle


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def sqs(service):
    return service.client()


@pytest.fixture
def queue_url(sqs) -> str:
    return sqs.create_queue(QueueName="orders")["QueueUrl"]


def test_queue_urls_name_the_endpoint(queue_url):
    assert queue_url == f"{URL}/000000000000/orders"


def test_messages_travel_there_and_back(sqs, queue_url):
    attributes = {"raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}}
    sqs.send_message(QueueUrl=queue_url, MessageBody="é", MessageAttributes=attributes)
    (message,) = sqs.receive_message(QueueUrl=queue_url, MessageAttributeNames=["All"])["Messages"]
    assert message["Body"] == "é"
    assert message["MessageAttributes"] == attributes


def test_errors_are_those_of_the_service(sqs, queue_url):
    with pytest.raises(sqs.exceptions.QueueDoesNotExist) as caught:
        sqs.send_message(QueueUrl=f"{queue_url}x", MessageBody="a")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_the_region_is_the_clients(service, queue_url):
    assert [queue.key.region for queue in service.broker.queues] == ["eu-west-1"]


def test_requests_are_logged_as_direct(service, queue_url):
    (record,) = service.log
    assert (record.action, record.transport, record.client_address) == ("CreateQueue", "direct", "")


def test_a_parked_poll_is_answered_by_a_send(service, sqs, queue_url):
    receiver = service.client()
    changes = service.gate.changes
    with ThreadPoolExecutor(1) as pool:
        poll = pool.submit(receiver.receive_message, QueueUrl=queue_url, WaitTimeSeconds=20)
        while service.gate.parked_count < 1:
            changed = service.gate.wait_for_change(changes, LONG)
            assert changed != changes
            changes = changed
        sqs.send_message(QueueUrl=queue_url, MessageBody="a")
        assert [each["Body"] for each in poll.result(LONG)["Messages"]] == ["a"]


def test_a_request_passes_the_gate_and_is_named_there(service):
    seen: list[str] = []

    def handle(_request):
        seen.extend(service.gate.open_requests())
        return HttpResponse(200, [], b"{}")

    service.client(handle).list_queues()
    assert seen == [f"a direct request to {URL}/"]
    assert service.gate.open_count == 0


def test_the_thread_that_closed_the_gate_may_make_calls(service, sqs):
    with service.gate.closed(timeout=0.01):
        sqs.list_queues()


@pytest.mark.parametrize(("cut", "body"), [("unanswered", b"{}"), ("truncated", b"")])
def test_an_answer_that_is_cut_off_is_a_closed_connection(service, cut, body):
    def handle(_request):
        return HttpResponse(200, [], body, cut=cut)

    sqs = service.client(handle, retries={"total_max_attempts": 1})
    with pytest.raises(ConnectionClosedError):
        sqs.list_queues()
    assert service.gate.open_count == 0


def test_of_an_answer_that_is_broken_off_half_of_the_body_comes(service):
    def handle(_request):
        return HttpResponse(200, [], b'{"QueueUrls":["a"]}', cut="truncated")

    bodies: list[bytes] = []
    sqs = service.client(handle)
    sqs.meta.events.register(
        "response-received.sqs", lambda response_dict, **_: bodies.append(response_dict["body"])
    )
    assert "QueueUrls" not in sqs.list_queues()
    assert bodies == [b'{"QueueUrl']


def test_botocore_repeats_requests_by_its_own_rules(service):
    attempts: list[HttpRequest] = []

    def handle(request):
        attempts.append(request)
        return HttpResponse(500 if len(attempts) == 1 else 200, [], b"{}")

    sqs = service.client(handle, retries={"mode": "standard", "total_max_attempts": 2})
    assert sqs.list_queues()["ResponseMetadata"]["RetryAttempts"] == 1


def test_the_request_is_signed_as_on_the_wire(service):
    seen: list[HttpRequest] = []

    def handle(request):
        seen.append(request)
        return HttpResponse(200, [], b"{}")

    service.client(handle).list_queues(QueueNamePrefix="a")
    (request,) = seen
    assert request.method == "POST"
    assert request.path == "/"
    assert request.headers["host"] == "127.0.0.1:1"
    assert request.headers["x-amz-target"] == "AmazonSQS.ListQueues"
    assert "/eu-west-1/sqs/aws4_request" in request.headers["authorization"]
    assert request.body == b'{"QueueNamePrefix": "a"}'


def test_calls_may_be_refused_before_they_are_performed():
    def authorize(_request, _call):
        raise InvalidSignature("no")

    service = Service()
    service.gateway = Gateway(service.broker, service.gate, service.log, authorize=authorize)
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        service.client().list_queues()
