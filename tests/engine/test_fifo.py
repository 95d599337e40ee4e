from __future__ import annotations

import pytest

from pytest_sqsq.engine.looking import statistics_of, why_not_deliverable
from pytest_sqsq.models import OutgoingMessage

WINDOW = 300


@pytest.fixture
def queue(world):
    return world.queue("orders.fifo", visibility_timeout=30)


def received(world, queue, count: int = 10, timeout: int | None = None):
    return {d.body: d for d in world.receive(queue, count, timeout=timeout)}


def send_groups(world, queue, *bodies: str) -> None:
    """Send messages named like ``g1-m1`` to the group before the dash."""
    for body in bodies:
        world.send(queue, body, group=body.split("-")[0])


def test_nothing_of_a_group_is_delivered_behind_messages_in_flight(world, queue) -> None:
    world.send(queue, "m1", "m2", "m3")
    assert world.bodies(queue, 2) == ["m1", "m2"]
    assert world.bodies(queue) == []
    world.send(queue, "m4")
    assert world.bodies(queue) == []


def test_deleting_the_first_of_two_in_flight_frees_nothing(world, queue) -> None:
    world.send(queue, "m1", "m2", "m3")
    held = received(world, queue, 2)
    world.delete(queue, held["m1"])
    assert world.bodies(queue) == []


def test_deleting_the_second_of_two_in_flight_frees_nothing(world, queue) -> None:
    world.send(queue, "m1", "m2", "m3")
    held = received(world, queue, 2)
    world.delete(queue, held["m2"])
    assert world.bodies(queue) == []


def test_deleting_all_in_flight_frees_the_group(world, queue) -> None:
    world.send(queue, "m1", "m2", "m3")
    held = received(world, queue, 2)
    world.delete(queue, *held.values())
    assert world.bodies(queue) == ["m3"]


def test_when_all_in_flight_time_out_the_group_starts_over(world, queue) -> None:
    world.send(queue, "m1", "m2", "m3")
    world.receive(queue, 2)
    world.advance(30)
    assert world.bodies(queue) == ["m1", "m2", "m3"]


@pytest.mark.parametrize(
    ("extended", "delivered"), [("m0", []), ("m1", ["m0"]), ("m2", ["m0", "m1"])]
)
def test_a_message_extended_holds_up_those_behind_it_only(
    world, queue, extended: str, delivered: list[str]
) -> None:
    world.send(queue, "m0", "m1", "m2")
    held = received(world, queue)
    assert list(held) == ["m0", "m1", "m2"]
    world.change(queue, held[extended], 100)
    world.advance(30)
    assert world.bodies(queue) == delivered


def test_the_first_of_two_is_delivered_again_alone_when_its_visibility_ends(world, queue) -> None:
    world.send(queue, "m1", "m2")
    held = received(world, queue)
    world.change(queue, held["m1"], 0)
    assert world.bodies(queue) == ["m1"]
    assert world.counts(queue) == (0, 2, 0)


def test_a_second_message_shown_again_after_the_first_is_gone_comes_before_the_third(
    world, queue
) -> None:
    world.send(queue, "m1", "m2", "m3")
    held = received(world, queue, 2)
    world.delete(queue, held["m1"])
    world.change(queue, held["m2"], 0)
    assert world.bodies(queue, 1) == ["m2"]
    world.advance(30)
    assert world.bodies(queue) == ["m2", "m3"]


def test_a_blocked_message_counts_as_visible_and_says_who_blocks_it(world, queue) -> None:
    world.send(queue, "m1", "m2")
    world.receive(queue)
    assert world.counts(queue) == (1, 1, 0)
    with world.broker.entry(queue):
        _, blocked = queue.log.live_messages()
        assert why_not_deliverable(queue, blocked) == (
            "message group 'g' waits for 'm1', in flight until 2030-01-01T00:00:30.000Z (receive 1)"
        )


def test_a_receive_takes_what_it_can_from_one_group_and_then_goes_to_the_next(world, queue) -> None:
    send_groups(world, queue, "g1-m1", "g2-m1", "g1-m2", "g1-m3", "g2-m2")
    assert world.bodies(queue, 4) == ["g1-m1", "g1-m2", "g1-m3", "g2-m1"]


def test_a_group_just_received_goes_to_the_back(world, queue) -> None:
    send_groups(world, queue, "g1-m1", "g2-m1")
    assert world.bodies(queue, 1) == ["g1-m1"]
    world.advance(30)
    assert world.bodies(queue, 1) == ["g2-m1"]
    assert world.bodies(queue, 1) == ["g1-m1"]


