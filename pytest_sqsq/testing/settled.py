"""Whether a test has left messages in flight."""

from __future__ import annotations

from pytest_sqsq.errors import QueueDoesNotExist
from pytest_sqsq.models import QueueKey
from pytest_sqsq.testing.failures import (
    LISTED_MESSAGES,
    clock_line,
    message_lines,
    plural,
    there_are,
)
from pytest_sqsq.testing.looks import Look, take_look
from pytest_sqsq.testing.matching import Criteria
from pytest_sqsq.testing.report import queue_names
from pytest_sqsq.testing.world import World

LISTED_QUEUES = 10


def assert_all_settled(world: World) -> None:
    """Assert that no message is in flight on any queue.

    Raises ``AssertionError`` with the messages that are.  O(messages) for queues that have some
    in flight, else O(queues).
    """
    __tracebackhide__ = True
    clock = world.clock
    looks = [look for queue in world.broker.queues if (look := _unsettled(world, queue.key))]
    count = sum(look.in_flight for look in looks)
    if not count:
        return
    names = queue_names([look.key for look in looks])
    lines = [
        f"expected no message in flight; {there_are(count)}",
        f"  {clock_line(clock.now_ms, clock.started_ms)}",
    ]
    for look in looks[:LISTED_QUEUES]:
        lines.append(f"  on {names[look.key]}:")
        views = [view for view in look.views if view.state == "in_flight"][:LISTED_MESSAGES]
        lines += (f"    {line}" for line in message_lines(views, look, look.in_flight))
    if len(looks) > LISTED_QUEUES:
        lines.append(f"  … and on {plural(len(looks) - LISTED_QUEUES, 'more queue')}")
    raise AssertionError("\n".join(lines))


def _unsettled(world: World, key: QueueKey) -> Look | None:
    try:
        queue = world.broker.get_queue(key)
        with world.broker.entry(queue):
            in_flight = queue.in_flight_count
        return take_look(world, key, Criteria(state="in_flight")) if in_flight else None
    except QueueDoesNotExist:
        return None
