from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import ANY

import pytest

from pytest_sqsq.errors import QueueDoesNotExist

ORDER = '{"id": 7, "total": 3}'
TYPE = {"type": {"DataType": "String", "StringValue": "order"}}


@pytest.fixture
def queue(world: Any) -> Any:
    """One message in flight, one visible, one delayed, 10 seconds into the test."""
    queue = world.queue("orders")
    queue.send("in flight")
    queue.receive()
    queue.send(ORDER, MessageAttributes=TYPE)
    world.clock.advance(10)
    queue.send("delayed", DelaySeconds=5)
    return queue


def test_an_empty_queue_is_empty(world: Any) -> None:
    world.queue("orders").assert_empty()


@pytest.mark.parametrize("state", ["visible", "in_flight", "delayed"])
def test_a_message_in_any_state_keeps_a_queue_from_being_empty(world: Any, state: str) -> None:
    queue = world.queue("orders")
    queue.send("a", DelaySeconds=900 if state == "delayed" else 0)
    if state == "in_flight":
        queue.receive()
    assert queue.messages()[0].state == state
    with pytest.raises(AssertionError):
        queue.assert_empty()


def test_a_queue_that_is_not_empty_is_listed(queue: Any, failure_of: Callable[..., str]) -> None:
    assert failure_of(queue.assert_empty) == (
        """\
expected no message on 'orders'; there are 3
  clock: 2030-01-01T00:00:10.000Z, 10 s after the test's start
  queue: 1 visible, 1 in flight, 1 delayed
  there:
    'in flight' in flight until +30 s, received once
    '{"id": 7, "total": 3}' visible, never received
    'delayed' delayed until +15 s, never received"""
    )


def test_a_list_of_messages_is_cut(world: Any, failure_of: Callable[..., str]) -> None:
    queue = world.queue("orders.fifo")
    for number in range(113):
        queue.send(str(number), MessageGroupId="g")
    lines = failure_of(queue.assert_empty).splitlines()
    assert lines[0] == "expected no message on 'orders.fifo'; there are 113"
    assert lines[4] == "    '0' visible, group 'g', never received"
    assert lines[13:] == [
        "    '9' visible, group 'g', never received",
        "    … and 103 more",
    ]


def test_counts_compare_only_what_is_named(queue: Any) -> None:
    queue.assert_counts(visible=1)
    queue.assert_counts(in_flight=1, delayed=1)
    with pytest.raises(TypeError, match="at least one of visible, in_flight, delayed"):
        queue.assert_counts()


def test_zero_is_a_count(queue: Any) -> None:
    with pytest.raises(AssertionError):
        queue.assert_counts(delayed=0)


def test_wrong_counts_are_told_with_the_queue(queue: Any, failure_of: Callable[..., str]) -> None:
    assert failure_of(queue.assert_counts, visible=2, delayed=1) == (
        """\
expected 2 visible, 1 delayed on 'orders'
  clock: 2030-01-01T00:00:10.000Z, 10 s after the test's start
  queue: 1 visible, 1 in flight, 1 delayed
  there:
    'in flight' in flight until +30 s, received once
    '{"id": 7, "total": 3}' visible, never received
    'delayed' delayed until +15 s, never received"""
    )


def test_contains_returns_the_message_it_found(queue: Any) -> None:
    found = queue.assert_contains(json={"id": 7}, attributes={"type": "order"}, state="visible")
    assert found == queue.messages("visible")[0]
    assert queue.assert_contains(re.compile("flight"), state="in_flight").body == "in flight"
    assert queue.assert_contains(body=ORDER, json={"id": ANY, "total": 3}, exact=True) == found


def test_contains_returns_all_it_found_in_order_of_arrival(queue: Any) -> None:
    bodies = [view.body for view in queue.assert_contains(count=None)]
    assert bodies == ["in flight", ORDER, "delayed"]
    assert [view.body for view in queue.assert_contains(count=3)] == bodies
    assert queue.assert_contains("absent", count=0) == ()


def test_contains_finds_a_message_among_many(world: Any) -> None:
    queue = world.queue("orders")
    for number in range(150):
        queue.send(str(number))
    assert queue.assert_contains("149").slot == 149
    assert queue.assert_contains(re.compile("^14"), count=11)[-1].body == "149"


def test_contains_finds_a_group(world: Any) -> None:
    queue = world.queue("orders.fifo")
    queue.send("a", MessageGroupId="g")
    queue.send("b", MessageGroupId="h")
    assert queue.assert_contains(group_id="h").body == "b"


