from __future__ import annotations

import datetime as dt
import socket
import threading

import pytest
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError

from pytest_sqsq import ServerStartError, SqsServer

NO_RETRIES = Config(retries={"total_max_attempts": 1})


def server_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("sqsq")]


def test_a_client_makes_a_round_trip(server) -> None:
    queue = server.create_queue("orders")
    client = server.client()
    client.send_message(QueueUrl=queue.url, MessageBody="hello")
    [message] = client.receive_message(QueueUrl=queue.url)["Messages"]
    client.delete_message(QueueUrl=queue.url, ReceiptHandle=message["ReceiptHandle"])

    assert message["Body"] == "hello"
    queue.assert_empty()
    assert [each.action for each in server.requests] == [
        "SendMessage",
        "ReceiveMessage",
        "DeleteMessage",
    ]


def test_a_server_that_was_not_started_says_so() -> None:
    server = SqsServer()
    for look in (lambda: server.url, lambda: server.clock, lambda: server.queues):
        with pytest.raises(RuntimeError, match="was not started"):
            look()


def test_starting_twice_is_an_error(server) -> None:
    with pytest.raises(RuntimeError, match=f"runs already, at {server.url}"):
        server.start()


def test_a_taken_port_is_an_error_that_names_it() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ServerStartError, match=f"127.0.0.1:{port}"):
            SqsServer(port=port).start()


def test_a_port_can_be_chosen_and_is_free_again_after_stop() -> None:
    with SqsServer() as first:
        port = first.port
    with SqsServer(port=port) as second:
        assert second.url == f"http://127.0.0.1:{port}"


def test_stop_leaves_no_thread_and_can_be_repeated() -> None:
    before = server_threads()
    server = SqsServer().start()
    server.client().list_queues()
    assert server_threads() != before
    server.stop()
    server.stop()

    assert server_threads() == before
    assert not server.is_running


def test_a_stopped_server_can_be_looked_at_and_starts_anew() -> None:
    server = SqsServer(clock="frozen", start="2030-01-01").start()
    server.create_queue("orders").send("hello")
    server.advance(60)
    server.stop()

    server.queue("orders").assert_contains(body="hello")
    with server:
        assert server.queues == ()
        assert server.now == dt.datetime(2030, 1, 1, tzinfo=dt.UTC)


def test_stop_ends_parked_polls_with_an_empty_answer(make_server, beside) -> None:
    server = make_server()
    url = server.create_queue("orders").url
    polls = [
        beside(server.client().receive_message, QueueUrl=url, WaitTimeSeconds=20) for _ in range(3)
    ]
    server.wait_for_pollers(3)
    server.stop()

    assert ["Messages" in poll.result(timeout=5) for poll in polls] == [False] * 3


def test_a_client_is_deaf_to_the_configuration_of_the_process(server, monkeypatch) -> None:
    for name, value in {
        "AWS_PROFILE": "nobody",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_USE_FIPS_ENDPOINT": "true",
        "AWS_CONFIG_FILE": "/nowhere/config",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)

    assert server.client().list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert list(server.resource().queues.all()) == []


@pytest.mark.parametrize("transport", ["http", "direct"])
def test_clients_and_resources_take_either_transport(server, transport) -> None:
    server.create_queue("orders")
    server.client(transport=transport).get_queue_url(QueueName="orders")
    server.resource(transport=transport).get_queue_by_name(QueueName="orders")

    assert [each.transport for each in server.requests] == [transport] * 2


def test_an_unknown_transport_is_refused(server) -> None:
    with pytest.raises(ValueError, match="transport must be 'http' or 'direct', not 'post'"):
        server.client(transport="post")


def test_a_client_takes_the_arguments_of_boto3(server) -> None:
    client = server.client(region_name="eu-west-1", aws_access_key_id="111122223333")
    url = client.create_queue(QueueName="orders")["QueueUrl"]

    assert url == f"{server.url}/111122223333/orders"
    assert server.queue("orders", account_id="111122223333", region="eu-west-1").region == (
        "eu-west-1"
    )


def test_the_environment_leads_to_the_server_alone(server) -> None:
    environment = server.environment

    assert environment["AWS_ENDPOINT_URL_SQS"] == server.url
    assert environment["AWS_REGION"] == environment["AWS_DEFAULT_REGION"] == "us-east-1"
    assert environment["AWS_ACCESS_KEY_ID"] == environment["AWS_SECRET_ACCESS_KEY"] == "testing"
    assert "127.0.0.1" in environment["NO_PROXY"].split(",")
    assert "AWS_PROFILE" not in environment


def test_during_an_outage_clients_are_refused_and_nothing_is_lost(server) -> None:
    queue = server.create_queue("orders")
    client = server.client(config=NO_RETRIES)
    direct = server.client(transport="direct", config=NO_RETRIES)
    client.send_message(QueueUrl=queue.url, MessageBody="hello")
    with server.outage():
        with pytest.raises(EndpointConnectionError):
            client.receive_message(QueueUrl=queue.url)
        with pytest.raises(ConnectionClosedError):
            direct.receive_message(QueueUrl=queue.url)
        with pytest.raises(ServerStartError):
            SqsServer(port=server.port).start()

    assert client.receive_message(QueueUrl=queue.url)["Messages"][0]["Body"] == "hello"


def test_an_outage_cuts_parked_polls(server, beside) -> None:
    queue = server.create_queue("orders")
    client = server.client(config=NO_RETRIES)
    poll = beside(client.receive_message, QueueUrl=queue.url, WaitTimeSeconds=20)
    server.wait_for_pollers(1)
    with server.outage(), pytest.raises(ConnectionClosedError):
        poll.result(timeout=5)

    queue.send("hello")
    queue.assert_counts(visible=1, in_flight=0)


def test_a_restart_keeps_queues_clock_and_log(server) -> None:
    queue = server.create_queue("orders")
    queue.send("hello")
    server.client().list_queues()
    server.advance(60)
    url, now = server.url, server.now
    server.restart()

    assert (server.url, server.now) == (url, now)
    assert server.client().receive_message(QueueUrl=queue.url)["Messages"][0]["Body"] == "hello"
    server.requests.assert_called("ListQueues", times=1)


def test_an_outage_of_a_stopped_server_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="does not run"), SqsServer().outage():
        pass


def test_a_server_on_every_address_is_reached_at_loopback() -> None:
    with SqsServer(host="0.0.0.0") as server:
        assert server.url == f"http://127.0.0.1:{server.port}"
        assert server.client().list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200
