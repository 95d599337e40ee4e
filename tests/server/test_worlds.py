from __future__ import annotations

import datetime as dt
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from pytest_sqsq import ClockModeError, SqsServer, WaitTimeout
from pytest_sqsq.errors import StoreRefused

START = "2030-01-01T00:00:00Z"
NO_RETRIES = Config(retries={"total_max_attempts": 1})


@pytest.fixture
def server(make_server) -> SqsServer:
    return make_server(start=START)


def test_reset_empties_the_server(server) -> None:
    queue = server.create_queue("orders.fifo", attributes={"ContentBasedDeduplication": True})
    clock, port = server.clock, server.port
    client = server.client()
    client.send_message(QueueUrl=queue.url, MessageBody="a", MessageGroupId="g")
    clock.call_every(1, lambda: pytest.fail("a callback outlived the reset"))
    clock.freeze()
    server.reset()

    assert server.queues == ()
    assert server.port == port
    assert len(server.requests) == 0
    assert server.clock is clock
    assert server.now == dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    assert server.advance(60) == ()
    server.create_queue("orders.fifo", attributes={"ContentBasedDeduplication": True})
    client.send_message(QueueUrl=queue.url, MessageBody="a", MessageGroupId="g")
    queue.assert_contains(body="a")


def test_reset_tells_parked_polls_that_their_queue_is_gone(server, beside) -> None:
    queue = server.create_queue("orders")
    poll = beside(server.client().receive_message, QueueUrl=queue.url, WaitTimeSeconds=20)
    server.wait_for_pollers(1)
    server.reset()

    with pytest.raises(ClientError, match="The specified queue does not exist"):
        poll.result(timeout=5)


def test_a_poll_that_a_reset_ends_is_no_request_of_the_new_world(server, beside) -> None:
    queue = server.create_queue("orders")
    poll = beside(server.client().receive_message, QueueUrl=queue.url, WaitTimeSeconds=20)
    server.wait_for_pollers(1)
    server.reset()
    poll.exception(timeout=5)

    assert list(server.requests) == []


def test_reset_disconnects_clients(server) -> None:
    client = server.client()
    client.list_queues()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        assert connection.recv(4096)
        server.reset()
        assert connection.recv(4096) == b""

    assert client.list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_requests_for_a_queue_of_before_the_reset_are_logged_as_stale(server) -> None:
    queue = server.create_queue("orders")
    client = server.client()
    client.send_message(QueueUrl=queue.url, MessageBody="a")
    server.reset()
    with pytest.raises(client.exceptions.QueueDoesNotExist):
        client.send_message(QueueUrl=queue.url, MessageBody="b")
    server.create_queue("orders")
    client.send_message(QueueUrl=queue.url, MessageBody="c")

    assert [each.stale for each in server.requests] == [True, False]


def test_configure_empties_the_server_and_changes_its_options(server) -> None:
    server.create_queue("orders")
    port = server.port
    server.configure(clock="live", account_id="111122223333", in_flight_limit=3)

    assert server.queues == ()
    assert server.port == port
    assert server.clock.mode == "live"
    assert server.create_queue("orders").account_id == "111122223333"
    assert server.options["in_flight_limit"] == 3
    assert server.client().list_queues()["QueueUrls"] == [f"{server.url}/111122223333/orders"]


@pytest.mark.parametrize("option", [{"port": 1}, {"host": "::1"}])
def test_configure_cannot_move_the_listener(server, option) -> None:
    with pytest.raises(TypeError, match="unknown option"):
        server.configure(**option)


def test_configure_with_a_store_that_cannot_be_reached_changes_nothing(server) -> None:
    server.create_queue("orders")
    with pytest.raises(StoreRefused):
        server.configure(store="redis://127.0.0.1:1")

    assert server.options["store"] == "memory"
    assert len(server.queues) == 1


def test_tick_runs_what_is_due_without_moving_the_clock(server) -> None:
    ran: list[dt.datetime] = []
    server.clock.call_at(server.now, lambda: ran.append(server.now))
    events = server.tick()

    assert [event.kind for event in events] == ["callback"]
    assert ran == [server.now]


def test_tick_sweeps_tombstones(server) -> None:
    queue = server.create_queue("orders")
    for number in range(1030):
        queue.send(str(number))
    for message in [queue.receive(10) for _ in range(103)]:
        for each in message:
            queue.delete(each)
    server.tick()

    assert queue.statistics.dead_count <= 1024


def test_advance_serves_a_parked_poll_at_its_instant(server, beside) -> None:
    queue = server.create_queue("orders")
    queue.send("hello", DelaySeconds=10)
    poll = beside(server.client().receive_message, QueueUrl=queue.url, WaitTimeSeconds=20)
    server.wait_for_pollers(1)
    events = server.advance(20)

    assert [event.kind for event in events] == ["visible", "received"]
    assert poll.result(timeout=5)["Messages"][0]["Body"] == "hello"


