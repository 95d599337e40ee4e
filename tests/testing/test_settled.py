from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pytest_sqsq.testing import settled
from pytest_sqsq.testing.settled import assert_all_settled

if TYPE_CHECKING:
    import pytest


def test_what_is_visible_delayed_or_gone_is_settled(world: Any) -> None:
    assert_all_settled(world)
    queue = world.queue("orders")
    queue.send("gone")
    (received,) = queue.receive()
    queue.delete(received)
    queue.send("visible")
    queue.send("delayed", DelaySeconds=60)
    assert_all_settled(world)


def test_what_is_in_flight_on_any_queue_is_listed(
    world: Any, failure_of: Callable[..., str]
) -> None:
    orders, letters = world.queue("orders"), world.queue("letters.fifo")
    for body in "ab":
        orders.send(body)
        letters.send(body, MessageGroupId="g")
    orders.receive()
    letters.receive(max_messages=10, visibility_timeout=45)

    assert failure_of(assert_all_settled, world) == (
        """\
expected no message in flight; there are 3
  clock: 2030-01-01T00:00:00.000Z, 0 s after the test's start
  on letters.fifo:
    'a' in flight until +45 s, group 'g', received once
    'b' in flight until +45 s, group 'g', received once
  on orders:
    'a' in flight until +30 s, received once"""
    )
    world.clock.advance(45)
    assert_all_settled(world)


def test_queues_of_several_regions_are_told_apart(
    world: Any, failure_of: Callable[..., str]
) -> None:
    for region in ("us-east-1", "eu-west-1"):
        queue = world.queue("orders", region=region)
        queue.send(region)
        queue.receive()
    text = failure_of(assert_all_settled, world)
    assert "on orders (000000000000 eu-west-1):" in text
    assert "on orders (000000000000 us-east-1):" in text


def test_the_list_is_bounded(
    world: Any, failure_of: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settled, "LISTED_QUEUES", 1)
    for name in ("one", "two", "three"):
        queue = world.queue(name)
        for _ in range(15):
            queue.send("a")
            queue.receive()
    lines = failure_of(assert_all_settled, world).splitlines()
    assert lines[0] == "expected no message in flight; there are 45"
    assert lines[-2:] == ["    … and 5 more", "  … and on 2 more queues"]
    assert len(lines) == 2 + 1 + 10 + 2
