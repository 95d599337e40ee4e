"""``run_for`` and ``run_until``: time jumps while the test waits for it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_sqsq.autojump import LOOK_SECONDS, Autojump, Jumper
from pytest_sqsq.clock import monotonic
from pytest_sqsq.errors import WaitTimeout
from pytest_sqsq.testing.awaiting import require_no_loop
from pytest_sqsq.testing.failures import clock_line, plural
from pytest_sqsq.timeline import duration_ms, within_calendar

if TYPE_CHECKING:
    from pytest_sqsq.models import Event
    from pytest_sqsq.server import SqsServer
    from pytest_sqsq.stack import Stack

LIMIT = dt.timedelta(days=14)

# Real seconds without rest after which a predicate is asked all the same.
ASK_SECONDS = 0.5

# Real seconds that time may be kept from jumping, by requests or holds.
STALL_SECONDS = 60.0

# Real seconds that a consumer at work has, where nothing is left but what it may do.
HOPE_SECONDS = 5.0


def run_for(
    server: SqsServer,
    stack: Stack,
    autojump: Autojump,
    duration: float | dt.timedelta,
    *,
    skip_empty_polls: bool | None,
) -> tuple[Event, ...]:
    span = duration_ms(duration)
    with _deciding(stack, autojump, "run_for") as events:
        end_ms = within_calendar(stack.clock.now_ms + span)
        jumper = Jumper(stack, server.traffic, end_ms=end_ms, skip_empty_polls=skip_empty_polls)
        run = _Run(server, jumper, "run_for")
        with jumper.watching():
            while (seen := run.rest()) is None or stack.clock.now_ms < end_ms:
                if seen is not None:
                    run.jump(seen)
    return tuple(events)


def run_until(
    server: SqsServer,
    stack: Stack,
    autojump: Autojump,
    predicate: Callable[[], object],
    *,
    limit: float | dt.timedelta,
    skip_empty_polls: bool | None,
) -> tuple[Event, ...]:
    name = getattr(predicate, "__name__", None) or repr(predicate)
    span = duration_ms(limit)
    with _deciding(stack, autojump, "run_until") as events:
        limit_ms = within_calendar(stack.clock.now_ms + span)
        jumper = Jumper(stack, server.traffic, skip_empty_polls=skip_empty_polls)
        run = _Run(server, jumper, f"run_until, waiting for {name} to hold")
        with jumper.watching():
            done = predicate()
            while not done:
                seen = run.rest()
                done = predicate()
                if not done:
                    run.go_on(seen, limit_ms)
    return tuple(events)


@contextmanager
def _deciding(stack: Stack, autojump: Autojump, what: str) -> Iterator[list[Event]]:
    """A context in which this thread decides about time; gives all that happens meanwhile."""
    require_no_loop(what)
    clock, broker = stack.clock, stack.broker
    clock.require_movable(what)
    clock.require_no_callback()
    # Appending to a list is atomic: listeners are called from many threads.
    events: list[Event] = []
    with autojump.handed_over(), clock.standing():
        broker.add_listener(events.append)
        clock.add_listener(events.append)
        try:
            yield events
        finally:
            clock.remove_listener(events.append)
            broker.remove_listener(events.append)


class _Run:
    """Real time as one call of ``run_for`` or ``run_until`` spends it.  ``what`` is for texts."""

    def __init__(self, server: SqsServer, jumper: Jumper, what: str) -> None:
        self._server = server
        self._gate = server.traffic
        self._jumper = jumper
        self._what = what
        self._awaits_first_poll = True
        self._last_rest = self._stuck_since = monotonic()
        self._stuck_at = -1

    def rest(self) -> int | None:
        """Wait until the consumers have come to rest; the gate's count of changes then.

        ``None`` if they have not after a while.  Raises what went wrong in the server,
        ``WaitTimeout`` if they keep time from jumping for too long, ``RuntimeError`` if the
        server was emptied.
        """
        until = monotonic() + ASK_SECONDS
        while True:
            self._server.raise_failures()
            if self._server.broker is not self._jumper.broker:
                raise RuntimeError(f"{self._what}: the server was reset meanwhile")
            seen = self._gate.changes
            if self._jumper.is_obstructed:
                self._gate.wait_for_rest(seen, LOOK_SECONDS)
            elif self._jumper.rests(seen, hopeful=self._is_hopeful):
                self._awaits_first_poll = False
                self._last_rest = monotonic()
                return seen
            if monotonic() >= until:
                self._check_stall()
                return None

    @property
    def _is_hopeful(self) -> bool:
        # A consumer that was only just started has not polled yet; it may be another process.
        return self._awaits_first_poll and self._gate.parked_high_water == 0

    def _check_stall(self) -> None:
        seconds = STALL_SECONDS * self._server.timeout_factor
        if monotonic() - self._last_rest < seconds:
            return
        reasons = [f"open: {request}" for request in self._gate.open_requests()]
        if holds := self._server.clock.holds:
            reasons.append(f"{plural(holds, 'hold')} in force")
        raise WaitTimeout(self._text(f"time could not jump for {seconds:g} real seconds", *reasons))

    def jump(self, seen: int, limit_ms: int | None = None) -> None:
        self._jumper.jump(seen, limit_ms=limit_ms)

    def go_on(self, seen: int | None, limit_ms: int) -> None:
        """Jump once, not beyond ``limit_ms``; raises ``WaitTimeout`` if that leads nowhere."""
        if self._server.clock.now_ms >= limit_ms:
            raise WaitTimeout(self._text("the limit is reached"))
        if seen is None:
            return
        if self._gate.changes != seen:
            # The predicate may have made requests, after which there has to be rest again.
            seen = self._gate.changes
            if self._jumper.is_obstructed or not self._jumper.rests(seen, hopeful=self._is_hopeful):
                return
        if self._jumper.target_ms is not None:
            self.jump(seen, limit_ms)
        elif self._is_hopeless(seen):
            raise WaitTimeout(
                self._text(
                    "this cannot end",
                    "nothing is left that can change: no message comes back or appears by itself,"
                    f" no callback is planned, {plural(self._gate.parked_count, 'poll')} parked",
                )
            )

    def _is_hopeless(self, seen: int) -> bool:
        if self._gate.parked_count >= self._jumper.most_parked:
            return True
        # Whoever polled before and does not now may be at work.
        if self._jumper.stirs != self._stuck_at:
            self._stuck_at = self._jumper.stirs
            self._stuck_since = monotonic()
        patience = HOPE_SECONDS * self._server.timeout_factor
        left = self._stuck_since + patience - monotonic()
        if left <= 0:
            return True
        self._gate.wait_for_change(seen, min(left, ASK_SECONDS))
        return False

    def _text(self, verdict: str, *reasons: str) -> str:
        clock = self._server.clock
        lines = [f"{self._what}: {verdict}", clock_line(clock.now_ms, clock.started_ms), *reasons]
        return "\n  ".join(lines)
