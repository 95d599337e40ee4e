from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from urllib.parse import urlsplit
from urllib.request import urlopen

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from pytest_sqsq.clock import Clock
from pytest_sqsq.engine import Broker
from pytest_sqsq.gateway.gate import RequestGate
from pytest_sqsq.gateway.gateway import Gateway
from pytest_sqsq.gateway.requests import RequestLog
from pytest_sqsq.http.server import HttpServer
from pytest_sqsq.http.wsgi import Application

LONG = 10.0
SESSION = boto3.Session(
    aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1"
)


class Service:
    """The whole service on a socket, with a clock that stands still."""

    def __init__(self) -> None:
        self.gate = RequestGate()
        self.log = RequestLog()
        self.broker = Broker(Clock("frozen"))
        self.gateway = Gateway(self.broker, self.gate, self.log)
        self.server = HttpServer(
            Application(self.gateway, self.gate),
            end_polls=lambda: self.broker.close_polls(None, close_connection=True),
        )
        self.url = f"http://127.0.0.1:{self.server.port}"
        self.clients = []
        self.server.start()

    def client(self, **config):
        config = Config(retries={"total_max_attempts": 1}, proxies={}, **config)
        client = SESSION.client("sqs", endpoint_url=self.url, config=config)
        self.clients.append(client)
        return client

    def wait_for_parked(self, count: int) -> None:
        changes = self.gate.changes
        while self.gate.parked_count != count:
            changed = self.gate.wait_for_change(changes, LONG)
            assert changed != changes, f"{self.gate.parked_count} parked instead of {count}"
            changes = changed

    def close(self) -> None:
        self.server.stop()
        for client in self.clients:
            client.close()
        assert self.gateway.take_internal_failures() == []


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


@pytest.fixture
def sqs(service):
    return service.client()


@pytest.fixture
def queue_url(sqs) -> str:
    return sqs.create_queue(QueueName="orders")["QueueUrl"]


def test_queue_urls_name_the_server(service, queue_url):
    assert queue_url == f"{service.url}/000000000000/orders"


def test_all_calls_of_a_client_share_one_connection(service, sqs, queue_url):
    for number in range(20):
        sqs.send_message(QueueUrl=queue_url, MessageBody=str(number))
    assert len({each.client_address for each in service.log}) == 1
    assert len(service.server.connections) == 1


def test_errors_are_those_of_the_service(sqs, queue_url):
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        sqs.send_message(QueueUrl=f"{queue_url}x", MessageBody="a")


def test_a_client_goes_on_after_its_idle_connection_was_closed(service, sqs, queue_url):
    with service.gate.closed():
        service.server.close_connections()
    sqs.send_message(QueueUrl=queue_url, MessageBody="a")
    assert len({each.client_address for each in service.log}) == 2


def test_a_client_goes_on_after_an_outage(service, sqs, queue_url):
    service.server.suspend()
    service.server.cut_connections()
    with pytest.raises(Exception, match="Could not connect"):
        sqs.send_message(QueueUrl=queue_url, MessageBody="a")
    service.server.resume()
    sqs.send_message(QueueUrl=queue_url, MessageBody="a")


def test_sixteen_threads_lose_and_double_nothing(service, sqs, queue_url):
    client = service.client(max_pool_connections=16)
    received: Queue[str] = Queue()
    count = 8 * 25

    def send(worker: int) -> None:
        for number in range(25):
            client.send_message(QueueUrl=queue_url, MessageBody=f"{worker}:{number}")

    def receive(_worker: int) -> None:
        while received.qsize() < count:
            answer = client.receive_message(
                QueueUrl=queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=1
            )
            for message in answer.get("Messages", []):
                client.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
                received.put(message["Body"])

    with ThreadPoolExecutor(16) as pool:
        workers = [pool.submit(send, worker) for worker in range(8)]
        workers += [pool.submit(receive, worker) for worker in range(8)]
        for worker in workers:
            worker.result()
    bodies = [received.get_nowait() for _ in range(received.qsize())]
    assert len(bodies) == count
    assert set(bodies) == {f"{worker}:{number}" for worker in range(8) for number in range(25)}
    service.broker.check()


def test_a_parked_poll_is_answered_by_a_send(service, sqs, queue_url):
    receiver = service.client()
    with ThreadPoolExecutor(1) as pool:
        poll = pool.submit(receiver.receive_message, QueueUrl=queue_url, WaitTimeSeconds=20)
        service.wait_for_parked(1)
        sqs.send_message(QueueUrl=queue_url, MessageBody="a")
        assert [each["Body"] for each in poll.result(LONG)["Messages"]] == ["a"]


def test_a_client_that_closed_before_the_delivery_takes_no_message(service, sqs, queue_url):
    body = json.dumps({"QueueUrl": queue_url, "WaitTimeSeconds": 20}).encode()
    with socket.create_connection(("127.0.0.1", service.server.port)) as leaver:
        leaver.sendall(
            b"POST / HTTP/1.1\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        service.wait_for_parked(1)
    # The end of a connection reaches the server's socket before a later request does.
    sqs.send_message(QueueUrl=queue_url, MessageBody="a")
    received = sqs.receive_message(
        QueueUrl=queue_url, MessageSystemAttributeNames=["ApproximateReceiveCount"]
    )
    (message,) = received["Messages"]
    assert message["Attributes"] == {"ApproximateReceiveCount": "1"}


def test_stopping_answers_twenty_parked_polls_empty(service, queue_url):
    client = service.client(max_pool_connections=20)
    with ThreadPoolExecutor(20) as pool:
        polls = [
            pool.submit(client.receive_message, QueueUrl=queue_url, WaitTimeSeconds=20)
            for _ in range(20)
        ]
        service.wait_for_parked(20)
        service.server.stop()
        answers = [poll.result(LONG) for poll in polls]
    assert all("Messages" not in answer for answer in answers)
    headers = [answer["ResponseMetadata"]["HTTPHeaders"] for answer in answers]
    assert {each["connection"] for each in headers} == {"close"}


def test_refuses_a_body_beyond_the_limit_in_the_protocols_shape(sqs, queue_url):
    with pytest.raises(ClientError) as caught:
        sqs.send_message(QueueUrl=queue_url, MessageBody="a" * (17 * 1024 * 1024))
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413
    assert caught.value.response["Error"]["Code"] == "RequestEntityTooLarge"


def test_the_largest_message_travels_there_and_back(sqs, queue_url):
    body = "é" * (512 * 1024)
    sqs.send_message(QueueUrl=queue_url, MessageBody=body)
    assert sqs.receive_message(QueueUrl=queue_url)["Messages"][0]["Body"] == body


def test_a_plain_get_on_a_queue_url_performs_its_action(service, sqs, queue_url):
    with urlopen(f"{queue_url}?Action=SendMessage&MessageBody=a", timeout=LONG) as response:
        assert response.headers["Content-Type"] == "text/xml"
    assert sqs.receive_message(QueueUrl=queue_url)["Messages"][0]["Body"] == "a"
    assert service.log.calls("SendMessage")[0].queue == urlsplit(queue_url).path.split("/")[-1]
