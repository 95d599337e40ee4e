from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from pytest_sqsq.errors import JournalForgotten


@pytest.fixture
def queue(world: Any) -> Any:
    return world.queue("orders")


def let_fail(world: Any, queue: Any, times: int = 1) -> None:
    """Receive everything and let its visibility timeout end, so many times."""
    for _ in range(times):
        queue.receive(10)
        world.clock.advance(30)


def test_receives_are_counted_over_all_matching_messages(world: Any, queue: Any) -> None:
    first = queue.send("a-1")
    queue.send("a-2")
    queue.send("b")
    let_fail(world, queue, times=2)
    assert queue.assert_received("a-1", times=2).message_id == first.message_id
    assert queue.assert_received(re.compile("^a"), times=4).message_id == first.message_id
    assert queue.assert_received(times=6) == queue.message(first.message_id)
    with pytest.raises(AssertionError):
        queue.assert_received("a-1", times=3)
    with pytest.raises(AssertionError):
        queue.assert_received("a-1", times=1)


def test_zero_receives_is_a_count(world: Any, queue: Any) -> None:
    queue.send("a")
    assert queue.assert_received("a", times=0) is None
    let_fail(world, queue)
    with pytest.raises(AssertionError):
        queue.assert_received("a", times=0)


def test_a_message_that_was_received_and_deleted_was_received(queue: Any) -> None:
    queue.send("a")
    (message,) = queue.receive()
    queue.delete(message)
    assert queue.assert_received("a", times=1).body == "a"


def test_a_wrong_number_of_receives_is_told(
    world: Any, queue: Any, failure_of: Callable[..., str]
) -> None:
    queue.send("a")
    let_fail(world, queue, times=2)
    assert failure_of(queue.assert_received, "a", times=3) == (
        """\
expected at least 1 message with body 'a' to be received 3 times in all on 'orders';"""
        """ it happened 2 times
  clock: 2030-01-01T00:01:00.000Z, 60 s after the test's start
  queue: 1 visible, 0 in flight, 0 delayed
  received:
    +0 s 'a' received #1, in flight until +30 s
    +30 s 'a' received #2, in flight until +60 s
  hint: it is visible again, and no consumer has received it since"""
    )


def test_a_message_that_was_not_received_is_told_with_its_delay(
    world: Any, queue: Any, failure_of: Callable[..., str]
) -> None:
    queue.send("a", DelaySeconds=60)
    world.clock.advance(48)
    assert failure_of(queue.assert_received, "a") == (
        """\
expected at least 1 message with body 'a' to be received on 'orders'; it did not happen
  clock: 2030-01-01T00:00:48.000Z, 48 s after the test's start
  queue: 0 visible, 0 in flight, 1 delayed
  closest: 'a' delayed until +60 s, never received, id <id>
    +0 s sent, delayed until +60 s
  hint: delayed for 12 more seconds: advance(12), then receive it"""
    )
    world.clock.advance(12)
    queue.receive()
    queue.assert_received("a")


def test_never_received_is_exact(world: Any, queue: Any, failure_of: Callable[..., str]) -> None:
    queue.send("a")
    queue.assert_never_received()
    queue.receive()
    queue.assert_never_received("b")
    assert failure_of(queue.assert_never_received, "a") == (
        """\
expected no message with body 'a' to be received on 'orders'; it happened once
  clock: 2030-01-01T00:00:00.000Z, 0 s after the test's start
  queue: 0 visible, 1 in flight, 0 delayed
  received:
    +0 s 'a' received #1, in flight until +30 s"""
    )


def test_a_deleted_message_is_returned_as_it_stood(world: Any, queue: Any) -> None:
    queue.send("a", MessageAttributes={"k": {"DataType": "Number", "StringValue": "3"}})
    let_fail(world, queue)
    (received,) = queue.receive()
    queue.delete(received)
    deleted = queue.assert_deleted("a")
    assert deleted.message_id == received.message_id
    assert (deleted.state, deleted.receive_count, deleted.slot) == ("in_flight", 2, None)
    assert deleted.attributes == {"k": "3"}
    assert deleted.system_attributes == received.system_attributes
    assert deleted.why_not_deliverable == "deleted at 2030-01-01T00:00:30.000Z"


