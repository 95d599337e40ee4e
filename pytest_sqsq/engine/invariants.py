"""What is true of every queue at every moment its lock is free."""

from __future__ import annotations

from pytest_sqsq.engine.message import Message
from pytest_sqsq.engine.queue import Queue


def check_queue(queue: Queue) -> None:
    """Verify every invariant; ``AssertionError`` names the broken one.  O(n)."""
    assert queue.settled_ms >= queue.checked_ms, (
        f"{queue.key}: settled_ms fell from {queue.checked_ms} to {queue.settled_ms}"
    )
    queue.checked_ms = queue.settled_ms
    queue.log.check()
    live = list(queue.log.live_messages())
    queue.order.check(live)
    for state, count in (
        ("visible", queue.visible_count),
        ("in_flight", queue.in_flight_count),
        ("delayed", queue.delayed_count),
    ):
        actual = sum(message.state == state for message in live)
        assert actual == count, f"{queue.key}: {state} count is {count}, {actual} are"
    for message in live:
        in_flight = message.state == "in_flight"
        assert in_flight == (message.receipt_handle is not None), (
            f"{queue.key}: {message!r} has receipt handle {message.receipt_handle}"
        )
        assert not message.moving or message in queue.used_up, (
            f"{queue.key}: {message!r} is marked as moving and nobody will move it"
        )
    _check_heaps(queue, live)
    assert queue.deleted or queue.next_due_ms <= queue.find_next_due_ms(), (
        f"{queue.key}: next_due_ms is {queue.next_due_ms}, {queue.find_next_due_ms()} is due"
    )


def _check_heaps(queue: Queue, live: list[Message]) -> None:
    timeouts = {id(message) for message in queue.timeouts.messages()}
    delays = {id(message) for message in queue.delays.messages()}
    for message in live:
        waiting = {"in_flight": timeouts, "delayed": delays}.get(message.state)
        assert waiting is None or id(message) in waiting, (
            f"{queue.key}: {message!r} waits for its time and is in no heap"
        )
    oldest_ms = min((message.retention_start_ms for message in live), default=None)
    next_one = queue.next_expiring()
    assert oldest_ms == (None if next_one is None else next_one.retention_start_ms), (
        f"{queue.key}: retention waits for {next_one!r}, there is an older message"
    )