def test_too_many_are_listed(queue: Any, failure_of: Callable[..., str]) -> None:
    assert failure_of(queue.assert_contains, re.compile("l.*e|l.*t")) == (
        """\
expected 1 message with a body matching 'l.*e|l.*t' on 'orders'; there are 2
  clock: 2030-01-01T00:00:10.000Z, 10 s after the test's start
  queue: 1 visible, 1 in flight, 1 delayed
  found:
    'in flight' in flight until +30 s, received once
    'delayed' delayed until +15 s, never received"""
    )


def test_too_few_are_listed_with_the_closest_one_besides_them(
    queue: Any, failure_of: Callable[..., str]
) -> None:
    queue.send('{"id": 8, "total": 3}')
    assert failure_of(queue.assert_contains, json={"id": 7}, count=2) == (
        """\
expected 2 messages with json {'id': 7} on 'orders'; there is 1
  clock: 2030-01-01T00:00:10.000Z, 10 s after the test's start
  queue: 2 visible, 1 in flight, 1 delayed
  found:
    '{"id": 7, "total": 3}' visible, never received
  closest: '{"id": 8, "total": 3}' visible, never received, id <id>
    in the body $.id is 8, not 7
    +10 s sent"""
    )


def test_a_missing_message_is_told_with_the_closest_one(
    queue: Any, failure_of: Callable[..., str]
) -> None:
    assert failure_of(queue.assert_contains, json={"id": 7, "total": 4}) == (
        """\
expected 1 message with json {'id': 7, 'total': 4} on 'orders'; there is none
  clock: 2030-01-01T00:00:10.000Z, 10 s after the test's start
  queue: 1 visible, 1 in flight, 1 delayed
  closest: '{"id": 7, "total": 3}' visible, never received, id <id>
    in the body $.total is 3, not 4
    +0 s sent"""
    )


def test_all_in_which_the_closest_message_differs_is_told(
    queue: Any, failure_of: Callable[..., str]
) -> None:
    text = failure_of(
        queue.assert_contains,
        ORDER,
        attributes={"type": "refund", "size": 3},
        group_id="g",
        state="in_flight",
    )
    assert text == (
        """\
expected 1 message in flight with body '{"id": 7, "total": 3}' and attributes"""
        """ {'type': 'refund', 'size': 3} in group 'g' on 'orders'; there is none
  clock: 2030-01-01T00:00:10.000Z, 10 s after the test's start
  queue: 1 visible, 1 in flight, 1 delayed
  closest: '{"id": 7, "total": 3}' visible, never received, id <id>
    attribute 'type' is 'order', not 'refund'
    there is no attribute 'size'
    the group is None, not 'g'
    it is visible, not in flight
    +0 s sent"""
    )


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("in flight", "in flight for 20 more seconds: advance(20)"),
        ("delayed", "delayed for 5 more seconds: advance(5)"),
    ],
)
def test_the_hint_says_how_long_to_wait(
    queue: Any, failure_of: Callable[..., str], body: str, hint: str
) -> None:
    text = failure_of(queue.assert_contains, body, state="visible")
    assert text.splitlines()[-1] == f"  hint: {hint}"


def test_advancing_as_the_hint_says_is_enough(world: Any, queue: Any) -> None:
    world.clock.advance(19.999)
    with pytest.raises(AssertionError, match=r"in flight for 0\.001 more seconds: advance"):
        queue.assert_contains("in flight", state="visible")
    world.clock.advance(0.001)
    queue.assert_contains("in flight", state="visible")


def test_the_hint_says_what_became_of_the_message(
    world: Any, queue: Any, failure_of: Callable[..., str]
) -> None:
    queue.delete(queue.messages("in_flight")[0])
    assert failure_of(queue.assert_contains, "in flight") == (
        """\
expected 1 message with body 'in flight' on 'orders'; there is none
  clock: 2030-01-01T00:00:10.000Z, 10 s after the test's start
  queue: 1 visible, 0 in flight, 1 delayed
  closest: 'in flight' deleted at +10 s, received once, id <id>
    +0 s sent
    +0 s received #1, in flight until +30 s
    +10 s deleted
  hint: such a message was deleted at +10 s"""
    )


def test_the_hint_knows_the_same_json_in_another_spelling(
    queue: Any, failure_of: Callable[..., str]
) -> None:
    text = failure_of(queue.assert_contains, '{"total":3,"id":7}')
    assert text.splitlines()[-1] == (
        "  hint: a body of the same JSON is there, written differently: use json= for body="
    )


def test_the_hint_knows_the_queue_where_the_message_is(
    world: Any, queue: Any, failure_of: Callable[..., str]
) -> None:
    world.queue("refunds").send("a")
    world.queue("orders", region="eu-west-1").send("b")
    text = failure_of(queue.assert_contains, "a")
    assert text.splitlines()[-1] == "  hint: such a message is on 'refunds'"
    text = failure_of(queue.assert_contains, "b")
    assert text.splitlines()[-1] == (
        "  hint: such a message is on 'orders' of account 000000000000 in eu-west-1"
    )


