"""Waiting for other threads, tasks and processes, in real seconds.

Each wait is written once, as the steps between which time passes; what drives the steps blocks
meanwhile, or lets an event loop go on.  A wait wakes on changes: on each event of the engine and
whenever a request begins, ends, parks or wakes.  It fails at once where nothing can change any
more: with a frozen clock, nothing due, no request open, no client connected or parked, and no
other thread or task in this process that might be a consumer about to connect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from inspect import isawaitable, iscoroutine
from typing import Any, Concatenate, NamedTuple, NoReturn, ParamSpec, TypeVar, cast

from pytest_sqsq.clock import monotonic
from pytest_sqsq.engine.looking import statistics_of
from pytest_sqsq.errors import QueueDoesNotExist, WaitTimeout
from pytest_sqsq.models import Event, MessageState, MessageView, QueueKey, shortened
from pytest_sqsq.testing.awaiting import are_other_tasks_running, require_no_loop
from pytest_sqsq.testing.failures import (
    clock_line,
    live_listing,
    message_lines,
    plural,
    seconds_text,
    there_are,
    told,
)
from pytest_sqsq.testing.looks import Sample, take_look
from pytest_sqsq.testing.matching import BodyMatcher, Criteria, checked_count
from pytest_sqsq.testing.outlook import advice_for
from pytest_sqsq.testing.threads import count_others
from pytest_sqsq.testing.world import World
from pytest_sqsq.timeline import duration_ms

T = TypeVar("T")
P = ParamSpec("P")

DEFAULT_TIMEOUT = 5.0

# What changed while a predicate was asked may have been its own requests, so it is no reason to
# ask again at once, and it may have been something else, so it is one to ask again soon.
ASK_AGAIN_SECONDS = 0.02


class Pause(NamedTuple):
    """Until something has changed since ``since``, or for so many real seconds."""

    since: int
    seconds: float


Steps = Generator[Pause | Awaitable[object], object, T]
"""A wait: gives what has to be waited for, is sent what an awaitable gave, returns its result."""


def until_true(
    world: World, predicate: Callable[[], object], timeout: float = DEFAULT_TIMEOUT
) -> Steps[bool]:
    """Wait until ``predicate()`` is true.

    It is asked at the start, after each change in the server, and when the time is up; it may
    make requests.  Raises :class:`WaitTimeout`, and what the predicate raises.
    """
    name = getattr(predicate, "__name__", None) or repr(predicate)

    def ask() -> bool | Awaitable[object] | None:
        answer = predicate()
        return answer if isawaitable(answer) else bool(answer) or None

    return _wait(world, ask, timeout, tell=_teller(world, lambda: f"{name} to hold"))


def until_idle(world: World, timeout: float = DEFAULT_TIMEOUT) -> Steps[bool]:
    """Wait until the consumers have nothing left to do.

    That is so when no request is open, no message is in flight, and none can be delivered on a
    queue that somebody receives from: one with a parked poll, or that was received from before.
    """
    return _wait(
        world,
        lambda: True if _find_work(world) is None else None,
        timeout,
        tell=_teller(
            world, lambda: f"the consumers to be idle; {_find_work(world) or 'they just are'}"
        ),
    )


def until_parked(
    world: World, n: int, queue: QueueKey | None = None, timeout: float = DEFAULT_TIMEOUT
) -> Steps[bool]:
    """Wait until at least ``n`` polls are parked, on one queue or on all together.

    Clients that have yet to connect are waited for, whatever the clock does.
    """
    checked_count(n, "n")
    where = "" if queue is None else f" on {queue.name!r}"
    return _wait(
        world,
        lambda: True if _count_pollers(world, queue) >= n else None,
        timeout,
        tell=_teller(
            world,
            lambda: (
                f"{plural(n, 'poll')} to park{where};"
                f" {plural(_count_pollers(world, queue), 'poll')} parked"
            ),
        ),
        needs_clients=False,
    )


def until_there(
    world: World,
    key: QueueKey,
    *,
    body: BodyMatcher | None = None,
    json: Any = None,
    exact: bool = False,
    count: int = 1,
    state: MessageState | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Steps[tuple[MessageView, ...]]:
    """Wait until at least ``count`` matching messages are in a queue; 0 waits for none at all.

    Returns the messages, in order of arrival.
    """
    checked_count(count, "count")
    criteria = Criteria(body=body, json=json, exact=exact, state=state)

    def attempt() -> tuple[MessageView, ...] | None:
        look = take_look(world, key, criteria)
        found = tuple(view for view in look.views if criteria.matches(view))
        enough = len(found) >= count if count else not found
        return found if enough else None

    def tell(verdict: str) -> str:
        look = take_look(world, key, criteria)
        found = [view for view in look.views if criteria.matches(view)]
        return told(
            f"{criteria.phrase(count)} on {key.name!r}; {there_are(len(found))}{verdict}",
            look,
            listed=("found", message_lines(found, look, len(found))) if found else None,
            criteria=criteria if len(found) < count else None,
            besides=found,
            hint=_clock_hint(world),
        )

    return _wait(world, attempt, timeout, tell=tell)


def until_empty(world: World, key: QueueKey, timeout: float = DEFAULT_TIMEOUT) -> Steps[bool]:
    """Wait until a queue holds no message in any state."""

    def attempt() -> bool | None:
        return True if take_look(world, key, Sample()).live_count == 0 else None

    def tell(verdict: str) -> str:
        look = take_look(world, key, Sample())
        return told(
            f"{key.name!r} to be empty{verdict}",
            look,
            listed=live_listing(look),
            hint=_clock_hint(world),
        )

    return _wait(world, attempt, timeout, tell=tell)


def _wait(
    world: World,
    attempt: Callable[[], T | Awaitable[object] | None],
    timeout: float,
    *,
    tell: Callable[[str], str],
    needs_clients: bool = True,
) -> Steps[T]:
    """``tell`` describes what was waited for, what was found at a verdict, and what is next."""
    __tracebackhide__ = True
    timeout = duration_ms(timeout) / 1000 * world.timeout_factor
    end = monotonic() + timeout
    traffic = world.traffic

    def stir(_: Event) -> None:
        traffic.note_change()

    world.broker.add_listener(stir)
    try:
        while True:
            seen = traffic.changes
            world.raise_failures()
            result = attempt()
            if isawaitable(result):
                result = cast("T | None", bool((yield result)) or None)
            if result is not None:
                return result
            stuck = needs_clients and _is_stuck(world)
            latest = traffic.changes
            if stuck and latest == seen:
                raise WaitTimeout(f"waiting for {tell(': this cannot end')}")
            left = end - monotonic()
            if left <= 0:
                waited = seconds_text(round(timeout * 1000))
                raise WaitTimeout(f"waited {waited} s for {tell('')}")
            if latest != seen:
                left = min(left, ASK_AGAIN_SECONDS)
            yield Pause(latest, _until_due(world, left))
    finally:
        world.broker.remove_listener(stir)


def _blocking(
    twin: str, wait: Callable[Concatenate[World, P], Steps[T]]
) -> Callable[Concatenate[World, P], T]:
    """The wait as a function that blocks; ``twin`` names the one for event loops."""

    def block(world: World, /, *arguments: P.args, **named: P.kwargs) -> T:
        __tracebackhide__ = True
        require_no_loop(twin)
        with closing(wait(world, *arguments, **named)) as steps:
            try:
                while True:
                    step = next(steps)
                    if not isinstance(step, Pause):
                        _refuse(step, twin)
                    world.traffic.wait_for_change(*step)
            except StopIteration as end:
                return cast("T", end.value)

    block.__name__, block.__doc__ = twin, wait.__doc__
    return block


def _refuse(awaitable: Awaitable[object], twin: str) -> NoReturn:
    if iscoroutine(awaitable):
        awaitable.close()
    raise TypeError(
        f"the predicate returned an awaitable, which {twin} does not await; await the server's"
        f" aio.{twin} instead"
    )


wait_until = _blocking("wait_until", until_true)
wait_idle = _blocking("wait_idle", until_idle)
wait_for_pollers = _blocking("wait_for_pollers", until_parked)
wait_for = _blocking("wait_for", until_there)
wait_until_empty = _blocking("wait_until_empty", until_empty)


def _is_stuck(world: World) -> bool:
    """Whether nothing can change: judged by the broker and the clients, not by a timer."""
    clock = world.clock
    if clock.mode != "frozen":
        return False
    due_ms = clock.next_due_ms
    return (
        (due_ms is None or due_ms > clock.now_ms)
        and world.traffic.open_count == 0
        and world.broker.parked_polls == 0
        and world.connected_clients == 0
        and not _is_other_code_running(world)
    )


def _is_other_code_running(world: World) -> bool:
    return are_other_tasks_running() or count_others(world.bystanders) > 0


def _until_due(world: World, left: float) -> float:
    # Where time runs by itself, a message becoming visible is a change like any other, also in
    # a world that has no thread to make it happen.
    due_ms = world.clock.next_due_ms
    seconds = None if due_ms is None else world.clock.real_seconds_until(due_ms)
    return left if seconds is None else min(left, max(seconds, 0.001))


def _teller(world: World, describe: Callable[[], str]) -> Callable[[str], str]:
    """For what is not about one queue: a description, the clock, and what is next."""

    def tell(verdict: str) -> str:
        clock = world.clock
        return "\n  ".join(
            [
                f"{describe()}{verdict}",
                clock_line(clock.now_ms, clock.started_ms),
                f"hint: {_clock_hint(world)}",
            ]
        )

    return tell


def _clock_hint(world: World) -> str:
    """``the clock is frozen; next: 'a' visible on 'orders' in 30 s; advance(30)``."""
    clock = world.clock
    frozen = "the clock is frozen" if clock.mode == "frozen" else None
    event = clock.next_event
    if event is None:
        nothing = "nothing will happen by itself"
        return nothing if frozen is None else f"{frozen}, and {nothing}"
    left_ms = max(0, event.at_ms - clock.now_ms)
    parts = [frozen, f"next: {_upcoming_text(event)} in {seconds_text(left_ms)} s"]
    if event.kind != "expired":
        parts.append(advice_for(left_ms, follows_process_clock=clock.mode == "system"))
    return "; ".join(part for part in parts if part is not None)


_UPCOMING = {
    "returned": "visible",
    "dead_lettered": "dead-lettered",
    "expired": "expires",
    "moved": "moved",
    "poll_ended": "a poll ends",
}


def _upcoming_text(event: Event) -> str:
    what = _UPCOMING.get(event.kind, event.kind)
    subject = "" if event.body is None else f"{shortened(event.body)!r} "
    where = f" on {event.queue!r}" if event.queue else ""
    return f"{subject}{what}{where}"


def _find_work(world: World) -> str | None:
    """What keeps the consumers from being idle, if anything does."""
    if world.traffic.open_count:
        return f"{plural(world.traffic.open_count, 'request')} open"
    for queue in world.broker.queues:
        try:
            with world.broker.entry(queue):
                statistics = statistics_of(queue)
                consumed = bool(statistics.received or statistics.parked_polls)
                ready = queue.order.has_ready
        except QueueDoesNotExist:
            continue
        if statistics.in_flight:
            return f"{statistics.in_flight} in flight on {queue.key.name!r}"
        if consumed and ready:
            return f"{plural(statistics.visible, 'message')} to receive on {queue.key.name!r}"
    return None


def _count_pollers(world: World, key: QueueKey | None) -> int:
    world.broker.end_dead_polls()
    if key is None:
        return world.broker.parked_polls
    queue = world.broker.get_queue(key)
    with world.broker.entry(queue):
        return statistics_of(queue).parked_polls
