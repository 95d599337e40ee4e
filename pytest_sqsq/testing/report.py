"""What a test report shows of a server: its queues, their first messages, the last requests.

Bounded whatever the server holds, and cheap: a failing test must not wait for its report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from pytest_sqsq.engine import Queue
from pytest_sqsq.engine.looking import statistics_of
from pytest_sqsq.errors import QueueDoesNotExist
from pytest_sqsq.models import QueueKey, QueueStatistics
from pytest_sqsq.testing.failures import clock_line, message_line, plural
from pytest_sqsq.testing.looks import Look
from pytest_sqsq.testing.views import live_view
from pytest_sqsq.testing.world import World

SHOWN_QUEUES = 20
SHOWN_MESSAGES = 5
SHOWN_REQUESTS = 20

_COLUMNS = (
    ("visible", "visible"),
    ("in flight", "in_flight"),
    ("delayed", "delayed"),
    ("parked polls", "parked_polls"),
    ("sent", "sent"),
    ("received", "received"),
    ("deleted", "deleted"),
    ("expired", "expired"),
    ("dead-lettered", "dead_lettered"),
)


def world_report(
    world: World, requests: Sequence[object], seed: int | None, notes: Sequence[str] = ()
) -> str:
    """The section of a report.  ``requests`` are shown as their texts, the latest ones.

    Each queue is locked by itself, only for as long as a look at its first messages takes.
    """
    clock = world.clock
    lines = [f"{clock_line(clock.now_ms, clock.started_ms)} ({clock.mode})"]
    if clock.busy_jumps:
        lines.append(busy_jumps_text(clock.busy_jumps))
    if seed is not None:
        lines.append(f"seed: {seed}")
    lines += notes
    lines += _queue_lines(world)
    lines += _request_lines(requests)
    return "\n".join(lines)


def busy_jumps_text(count: int) -> str:
    """``2 jumps while a consumer was busy``."""
    return f"{plural(count, 'jump')} while a consumer was busy"


def _queue_lines(world: World) -> Iterator[str]:
    queues = world.broker.queues
    if not queues:
        yield "no queues"
        return
    looks = [seen for queue in queues[:SHOWN_QUEUES] if (seen := _look_at(world, queue))]
    name_of = queue_names([look.key for look, _ in looks])
    width = max((len(name_of[look.key]) for look, _ in looks), default=0)
    yield "queue".ljust(width) + "".join(f"  {heading}" for heading, _ in _COLUMNS)
    for look, statistics in looks:
        cells = (f"  {getattr(statistics, name):>{len(heading)}}" for heading, name in _COLUMNS)
        yield name_of[look.key].ljust(width) + "".join(cells)
        for view in look.views:
            yield f"  {message_line(view, look)}"
        if look.live_count > len(look.views):
            yield f"  … and {look.live_count - len(look.views)} more"
    if len(queues) > SHOWN_QUEUES:
        yield f"… and {plural(len(queues) - SHOWN_QUEUES, 'more queue')}"


def _look_at(world: World, queue: Queue) -> tuple[Look, QueueStatistics] | None:
    try:
        with world.broker.entry(queue) as now_ms:
            statistics = statistics_of(queue)
            views = tuple(
                live_view(queue, message)
                for message in islice(queue.log.live_messages(), SHOWN_MESSAGES)
            )
    except QueueDoesNotExist:
        return None
    look = Look(
        key=queue.key,
        now_ms=now_ms,
        started_ms=world.clock.started_ms,
        visible=statistics.visible,
        in_flight=statistics.in_flight,
        delayed=statistics.delayed,
        retention_seconds=queue.settings.message_retention_period,
        views=views,
        events=(),
        contents={},
        forgotten=0,
    )
    return look, statistics


def queue_names(keys: Sequence[QueueKey]) -> dict[QueueKey, str]:
    """Names, with account and region where there is more than one of either."""
    if len({key[:2] for key in keys}) <= 1:
        return {key: key.name for key in keys}
    return {key: f"{key.name} ({key.account_id} {key.region})" for key in keys}


def _request_lines(requests: Sequence[object]) -> Iterator[str]:
    if not requests:
        yield "no requests"
        return
    shown = requests[-SHOWN_REQUESTS:]
    left_out = len(requests) - len(shown)
    yield f"the last {len(shown)} of {len(requests)} requests:" if left_out else "requests:"
    for request in shown:
        yield f"  {request}"
