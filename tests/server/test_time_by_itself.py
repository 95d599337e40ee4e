"""What the scheduler does: time that passes without anybody moving it."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import time_machine
from botocore.config import Config

from pytest_sqsq import SqsServer, stack
from pytest_sqsq.errors import GateTimeout
from pytest_sqsq.models import Event

WAIT = 10.0


def test_a_live_clock_lets_callbacks_run_when_they_are_due(make_server) -> None:
    server = make_server(clock="live")
    ran = threading.Event()
    server.clock.call_at(server.now + dt.timedelta(milliseconds=20), ran.set)

    assert ran.wait(WAIT)


def test_a_live_clock_serves_parked_polls_when_messages_become_visible(make_server, beside) -> None:
    server = make_server(clock="live")
    queue = server.create_queue("orders")
    queue.send("hello", DelaySeconds=1)
    poll = beside(server.client().receive_message, QueueUrl=queue.url, WaitTimeSeconds=20)

    assert poll.result(timeout=WAIT)["Messages"][0]["Body"] == "hello"


def test_what_comes_earlier_than_expected_wakes_the_scheduler(make_server) -> None:
    server = make_server(clock="live")
    ran = threading.Event()
    server.clock.call_at(server.now + dt.timedelta(days=1), lambda: pytest.fail("a day early"))
    server.clock.call_at(server.now + dt.timedelta(milliseconds=20), ran.set)

    assert ran.wait(WAIT)


def test_a_resumed_clock_runs_again(make_server) -> None:
    server = make_server(clock="frozen")
    ran = threading.Event()
    server.clock.call_at(server.now + dt.timedelta(milliseconds=20), ran.set)
    server.clock.resume()

    assert ran.wait(WAIT)


def test_a_live_clock_goes_on_after_an_advance(make_server) -> None:
    server = make_server(clock="live")
    ran = threading.Event()
    server.clock.call_at(server.now + dt.timedelta(days=1, milliseconds=20), ran.set)
    server.advance(dt.timedelta(days=1))

    assert ran.wait(WAIT)


def test_a_server_that_was_configured_anew_has_its_scheduler(make_server) -> None:
    server = make_server(clock="frozen")
    server.configure(clock="live")
    ran = threading.Event()
    server.clock.call_at(server.now + dt.timedelta(milliseconds=20), ran.set)

    assert ran.wait(WAIT)


def test_a_callback_that_fails_by_itself_is_raised_by_check(make_server) -> None:
    server = make_server(clock="live")
    ran = threading.Event()

    def fail() -> None:
        raise ZeroDivisionError

    server.clock.call_at(server.now, fail)
    server.clock.call_at(server.now + dt.timedelta(milliseconds=20), ran.set)

    assert ran.wait(WAIT)
    with pytest.raises(ZeroDivisionError):
        server.check()
    server.check()


def test_a_frozen_server_lets_nothing_happen_by_itself(make_server) -> None:
    server = make_server(clock="frozen")
    ran = threading.Event()
    server.clock.call_at(server.now, ran.set)

    assert not ran.is_set()
    server.tick()
    assert ran.is_set()


def test_a_system_clock_serves_parked_polls_when_the_process_clock_moves(
    make_server, beside
) -> None:
    start = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    with time_machine.travel(start, tick=False) as traveller:
        server = make_server(clock="system")
        queue = server.create_queue("orders")
        queue.send("hello", DelaySeconds=15)
        poll = beside(server.client().receive_message, QueueUrl=queue.url, WaitTimeSeconds=20)
        server.wait_for_pollers(1)
        traveller.shift(dt.timedelta(seconds=15))

        assert poll.result(timeout=WAIT)["Messages"][0]["Body"] == "hello"
        assert queue.history(body="hello")[-1].at_ms == server.clock.now_ms


def test_a_server_stops_while_its_clock_is_busy() -> None:
    for _ in range(10):
        ran = threading.Event()
        with SqsServer(clock="live") as server:
            server.clock.call_every(0.001, ran.set)
            assert ran.wait(WAIT)


def test_a_server_stops_though_a_callback_of_its_own_thread_stands_still() -> None:
    begun, released = threading.Event(), threading.Event()
    server = SqsServer(clock="autojump").start()
    server.create_queue("orders")
    server.clock.call_at(server.now, lambda: begun.set() or released.wait(WAIT))
    try:
        with ThreadPoolExecutor(1) as pool:
            client = server.client(config=Config(retries={"total_max_attempts": 1}))
            poll = pool.submit(client.receive_message, QueueUrl="orders", WaitTimeSeconds=20)
            assert begun.wait(WAIT)
            with pytest.raises(GateTimeout, match="the clock stands in a callback"):
                server.stop()
            assert "Messages" not in poll.result(timeout=WAIT)
    finally:
        released.set()
    assert not server.is_running


@pytest.fixture
def delay_many(make_server) -> Callable[[], tuple[SqsServer, threading.Event]]:
    """Makes 120 messages of a queue appear in 0.1 seconds; the event tells that they all have."""

    def delay() -> tuple[SqsServer, threading.Event]:
        server = make_server(clock="frozen")
        queue = server.create_queue("full", attributes={"DelaySeconds": "60"})
        for number in range(120):
            queue.send(str(number))
        server.advance(59.9)
        done = threading.Event()
        server.broker.add_listener(lambda event: done.set() if event.body == "119" else None)
        return server, done

    return delay


def test_other_queues_are_used_while_much_is_due_in_one(delay_many, beside) -> None:
    server, done = delay_many()
    other = server.create_queue("other")

    def send_elsewhere(event: Event) -> None:
        # Told while the queue is locked: who needed that lock would never answer.
        if event.kind == "visible" and event.queue == "full":
            beside(other.send, f"beside {event.body}").result(timeout=WAIT)

    server.broker.add_listener(send_elsewhere)
    server.clock.resume()

    assert done.wait(WAIT)
    server.check()
    assert len(other.messages()) >= 119


def test_a_clock_that_runs_lets_other_threads_go_on_while_much_is_due(
    delay_many, monkeypatch
) -> None:
    given: list[str] = []
    server, done = delay_many()
    monkeypatch.setattr(stack, "give_way", lambda: given.append(threading.current_thread().name))
    server.clock.resume()

    assert done.wait(WAIT)
    assert given == ["sqsq-scheduler"] * 2


def test_a_poll_of_another_queue_gets_what_appears_while_much_is_due_in_one(
    delay_many, beside, monkeypatch
) -> None:
    server, done = delay_many()
    other = server.create_queue("other")
    other.send("delayed", DelaySeconds=1)
    poll = beside(server.client().receive_message, QueueUrl=other.url, WaitTimeSeconds=20)
    server.wait_for_pollers(1, other)
    appears_ms = server.clock.now_ms + 1000
    bodies: list[str] = []

    def take_long() -> None:
        # The first time until the message appears, the second until it has been received.
        if server.clock.now_ms < appears_ms:
            server.wait_until(lambda: server.clock.now_ms >= appears_ms, timeout=WAIT)
        else:
            bodies.append(poll.result(timeout=WAIT)["Messages"][0]["Body"])

    monkeypatch.setattr(stack, "give_way", take_long)
    server.clock.resume()

    assert done.wait(WAIT)
    server.check()
    assert bodies == ["delayed"]


def test_an_advance_keeps_all_other_threads_out_and_gives_way_to_none(
    delay_many, monkeypatch
) -> None:
    server, done = delay_many()
    monkeypatch.setattr(stack, "give_way", lambda: pytest.fail("nobody can want to go on"))
    server.advance(0.1)

    assert done.is_set()
