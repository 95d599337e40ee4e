from __future__ import annotations

import pytest

from pytest_sqsq.engine.looking import statistics_of, why_not_deliverable
from pytest_sqsq.errors import InvalidParameterValue, OverLimit, ReceiptHandleIsInvalid

HOURS_12 = 43_200

EXPIRED = "Value {} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
UNAVAILABLE = (
    "Value {} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not"
    " available for visibility timeout change."
)
ELSEWHERE = 'The receipt handle "{}" is not valid for this queue.'
GARBAGE = 'The input receipt handle "{}" is not a valid receipt handle.'
BEYOND = (
    "Value {} for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the"
    " message is beyond the limit [43200 seconds]"
)

both = pytest.mark.parametrize("name", ["orders", "orders.fifo"])


def one_received(world, name: str, **settings):
    queue = world.queue(name, visibility_timeout=30, **settings)
    world.send(queue, "a")
    (delivery,) = world.receive(queue)
    return queue, delivery


@both
def test_the_current_handle_deletes(world, name: str) -> None:
    queue, delivery = one_received(world, name)
    assert world.delete(queue, delivery) == [None]
    assert world.live(queue) == []


@both
def test_the_current_handle_changes_the_visibility(world, name: str) -> None:
    queue, delivery = one_received(world, name)
    assert world.change(queue, delivery, 100) is None
    world.advance(99)
    assert world.bodies(queue) == []


@both
def test_a_handle_extended_in_time_is_good_after_the_first_timeout(world, name: str) -> None:
    queue, delivery = one_received(world, name)
    world.change(queue, delivery, 100)
    world.advance(31)
    assert world.delete(queue, delivery) == [None]
    assert world.live(queue) == []


def test_a_handle_of_a_standard_queue_deletes_after_its_timeout(world) -> None:
    queue, delivery = one_received(world, "orders")
    world.advance(30)
    assert world.delete(queue, delivery) == [None]
    assert world.live(queue) == []


def test_a_handle_of_a_fifo_queue_is_worth_nothing_after_its_timeout(world) -> None:
    queue, delivery = one_received(world, "orders.fifo")
    world.advance(30)
    expired = EXPIRED.format(delivery.receipt_handle)
    assert world.delete(queue, delivery) == [expired]
    assert world.change(queue, delivery, 10) == expired
    assert world.live(queue) == ["a"]
    assert world.counts(queue) == (1, 0, 0)


def test_a_visible_message_of_a_standard_queue_can_be_hidden_by_its_old_handle(world) -> None:
    queue, delivery = one_received(world, "orders")
    world.advance(30)
    assert world.change(queue, delivery, 10) is None
    assert world.counts(queue) == (0, 1, 0)
    assert world.bodies(queue) == []
    with world.broker.entry(queue):
        assert queue.log.index_of_receipt(delivery.receipt_handle) == 0
    world.advance(10)
    (again,) = world.receive(queue)
    assert again.receive_count == 2
    assert again.receipt_handle != delivery.receipt_handle
    world.broker.check()


@pytest.mark.parametrize("group", [None, "tenant"])
def test_a_visible_message_hidden_by_its_old_handle_does_not_hold_up_the_next(
    world, group: str | None
) -> None:
    queue = world.queue()
    world.send(queue, "a", "b", group=group)
    first, _ = world.receive(queue, 2, timeout=0)
    assert world.change(queue, first, 10) is None
    world.broker.check()
    assert world.bodies(queue) == ["b"]


def test_a_visible_message_shown_once_more_stays_where_it_is(world) -> None:
    queue, delivery = one_received(world, "orders")
    world.send(queue, "b")
    world.advance(30)
    assert world.change(queue, delivery, 0) is None
    assert world.counts(queue) == (2, 0, 0)
    assert world.bodies(queue) == ["a", "b"]


def test_an_older_handle_of_a_standard_queue_still_acts(world) -> None:
    queue, old = one_received(world, "orders")
    world.advance(30)
    (new,) = world.receive(queue)
    assert world.change(queue, old, 100) is None
    with world.broker.entry(queue):
        assert queue.log.index_of_receipt(new.receipt_handle) == 0
        assert queue.log.index_of_receipt(old.receipt_handle) is None
    world.advance(99)
    assert world.bodies(queue) == []
    assert world.delete(queue, old) == [None]
    assert world.live(queue) == []
    assert world.delete(queue, new) == [None]


def test_an_older_handle_of_a_fifo_queue_is_expired(world) -> None:
    queue, old = one_received(world, "orders.fifo")
    world.advance(30)
    (new,) = world.receive(queue)
    expired = EXPIRED.format(old.receipt_handle)
    assert world.delete(queue, old) == [expired]
    assert world.change(queue, old, 10) == expired
    assert world.delete(queue, new) == [None]


