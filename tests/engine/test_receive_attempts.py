"""ReceiveRequestAttemptId: a receive whose answer was lost can be asked for again."""

from __future__ import annotations

import pytest

from pytest_sqsq.errors import InvalidParameterValue

NOT_RETRYABLE = (
    "Value x for parameter ReceiveRequestAttemptId is invalid. Reason: The"
    " receiveRequestAttemptId is not valid anymore since the receive call is not retryable."
)


@pytest.fixture
def queue(world):
    queue = world.queue("orders.fifo", visibility_timeout=30, message_retention_period=1000)
    world.send(queue, "a", "b", "c")
    return queue


def assert_not_retryable(world, queue) -> None:
    with pytest.raises(InvalidParameterValue) as caught:
        world.receive(queue, 10, attempt="x")
    assert caught.value.message == NOT_RETRYABLE


def test_the_same_attempt_gives_the_same_messages_and_handles_and_counts(world, queue) -> None:
    first = world.receive(queue, 2, attempt="x")
    assert [d.body for d in first] == ["a", "b"]
    world.advance(10)
    assert world.receive(queue, 2, attempt="x") == first
    assert [d.receive_count for d in first] == [1, 1]


def test_another_number_of_messages_gives_the_same_set(world, queue) -> None:
    first = world.receive(queue, 2, attempt="x")
    assert world.receive(queue, 1, attempt="x") == first
    assert world.receive(queue, 10, attempt="x") == first


def test_the_visibility_starts_anew_with_the_timeout_of_the_latest_request(world, queue) -> None:
    world.receive(queue, 3, attempt="x")
    world.advance(20)
    world.receive(queue, 3, attempt="x", timeout=100)
    world.advance(99.999)
    assert world.counts(queue) == (0, 3, 0)
    world.advance(0.001)
    assert world.counts(queue) == (3, 0, 0)


def test_an_attempt_can_be_repeated_again_and_again(world, queue) -> None:
    first = world.receive(queue, 2, attempt="x")
    for _ in range(8):
        world.advance(29)
        assert world.receive(queue, 2, attempt="x") == first
    world.broker.check()


def test_another_attempt_or_none_is_an_ordinary_receive(world, queue) -> None:
    world.receive(queue, 1, attempt="x")
    assert world.receive(queue, 1, attempt="y") == []
    assert world.receive(queue, 1) == []
    world.send(queue, "other", group="other")
    assert [d.body for d in world.receive(queue, 10, attempt="y")] == ["other"]


def test_an_attempt_is_not_retryable_once_a_message_was_deleted(world, queue) -> None:
    first = world.receive(queue, 2, attempt="x")
    world.delete(queue, first[1])
    assert_not_retryable(world, queue)


@pytest.mark.parametrize("seconds", [0, 10, 100])
def test_an_attempt_is_not_retryable_once_a_visibility_was_changed(
    world, queue, seconds: int
) -> None:
    first = world.receive(queue, 2, attempt="x")
    world.change(queue, first[0], seconds)
    assert_not_retryable(world, queue)


def test_an_attempt_is_not_retryable_once_a_message_expired(world, queue) -> None:
    world.advance(990)
    world.receive(queue, 2, attempt="x")
    world.advance(10)
    assert world.live(queue) == []
    assert_not_retryable(world, queue)


def test_an_attempt_whose_visibility_has_run_out_is_an_ordinary_receive(world, queue) -> None:
    (first,) = world.receive(queue, 1, attempt="x")
    world.advance(30)
    again = world.receive(queue, 2, attempt="x")
    assert [(d.body, d.receive_count) for d in again] == [("a", 2), ("b", 1)]
    assert again[0].receipt_handle != first.receipt_handle
    assert world.receive(queue, 2, attempt="x") == again


def test_an_attempt_that_hid_for_no_time_is_an_ordinary_receive(world, queue) -> None:
    assert [world.receive(queue, 1, attempt="x", timeout=0)[0].receive_count for _ in range(3)] == [
        1,
        2,
        3,
    ]


def test_an_attempt_is_remembered_for_five_minutes(world, queue) -> None:
    first = world.receive(queue, 1, attempt="x", timeout=600)
    world.advance(299.999)
    assert world.receive(queue, 1, attempt="x", timeout=600) == first
    (other,) = world.receive(queue, 1, attempt="y", timeout=600) or [None]
    assert other is None


def test_a_forgotten_attempt_is_an_ordinary_receive(world, queue) -> None:
    world.receive(queue, 1, attempt="x", timeout=600)
    world.advance(300)
    assert world.receive(queue, 1, attempt="x") == []


def test_an_attempt_that_found_nothing_may_be_used_again(world) -> None:
    queue = world.queue("orders.fifo")
    assert world.receive(queue, 1, attempt="x") == []
    world.send(queue, "a")
    assert [d.body for d in world.receive(queue, 1, attempt="x")] == ["a"]


def test_an_attempt_answered_to_a_parked_poll_can_be_repeated(world) -> None:
    queue = world.queue("orders.fifo")
    poll = world.poll(queue, attempt="x")
    world.send(queue, "a")
    (first,) = poll.result()
    assert world.receive(queue, attempt="x") == [first]
    assert world.poll(queue, attempt="x").result() == [first]


def test_a_purge_forgets_attempts(world, queue) -> None:
    world.receive(queue, 1, attempt="x")
    world.broker.purge(queue)
    world.send(queue, "new")
    assert [d.body for d in world.receive(queue, 1, attempt="x")] == ["new"]


def test_a_replay_needs_no_room_in_flight(make_world) -> None:
    world = make_world(in_flight_limit=1)
    queue = world.queue("orders.fifo")
    world.send(queue, "a", "b")
    first = world.receive(queue, 1, attempt="x")
    assert world.receive(queue, 1, attempt="y") == []
    assert world.receive(queue, 1, attempt="x") == first


def test_a_replay_does_not_send_the_group_to_the_back_twice(world, queue) -> None:
    world.send(queue, "other", group="other")
    (first,) = world.receive(queue, 1, attempt="x")
    world.receive(queue, 1, attempt="x")
    world.change(queue, first, 0)
    assert world.bodies(queue) == ["other", "a", "b", "c"]


def test_a_replay_does_not_use_up_receives(world) -> None:
    dead = world.queue("dead.fifo")
    queue = world.queue("orders.fifo", dead_letters=dead, max_receive_count=2)
    world.send(queue, "a")
    for _ in range(5):
        world.receive(queue, attempt="x", timeout=30)
    world.advance(30)
    assert world.live(queue) == ["a"]


def test_a_used_up_attempt_moves_when_the_replayed_visibility_ends(world) -> None:
    dead = world.queue("dead.fifo")
    queue = world.queue("orders.fifo", dead_letters=dead)
    world.send(queue, "a")
    world.receive(queue, attempt="x", timeout=30)
    world.advance(20)
    world.receive(queue, attempt="x", timeout=30)
    world.advance(29.999)
    assert world.live(dead) == []
    world.advance(0.001)
    assert world.live(dead) == ["a"]