def test_neither_a_purge_nor_retention_is_a_deletion(world: Any) -> None:
    queue = world.queue("orders", MessageRetentionPeriod=60)
    queue.send("purged")
    queue.purge()
    queue.send("expired")
    world.clock.advance(60)
    queue.assert_empty()
    with pytest.raises(AssertionError, match=r"hint: such a message was purged at \+0 s"):
        queue.assert_deleted("purged")
    with pytest.raises(AssertionError, match=r"hint: such a message expired at \+60 s"):
        queue.assert_deleted("expired")


def test_a_message_that_was_not_deleted_is_told(queue: Any, failure_of: Callable[..., str]) -> None:
    queue.send("a")
    queue.receive()
    assert failure_of(queue.assert_deleted, "a") == (
        """\
expected at least 1 message with body 'a' to be deleted on 'orders'; it did not happen
  clock: 2030-01-01T00:00:00.000Z, 0 s after the test's start
  queue: 0 visible, 1 in flight, 0 delayed
  closest: 'a' in flight until +30 s, received once, id <id>
    +0 s sent
    +0 s received #1, in flight until +30 s
  hint: it is in flight; its consumer has not deleted it"""
    )


def extend(world: Any, queue: Any, seconds: int) -> None:
    world.perform(
        "ChangeMessageVisibility",
        QueueUrl=queue.url,
        ReceiptHandle=queue.messages("in_flight")[0].receipt_handle,
        VisibilityTimeout=seconds,
    )


def test_extensions_of_visibility_are_counted(world: Any, queue: Any) -> None:
    queue.send("a")
    queue.receive()
    for _ in range(3):
        world.clock.advance(20)
        extend(world, queue, 30)
    assert (
        queue.assert_visibility_extended("a", times=3).visible_at_ms == world.clock.now_ms + 30_000
    )
    with pytest.raises(AssertionError):
        queue.assert_visibility_extended("a", times=2)


def test_an_extension_to_the_same_instant_counts_and_a_shortening_does_not(
    world: Any, queue: Any
) -> None:
    queue.send("a")
    queue.receive()
    assert queue.assert_visibility_extended("a", times=0) is None
    extend(world, queue, 30)
    queue.assert_visibility_extended("a", times=1)
    extend(world, queue, 5)
    queue.assert_visibility_extended("a", times=1)
    extend(world, queue, 0)
    queue.assert_visibility_extended("a", times=1)


def test_a_missing_extension_is_told(
    world: Any, queue: Any, failure_of: Callable[..., str]
) -> None:
    queue.send("a")
    queue.receive()
    extend(world, queue, 10)
    extend(world, queue, 0)
    assert failure_of(queue.assert_visibility_extended, "a") == (
        """\
expected at least 1 message with body 'a' to be extended in visibility on 'orders';"""
        """ it did not happen
  clock: 2030-01-01T00:00:00.000Z, 0 s after the test's start
  queue: 1 visible, 0 in flight, 0 delayed
  closest: 'a' visible, received once, id <id>
    +0 s sent
    +0 s received #1, in flight until +30 s
    +0 s visibility changed, in flight until +10 s
    +0 s given back by its consumer
    +0 s visible
  hint: it is visible again, and no consumer has received it since"""
    )


@pytest.fixture
def dead_letter_queue(world: Any) -> Any:
    return world.queue("orders-dlq")


@pytest.fixture
def redriving(world: Any, dead_letter_queue: Any) -> Any:
    return world.queue("redriving", dead_letter_queue=dead_letter_queue, max_receive_count=2)


def test_a_dead_lettered_message_is_returned_as_it_stands_in_its_new_queue(
    world: Any, redriving: Any, dead_letter_queue: Any
) -> None:
    redriving.send("a")
    redriving.send("b")
    let_fail(world, redriving, times=2)
    view = redriving.assert_dead_lettered("a")
    assert view == dead_letter_queue.assert_contains("a")
    assert view.dead_letter_source_arn == redriving.arn
    assert [view.body for view in redriving.assert_dead_lettered(count=2)] == ["a", "b"]
    assert redriving.assert_dead_lettered("c", count=0) == ()