@both
def test_a_deleted_message_can_be_deleted_again_any_number_of_times(world, name: str) -> None:
    queue, delivery = one_received(world, name)
    for _ in range(3):
        assert world.delete(queue, delivery) == [None]
    assert statistics_of(queue).deleted == 1
    assert len(world.events(queue, "deleted")) == 1


@both
def test_a_deleted_message_has_no_visibility_to_change(world, name: str) -> None:
    queue, delivery = one_received(world, name)
    world.delete(queue, delivery)
    assert world.change(queue, delivery, 1) == UNAVAILABLE.format(delivery.receipt_handle)


@both
def test_an_expired_message_can_be_deleted_and_has_no_visibility_to_change(
    world, name: str
) -> None:
    queue, delivery = one_received(world, name, message_retention_period=60)
    world.change(queue, delivery, 1000)
    world.advance(60)
    assert world.delete(queue, delivery) == [None]
    assert world.change(queue, delivery, 1) == UNAVAILABLE.format(delivery.receipt_handle)
    assert statistics_of(queue).deleted == 0


@both
def test_a_purged_message_can_be_deleted(world, name: str) -> None:
    queue, delivery = one_received(world, name)
    world.broker.purge(queue)
    assert world.delete(queue, delivery) == [None]


@both
def test_a_handle_of_another_queue_is_told_from_garbage(world, name: str) -> None:
    _, delivery = one_received(world, name)
    other = world.queue("other" + name.removeprefix("orders"))
    handle = delivery.receipt_handle
    errors = [
        *world.broker.delete(other, [handle]),
        *world.broker.change_visibility(other, [(handle, 1)]),
    ]
    for error in errors:
        assert isinstance(error, ReceiptHandleIsInvalid)
        assert error.message == ELSEWHERE.format(handle)


def flipped(handle: str) -> str:
    return handle[:20] + ("A" if handle[20] != "A" else "B") + handle[21:]


@both
@pytest.mark.parametrize(
    "spoil",
    [
        flipped,
        lambda handle: handle[:-4],
        lambda handle: handle + "AAAA",
        lambda handle: "nonsense",
        lambda handle: "",
        lambda handle: handle.replace(handle[0], "-", 1),
        lambda handle: handle + "\n",
        lambda handle: "Ü" + handle[1:],
        lambda handle: "BBBB" + handle[4:],
    ],
    ids=["flipped", "cut", "longer", "text", "empty", "dash", "newline", "unicode", "prefix"],
)
def test_what_is_no_handle_is_told_so(world, name: str, spoil) -> None:
    queue, delivery = one_received(world, name)
    handle = spoil(delivery.receipt_handle)
    errors = [
        *world.broker.delete(queue, [handle]),
        *world.broker.change_visibility(queue, [(handle, 1)]),
    ]
    for error in errors:
        assert isinstance(error, ReceiptHandleIsInvalid)
        assert error.message == GARBAGE.format(handle)
    assert world.live(queue) == ["a"]


def test_a_handle_of_the_same_name_in_another_account_is_of_another_queue(world) -> None:
    _, delivery = one_received(world, "orders")
    other = world.queue("orders", account_id="111111111111")
    assert world.delete(other, delivery) == [ELSEWHERE.format(delivery.receipt_handle)]


def test_handles_hold_no_dash_and_differ_for_each_receive(world) -> None:
    queue = world.queue()
    world.send(queue, *(str(n) for n in range(10)))
    handles = {d.receipt_handle for _ in range(20) for d in world.receive(queue, 10, timeout=0)}
    assert len(handles) == 200
    assert not any("-" in handle or len(handle) > 1024 for handle in handles)


@both
def test_entries_of_a_batch_succeed_and_fail_each_for_itself_in_order(world, name: str) -> None:
    queue, first = one_received(world, name)
    world.send(queue, "b", group="other")
    (second,) = world.receive(queue)
    texts = world.delete(queue, first, "nonsense", second, first)
    assert texts == [None, GARBAGE.format("nonsense"), None, None]
    assert world.live(queue) == []
    assert statistics_of(queue).deleted == 2


def test_changes_of_one_batch_apply_in_order(world) -> None:
    queue, delivery = one_received(world, "orders")
    handle = delivery.receipt_handle
    errors = world.broker.change_visibility(queue, [(handle, 5), ("x", 5), (handle, 50)])
    assert [error is None for error in errors] == [True, False, True]
    world.advance(49)
    assert world.counts(queue) == (0, 1, 0)
    world.advance(1)
    assert world.counts(queue) == (1, 0, 0)
    world.broker.check()


