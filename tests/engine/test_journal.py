from __future__ import annotations

import pytest

from pytest_sqsq.engine.journal import CONTENT_CHARACTERS
from pytest_sqsq.models import MessageAttribute, OutgoingMessage


def test_the_whole_life_of_a_message_is_told_in_order(world) -> None:
    queue = world.queue(visibility_timeout=30)
    world.send(queue, "a", delay=5)
    world.advance(5)
    (delivery,) = world.receive(queue)
    world.advance(10)
    world.change(queue, delivery, 60)
    world.advance(10)
    world.change(queue, delivery, 0)
    (again,) = world.receive(queue)
    world.advance(30)
    world.delete(queue, again)
    assert world.events(queue) == [
        (0.0, "sent", "a"),
        (5.0, "visible", "a"),
        (5.0, "received", "a"),
        (15.0, "visibility_changed", "a"),
        (25.0, "returned", "a"),
        (25.0, "visible", "a"),
        (25.0, "received", "a"),
        (55.0, "visible", "a"),
        (55.0, "deleted", "a"),
    ]
    received = [event for event in queue.journal.events if event.kind == "received"]
    assert [event.detail["receive_count"] for event in received] == [1, 2]
    assert received[0].detail["receipt_handle"] == delivery.receipt_handle
    assert received[0].detail["visible_at_ms"] == delivery.sent_ms + 35_000
    assert {event.message_id for event in queue.journal.events} == {delivery.message_id}


def test_a_purge_is_one_event_that_tells_how_many(world) -> None:
    queue = world.queue()
    world.send(queue, "a", "b", "c")
    world.broker.purge(queue)
    event = queue.journal.events[-1]
    assert (event.kind, event.message_id, event.detail["count"]) == ("purged", None, 3)


def test_a_dead_letter_move_is_told_on_both_queues(world) -> None:
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead)
    world.send(queue, "a")
    world.receive(queue, timeout=10)
    world.advance(10)
    left, came = queue.journal.events[-1], dead.journal.events[-1]
    assert (left.kind, left.body, left.detail["target_arn"]) == ("dead_lettered", "a", dead.arn)
    assert (came.kind, came.body, came.detail["source_arn"]) == ("moved", "a", queue.arn)
    assert left.message_id == came.message_id


def test_the_oldest_events_are_forgotten_and_counted(make_world) -> None:
    world = make_world(journal_size=5)
    queue = world.queue()
    for body in "abcdefg":
        world.send(queue, body)
    assert [event.body for event in queue.journal.events] == list("cdefg")
    assert queue.journal.forgotten == 2
    world.delete(queue, *world.receive(queue, 10))
    assert len(queue.journal.events) == 5
    assert queue.journal.forgotten == 2 + 14


def test_each_queue_forgets_for_itself(make_world) -> None:
    world = make_world(journal_size=2)
    one, other = world.queue("one"), world.queue("other")
    world.send(one, *"abc")
    world.send(other, "x")
    assert (one.journal.forgotten, other.journal.forgotten) == (1, 0)


def test_events_with_huge_bodies_are_forgotten_before_they_fill_the_memory(world) -> None:
    queue = world.queue()
    body = "x" * (CONTENT_CHARACTERS // 8)
    for _ in range(20):
        world.send(queue, body)
        world.delete(queue, *world.receive(queue))
    held = sum(event.kind == "sent" for event in queue.journal.events)
    assert held <= 8
    assert queue.journal.forgotten >= 20 - held


def test_what_a_gone_message_consisted_of_is_remembered_with_its_arrival(make_world) -> None:
    world = make_world(journal_size=4)
    queue = world.queue()
    attributes = {"k": MessageAttribute("String", "v")}
    (receipt,) = world.broker.send(queue, [OutgoingMessage("a", attributes=attributes)])
    world.delete(queue, *world.receive(queue))
    assert queue.journal.contents[receipt.message_id].attributes == attributes
    world.send(queue, "b", "c")
    assert queue.journal.contents == {}


def test_a_listener_hears_each_event_of_every_queue_until_it_is_removed(world) -> None:
    one, other = world.queue("one"), world.queue("other")
    heard = []
    world.broker.add_listener(heard.append)
    world.send(one, "a")
    world.send(other, "b")
    world.broker.remove_listener(heard.append)
    world.send(one, "c")
    assert [(event.kind, event.queue, event.body) for event in heard] == [
        ("sent", "one", "a"),
        ("sent", "other", "b"),
    ]


def test_two_listeners_hear_the_same(world) -> None:
    queue = world.queue()
    first, second = [], []
    world.broker.add_listener(first.append)
    world.broker.add_listener(second.append)
    world.send(queue, "a")
    assert first == second
    assert len(first) == 1


@pytest.mark.parametrize("mode", ["tick", "receive"])
def test_settling_returns_what_happened_and_nothing_else(make_world, mode: str) -> None:
    world = make_world(dead_letter_on=mode)
    queue = world.queue(dead_letters=world.queue("dead"))
    world.send(queue, "a")
    world.receive(queue, timeout=10)
    world.clock.now_ms += 10_000
    events = world.broker.settle(world.clock.now_ms)
    expected = {"tick": ["dead_lettered", "moved"], "receive": ["visible"]}
    assert [event.kind for event in events] == expected[mode]
    assert world.broker.settle(world.clock.now_ms) == []