def test_a_callback_may_make_requests(server) -> None:
    queue = server.create_queue("orders")
    client = server.client()
    server.clock.call_at(
        server.now + dt.timedelta(seconds=5),
        lambda: client.send_message(QueueUrl=queue.url, MessageBody="from a callback"),
    )
    server.advance(10)

    [message] = queue.messages()
    assert message.sent_ms == server.clock.now_ms - 5000


def test_a_body_of_steps_may_receive_and_delete(server) -> None:
    queue = server.create_queue("orders", attributes={"VisibilityTimeout": 10})
    queue.send("hello")
    queue.receive()
    client = server.client()
    bodies = []
    for _ in server.clock.steps(60):
        for message in client.receive_message(QueueUrl=queue.url).get("Messages", []):
            bodies.append(message["Body"])
            if len(bodies) == 3:
                client.delete_message(QueueUrl=queue.url, ReceiptHandle=message["ReceiptHandle"])

    assert bodies == ["hello"] * 3
    queue.assert_empty()


def test_track_collects_what_happens_in_between(server) -> None:
    queue = server.create_queue("orders")
    queue.send("before")
    with server.track() as session:
        queue.send("hello")

    assert [event.body for event in session.sent] == ["hello"]


def test_check_raises_a_failure_once(server) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    server.create_queue("orders")
    server.broker.list_queues = fail
    with pytest.raises(ClientError, match="InternalFailure"):
        server.client(config=NO_RETRIES).list_queues()
    with pytest.raises(ZeroDivisionError):
        server.check()
    server.check()


def test_check_raises_several_failures_as_a_group(server) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    server.broker.list_queues = fail
    client = server.client(config=NO_RETRIES)
    for _ in range(2):
        with pytest.raises(ClientError):
            client.list_queues()
    with pytest.raises(BaseExceptionGroup) as caught:
        server.check()

    assert [type(each) for each in caught.value.exceptions] == [ZeroDivisionError] * 2


def test_check_verifies_every_queue(server) -> None:
    queue = server.create_queue("orders")
    queue.send("hello")
    queue.internals.log.dead_count += 1
    with pytest.raises(AssertionError):
        server.check()


def test_the_report_shows_queues_messages_and_requests(server) -> None:
    queue = server.create_queue("orders")
    queue.send("hello")
    queue.receive(visibility_timeout=40)
    server.client().list_queues()
    server.advance(10)
    report = server.report().splitlines()

    assert report[0] == "clock: 2030-01-01T00:00:10.000Z, 10 s after the test's start (frozen)"
    assert report[1].startswith("queue   visible  in flight  delayed  parked polls  sent  received")
    assert report[2].split() == ["orders", *"010011000"]
    assert report[3] == "  'hello' in flight until +40 s, received once"
    assert report[4] == "requests:"
    assert report[5].startswith("  2030-01-01T00:00:00.000Z ListQueues: 200 (http, json from ")


def test_the_report_is_bounded(server) -> None:
    for number in range(50):
        server.create_queue(f"queue-{number:02d}")
    busy = server.queue("queue-00")
    for number in range(30):
        busy.send(str(number))
    client = server.client(transport="direct")
    for _ in range(40):
        client.list_queues()
    report = server.report()

    assert "… and 25 more" in report
    assert "… and 30 more queues" in report
    assert "the last 20 of 40 requests:" in report
    assert len(report.splitlines()) < 60


def test_the_report_of_an_empty_server_says_so(make_server) -> None:
    report = make_server(start=START, seed=7).report()

    assert report.splitlines()[1:] == ["seed: 7", "no queues", "no requests"]


def test_a_system_clock_cannot_be_advanced(make_server) -> None:
    with pytest.raises(ClockModeError):
        make_server(clock="system").advance(1)


def test_a_thread_that_is_older_than_the_server_does_not_hold_up_a_wait(make_server) -> None:
    with bystander():
        server = make_server()
        orders = server.create_queue("orders")
        orders.send("a")
        with pytest.raises(
            WaitTimeout, match=r"^waiting for 'orders' to be empty: this cannot end"
        ):
            orders.wait_until_empty(timeout=3600)


def test_a_thread_that_began_since_may_yet_become_a_consumer(server) -> None:
    orders = server.create_queue("orders")
    orders.send("a")
    with (
        bystander(),
        pytest.raises(WaitTimeout, match=r"^waited 0\.001 s for 'orders' to be empty"),
    ):
        orders.wait_until_empty(timeout=0.001)


@contextmanager
def bystander() -> Iterator[None]:
    """A thread that has nothing to do with any server."""
    done = Event()
    thread = Thread(target=done.wait)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