def test_a_visible_message_changed_twice_in_one_batch_is_hidden_by_the_last(world) -> None:
    queue, delivery = one_received(world, "orders")
    world.advance(30)
    handle = delivery.receipt_handle
    world.broker.change_visibility(queue, [(handle, 5), (handle, 50)])
    world.broker.check()
    world.advance(49)
    assert world.counts(queue) == (0, 1, 0)
    world.advance(1)
    assert world.counts(queue) == (1, 0, 0)


def test_a_visible_message_hidden_and_shown_in_one_batch_is_visible(world) -> None:
    queue, delivery = one_received(world, "orders")
    world.advance(30)
    handle = delivery.receipt_handle
    world.broker.change_visibility(queue, [(handle, 60), (handle, 0)])
    assert world.counts(queue) == (1, 0, 0)
    assert len(world.receive(queue, 10)) == 1
    world.broker.check()


@both
def test_the_visibility_of_one_receive_ends_12_hours_after_it(world, name: str) -> None:
    queue, delivery = one_received(world, name, message_retention_period=1_209_600)
    assert world.change(queue, delivery, HOURS_12) is None
    world.advance(0.999)
    assert world.change(queue, delivery, HOURS_12) is None
    world.advance(0.001)
    assert world.change(queue, delivery, HOURS_12) == BEYOND.format(HOURS_12)
    assert world.change(queue, delivery, HOURS_12 - 1) is None
    world.advance(HOURS_12 - 101)
    assert world.change(queue, delivery, 101) == BEYOND.format(101)
    assert world.change(queue, delivery, 100) is None
    (error,) = world.broker.change_visibility(queue, [(delivery.receipt_handle, 3600)])
    assert isinstance(error, InvalidParameterValue)
    world.advance(100)
    assert world.bodies(queue) == ["a"]


def test_the_12_hours_count_from_the_latest_receive(world) -> None:
    queue, _delivery = one_received(world, "orders", message_retention_period=1_209_600)
    world.advance(HOURS_12)
    (again,) = world.receive(queue)
    assert world.change(queue, again, HOURS_12) is None


def test_a_message_put_back_can_be_received_and_gets_a_new_handle(world) -> None:
    queue, delivery = one_received(world, "orders")
    assert world.change(queue, delivery, 0) is None
    assert world.events(queue)[-2:] == [(0.0, "returned", "a"), (0.0, "visible", "a")]
    (again,) = world.receive(queue)
    assert (again.receive_count, again.receipt_handle != delivery.receipt_handle) == (2, True)


def test_a_full_standard_queue_refuses_a_short_poll_and_lets_a_long_one_wait(make_world) -> None:
    world = make_world(in_flight_limit=3)
    queue = world.queue()
    world.send(queue, *"abcde")
    assert world.bodies(queue) == ["a", "b", "c"], "no more than there is room for"
    with pytest.raises(OverLimit) as caught:
        world.receive(queue)
    assert caught.value.status == 403
    poll = world.poll(queue, seconds=5)
    assert not poll.resolved
    world.advance(5)
    assert poll.result() == []
    world.broker.check()


def test_a_long_poll_on_a_nearly_full_queue_returns_what_room_allows(make_world) -> None:
    world = make_world(in_flight_limit=3)
    queue = world.queue()
    world.send(queue, *"abcde")
    world.receive(queue, 2)
    assert [d.body for d in world.poll(queue, count=10).result()] == ["c"]


def test_a_full_fifo_queue_returns_nothing_and_no_error(make_world) -> None:
    world = make_world(in_flight_limit=2)
    queue = world.queue("orders.fifo")
    for group in "abc":
        world.send(queue, group, group=group)
    held = world.receive(queue, 10)
    assert [d.body for d in held] == ["a", "b"]
    assert world.receive(queue) == []
    poll = world.poll(queue)
    assert not poll.resolved
    world.delete(queue, held[0])
    assert [d.body for d in poll.result()] == ["c"]


def test_a_full_queue_says_why_the_next_message_is_not_delivered(make_world) -> None:
    world = make_world(in_flight_limit=1)
    queue = world.queue()
    world.send(queue, "a", "b")
    world.receive(queue, timeout=30)
    with world.broker.entry(queue):
        first, second = queue.log.live_messages()
        assert (
            why_not_deliverable(queue, first)
            == "in flight until 2030-01-01T00:00:30.000Z (receive 1)"
        )
        assert why_not_deliverable(queue, second) == "the in-flight limit of 1 is reached"


def test_the_limit_counts_each_queue_for_itself(make_world) -> None:
    world = make_world(in_flight_limit=1)
    one, other = world.queue("one"), world.queue("other")
    for queue in (one, other):
        world.send(queue, "a")
        assert world.bodies(queue) == ["a"]


def test_a_timeout_makes_room(make_world) -> None:
    world = make_world(in_flight_limit=1)
    queue = world.queue()
    world.send(queue, "a", "b")
    world.receive(queue, timeout=10)
    world.advance(10)
    assert world.bodies(queue) == ["a"]
