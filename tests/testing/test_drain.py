from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pytest_sqsq.errors import ClockModeError, WaitTimeout
from pytest_sqsq.testing import DrainReport


@pytest.fixture
def queue(world: Any) -> Any:
    return world.queue("orders")


def reject(message: Any) -> None:
    raise ValueError(message.body)


def test_a_drain_works_a_queue_off(queue: Any) -> None:
    seen = []
    for body in "abc":
        queue.send(body)
    report = queue.drain(lambda message: seen.append((message.body, message.receive_count)))
    assert seen == [("a", 1), ("b", 1), ("c", 1)]
    assert report == DrainReport(3, 3, 0, 0, timedelta(0))
    queue.assert_empty()


def test_an_empty_queue_is_drained_at_once(queue: Any) -> None:
    assert queue.drain(reject) == DrainReport(0, 0, 0, 0, timedelta(0))


def test_a_drain_advances_over_delays_and_timeouts(world: Any, queue: Any) -> None:
    queue.send("late", DelaySeconds=100)
    queue.send("twice")
    attempts = []

    def handler(message: Any) -> None:
        attempts.append((message.body, (world.clock.now_ms - world.clock.started_ms) // 1000))
        if message.receive_count < 3 and message.body == "twice":
            raise ValueError("not yet")

    report = queue.drain(handler)
    assert attempts == [("twice", 0), ("twice", 30), ("twice", 60), ("late", 100)]
    assert (report.invocations, report.deleted, report.failed) == (4, 2, 2)
    assert report.elapsed == timedelta(seconds=100)
    assert [str(error) for error in report.errors] == ["not yet", "not yet"]


def test_what_never_succeeds_goes_to_the_dead_letter_queue(world: Any) -> None:
    target = world.queue("dlq")
    queue = world.queue("orders", dead_letter_queue=target, max_receive_count=3)
    queue.send("poison")
    queue.send("good")

    def handler(message: Any) -> None:
        if message.body == "poison":
            reject(message)

    report = queue.drain(handler)
    assert (report.deleted, report.failed, report.dead_lettered) == (1, 3, 1)
    assert report.elapsed == timedelta(seconds=90)
    target.assert_contains("poison")


def test_what_never_succeeds_without_a_dead_letter_queue_expires(world: Any) -> None:
    queue = world.queue("orders", MessageRetentionPeriod=60)
    queue.send("poison")
    report = queue.drain(reject)
    assert (report.failed, report.deleted, report.dead_lettered) == (2, 0, 0)
    assert report.elapsed == timedelta(seconds=60)


def test_without_advancing_only_what_can_be_delivered_now_is_handled(
    world: Any, queue: Any
) -> None:
    queue.send("a")
    queue.send("b", DelaySeconds=1)
    report = queue.drain(reject, advance=False)
    assert (report.invocations, report.failed, report.elapsed) == (1, 1, timedelta(0))
    queue.assert_counts(in_flight=1, delayed=1)


def test_a_drain_for_a_span_ends_there(world: Any, queue: Any) -> None:
    queue.send("a")
    queue.send("at the end", DelaySeconds=75)
    queue.send("too late", DelaySeconds=76)
    seen = []

    def handler(message: Any) -> None:
        seen.append(message.body)
        reject(message)

    report = queue.drain(handler, until=timedelta(seconds=75))
    assert seen == ["a", "a", "a", "at the end"]
    assert report.elapsed == timedelta(seconds=75)
    assert world.clock.now_ms == world.clock.started_ms + 75_000


def test_a_drain_for_a_span_sees_what_is_sent_during_it(world: Any, queue: Any) -> None:
    world.clock.call_every(10, lambda: queue.send("tick"))
    assert queue.drain(lambda message: None, until=timedelta(seconds=35)).deleted == 3


def test_a_drain_for_a_count_stops_at_it(queue: Any) -> None:
    for body in "abc":
        queue.send(body)
    assert queue.drain(lambda message: None, until=2).deleted == 2
    queue.assert_contains("c")


def test_a_count_waits_for_what_comes_from_another_queue(world: Any, queue: Any) -> None:
    source = world.queue("source", dead_letter_queue=queue)
    source.send("a")
    source.receive()
    report = queue.drain(lambda message: None, until=1)
    assert (report.deleted, report.elapsed) == (1, timedelta(seconds=30))


def test_a_count_out_of_reach_is_told(world: Any, queue: Any) -> None:
    queue.send("a")
    queue.send("b", DelaySeconds=30)
    with pytest.raises(WaitTimeout) as caught:
        queue.drain(lambda message: None, until=3)
    assert str(caught.value) == (
        """\
drain of 'orders': 2 messages deleted of the 3 asked for, and nothing more can come; no failure
  clock: 2030-01-01T00:00:30.000Z, 30 s after the test's start
  queue: 0 visible, 0 in flight, 0 delayed"""
    )
    queue.send("c", DelaySeconds=5)
    with pytest.raises(WaitTimeout) as caught:
        queue.drain(lambda message: None, until=1, advance=False)
    assert str(caught.value) == (
        """\
drain of 'orders': no message deleted of the 1 asked for, and nothing more is deliverable now;"""
        """ no failure
  clock: 2030-01-01T00:00:30.000Z, 30 s after the test's start
  queue: 0 visible, 0 in flight, 1 delayed
  there:
    'c' delayed until +35 s, never received"""
    )


def test_a_count_out_of_reach_tells_what_the_handler_raised_last(
    queue: Any, failure_of: Callable[..., str]
) -> None:
    queue.send("a")
    text = failure_of(queue.drain, reject, until=1, advance=False)
    assert text.splitlines()[0] == (
        "drain of 'orders': no message deleted of the 1 asked for, and nothing more is deliverable"
        " now; 1 failure"
    )
    assert text.splitlines()[-1] == ("  hint: the last error of the handler was ValueError('a')")


@pytest.mark.parametrize("until", [0, -1, True, 1.5, "all"])
def test_until_is_checked(queue: Any, until: Any) -> None:
    with pytest.raises(ValueError, match="'empty', a timedelta, or a number of messages"):
        queue.drain(reject, until=until)


def test_errors_can_be_raised(queue: Any) -> None:
    queue.send("a")
    queue.send("b")
    with pytest.raises(ValueError, match=r"^a$"):
        queue.drain(reject, raise_errors=True)
    queue.assert_in_flight("a")
    queue.assert_contains("b", state="visible")


def test_a_drain_may_hand_out_lambda_events(world: Any, queue: Any) -> None:
    batches = []
    for number in range(5):
        queue.send(str(number))

    def handler(event: Any, context: Any) -> Any:
        batches.append([record["body"] for record in event["Records"]])
        failed = [
            {"itemIdentifier": record["messageId"]}
            for record in event["Records"]
            if record["body"] == "1" and record["attributes"]["ApproximateReceiveCount"] == "1"
        ]
        return {"batchItemFailures": failed}

    report = queue.drain(handler, lambda_events=True, batch_size=2)
    assert batches == [["0", "1"], ["2", "3"], ["4"], ["1"]]
    assert (report.invocations, report.deleted, report.failed) == (4, 5, 1)
    assert report.elapsed == timedelta(seconds=30)


def test_lambda_batches_are_cut_to_the_count_asked_for(queue: Any) -> None:
    for number in range(5):
        queue.send(str(number))
    report = queue.drain(lambda event, context: None, lambda_events=True, until=3)
    assert (report.invocations, report.deleted) == (1, 3)
    queue.assert_counts(visible=2, in_flight=0)


def test_lambda_responses_can_be_ignored(queue: Any) -> None:
    queue.send("a")
    report = queue.drain(
        lambda event, context: "ok", lambda_events=True, report_batch_item_failures=False
    )
    assert (report.deleted, report.errors) == (1, ())


@pytest.mark.parametrize(
    "arguments",
    [{"batch_size": 5}, {"context": object()}, {"report_batch_item_failures": True}],
)
def test_arguments_for_lambda_need_lambda_events(queue: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="are for lambda_events=True"):
        queue.drain(reject, **arguments)


def test_async_handlers_share_one_loop(queue: Any) -> None:
    loops = set()
    for body in "abc":
        queue.send(body)

    async def handler(message: Any) -> None:
        loops.add(asyncio.get_running_loop())

    assert queue.drain(handler).deleted == 3
    (loop,) = loops
    assert loop.is_closed()


def test_a_message_that_comes_back_at_once_for_ever_is_an_error(world: Any) -> None:
    queue = world.queue("orders", VisibilityTimeout=0)
    queue.send("poison")
    with pytest.raises(RuntimeError) as caught:
        queue.drain(reject)
    assert str(caught.value) == (
        "drain of 'orders': the handler failed 1000 times on 'poison' while the clock stood still;"
        " a visibility timeout of 0 brings a message back at once"
    )


def test_a_fifo_group_stops_at_its_failure_until_the_timeout(world: Any) -> None:
    queue = world.queue("orders.fifo")
    for body, group in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        queue.send(body, MessageGroupId=group)
    seen = []

    def handler(message: Any) -> None:
        seen.append(message.body)
        if message.body == "a1" and message.receive_count == 1:
            reject(message)

    assert queue.drain(handler).elapsed == timedelta(seconds=30)
    assert seen == ["a1", "b1", "a1", "a2"]


def test_a_handler_may_delete_its_message_itself(queue: Any) -> None:
    queue.send("a")
    assert queue.drain(queue.delete).deleted == 1
    queue.assert_deleted("a")


def test_a_clock_that_follows_the_process_cannot_be_advanced(
    make_world: Callable[..., Any],
) -> None:
    queue = make_world("system").queue("orders")
    queue.send("a")
    with pytest.raises(ClockModeError, match=r"^drain: a clock in system mode follows"):
        queue.drain(reject)
    assert queue.drain(lambda message: None, advance=False).deleted == 1


def test_a_live_clock_is_advanced_too(make_world: Callable[..., Any]) -> None:
    world = make_world("live")
    queue = world.queue("orders")
    sent = queue.send("a", DelaySeconds=900)
    assert queue.drain(lambda message: None).deleted == 1
    assert world.clock.now_ms >= sent.sent_ms + 900_000


def test_a_fifo_message_whose_timeout_ended_in_the_handler_was_not_deleted(world: Any) -> None:
    queue = world.queue("orders.fifo")
    queue.send("a", MessageGroupId="g")

    def handler(message: Any) -> None:
        if message.receive_count == 1:
            world.clock.advance(30)

    report = queue.drain(handler)
    assert (report.invocations, report.deleted, report.failed, report.errors) == (2, 1, 1, ())
