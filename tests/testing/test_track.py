from __future__ import annotations

from typing import Any

from pytest_sqsq.testing import Session


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