def test_without_any_message_there_is_no_closest_one(
    world: Any, failure_of: Callable[..., str]
) -> None:
    assert failure_of(world.queue("orders").assert_contains, "a") == (
        """\
expected 1 message with body 'a' on 'orders'; there is none
  clock: 2030-01-01T00:00:00.000Z, 0 s after the test's start
  queue: 0 visible, 0 in flight, 0 delayed
  hint: no message has ever been on 'orders'"""
    )


def test_in_flight_and_delayed_compare_what_remains(queue: Any) -> None:
    assert queue.assert_in_flight("in flight", for_seconds=20).receive_count == 1
    assert queue.assert_delayed(for_seconds=5).body == "delayed"
    assert queue.assert_delayed(for_seconds=timedelta(seconds=5)).body == "delayed"
    with pytest.raises(AssertionError):
        queue.assert_in_flight("in flight", for_seconds=20.001)
    with pytest.raises(AssertionError):
        queue.assert_delayed("delayed", for_seconds=5.001)
    with pytest.raises(AssertionError):
        queue.assert_in_flight("delayed")
    with pytest.raises(AssertionError):
        queue.assert_delayed("in flight")


def test_too_short_a_time_in_flight_is_told(queue: Any, failure_of: Callable[..., str]) -> None:
    assert failure_of(queue.assert_in_flight, "in flight", for_seconds=60) == (
        """\
expected at least 1 message in flight with body 'in flight' for at least 60 more seconds"""
        """ on 'orders'; the longest is in flight for 20 more seconds
  clock: 2030-01-01T00:00:10.000Z, 10 s after the test's start
  queue: 1 visible, 1 in flight, 1 delayed
  closest: 'in flight' in flight until +30 s, received once, id <id>
    +0 s sent
    +0 s received #1, in flight until +30 s"""
    )


def test_a_message_that_is_not_in_flight_is_told(
    world: Any, queue: Any, failure_of: Callable[..., str]
) -> None:
    world.clock.advance(20)
    assert failure_of(queue.assert_in_flight, "in flight") == (
        """\
expected at least 1 message in flight with body 'in flight' on 'orders'; there is none
  clock: 2030-01-01T00:00:30.000Z, 30 s after the test's start
  queue: 3 visible, 0 in flight, 0 delayed
  closest: 'in flight' visible, received once, id <id>
    it is visible, not in flight
    +0 s sent
    +0 s received #1, in flight until +30 s
    +30 s visible
  hint: it is visible again, and no consumer has received it since"""
    )


def test_a_long_history_is_cut_to_its_end(world: Any, failure_of: Callable[..., str]) -> None:
    queue = world.queue("orders")
    queue.send("a")
    for _ in range(7):
        queue.receive(visibility_timeout=1)
        world.clock.advance(1)
    lines = failure_of(queue.assert_in_flight, "a").splitlines()
    assert lines[5] == "    … 3 events before"
    assert lines[6] == "    +1 s received #2, in flight until +2 s"
    assert lines[-2] == "    +7 s visible"


def test_user_code_in_an_assertion_may_look_at_the_queue(queue: Any) -> None:
    def is_the_last(body: str) -> bool:
        return body == queue.messages()[-1].body

    assert queue.assert_contains(is_the_last).body == "delayed"


def test_a_queue_that_was_deleted_cannot_be_asked(world: Any, queue: Any) -> None:
    world.perform("DeleteQueue", QueueUrl=queue.url)
    with pytest.raises(QueueDoesNotExist):
        queue.assert_empty()
    assert repr(queue) == "<QueueProbe 'orders', no such queue>"


def test_wrong_counts_of_an_empty_queue_list_nothing(
    world: Any, failure_of: Callable[..., str]
) -> None:
    assert failure_of(world.queue("orders").assert_counts, in_flight=1) == (
        """\
expected 1 in flight on 'orders'
  clock: 2030-01-01T00:00:00.000Z, 0 s after the test's start
  queue: 0 visible, 0 in flight, 0 delayed"""
    )


@pytest.mark.parametrize("count", [-1, 1.0, "1", True])
def test_what_is_no_count_is_refused(queue: Any, count: Any) -> None:
    error = f"is {count!r}; it is a whole number, 0 for none at all"
    for assertion, name in (
        (queue.assert_contains, "count"),
        (queue.assert_dead_lettered, "count"),
        (queue.assert_received, "times"),
        (queue.assert_visibility_extended, "times"),
        (queue.assert_counts, "visible"),
    ):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            assertion(**{name: count})
        assert str(caught.value) == f"{name} {error}"