def test_groups_rotate_when_received_for_no_time(world, queue) -> None:
    send_groups(world, queue, "g1-m1", "g2-m1", "g3-m1")
    assert world.bodies(queue, 2, timeout=0) == ["g1-m1", "g2-m1"]
    assert world.bodies(queue, timeout=0) == ["g3-m1", "g1-m1", "g2-m1"]
    assert world.bodies(queue, timeout=0) == ["g3-m1", "g1-m1", "g2-m1"]


def test_a_group_emptied_and_sent_to_again_is_receivable_at_once(world, queue) -> None:
    world.send(queue, "m1")
    world.delete(queue, *world.receive(queue))
    assert statistics_of(queue).groups == 0
    world.send(queue, "m2")
    assert statistics_of(queue).groups == 1
    assert world.bodies(queue) == ["m2"]


def test_a_group_in_flight_does_not_hold_up_another(world, queue) -> None:
    send_groups(world, queue, "g1-m1", "g1-m2")
    assert world.bodies(queue, 1) == ["g1-m1"]
    send_groups(world, queue, "g2-m1")
    assert world.bodies(queue) == ["g2-m1"]


def test_a_group_whose_head_expired_is_received_once(world) -> None:
    queue = world.queue("orders.fifo", message_retention_period=60)
    world.send(queue, "m1")
    world.advance(30)
    world.send(queue, "m2")
    world.advance(30)
    assert world.bodies(queue) == ["m2"]
    world.broker.check()


def test_there_may_be_any_number_of_groups(world, queue) -> None:
    for number in range(3000):
        world.send(queue, str(number), group=f"group {number}")
    seen: list[str] = []
    while bodies := world.bodies(queue, timeout=1000):
        seen += bodies
    assert seen == [str(number) for number in range(3000)]
    world.broker.check()


def test_groups_deleted_over_and_over_leave_nothing_in_the_heap(world, queue) -> None:
    for number in range(5000):
        world.send(queue, "x", group=str(number % 7))
        world.delete(queue, *world.receive(queue))
    assert len(queue.order._ready) < 10
    world.send(queue, "stays", group="0")
    world.send(queue, "other", group="1")
    for _ in range(3000):
        world.receive(queue, timeout=0)
    assert len(queue.order._ready) <= 2 * 2 + 1024 + 1
    world.broker.check()


def test_a_delay_at_the_head_of_a_group_holds_up_the_rest(world) -> None:
    queue = world.queue("orders.fifo", delay_seconds=10)
    world.send(queue, "m1")
    world.advance(5)
    world.send(queue, "m2")
    poll = world.poll(queue, count=10)
    world.advance(4.999)
    assert not poll.resolved
    world.advance(10)
    assert [d.body for d in poll.result()] == ["m1"]
    assert world.counts(queue) == (1, 1, 0)


def test_messages_whose_delays_end_together_come_in_one_receive(world) -> None:
    queue = world.queue("orders.fifo", delay_seconds=10)
    world.send(queue, "m1", "m2")
    world.advance(10)
    assert world.bodies(queue) == ["m1", "m2"]


# Deduplication


def test_a_duplicate_is_answered_like_the_original_and_not_enqueued(world, queue) -> None:
    (first,) = world.send(queue, "a", deduplication_id="x")
    (second,) = world.send(queue, "b", deduplication_id="x")
    assert second.duplicate
    assert not first.duplicate
    assert second[:2] == first[:2]
    assert world.live(queue) == ["a"]
    assert statistics_of(queue).sent == 1
    event = queue.journal.events[-1]
    assert (event.kind, event.message_id, event.body) == ("deduplicated", first.message_id, "b")


def test_the_window_is_five_minutes_from_the_first_send(world, queue) -> None:
    world.send(queue, "a", deduplication_id="x")
    world.advance(WINDOW - 0.001)
    assert world.send(queue, "b", deduplication_id="x")[0].duplicate
    world.advance(0.001)
    assert not world.send(queue, "c", deduplication_id="x")[0].duplicate
    assert world.live(queue) == ["a", "c"]
    world.advance(WINDOW - 0.001)
    assert world.send(queue, "d", deduplication_id="x")[0].duplicate


def test_an_id_stays_known_after_its_message_is_deleted(world, queue) -> None:
    world.send(queue, "a", deduplication_id="x")
    world.delete(queue, *world.receive(queue))
    assert world.send(queue, "b", deduplication_id="x")[0].duplicate
    assert world.receive(queue) == []


