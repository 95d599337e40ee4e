"""Clock mode ``autojump``: when time jumps by itself, and when it does not."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from time import process_time

import pytest


@pytest.fixture
def server(make_server):
    return make_server(clock="autojump")


def receive(client, queue, seconds: int) -> list[str]:
    answer = client.receive_message(QueueUrl=queue.url, WaitTimeSeconds=seconds)
    return [message["Body"] for message in answer.get("Messages", [])]


def autojump_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "sqsq-autojump"]


# What time jumps to


def test_a_lone_poll_that_finds_nothing_ends_at_once(server, passed) -> None:
    queue = server.create_queue("orders")

    assert receive(server.client(), queue, 20) == []
    assert (passed(server), server.clock.jumps, server.clock.busy_jumps) == (20, 1, 0)


def test_a_poll_gets_a_delayed_message_at_its_instant(server, passed) -> None:
    queue = server.create_queue("orders")
    queue.send("hello", DelaySeconds=7)

    assert receive(server.client(), queue, 20) == ["hello"]
    assert passed(server) == 7


def test_a_poll_gets_a_message_when_its_visibility_timeout_ends(server, passed) -> None:
    queue = server.create_queue("orders")
    queue.send("hello")
    queue.receive(visibility_timeout=12)

    assert receive(server.client(), queue, 20) == ["hello"]
    assert passed(server) == 12


def test_a_poll_gets_what_a_move_task_moves(server, passed) -> None:
    source = server.create_queue("failed")
    target = server.create_queue("orders", dead_letter_queue=source, max_receive_count=1)
    source.send("hello")
    client = server.client()
    client.start_message_move_task(
        SourceArn=source.arn, DestinationArn=target.arn, MaxNumberOfMessagesPerSecond=2
    )

    assert receive(client, target, 20) == ["hello"]
    assert passed(server) == 0.5


def test_a_poll_gets_what_a_callback_sends(server, passed) -> None:
    queue = server.create_queue("orders")
    client = server.client()
    server.clock.call_at(
        server.now + timedelta(seconds=5),
        lambda: client.send_message(QueueUrl=queue.url, MessageBody="hello"),
    )

    assert receive(client, queue, 20) == ["hello"]
    assert passed(server) == 5


def test_a_request_that_is_slow_in_virtual_time_is_answered_at_its_instant(server, passed) -> None:
    queue = server.create_queue("orders")
    server.faults.add(action="SendMessage", latency=timedelta(seconds=3), clock="virtual")
    server.client().send_message(QueueUrl=queue.url, MessageBody="hello")

    assert passed(server) == 3


def test_nothing_jumps_while_nobody_polls(server, passed) -> None:
    queue = server.create_queue("orders")
    queue.send("hello", DelaySeconds=7)
    client = server.client()
    for _ in range(20):
        client.get_queue_attributes(QueueUrl=queue.url, AttributeNames=["All"])

    assert (passed(server), server.clock.jumps) == (0, 0)


def test_retention_is_no_reason_to_jump_and_happens_when_it_is_passed(server, passed) -> None:
    queue = server.create_queue("orders", attributes={"MessageRetentionPeriod": 60})
    queue.send("hello")
    other = server.create_queue("other")
    client = server.client()
    for _ in range(3):
        receive(client, other, 1)
    assert passed(server) == 3

    other.send("later", DelaySeconds=100)
    for _ in range(5):
        receive(client, other, 20)

    assert passed(server) == 103
    assert queue.statistics.expired == 1


def test_time_does_not_jump_for_a_message_that_is_gone_before_it_comes_back(server, passed) -> None:
    queue = server.create_queue("orders", attributes={"MessageRetentionPeriod": 60})
    queue.send("hello")
    queue.receive(visibility_timeout=600)
    client = server.client()
    for _ in range(4):
        receive(client, queue, 1)

    assert passed(server) == 3


# Free jumps


def test_three_empty_polls_in_a_row_are_free_and_then_real_time_passes(server, passed) -> None:
    queue = server.create_queue("orders")
    client = server.client()
    for _ in range(4):
        receive(client, queue, 1)

    assert passed(server) == 3


def test_polls_are_free_again_after_something_has_happened(server, passed) -> None:
    queue = server.create_queue("orders")
    client = server.client()
    for _ in range(3):
        receive(client, queue, 20)
    queue.send("hello")
    queue.receive(visibility_timeout=500)
    while receive(client, queue, 20) == []:
        assert passed(server) <= 560

    assert passed(server) == 560


def test_something_that_happens_lets_a_poll_that_waited_in_real_time_go_on(server, passed) -> None:
    queue = server.create_queue("orders")
    client = server.client()
    for _ in range(3):
        receive(client, queue, 20)
    with ThreadPoolExecutor(1) as pool:
        poll = pool.submit(receive, server.client(), queue, 20)
        server.wait_for_pollers(1)
        queue.send("hello", DelaySeconds=5)
        assert poll.result(timeout=15) == ["hello"]

    assert passed(server) == 65


# Consumers at work


def test_time_stands_while_one_of_the_consumers_is_at_work(server, consumers, passed) -> None:
    queue = server.create_queue("orders")
    worked: list[tuple[float, float]] = []

    def work(body: str) -> bool:
        begun = passed(server)
        threading.Event().wait(0.05)
        worked.append((begun, passed(server)))
        return True

    with server.clock.hold():
        consumers.start(queue.url, work, count=3)
        server.wait_for_pollers(3)
        for seconds in (5, 10):
            queue.send("hello", DelaySeconds=seconds)
    server.wait_until(lambda: len(worked) == 2, timeout=20)

    assert worked == [(5, 5), (10, 10)]
    assert server.clock.busy_jumps == 0


def test_a_consumer_that_computes_has_more_than_the_grace(
    make_server, make_consumers, passed
) -> None:
    server = make_server(clock="autojump", autojump_grace=0.2)
    consumers = make_consumers(server)
    queue = server.create_queue("orders")
    worked: list[tuple[float, float]] = []

    def work(body: str) -> bool:
        begun, computed = passed(server), process_time()
        while process_time() < computed + 0.5:
            sum(range(1000))
        worked.append((begun, passed(server)))
        return True

    with server.clock.hold():
        consumers.start(queue.url, work, count=2)
        server.wait_for_pollers(2)
        queue.send("hello", DelaySeconds=5)
        queue.send("hello", DelaySeconds=10)
    server.wait_until(lambda: len(worked) == 2, timeout=30)

    assert worked == [(5, 5), (10, 10)]
    assert server.clock.busy_jumps == 0


def test_a_consumer_that_computes_on_and_on_is_not_waited_for_endlessly(
    make_server, make_consumers
) -> None:
    server = make_server(clock="autojump", autojump_grace=0.02)
    consumers = make_consumers(server)
    queue = server.create_queue("orders")
    second = threading.Event()

    def work(body: str) -> bool:
        if body == "second":
            second.set()
        while not second.is_set():
            sum(range(1000))
        return True

    with server.clock.hold():
        consumers.start(queue.url, work, count=2)
        server.wait_for_pollers(2)
        queue.send("first", DelaySeconds=1)
        queue.send("second", DelaySeconds=5)
    assert second.wait(30)

    assert server.clock.busy_jumps == 1


def test_time_jumps_after_the_grace_though_a_consumer_is_at_work(
    make_server, make_consumers, passed
) -> None:
    server = make_server(clock="autojump", autojump_grace=0.01)
    consumers = make_consumers(server)
    queue = server.create_queue("orders")
    second = threading.Event()

    def work(body: str) -> bool:
        if body == "second":
            second.set()
            return True
        return second.wait(30)

    with server.clock.hold():
        consumers.start(queue.url, work, count=2)
        server.wait_for_pollers(2)
        queue.send("first", DelaySeconds=1)
        queue.send("second", DelaySeconds=5)
    assert second.wait(30)

    assert server.clock.busy_jumps == 1
    assert "\n1 jump while a consumer was busy\n" in server.report()


def test_a_consumer_that_does_not_come_back_is_waited_for_once(make_server, passed) -> None:
    server = make_server(clock="autojump", autojump_grace=0.01)
    queue = server.create_queue("orders", attributes={"VisibilityTimeout": 600})
    with server.clock.hold(), ThreadPoolExecutor(2) as pool:
        polls = [pool.submit(receive, server.client(), queue, 20) for _ in range(2)]
        server.wait_for_pollers(2)
        queue.send("a")
        queue.send("b")
        for poll in polls:
            poll.result(timeout=15)
    queue.send("c", DelaySeconds=500)
    client = server.client()
    while receive(client, queue, 20) == []:
        assert passed(server) <= 500

    assert passed(server) == 500
    assert server.clock.busy_jumps == 1


def test_a_reset_forgets_who_polled_before_it(server, passed) -> None:
    queue = server.create_queue("orders")
    with server.clock.hold(), ThreadPoolExecutor(2) as pool:
        polls = [pool.submit(receive, server.client(), queue, 20) for _ in range(2)]
        server.wait_for_pollers(2)
        queue.send("a")
        queue.send("b")
        for poll in polls:
            poll.result(timeout=15)
    server.reset()
    assert receive(server.client(), server.create_queue("orders"), 20) == []

    assert (passed(server), server.clock.jumps, server.clock.busy_jumps) == (20, 1, 0)


def test_holds_are_counted_and_time_jumps_when_the_last_has_ended(server, passed) -> None:
    queue = server.create_queue("orders")
    with server.clock.hold():
        with server.clock.hold():
            assert receive(server.client(), queue, 1) == []
        assert receive(server.client(), queue, 1) == []
        assert passed(server) == 0
    assert receive(server.client(), queue, 1) == []

    assert passed(server) == 1


# Polls that are skipped


def test_polls_that_are_skipped_are_served_at_the_next_event(server, consumers, passed) -> None:
    queue = server.create_queue("orders", attributes={"DelaySeconds": 900})
    received: list[float] = []
    with server.clock.autojump(skip_empty_polls=True):
        with server.clock.hold():
            consumers.start(queue.url, lambda body: received.append(passed(server)) is None, 4)
            server.wait_for_pollers(4)
            queue.send("hello")
        server.wait_until(lambda: queue.statistics.deleted == 1, timeout=20)

    assert received == [900]
    assert len(server.requests.calls(action="ReceiveMessage")) == 1


def test_polls_that_nothing_lies_ahead_of_end_though_they_may_be_skipped(server, passed) -> None:
    queue = server.create_queue("orders")
    with server.clock.autojump(skip_empty_polls=True):
        assert receive(server.client(), queue, 20) == []

    assert passed(server) == 20


# The mode


def test_autojump_is_a_context_and_changes_the_rules_for_as_long(make_server) -> None:
    clock = make_server(clock="live", start=None, autojump_threshold=0.004).clock
    with clock.autojump(grace=2.0, skip_empty_polls=True):
        assert clock.mode == "autojump"
        assert clock.jump_rules == (0.004, 2.0, True)
        with clock.freeze():
            assert clock.mode == "frozen"
        assert clock.mode == "autojump"

    assert clock.mode == "live"
    assert clock.jump_rules == (0.004, 60.0, False)


@pytest.mark.parametrize("rules", [{"threshold": 0}, {"grace": -1}, {"grace": float("nan")}])
def test_rules_without_real_time_are_refused(server, rules) -> None:
    with pytest.raises(ValueError, match="threshold and grace are real seconds, more than 0"):
        server.clock.autojump(**rules)


def test_a_seed_starts_an_autojump_clock_at_a_fixed_instant(make_server) -> None:
    server = make_server(clock="autojump", start=None, seed=1)
    assert server.now.isoformat() == "2030-01-01T00:00:00+00:00"


def test_there_is_a_thread_for_jumps_in_autojump_mode_only(make_server) -> None:
    server = make_server(clock="frozen")
    assert autojump_threads() == []
    with server.clock.autojump():
        [thread] = autojump_threads()
    thread.join(10)
    assert autojump_threads() == []
    server.configure(clock="autojump")
    assert len(autojump_threads()) == 1
    server.stop()
    assert autojump_threads() == []


def test_a_server_that_was_emptied_jumps_again(server, passed) -> None:
    for _ in range(3):
        queue = server.create_queue("orders")
        queue.send("hello", DelaySeconds=30)
        assert receive(server.client(), queue, 20) == []
        assert receive(server.client(), queue, 20) == ["hello"]
        assert passed(server) == 30
        server.reset()


def test_a_test_may_advance_the_clock_as_well(server, passed) -> None:
    queue = server.create_queue("orders")
    queue.send("hello", DelaySeconds=30)
    server.advance(29)
    assert receive(server.client(), queue, 20) == ["hello"]

    assert passed(server) == 30


def test_a_callback_that_raises_in_a_jump_is_raised_by_check(server) -> None:
    queue = server.create_queue("orders")

    def fail() -> None:
        raise ZeroDivisionError

    server.clock.call_at(server.now + timedelta(milliseconds=500), fail)
    receive(server.client(), queue, 1)  # ends in real time

    with pytest.raises(ZeroDivisionError):
        server.check()


def test_a_callback_that_raises_again_and_again_does_so_once_for_each_change(
    server, passed
) -> None:
    queue = server.create_queue("orders")

    def fail() -> None:
        raise ZeroDivisionError

    server.clock.call_every(1, fail)
    receive(server.client(), queue, 1)  # ends in real time

    assert passed(server) == 1
    with pytest.raises(ZeroDivisionError):
        server.check()


def test_run_until_decides_alone_while_it_runs(server, consumers, passed) -> None:
    queue = server.create_queue("orders")
    with server.clock.hold():
        consumers.start(queue.url, count=2)
        server.wait_for_pollers(2)
    queue.send("hello", DelaySeconds=600)
    server.run_until(lambda: queue.statistics.deleted == 1, skip_empty_polls=True)

    assert passed(server) >= 600
    assert server.clock.busy_jumps == 0