def test_a_dead_lettered_message_that_is_gone_is_returned_as_it_left(
    world: Any, redriving: Any, dead_letter_queue: Any
) -> None:
    sent = redriving.send("a")
    let_fail(world, redriving, times=2)
    dead_letter_queue.purge()
    view = redriving.assert_dead_lettered("a")
    assert (view.message_id, view.receive_count) == (sent.message_id, 2)
    assert view.why_not_deliverable == "dead-lettered at 2030-01-01T00:01:00.000Z"


def test_it_is_the_source_that_is_asked_for_dead_lettered_messages(
    world: Any, redriving: Any, dead_letter_queue: Any
) -> None:
    redriving.send("a")
    let_fail(world, redriving, times=2)
    with pytest.raises(AssertionError, match="hint: 'orders-dlq' has no redrive policy"):
        dead_letter_queue.assert_dead_lettered("a")


def test_a_message_on_its_way_to_the_dead_letter_queue_is_told(
    world: Any, redriving: Any, failure_of: Callable[..., str]
) -> None:
    redriving.send("a")
    let_fail(world, redriving)
    redriving.receive()
    world.clock.advance(18)
    assert failure_of(redriving.assert_dead_lettered, "a") == (
        """\
expected 1 message with body 'a' to be dead-lettered on 'redriving'; it did not happen
  clock: 2030-01-01T00:00:48.000Z, 48 s after the test's start
  queue: 0 visible, 1 in flight, 0 delayed
  closest: 'a' in flight until +60 s, received 2 times, id <id>
    +0 s sent
    +0 s received #1, in flight until +30 s
    +30 s visible
    +30 s received #2, in flight until +60 s
  hint: received 2 of 2 times; in flight for 12 more seconds: advance(12)"""
    )
    world.clock.advance(12)
    redriving.assert_dead_lettered("a")


def test_too_many_dead_lettered_messages_are_listed(
    world: Any, redriving: Any, failure_of: Callable[..., str]
) -> None:
    redriving.send("a")
    redriving.send("b")
    let_fail(world, redriving, times=2)
    assert failure_of(redriving.assert_dead_lettered) == (
        """\
expected 1 message to be dead-lettered on 'redriving'; it happened 2 times
  clock: 2030-01-01T00:01:00.000Z, 60 s after the test's start
  queue: 0 visible, 0 in flight, 0 delayed
  dead-lettered:
    +60 s 'a' dead-lettered to 'orders-dlq'
    +60 s 'b' dead-lettered to 'orders-dlq'"""
    )


def test_order_goes_by_arrival_gone_messages_included(world: Any, queue: Any) -> None:
    for body in "abc":
        queue.send(body)
    (first,) = queue.receive()
    queue.delete(first)
    assert [view.body for view in queue.assert_order(["a", "b", "c"])] == ["a", "b", "c"]
    queue.assert_order(["a", re.compile("c")])
    with pytest.raises(AssertionError):
        queue.assert_order(["a", "a"])


def test_order_by_receipt_sees_each_receive(world: Any, queue: Any) -> None:
    for body in "ab":
        queue.send(body)
    queue.receive(1)
    world.clock.advance(30)
    queue.receive(2)
    queue.assert_order(["a", "a", "b"], by="receipt")
    with pytest.raises(AssertionError, match="no message with body 'a' came after 'b'"):
        queue.assert_order(["b", "a"], by="receipt")
    with pytest.raises(ValueError, match="by='sent' is neither 'arrival' nor 'receipt'"):
        queue.assert_order(["a"], by="sent")
    with pytest.raises(TypeError, match=r"^assert_order takes a list of bodies, not 'ab'$"):
        queue.assert_order("ab")


def test_messages_that_were_moved_in_have_an_order(
    world: Any, redriving: Any, dead_letter_queue: Any
) -> None:
    redriving.send("a")
    redriving.send("b")
    let_fail(world, redriving, times=2)
    dead_letter_queue.assert_order(["a", "b"])


def test_a_wrong_order_is_told(queue: Any, failure_of: Callable[..., str]) -> None:
    for body in "abc":
        queue.send(body)
    assert failure_of(queue.assert_order, ["b", "a", "c"]) == (
        """\
expected 3 messages in the order given on 'orders'; no message with body 'a' came after 'b'
  clock: 2030-01-01T00:00:00.000Z, 0 s after the test's start
  queue: 3 visible, 0 in flight, 0 delayed
  order of arrival:
    'a'
    'b'
    'c'"""
    )


