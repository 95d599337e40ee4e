from __future__ import annotations

import pytest

from pytest_sqsq.engine import Message
from pytest_sqsq.engine.deadlines import STALE_MINIMUM, MessageHeap


def message(number: int, due_ms: int | None = None) -> Message:
    made = Message(f"id-{number}", str(number), 0)
    made.arrival = number
    made.visible_at_ms = due_ms
    return made


def heap_of(*messages: Message) -> MessageHeap:
    heap = MessageHeap(lambda m: m.visible_at_ms)
    for each in messages:
        heap.push(each.visible_at_ms or 0, each)
    return heap


def drained(heap: MessageHeap) -> list[str]:
    bodies = []
    while (first := heap.pop()) is not None:
        bodies.append(first.body)
    return bodies


def test_messages_come_out_by_key_and_those_of_one_key_by_arrival() -> None:
    heap = heap_of(message(3, 20), message(1, 20), message(2, 10), message(0, 30))
    assert heap.first_key() == 10
    assert drained(heap) == ["2", "1", "3", "0"]
    assert (heap.first(), heap.first_key(), heap.pop()) == (None, None, None)


def test_an_entry_whose_message_tells_another_key_is_passed_over() -> None:
    moved = message(1, 10)
    heap = heap_of(moved, message(2, 20))
    moved.visible_at_ms = 30
    heap.push(30, moved)
    heap.mark_stale()
    assert heap.first_key() == 20
    assert drained(heap) == ["2", "1"]


def test_an_entry_whose_message_tells_none_is_passed_over() -> None:
    gone = message(1, 10)
    heap = heap_of(gone, message(2, 20))
    gone.visible_at_ms = None
    heap.mark_stale()
    assert drained(heap) == ["2"]


def test_looking_takes_nothing_out() -> None:
    heap = heap_of(message(1, 10))
    assert heap.first() is heap.first()
    assert len(heap) == 1


def test_a_message_pushed_twice_under_one_key_and_then_moved_is_passed_over_twice() -> None:
    twice = message(1, 10)
    heap = heap_of(twice, twice, message(2, 20))
    twice.visible_at_ms = None
    assert drained(heap) == ["2"]


def test_a_message_pushed_twice_under_one_key_comes_out_once() -> None:
    twice = message(1, 10)
    heap = heap_of(twice, message(2, 10), twice, twice)
    assert drained(heap) == ["1", "2"]


@pytest.mark.parametrize("group", [None, "tenant"])
def test_a_message_hidden_and_shown_again_is_received_once(world, group: str | None) -> None:
    queue = world.queue()
    world.send(queue, "a", "b", group=group)
    (delivery,) = world.receive(queue, timeout=0)
    world.change(queue, delivery, 10)
    world.change(queue, delivery, 0)
    received = world.receive(queue, 10)
    assert [(d.body, d.receive_count) for d in received] == [("a", 2), ("b", 1)]
    world.broker.check()


def test_stale_entries_are_dropped_when_they_exceed_the_minimum_and_the_live_ones() -> None:
    live = [message(number, 10) for number in range(STALE_MINIMUM)]
    stale = [message(STALE_MINIMUM + number, 20) for number in range(STALE_MINIMUM + 1)]
    heap = heap_of(*live, *stale)
    for each in stale[:-1]:
        each.visible_at_ms = None
        heap.mark_stale()
    assert len(heap) == 2 * STALE_MINIMUM + 1, "so few are not worth a rebuild"
    stale[-1].visible_at_ms = None
    heap.mark_stale()
    assert len(heap) == STALE_MINIMUM
    assert drained(heap) == [each.body for each in live]


def test_stale_entries_stay_while_the_live_ones_are_more() -> None:
    live = [message(number, 10) for number in range(3 * STALE_MINIMUM)]
    stale = [message(len(live) + number, 20) for number in range(2 * STALE_MINIMUM)]
    heap = heap_of(*live, *stale)
    for each in stale:
        each.visible_at_ms = None
        heap.mark_stale()
    assert len(heap) == 5 * STALE_MINIMUM


def test_a_message_hidden_again_and_again_does_not_make_its_queue_grow(world) -> None:
    queue = world.queue()
    world.send(queue, "often")
    (delivery,) = world.receive(queue)
    for seconds in range(10 * STALE_MINIMUM):
        assert world.change(queue, delivery, 1000 + seconds % 7) is None
    assert len(queue.timeouts) <= 2 * STALE_MINIMUM + 2
    world.broker.check()
    world.advance(1006)
    assert world.bodies(queue) == ["often"]


def test_delayed_messages_purged_or_expired_leave_nothing_behind(world) -> None:
    queue = world.queue(message_retention_period=60)
    for _ in range(3):
        for _ in range(200):
            world.send(queue, *("x" * 10), delay=900)
        world.advance(60)
    assert world.counts(queue) == (0, 0, 0)
    assert len(queue.delays) <= 2 * STALE_MINIMUM + 2


def test_moved_messages_deleted_in_the_dead_letter_queue_leave_nothing_behind(world) -> None:
    dead_letters = world.queue("dead", message_retention_period=1_209_600)
    queue = world.queue(dead_letters=dead_letters)
    world.send(queue, "stays")
    world.advance(1)
    world.send(dead_letters, "newer")
    world.receive(queue, timeout=0)
    for _ in range(20):
        for start in range(0, 200, 10):
            world.send(queue, *(str(number) for number in range(start, start + 10)))
        world.advance(1)
        world.send(dead_letters, "newer")
        while world.receive(queue, 10, timeout=0):
            pass
        received = [d for _ in range(25) for d in world.receive(dead_letters, 10, timeout=5)]
        world.delete(dead_letters, *(d for d in received if d.body != "stays"))
        world.advance(5)
        world.broker.check()
    assert world.live(dead_letters) == ["stays"]
    assert queue.dead_lettered == 4001
    assert len(dead_letters._early_starts) <= 2 * STALE_MINIMUM + 2
