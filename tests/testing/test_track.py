from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_sqsq.errors import JournalForgotten
from pytest_sqsq.testing import Session
from pytest_sqsq.testing.track import all_events

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_session_holds_what_happens_during_it_on_all_queues(world: Any) -> None:
    target = world.queue("target")
    queue = world.queue("orders", dead_letter_queue=target)
    queue.send("before")
    queue.delete(queue.receive()[0])
    with Session(world) as session:
        queue.send("a")
        queue.send("b")
        queue.delete(queue.receive()[0])
        queue.receive()
        world.clock.advance(30)
        target.purge()
    queue.send("after")
    assert [event.body for event in session.sent] == ["a", "b"]
    assert [event.body for event in session.received] == ["a", "b"]
    assert [event.body for event in session.deleted] == ["a"]
    assert [(event.queue, event.body) for event in session.dead_lettered] == [("orders", "b")]
    assert [(event.queue, event.body) for event in session.moved] == [("target", "b")]
    assert [event.queue for event in session.purged] == ["target"]
    assert len(session.events) == 8
    assert session.events[-1].kind == "purged"


def test_a_session_tells_changes_of_visibility_apart(world: Any) -> None:
    queue = world.queue("orders", MessageRetentionPeriod=60)
    queue.send("a")
    with Session(world) as session:
        (view,) = queue.receive()
        for seconds in (40, 0):
            world.perform(
                "ChangeMessageVisibility",
                QueueUrl=queue.url,
                ReceiptHandle=view.receipt_handle,
                VisibilityTimeout=seconds,
            )
        world.clock.advance(60)
    assert [event.detail["visible_at_ms"] for event in session.visibility_changed] == [
        world.clock.started_ms + 40_000
    ]
    assert len(session.returned) == len(session.visible) == len(session.expired) == 1
    assert session.deduplicated == session.sent == ()


def test_a_session_knows_dropped_duplicates(world: Any) -> None:
    queue = world.queue("orders.fifo")
    with Session(world) as session:
        queue.send("a", MessageGroupId="g")
        queue.send("a", MessageGroupId="g")
    assert [event.body for event in session.deduplicated] == ["a"]
    assert len(session.sent) == 1


def test_a_session_is_entered_once(world: Any) -> None:
    session = Session(world)
    with pytest.raises(RuntimeError, match=r"^nothing is tracked yet: with server\.track\(\) as"):
        _ = session.sent
    with session:
        assert session.sent == ()
    with pytest.raises(RuntimeError, match=r"^this session is over: call track\(\) for another"):
        session.__enter__()


def test_all_events_of_all_queues_come_in_the_order_of_time(world: Any) -> None:
    second, first = world.queue("b"), world.queue("a")
    second.send("1")
    world.clock.advance(1)
    first.send("2")
    second.receive()
    world.clock.advance(1)
    second.send("3")
    assert [(event.queue, event.kind, event.body) for event in all_events(world)] == [
        ("b", "sent", "1"),
        ("a", "sent", "2"),
        ("b", "received", "1"),
        ("b", "sent", "3"),
    ]


def test_among_all_events_a_dead_letter_leaves_before_it_arrives(world: Any) -> None:
    queue = world.queue("orders", dead_letter_queue=world.queue("dead"))
    queue.send("a")
    queue.receive()
    world.clock.advance(30)
    assert [(event.queue, event.kind) for event in all_events(world)[-2:]] == [
        ("orders", "dead_lettered"),
        ("dead", "moved"),
    ]


def test_all_events_are_whole_or_not_given(make_world: Callable[..., Any]) -> None:
    world = make_world(journal_size=1)
    world.queue("orders").send("a")
    assert len(all_events(world)) == 1
    world.queue("orders").send("b")
    with pytest.raises(JournalForgotten, match=r"^events: the journal of 'orders' has dropped"):
        all_events(world)