def test_nothing_sent_counts_what_is_gone(queue: Any, failure_of: Callable[..., str]) -> None:
    queue.assert_nothing_sent()
    queue.send("a")
    queue.delete(queue.receive()[0])
    assert failure_of(queue.assert_nothing_sent) == (
        """\
expected no message to be sent on 'orders'; it happened once
  clock: 2030-01-01T00:00:00.000Z, 0 s after the test's start
  queue: 0 visible, 0 in flight, 0 delayed
  sent:
    +0 s 'a' sent"""
    )


def test_duplicates_that_were_dropped_were_sent(world: Any, failure_of: Callable[..., str]) -> None:
    queue = world.queue("orders.fifo")
    queue.send("a", MessageGroupId="g")
    queue.send("a", MessageGroupId="g")
    lines = failure_of(queue.assert_nothing_sent).splitlines()
    assert lines[0] == "expected no message to be sent on 'orders.fifo'; it happened 2 times"
    assert lines[-1] == "    +0 s 'a' sent again and dropped as a duplicate"


def test_a_message_that_was_moved_in_was_not_sent(
    world: Any, redriving: Any, dead_letter_queue: Any
) -> None:
    redriving.send("a")
    let_fail(world, redriving, times=2)
    dead_letter_queue.assert_contains("a")
    dead_letter_queue.assert_nothing_sent()


@pytest.fixture
def forgetful(make_world: Callable[..., Any]) -> Any:
    """A queue whose journal of 3 events has lost that "a" was sent and received."""
    queue = make_world(journal_size=3).queue("orders")
    queue.send("a")
    queue.delete(queue.receive()[0])
    queue.send("b")
    queue.receive()
    return queue


def test_what_the_journal_may_have_forgotten_neither_passes_nor_fails(forgetful: Any) -> None:
    for undecided in (
        lambda: forgetful.assert_never_received("a"),
        lambda: forgetful.assert_received("a"),
        lambda: forgetful.assert_received("b", times=1),
        lambda: forgetful.assert_received("b", times=2),
        lambda: forgetful.assert_dead_lettered("a", count=None),
        lambda: forgetful.assert_visibility_extended("b", times=0),
        lambda: forgetful.assert_order(["a", "b"]),
        lambda: forgetful.sent_messages,
        lambda: forgetful.history(body="c"),
    ):
        with pytest.raises(JournalForgotten):
            undecided()


def test_what_the_journal_still_holds_is_decided(forgetful: Any) -> None:
    forgetful.assert_received("b")
    forgetful.assert_deleted("a")
    forgetful.assert_order(["b"])
    for decided in (
        lambda: forgetful.assert_never_received("b"),
        lambda: forgetful.assert_received("b", times=0),
        forgetful.assert_nothing_sent,
    ):
        with pytest.raises(AssertionError) as caught:
            decided()
        assert not isinstance(caught.value, JournalForgotten)


def test_a_forgotten_part_is_told(forgetful: Any, failure_of: Callable[..., str]) -> None:
    assert failure_of(forgetful.assert_never_received, "a") == (
        "expected no message with body 'a' to be received on 'orders': the journal of 'orders'"
        " has dropped its oldest 2 events, which might decide this; give the server a larger"
        " journal_size"
    )


def test_a_message_that_never_was_gets_no_count_of_receives(
    redriving: Any, failure_of: Callable[..., str]
) -> None:
    assert failure_of(redriving.assert_dead_lettered, "a") == (
        """\
expected 1 message with body 'a' to be dead-lettered on 'redriving'; it did not happen
  clock: 2030-01-01T00:00:00.000Z, 0 s after the test's start
  queue: 0 visible, 0 in flight, 0 delayed
  hint: no message has ever been on 'redriving'"""
    )


def test_long_lists_are_cut(queue: Any, failure_of: Callable[..., str]) -> None:
    for number in range(25):
        queue.send(str(number))
    lines = failure_of(queue.assert_nothing_sent).splitlines()
    assert lines[-2:] == ["    +0 s '11' sent", "    … and 13 events more"]
    lines = failure_of(queue.assert_order, ["1", "0"]).splitlines()
    assert lines[-2:] == ["    '19'", "    … and 5 more"]
