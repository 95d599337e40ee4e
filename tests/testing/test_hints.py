"""The hints of failures: each names what is the matter, and holds when it is followed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def hint_of(failure_of: Callable[..., str]) -> Callable[..., str | None]:
    """The hint with which an assertion fails, or ``None``."""

    def hint(assertion: Callable[..., object], *arguments: Any, **named: Any) -> str | None:
        last = failure_of(assertion, *arguments, **named).splitlines()[-1]
        return last.removeprefix("  hint: ") if last.startswith("  hint: ") else None

    return hint


@pytest.fixture
def queue(world: Any) -> Any:
    return world.queue("orders")


@pytest.fixture
def redriving(world: Any) -> Any:
    return world.queue("redriving", dead_letter_queue=world.queue("dead"), max_receive_count=2)


def test_what_a_message_needs_to_be_received_is_told(
    world: Any, queue: Any, hint_of: Callable[..., str | None]
) -> None:
    queue.send("a", DelaySeconds=12)
    for assertion in (queue.assert_in_flight, queue.assert_received):
        assert hint_of(assertion, "a") == (
            "delayed for 12 more seconds: advance(12), then receive it"
        )
    world.clock.advance(12)
    for assertion in (queue.assert_in_flight, queue.assert_received, queue.assert_deleted):
        assert hint_of(assertion, "a") == "it is visible, and no consumer has received it"
    (received,) = queue.receive()
    queue.assert_in_flight("a")
    queue.assert_received("a")
    assert hint_of(queue.assert_received, "a", times=2) == (
        "in flight for 30 more seconds: advance(30), then receive it again"
    )
    assert hint_of(queue.assert_deleted, "a") == (
        "it is in flight; its consumer has not deleted it"
    )
    queue.delete(received)
    queue.assert_deleted("a")
    assert hint_of(queue.assert_received, "a", times=2) == "such a message was deleted at +12 s"


def test_a_missing_extension_says_who_has_not_made_it(
    world: Any, queue: Any, hint_of: Callable[..., str | None]
) -> None:
    queue.send("a")
    (received,) = queue.receive()
    assert hint_of(queue.assert_visibility_extended) == (
        "it is in flight; its consumer has not extended the timeout of it"
    )
    world.perform(
        "ChangeMessageVisibility",
        QueueUrl=queue.url,
        ReceiptHandle=received.receipt_handle,
        VisibilityTimeout=60,
    )
    assert hint_of(queue.assert_visibility_extended, times=2) == (
        "it is in flight; its consumer has not extended the timeout of it again"
    )


def test_a_message_behind_its_group_says_what_it_waits_for(
    world: Any, hint_of: Callable[..., str | None]
) -> None:
    queue = world.queue("orders.fifo")
    queue.send("a", MessageGroupId="g")
    queue.send("b", MessageGroupId="g")
    queue.receive()
    assert hint_of(queue.assert_received, "b") == (
        "message group 'g' waits for 'a', in flight until 2030-01-01T00:00:30.000Z (receive 1)"
    )


def test_a_message_that_is_not_delayed_says_since_when(
    world: Any, queue: Any, hint_of: Callable[..., str | None]
) -> None:
    queue.send("a", DelaySeconds=12)
    queue.send("b")
    world.clock.advance(20)
    assert hint_of(queue.assert_delayed, "a") == "its delay ended at +12 s"
    assert hint_of(queue.assert_delayed, "b") == "it came without a delay"


def test_no_advance_is_advised_that_ends_elsewhere(
    world: Any, redriving: Any, hint_of: Callable[..., str | None]
) -> None:
    redriving.send("a")
    redriving.receive()
    world.clock.advance(30)
    redriving.receive()
    hint = "in flight for 30 more seconds, and then it is dead-lettered"
    assert hint_of(redriving.assert_contains, "a", state="visible") == hint
    assert hint_of(redriving.assert_received, "a", times=3) == hint
    world.clock.advance(30)
    world.queue("dead").assert_contains("a")


def test_a_message_that_expires_before_it_is_visible_says_so(
    world: Any, hint_of: Callable[..., str | None]
) -> None:
    queue = world.queue("orders", MessageRetentionPeriod=60)
    queue.send("a")
    queue.receive(visibility_timeout=90)
    assert hint_of(queue.assert_contains, "a", state="visible") == (
        "in flight for 90 more seconds, and it expires before"
    )


def test_each_step_to_the_dead_letter_queue_is_told(
    world: Any, redriving: Any, hint_of: Callable[..., str | None]
) -> None:
    def hint() -> str | None:
        return hint_of(redriving.assert_dead_lettered, "a")

    redriving.send("a")
    assert hint() == "received 0 of 2 times; it is visible, and no consumer has received it"
    redriving.receive()
    assert hint() == (
        "received 1 of 2 times; in flight for 30 more seconds: advance(30), then receive it again"
    )
    world.clock.advance(30)
    assert hint() == (
        "received 1 of 2 times; it is visible again, and no consumer has received it since"
    )
    redriving.receive()
    assert hint() == "received 2 of 2 times; in flight for 30 more seconds: advance(30)"
    world.clock.advance(30)
    redriving.assert_dead_lettered("a")


def test_where_receives_dead_letter_the_hint_says_so(
    make_world: Callable[..., Any], hint_of: Callable[..., str | None]
) -> None:
    world = make_world(dead_letter_on="receive")
    queue = world.queue("orders", dead_letter_queue=world.queue("dead"), max_receive_count=1)
    queue.send("a")
    queue.receive()
    assert hint_of(queue.assert_dead_lettered, "a") == (
        "received 1 of 1 times; in flight for 30 more seconds: advance(30), then receive it again"
    )
    world.clock.advance(30)
    assert hint_of(queue.assert_dead_lettered, "a") == (
        "received 1 of 1 times; its receive count is used up: the next receive moves it to the"
        " dead-letter queue"
    )
    assert queue.receive() == ()
    queue.assert_dead_lettered("a")


def test_only_receives_on_this_queue_count_for_its_dead_letter_queue(
    world: Any, hint_of: Callable[..., str | None]
) -> None:
    last = world.queue("last")
    middle = world.queue("middle", dead_letter_queue=last, max_receive_count=3)
    first = world.queue("first", dead_letter_queue=middle, max_receive_count=1)
    first.send("a")
    first.receive()
    world.clock.advance(30)
    assert hint_of(middle.assert_dead_lettered, "a") == (
        "received 0 of 3 times; it is visible again, and no consumer has received it since"
    )


def test_a_dead_letter_queue_that_is_gone_is_told(
    world: Any, redriving: Any, hint_of: Callable[..., str | None]
) -> None:
    redriving.send("a")
    world.perform("DeleteQueue", QueueUrl=world.queue("dead").url)
    assert hint_of(redriving.assert_dead_lettered, "a") == (
        "the dead-letter queue 'dead' does not exist"
    )


def test_counts_that_time_will_make_right_say_when(
    world: Any, queue: Any, hint_of: Callable[..., str | None]
) -> None:
    queue.send("a")
    queue.receive(visibility_timeout=45)
    queue.send("b", DelaySeconds=12)
    assert hint_of(queue.assert_counts, visible=1) == "so it is in 12 seconds: advance(12)"
    assert hint_of(queue.assert_counts, visible=2, in_flight=0) == (
        "so it is in 45 seconds: advance(45)"
    )
    assert hint_of(queue.assert_counts, visible=3) is None
    world.clock.advance(12)
    queue.assert_counts(visible=1)
    world.clock.advance(33)
    queue.assert_counts(visible=2, in_flight=0)


def test_a_queue_that_time_will_empty_says_when(
    world: Any, redriving: Any, hint_of: Callable[..., str | None]
) -> None:
    redriving.send("a")
    redriving.receive()
    assert hint_of(redriving.assert_empty) is None
    world.clock.advance(30)
    redriving.receive(visibility_timeout=1)
    assert hint_of(redriving.assert_empty) == "so it is in 1 second: advance(1)"
    world.clock.advance(1)
    redriving.assert_empty()


def test_counts_that_retention_changes_before_have_no_hint(
    world: Any, hint_of: Callable[..., str | None]
) -> None:
    queue = world.queue("orders", MessageRetentionPeriod=60)
    queue.send("a")
    queue.send("b")
    queue.receive(visibility_timeout=60)
    assert hint_of(queue.assert_counts, visible=2) is None


def test_too_few_visible_messages_say_when_the_next_comes(
    world: Any, queue: Any, hint_of: Callable[..., str | None]
) -> None:
    queue.send("a")
    queue.receive()
    queue.send("b")
    assert hint_of(queue.assert_contains, count=2, state="visible") == (
        "in flight for 30 more seconds: advance(30)"
    )
    world.clock.advance(30)
    queue.assert_contains(count=2, state="visible")


def test_too_few_messages_say_where_the_others_have_gone(
    queue: Any, hint_of: Callable[..., str | None]
) -> None:
    queue.send("a")
    queue.delete(queue.receive()[0])
    queue.send("a")
    for state in (None, "visible"):
        assert hint_of(queue.assert_contains, "a", count=2, state=state) == (
            "such a message was deleted at +0 s"
        )


def test_it_is_the_soonest_of_several_messages_that_is_waited_for(
    world: Any, queue: Any, hint_of: Callable[..., str | None]
) -> None:
    queue.send("a1", DelaySeconds=60)
    queue.send("a2", DelaySeconds=12)
    assert hint_of(queue.assert_contains, re.compile("^a"), state="visible") == (
        "delayed for 12 more seconds: advance(12)"
    )
    assert hint_of(queue.assert_contains, re.compile("^a"), state="visible", count=2) == (
        "delayed for 60 more seconds: advance(60)"
    )


def test_no_advance_is_advised_that_makes_too_many_messages_visible(
    queue: Any, hint_of: Callable[..., str | None]
) -> None:
    queue.send("a1", DelaySeconds=12)
    queue.send("a2", DelaySeconds=12)
    assert hint_of(queue.assert_contains, re.compile("^a"), state="visible") == (
        "delayed for 12 more seconds"
    )


def test_a_message_that_came_and_went_elsewhere_is_told(
    world: Any, queue: Any, hint_of: Callable[..., str | None]
) -> None:
    refunds = world.queue("refunds")
    refunds.send("a")
    refunds.delete(refunds.receive()[0])
    assert hint_of(queue.assert_deleted, "a") == "such a message was on 'refunds': deleted"


def test_a_clock_that_cannot_be_advanced_is_not_advised_to(
    make_world: Callable[..., Any], hint_of: Callable[..., str | None]
) -> None:
    queue = make_world("system").queue("orders")
    queue.send("a", DelaySeconds=60)
    hint = hint_of(queue.assert_contains, "a", state="visible")
    assert hint is not None
    left, _, advice = hint.partition(": ")
    seconds = left.removeprefix("delayed for ").removesuffix(" more seconds")
    assert advice == f"move the process clock by {seconds} s"


def test_a_message_missing_in_an_order_has_the_hint_of_any_missing_message(
    world: Any, queue: Any, hint_of: Callable[..., str | None]
) -> None:
    assert hint_of(queue.assert_order, ["a"]) == "no message has ever been on 'orders'"
    world.queue("refunds").send("a")
    assert hint_of(queue.assert_order, ["a"]) == "such a message is on 'refunds'"
    queue.send("a")
    queue.send("b")
    assert hint_of(queue.assert_order, ["b", "a"]) is None
    assert hint_of(queue.assert_order, ["a"], by="receipt") == (
        "it is visible, and no consumer has received it"
    )