def test_an_id_stays_known_after_its_message_expired(world) -> None:
    queue = world.queue("orders.fifo", message_retention_period=60)
    world.send(queue, "a", deduplication_id="x")
    world.advance(60)
    assert world.live(queue) == []
    assert world.send(queue, "b", deduplication_id="x")[0].duplicate


def test_a_purge_forgets_all_ids(world, queue) -> None:
    world.send(queue, "a", deduplication_id="x")
    world.broker.purge(queue)
    assert not world.send(queue, "b", deduplication_id="x")[0].duplicate
    assert world.bodies(queue) == ["b"]


def test_a_queue_made_again_knows_no_ids(world, queue) -> None:
    world.send(queue, "a", deduplication_id="x")
    world.broker.delete_queue(queue)
    again = world.queue("orders.fifo")
    assert not world.send(again, "b", deduplication_id="x")[0].duplicate


def test_two_messages_of_one_batch_with_one_id_are_one(world, queue) -> None:
    first, second, third = world.broker.send(
        queue,
        [
            OutgoingMessage("a", message_group_id="g", message_deduplication_id="x"),
            OutgoingMessage("b", message_group_id="g", message_deduplication_id="x"),
            OutgoingMessage("c", message_group_id="g", message_deduplication_id="y"),
        ],
    )
    assert (first.duplicate, second.duplicate, third.duplicate) == (False, True, False)
    assert second.message_id == first.message_id
    assert world.live(queue) == ["a", "c"]


def test_by_default_the_id_of_another_group_is_a_duplicate(world, queue) -> None:
    world.send(queue, "a", group="1", deduplication_id="x")
    assert world.send(queue, "b", group="2", deduplication_id="x")[0].duplicate


def test_with_scope_message_group_an_id_is_unique_within_its_group_only(world) -> None:
    queue = world.queue("orders.fifo", deduplication_scope="messageGroup")
    world.send(queue, "a", group="1", deduplication_id="x")
    assert not world.send(queue, "b", group="2", deduplication_id="x")[0].duplicate
    assert world.send(queue, "c", group="2", deduplication_id="x")[0].duplicate
    assert world.live(queue) == ["a", "b"]


@pytest.mark.parametrize(
    ("created", "changed", "is_duplicate"),
    [("queue", "messageGroup", True), ("messageGroup", "queue", False)],
)
def test_a_changed_scope_is_reported_and_changes_nothing(
    world, created: str, changed: str, is_duplicate: bool
) -> None:
    queue = world.queue("orders.fifo", deduplication_scope=created)
    world.set(queue, deduplication_scope=changed)
    assert queue.settings.deduplication_scope == changed
    world.send(queue, "a", group="1", deduplication_id="x")
    assert world.send(queue, "b", group="2", deduplication_id="x")[0].duplicate is is_duplicate


def test_a_standard_queue_deduplicates_nothing(world) -> None:
    queue = world.queue()
    for _ in range(2):
        (receipt,) = world.send(queue, "a", deduplication_id="x")
        assert not receipt.duplicate
    assert world.live(queue) == ["a", "a"]


def test_remembered_ids_are_forgotten_when_their_time_is_over(world, queue) -> None:
    for number in range(100):
        world.send(queue, "a", deduplication_id=str(number))
    world.advance(WINDOW)
    world.send(queue, "b", deduplication_id="new")
    assert len(queue.deduplication) == 1


# Sequence numbers


def test_sequence_numbers_have_20_digits_and_rise_with_every_send(world, queue) -> None:
    numbers = [
        receipt.sequence_number
        for _ in range(20)
        for receipt in world.send(queue, *"abcde", group=str(len(world.live(queue)) % 3))
    ]
    assert numbers == sorted(set(numbers))
    assert all(len(str(number)) == 20 for number in numbers)
    (delivery,) = world.receive(queue)
    assert delivery.sequence_number == numbers[0]


def test_sequence_numbers_go_on_after_a_purge(world, queue) -> None:
    (before,) = world.send(queue, "a")
    world.broker.purge(queue)
    (after,) = world.send(queue, "b")
    assert after.sequence_number > before.sequence_number


def test_a_standard_queue_gives_no_sequence_numbers(world) -> None:
    queue = world.queue()
    (receipt,) = world.send(queue, "a", group="g")
    (delivery,) = world.receive(queue)
    assert (receipt.sequence_number, delivery.sequence_number) == (None, None)
    assert delivery.message_group_id == "g"
