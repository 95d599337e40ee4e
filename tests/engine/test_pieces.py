"""Much that is due at once happens in pieces, and who comes in between finds all of it done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_sqsq.engine.settling import PIECE
from pytest_sqsq.store.records import RemoveMessage

COUNT = 2 * PIECE + 20


@pytest.fixture
def pauses() -> list[Callable[[], object]]:
    """What is done at each pause, apart from those that this makes itself."""
    return []


@pytest.fixture
def pausing(make_world, store, pauses) -> Any:
    """A world that does what ``pauses`` says whenever it gives way."""
    inside = False

    def give_way() -> None:
        nonlocal inside
        for queue in world.broker.queues:
            assert not queue.lock.locked(), f"{queue.key} is locked while others are to go on"
        if not inside:
            inside = True
            for pause in pauses:
                pause()
            inside = False

    world = make_world(store=store, give_way=give_way)
    return world


def fill(world: Any, queue: Any, count: int = COUNT) -> None:
    for _ in range(count):
        world.send(queue, "a")


def test_retention_removes_in_pieces_each_with_one_write(pausing, store, pauses) -> None:
    queue = pausing.queue(message_retention_period=60)
    fill(pausing, queue)
    left: list[tuple[int, int]] = []
    before = len(store.written)
    pauses.append(lambda: left.append((queue.visible_count, len(store.written) - before)))
    pausing.advance(60)
    assert left == [(COUNT - PIECE, PIECE), (COUNT - 2 * PIECE, 2 * PIECE)]
    assert pausing.counts(queue) == (0, 0, 0)
    removals = store.written[before:]
    assert len(removals) == COUNT
    assert all(isinstance(record, RemoveMessage) for record in removals)


def test_timeouts_end_in_pieces(pausing, pauses) -> None:
    queue = pausing.queue(visibility_timeout=30)
    fill(pausing, queue)
    while pausing.receive(queue, 10):
        pass
    visible: list[int] = []
    pauses.append(lambda: visible.append(queue.visible_count))
    pausing.advance(30)
    assert visible == [PIECE, 2 * PIECE]
    assert pausing.counts(queue) == (COUNT, 0, 0)


def test_delays_end_in_pieces(pausing, pauses) -> None:
    queue = pausing.queue(delay_seconds=30)
    fill(pausing, queue)
    visible: list[int] = []
    pauses.append(lambda: visible.append(queue.visible_count))
    pausing.advance(30)
    assert visible == [PIECE, 2 * PIECE]
    assert pausing.counts(queue) == (COUNT, 0, 0)


def test_dead_letters_move_in_pieces(pausing, pauses) -> None:
    dead = pausing.queue("dead")
    queue = pausing.queue(dead_letters=dead, visibility_timeout=30)
    fill(pausing, queue)
    while pausing.receive(queue, 10):
        pass
    moved: list[int] = []
    pauses.append(lambda: moved.append(dead.visible_count))
    pausing.advance(30)
    assert moved == [PIECE, 2 * PIECE]
    assert pausing.counts(queue) == (0, 0, 0)
    assert pausing.counts(dead) == (COUNT, 0, 0)


def test_a_move_task_without_a_rate_moves_in_pieces(pausing, pauses) -> None:
    dead, orders = pausing.queue("dead"), pausing.queue("orders")
    pausing.set_dead_letters(orders, dead)
    fill(pausing, dead)
    moved: list[int] = []
    pauses.append(lambda: moved.append(orders.visible_count))
    pausing.broker.start_move_task(dead, orders.arn, None)
    assert moved == [PIECE, 2 * PIECE]
    assert pausing.counts(orders) == (COUNT, 0, 0)


def test_a_pause_comes_only_where_something_is_left_to_do(pausing, pauses) -> None:
    expiring = pausing.queue("expiring", message_retention_period=60)
    delaying = pausing.queue("delaying", delay_seconds=60)
    hiding = pausing.queue("hiding", visibility_timeout=60)
    for queue in (expiring, delaying, hiding):
        fill(pausing, queue, PIECE - 1)
    while pausing.receive(hiding, 10):
        pass
    pauses.append(lambda: pytest.fail("there is nothing more to come"))
    pausing.advance(60)
    assert pausing.counts(expiring) == (0, 0, 0)
    assert pausing.counts(delaying) == pausing.counts(hiding) == (PIECE - 1, 0, 0)


def test_who_comes_in_a_pause_finds_nothing_half_done(pausing, pauses) -> None:
    queue = pausing.queue(message_retention_period=60)
    fill(pausing, queue)
    pausing.advance(30)
    pausing.send(queue, "young")
    found: list[list[str]] = []
    pauses.append(lambda: found.append(pausing.bodies(queue)))
    pausing.advance(30)
    assert found == [["young"]]
    assert len(pausing.events(queue, "expired")) == COUNT
    pausing.broker.check()


def test_other_queues_can_be_used_in_a_pause(pausing, pauses) -> None:
    queue, other = pausing.queue(message_retention_period=60), pausing.queue("other")
    fill(pausing, queue)
    pauses.append(lambda: pausing.send(other, "b"))
    pausing.advance(60)
    assert pausing.live(other) == ["b"] * (COUNT // PIECE)
    assert pausing.live(queue) == []


def test_a_piece_that_the_store_refuses_is_written_with_the_next(pausing, store) -> None:
    queue = pausing.queue(message_retention_period=60)
    fill(pausing, queue)
    before = len(store.written)
    store.fail_next()
    pausing.advance(60)
    assert pausing.counts(queue) == (0, 0, 0)
    assert len({record.message_id for record in store.written[before:]}) == COUNT


def test_a_queue_deleted_in_a_pause_is_gone_with_all_that_was_due(pausing, pauses) -> None:
    queue = pausing.queue(message_retention_period=60)
    fill(pausing, queue)
    pauses.append(lambda: pausing.broker.delete_queue(queue))
    pausing.advance(60)
    assert not pausing.broker.queues
    assert len(pausing.events(queue, "expired")) == COUNT
    pausing.broker.check()


def test_a_poll_that_ends_in_a_pause_still_gets_what_appears_in_time(pausing, pauses) -> None:
    queue = pausing.queue(delay_seconds=60)
    fill(pausing, queue)
    pausing.advance(40)
    poll = pausing.poll(queue, 20)
    pauses.append(lambda: pausing.broker.end_polls(pausing.clock.now_ms))
    pausing.advance(20)
    assert [delivery.body for delivery in poll.result()] == ["a"]


def test_a_poll_that_ends_in_a_pause_still_gets_the_dead_letter_that_comes_in_time(
    pausing, pauses
) -> None:
    dead = pausing.queue("dead")
    queue = pausing.queue(dead_letters=dead, visibility_timeout=60)
    fill(pausing, queue)
    while pausing.receive(queue, 10):
        pass
    pausing.advance(40)
    polls = [pausing.poll(dead, 20, 10) for _ in range(COUNT // 10)]
    pauses.append(lambda: pausing.broker.end_polls(pausing.clock.now_ms))
    pausing.advance(20)
    assert sum(len(poll.result()) for poll in polls) == COUNT


def test_a_pause_lets_nothing_later_happen_before_in_a_queue_that_dead_letters_connect(
    pausing, pauses
) -> None:
    dead = pausing.queue("dead")
    queue = pausing.queue(dead_letters=dead, visibility_timeout=60)
    fill(pausing, queue)
    while pausing.receive(queue, 10):
        pass
    pausing.send(dead, "later", delay=61)
    later_ms = pausing.clock.now_ms + 61_000

    def settle_later() -> None:
        pausing.clock.now_ms = later_ms
        pausing.broker.settle(later_ms)

    pauses.append(settle_later)
    pausing.advance(60)
    arrivals = pausing.events(dead, "moved", "visible")
    assert arrivals == [*[(60.0, "moved", "a")] * COUNT, (61.0, "visible", "later")]


def test_a_move_task_in_a_pause_finds_its_queues_as_of_its_instant(pausing, pauses) -> None:
    dead, orders = pausing.queue("dead"), pausing.queue("orders", delay_seconds=60)
    pausing.set_dead_letters(orders, dead)
    fill(pausing, orders)
    pausing.advance(59.5)
    for _ in range(3):
        pausing.send(dead, "moved back")
    pausing.broker.start_move_task(dead, orders.arn, 1)
    later_ms = pausing.clock.now_ms + 1000

    def settle_later() -> None:
        pausing.clock.now_ms = later_ms
        pausing.broker.settle(later_ms)

    pauses.append(settle_later)
    pausing.advance(0.5)
    events = pausing.events(orders, "visible", "moved")
    assert [at for at, kind, _ in events if kind == "visible"] == [60.0] * COUNT
    assert events[-1] == (60.5, "moved", "moved back")
