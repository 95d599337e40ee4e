"""``run_for`` and ``run_until``: time jumps while the test waits."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from pytest_sqsq import running
from pytest_sqsq.errors import ClockModeError, WaitTimeout


@pytest.fixture
def impatient(make_server):
    """A server that hardly waits for consumers at work."""
    return make_server(autojump_grace=0.01)


def kinds(events) -> list[str]:
    return [event.kind for event in events]


def test_run_for_ends_at_its_span_and_returns_what_happened(server, consumers, passed) -> None:
    queue = server.create_queue("orders")
    queue.send("hello", DelaySeconds=30)
    consumers.start(queue.url)
    server.wait_for_pollers(1)

    events = server.run_for(40.5)

    assert passed(server) == 40.5
    assert kinds(events) == ["poll_ended", "visible", "received", "deleted"]
    assert [event.at_ms - server.clock.started_ms for event in events] == [20_000, *[30_000] * 3]


def test_what_becomes_due_at_the_end_is_handled_before_run_for_returns(server, consumers) -> None:
    queue = server.create_queue("orders")
    queue.send("hello", DelaySeconds=30)
    handled: list[str] = []
    consumers.start(queue.url, lambda body: handled.append(body) is None)
    server.wait_for_pollers(1)

    server.run_for(30)

    assert handled == ["hello"]
    queue.assert_empty()


def test_a_chain_of_reactions_takes_as_many_jumps_as_it_needs(server, consumers, passed) -> None:
    first, second = server.create_queue("first"), server.create_queue("second")
    client = server.client()
    consumers.start(
        first.url,
        lambda body: bool(
            client.send_message(QueueUrl=second.url, MessageBody=body, DelaySeconds=10)
        ),
    )
    done: list[float] = []
    consumers.start(second.url, lambda body: done.append(passed(server)) is None)
    server.wait_for_pollers(2)
    first.send("hello", DelaySeconds=10)

    server.run_until(lambda: done)

    assert done == [20]


def test_run_for_without_consumers_is_like_an_advance(impatient, passed) -> None:
    queue = impatient.create_queue("orders")
    queue.send("hello", DelaySeconds=30)
    impatient.clock.call_every(20, lambda: None)

    events = impatient.run_for(timedelta(minutes=1))

    assert kinds(events) == ["callback", "visible", "callback", "callback"]
    assert passed(impatient) == 60
    assert impatient.clock.busy_jumps == 0


def test_a_consumer_that_is_just_starting_is_waited_for(server, consumers) -> None:
    queue = server.create_queue("orders")
    queue.send("hello")
    attempts: list[str] = []
    consumers.start(queue.url, lambda body: attempts.append(body) is None and len(attempts) == 3)

    server.run_until(lambda: len(attempts) == 3)

    assert attempts == ["hello"] * 3


def test_consumers_that_are_just_starting_are_all_waited_for(server, consumers) -> None:
    queue = server.create_queue("orders")

    def start() -> None:
        for count in (1, 2, 3):
            consumers.start(queue.url)
            server.wait_for_pollers(count, timeout=30)

    starter = threading.Thread(target=start)
    starter.start()
    events = server.run_for(30)
    starter.join()

    assert [(event.kind, event.at_ms - server.clock.started_ms) for event in events] == [
        ("poll_ended", 20_000)
    ] * 3


def test_a_thread_that_never_polls_is_waited_for_once(make_server, make_consumers, passed) -> None:
    server = make_server(autojump_grace=0.1)
    consumers = make_consumers(server)
    released = threading.Event()
    producer = threading.Thread(target=released.wait)
    producer.start()
    consumers.start(server.create_queue("orders").url)
    server.wait_for_pollers(1)
    with ThreadPoolExecutor(1) as pool:
        # With a wait before each of the jumps it would take more than a minute.
        events = pool.submit(server.run_for, 15_000).result(timeout=60)
    released.set()
    producer.join()

    assert kinds(events) == ["poll_ended"] * 750
    assert (passed(server), server.clock.busy_jumps) == (15_000, 0)


def test_the_heartbeats_of_work_that_goes_on_get_their_turn(server, consumers, passed) -> None:
    queue = server.create_queue("orders", attributes={"VisibilityTimeout": 30})
    client = server.client()

    def begin(body: str) -> bool:
        [message] = queue.messages("in_flight")
        receipt = {"QueueUrl": queue.url, "ReceiptHandle": message.receipt_handle}
        heart = server.clock.call_every(
            20, lambda: client.change_message_visibility(**receipt, VisibilityTimeout=30)
        )

        def finish() -> None:
            heart.cancel()
            client.delete_message(**receipt)

        server.clock.call_at(server.now + timedelta(seconds=100), finish)
        return False

    consumers.start(queue.url, begin, count=2)
    server.wait_for_pollers(2)
    queue.send("long work")
    server.run_until(lambda: queue.statistics.live_count == 0)

    assert passed(server) == 100
    queue.assert_received(body="long work", times=1)
    queue.assert_visibility_extended(body="long work", times=5)


def test_a_thread_that_a_callback_wakes_gets_its_turn(make_server, make_consumers, passed) -> None:
    server = make_server(autojump_grace=0.1)
    consumers = make_consumers(server)
    queue = server.create_queue("orders", attributes={"VisibilityTimeout": 30})
    client = server.client()
    beats: list[float] = []

    def work(body: str) -> bool:
        [message] = queue.messages("in_flight")
        beat = threading.Semaphore(0)
        heart = server.clock.call_every(20, beat.release)
        for _ in range(9):
            assert beat.acquire(timeout=30)
            beats.append(passed(server))
            client.change_message_visibility(
                QueueUrl=queue.url, ReceiptHandle=message.receipt_handle, VisibilityTimeout=30
            )
        heart.cancel()
        return True

    consumers.start(queue.url, work, count=2)
    server.wait_for_pollers(2)
    queue.send("long work")
    server.run_until(lambda: queue.statistics.deleted)

    assert beats == [20 * number for number in range(1, 10)]
    queue.assert_received(body="long work", times=1)
    assert server.clock.busy_jumps == 1


def test_run_until_returns_at_once_where_the_predicate_holds(server, passed) -> None:
    server.create_queue("orders").send("hello", DelaySeconds=30)

    assert server.run_until(lambda: True) == ()
    assert passed(server) == 0


def test_a_predicate_may_make_requests(server, passed, consumers) -> None:
    queue = server.create_queue("orders")
    consumers.start(server.create_queue("other").url)
    server.wait_for_pollers(1)
    queue.send("hello", DelaySeconds=90)
    client = server.client()

    server.run_until(lambda: "Messages" in client.receive_message(QueueUrl=queue.url))

    assert passed(server) == 90


def test_a_predicate_is_asked_only_where_the_consumers_rest(server, consumers) -> None:
    queue = server.create_queue("orders")
    consumers.start(queue.url, count=3)
    server.wait_for_pollers(3)
    for delay in range(1, 6):
        queue.send("hello", DelaySeconds=delay)
    counts: list[tuple[int, int]] = []

    def is_over() -> bool:
        statistics = queue.statistics
        counts.append((statistics.in_flight, statistics.parked_polls))
        return statistics.deleted == 5

    server.run_until(is_over)

    assert set(counts) == {(0, 3)}


def test_run_until_fails_at_its_limit(server, consumers, passed) -> None:
    queue = server.create_queue("orders")
    consumers.start(queue.url, lambda body: False)
    server.wait_for_pollers(1)
    queue.send("hello", DelaySeconds=7)

    def is_deleted() -> bool:
        return queue.statistics.deleted > 0

    with pytest.raises(
        WaitTimeout,
        match=r"^run_until, waiting for is_deleted to hold: the limit is reached\n"
        r"  clock: 2030-01-01T00:01:00\.000Z, 60 s after the test's start$",
    ):
        server.run_until(is_deleted, limit=60)

    assert passed(server) == 60


def test_run_until_fails_at_once_when_nothing_is_left_that_can_change(
    server, consumers, passed
) -> None:
    consumers.start(server.create_queue("orders").url, count=2)
    server.create_queue("other").send("retention is nothing to wait for")
    server.wait_for_pollers(2)

    with pytest.raises(
        WaitTimeout,
        match=r"<lambda> to hold: this cannot end\n.*\n"
        r"  nothing is left that can change: .*, 2 polls parked$",
    ):
        server.run_until(lambda: False)

    assert passed(server) == 60  # three polls are free


def test_a_consumer_at_work_may_still_change_something(make_server, make_consumers) -> None:
    server = make_server(autojump_grace=0.02)
    server.timeout_factor = 4
    consumers = make_consumers(server)
    orders, results = server.create_queue("orders"), server.create_queue("results")
    proceed = threading.Event()
    client = server.client()

    def work(body: str) -> bool:
        orders.purge()
        return proceed.wait(10) and bool(
            client.send_message(QueueUrl=results.url, MessageBody="done")
        )

    consumers.start(orders.url, work)
    server.wait_for_pollers(1)
    orders.send("hello")
    asked: list[None] = []

    def has_result() -> bool:
        asked.append(None)
        if len(asked) == 4:
            proceed.set()
        return results.statistics.visible == 1

    server.run_until(has_result)

    assert len(asked) > 4


def test_a_consumer_that_stays_away_is_not_waited_for_endlessly(
    make_server, make_consumers
) -> None:
    server = make_server(autojump_grace=0.01)
    server.timeout_factor = 0.01
    consumers = make_consumers(server)
    queue = server.create_queue("orders")
    released = threading.Event()
    consumers.start(queue.url, lambda body: queue.purge() is None and released.wait(30))
    server.wait_for_pollers(1, timeout=1000)
    queue.send("hello")

    with pytest.raises(WaitTimeout, match="this cannot end"):
        server.run_until(lambda: False)

    released.set()


def test_a_hold_keeps_time_from_jumping(server, consumers, passed) -> None:
    queue = server.create_queue("orders")
    consumers.start(queue.url, count=2)
    server.wait_for_pollers(2)
    hold = server.clock.hold()
    inner = server.clock.hold()
    released_at: list[float] = []

    def release() -> None:
        released_at.append(passed(server))
        inner.release()
        hold.release()

    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(server.run_for, 3600)
        # Its first event comes after the hold has ended.
        with pytest.raises(TimeoutError):
            run.result(timeout=0.05)
        release()
        events = run.result(timeout=30)

    assert released_at == [0]
    assert events[0].at_ms == server.clock.started_ms + 20_000
    assert passed(server) == 3600


def test_what_keeps_time_from_jumping_for_too_long_is_named(
    make_server, make_consumers, monkeypatch
) -> None:
    server = make_server()
    monkeypatch.setattr(running, "STALL_SECONDS", 0.01)
    with (
        server.clock.hold(),
        pytest.raises(
            WaitTimeout,
            match=r"^run_for: time could not jump for 0\.01 real seconds\n.*\n  1 hold in force$",
        ),
    ):
        server.run_for(10)


def test_a_callback_that_raises_does_so_in_run_for(impatient, passed) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    impatient.clock.call_at(impatient.now + timedelta(seconds=10), fail)
    with pytest.raises(ZeroDivisionError):
        impatient.run_for(60)

    assert passed(impatient) == 10
    impatient.check()


def test_what_went_wrong_in_the_server_is_raised(server, consumers) -> None:
    queue = server.create_queue("orders")
    consumers.start(queue.url)
    server.wait_for_pollers(1)
    server.clock.call_at(
        server.now + timedelta(seconds=10), lambda: server._running().note_failure(KeyError("x"))
    )

    with pytest.raises(KeyError, match="x"):
        server.run_for(60)


def test_a_live_clock_stands_during_a_run_and_gains_exactly_the_span(make_server) -> None:
    server = make_server(clock="live", autojump_grace=0.01)
    instants: list[int] = []
    server.clock.call_every(3600, lambda: instants.append(server.clock.now_ms))
    events = server.run_for(timedelta(hours=3))

    assert len(events) == 3
    assert instants[2] - instants[0] == 7_200_000
    assert server.clock.mode == "live"
    assert server.clock.real_seconds_until(0) == 0


def test_a_system_clock_cannot_be_run(make_server) -> None:
    server = make_server(clock="system", start=None)
    with pytest.raises(ClockModeError, match=r"^run_for: a clock in system mode follows"):
        server.run_for(1)
    with pytest.raises(ClockModeError, match=r"^run_until: a clock in system mode follows"):
        server.run_until(lambda: True)


@pytest.mark.parametrize("duration", [-1, timedelta(seconds=-1)])
def test_a_negative_span_is_refused(server, duration) -> None:
    with pytest.raises(ValueError, match="time cannot go back"):
        server.run_for(duration)
    with pytest.raises(ValueError, match="time cannot go back"):
        server.run_until(lambda: True, limit=duration)


def test_a_callback_cannot_run_the_clock_that_calls_it(server) -> None:
    server.clock.call_at(server.now, lambda: server.run_for(1))
    with pytest.raises(RuntimeError, match="a callback cannot move the clock"):
        server.tick()


def test_a_predicate_cannot_run_the_clock_that_asks_it(server) -> None:
    with pytest.raises(RuntimeError, match="run_for or run_until is running already"):
        server.run_until(lambda: server.run_for(1))


def test_a_run_on_an_event_loop_names_its_awaitable_twin(server) -> None:
    async def run() -> None:
        server.run_for(1)

    with pytest.raises(RuntimeError, match=r"await the server's aio\.run_for instead"):
        asyncio.run(run())


@pytest.mark.parametrize("changes", [{}, {"seed": 1}])
def test_a_run_ends_with_an_error_when_the_server_is_reset(impatient, changes) -> None:
    def reset() -> bool:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(impatient.configure, **changes).result(timeout=10)
        return False

    with pytest.raises(RuntimeError, match="the server was reset meanwhile"):
        impatient.run_until(reset)


def test_a_server_that_was_not_started_cannot_run() -> None:
    from pytest_sqsq import SqsServer

    with pytest.raises(RuntimeError, match="the server was not started"):
        SqsServer(clock="frozen").run_for(1)


def test_nothing_jumps_after_a_run(server, consumers, passed) -> None:
    queue = server.create_queue("orders")
    consumers.start(queue.url)
    server.wait_for_pollers(1)
    server.run_for(5)
    queue.send("hello", DelaySeconds=5)

    names = {thread.name for thread in threading.enumerate()}
    assert "sqsq-autojump" not in names
    assert (passed(server), server.clock.mode) == (5, "frozen")
