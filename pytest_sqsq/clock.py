"""The clock of a server: what time it is, and how a test moves it.  Nobody else asks the time.

Instants are integer milliseconds since the epoch.  Real time comes from one pair of a wall and a
monotonic reading, taken when this module is loaded, so that a test that patches the process
clock (freezegun, time-machine) moves no server, except one whose clock is in ``system`` mode.
"""

from __future__ import annotations

import datetime as dt
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Literal, Self, get_args

from pytest_sqsq.timeline import (
    EPOCH,
    MILLISECOND,
    Callbacks,
    NothingToMove,
    ScheduledCall,
    TimeDriver,
    duration_ms,
    instant_ms,
)

if TYPE_CHECKING:
    from types import TracebackType

    from pytest_sqsq.errors import ClockModeError
    from pytest_sqsq.models import Event

ClockMode = Literal["live", "frozen", "autojump", "system"]

# Rounds of work at one instant before the clock calls it endless.  A round runs everything that
# was due when it began, so only work that keeps making new work gets this far.
CHAIN_LIMIT = 1_000


class _RealTime:
    """Real time, whatever is patched: functions are class attributes, which freezegun spares."""

    monotonic = staticmethod(time.monotonic)
    monotonic_ns = staticmethod(time.monotonic_ns)
    wall = staticmethod(time.time)

    freezegun = sys.modules.get("freezegun.api")
    if freezegun is not None and time.time is freezegun.fake_time:
        monotonic = staticmethod(freezegun.real_monotonic)
        monotonic_ns = staticmethod(freezegun.real_monotonic_ns)
        wall = staticmethod(freezegun.real_time)

    time_machine = sys.modules.get("time_machine")
    if time_machine is not None and time_machine.escape_hatch.is_travelling():
        wall = staticmethod(time_machine.escape_hatch.time.time)

    # What to add to a monotonic reading to get the real wall clock, in milliseconds.
    wall_offset_ms = round(wall() * 1000) - monotonic_ns() // 1_000_000


def monotonic() -> float:
    """Real seconds since some fixed moment; never goes back, and no patched clock moves it."""
    return _RealTime.monotonic()


def real_now_ms() -> int:
    """The real wall clock in milliseconds since the epoch, whatever the process clock says."""
    return _RealTime.monotonic_ns() // 1_000_000 + _RealTime.wall_offset_ms


# The plugin loads this module into every run to take its reading of real time, and must cost
# nothing there: what only a working clock needs is imported then.


def _told(instant: int) -> str:
    from pytest_sqsq.models import instant_text

    return instant_text(instant)


def _mode_error(text: str) -> ClockModeError:
    from pytest_sqsq.errors import ClockModeError

    return ClockModeError(text)


class _Restorer:
    """What ``freeze``, ``resume`` and ``hold`` return: leaving it as a context undoes them."""

    def __init__(self, undo: Callable[[], None]) -> None:
        self._undo: Callable[[], None] | None = undo

    def release(self) -> None:
        """Undo; does nothing the second time."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


class Clock:
    """A server's time.

    ``live`` runs with real time plus what was advanced; ``frozen`` stands still until it is
    moved; ``system`` follows the process clock and cannot be moved.  Moving visits every due
    instant in order, and returns when all of it has happened.  At one instant the queues settle
    first, then callbacks run, then polls end.  Safe to use from any thread; ``_state`` guards
    the mode, the pins, the callbacks and the latest reading of the process clock.

    ``start`` is the first instant, by default the real now; ``system`` takes none.
    """

    def __init__(self, mode: ClockMode = "live", *, start: dt.datetime | str | None = None) -> None:
        if mode not in get_args(ClockMode):
            raise ValueError(
                f"unknown clock mode {mode!r}; one of {', '.join(get_args(ClockMode))}"
            )
        if mode == "autojump":
            raise _mode_error("clock mode 'autojump' is not available yet; use 'frozen'")
        if mode == "system" and start is not None:
            raise ValueError("a clock in system mode follows the process clock and takes no start")
        self._first_mode: ClockMode = mode
        self._start_ms = None if start is None else instant_ms(start)
        self._state = threading.RLock()
        self._driver: TimeDriver = NothingToMove()
        self._mover: int | None = None
        self._callbacks = Callbacks()
        self._resets = 0
        # Called when time may pass differently or a callback was planned; must not block.
        self.on_changed: Callable[[], None] | None = None
        self.reset()

    def attach(self, driver: TimeDriver) -> None:
        """Let this clock move ``driver``; without one only the time moves."""
        self._driver = driver

    def reset(self) -> None:
        """Back to the first mode and instant, without callbacks and holds.  Fires nothing."""
        with self._state:
            self._mode: ClockMode = self._first_mode
            self._callbacks.clear()
            self._holds = 0
            self._resets += 1
            self._pins = 0
            self._pinned_from_ms = 0
            self._latest_process_ms = 0
            first_ms = real_now_ms() if self._start_ms is None else self._start_ms
            self._offset_ms = first_ms - _RealTime.monotonic_ns() // 1_000_000
            self._standing_ms = first_ms if self._mode == "frozen" else None
            self.started_ms = self.now_ms if self._mode == "system" else first_ms
        self._changed()

    # Reading

    @property
    def mode(self) -> ClockMode:
        return self._mode

    @property
    def now_ms(self) -> int:
        """Milliseconds since the epoch; never falls except by ``reset``.  O(1), no lock."""
        standing = self._standing_ms
        if standing is not None:
            return standing
        if self._mode == "system":
            return self._process_now_ms()
        return _RealTime.monotonic_ns() // 1_000_000 + self._offset_ms

    @property
    def now(self) -> dt.datetime:
        """The instant as an aware datetime in UTC, to the millisecond."""
        return EPOCH + dt.timedelta(milliseconds=self.now_ms)

    @property
    def next_event(self) -> Event | None:
        """What will happen next by itself, callbacks included; ``None`` if nothing will."""
        call = self._callbacks.next()
        event = self._driver.next_event()
        if call is not None and (event is None or call.at_ms < event.at_ms):
            return call.event(call.at_ms)
        return event

    @property
    def next_due_ms(self) -> int | None:
        """The earliest instant at which anything is due, callbacks and ends of polls included."""
        call = self._callbacks.next()
        due = self._driver.next_due_ms()
        if call is not None and (due is None or call.at_ms < due):
            return call.at_ms
        return due

    @property
    def holds(self) -> int:
        """How many ``hold()`` are in force."""
        return self._holds

    def real_seconds_until(self, instant: int) -> float | None:
        """Real seconds until ``instant`` (milliseconds), at least 0.

        ``None`` where time does not pass by itself, or by no rule that is known beforehand.
        """
        if self._standing_ms is not None or self._mode == "system":
            return None
        return max(0.0, (instant - self.now_ms) / 1000)

    def _process_now_ms(self) -> int:
        # The class is looked up at each call: freezegun replaces it in the module.
        reading = round((dt.datetime.now(dt.UTC) - EPOCH) / MILLISECOND)
        with self._state:
            self._latest_process_ms = max(self._latest_process_ms, reading)
            return self._latest_process_ms

    # Moving

    def advance(self, duration: float | dt.timedelta) -> tuple[Event, ...]:
        """Let ``duration`` (seconds or timedelta, exact to the millisecond) pass at once.

        Returns what happened, in order.  Raises what a callback raises, with the clock standing
        at that callback's instant and everything after it still due; ``ValueError`` for a
        negative duration; ``ClockModeError`` in system mode; ``RuntimeError`` from inside a
        callback, and if work at one instant keeps making new work for the same instant.
        """
        self._require_movable("advance")
        span = duration_ms(duration)
        with self._moving(self._driver.exclusive()):
            return self._travel(self.now_ms + span)

    def travel_to(self, instant: dt.datetime | str) -> tuple[Event, ...]:
        """Advance to ``instant``; ``ValueError`` if it lies in the past.  Else as ``advance``."""
        self._require_movable("travel_to")
        target = instant_ms(instant)
        with self._moving(self._driver.exclusive()):
            now = self.now_ms
            if target < now:
                raise ValueError(
                    f"time cannot go back: it is {_told(now)}, later than {_told(target)}"
                )
            return self._travel(target)

    def advance_to_next_event(self) -> Event | None:
        """Advance to the next instant at which something happens; returns the first of it.

        ``None``, without moving, if nothing will happen by itself.  Else as ``advance``.
        """
        self._require_movable("advance_to_next_event")
        with self._moving(self._driver.exclusive()):
            while (due := self.next_due_ms) is not None:
                if events := self._travel(max(due, self.now_ms)):
                    return events[0]
        return None

    def steps(self, duration: float | dt.timedelta) -> Iterator[tuple[Event, ...]]:
        """Advance by ``duration``, stopping at each instant at which something happens.

        Yields the events of each instant; the loop's body may make requests and move the clock.
        A loop left early leaves the clock where it stood.  Else as ``advance``.
        """
        self._require_movable("steps")
        return self._steps(duration_ms(duration))

    def _steps(self, span: int) -> Iterator[tuple[Event, ...]]:
        with self._pinned():
            target = self.now_ms + span
            while True:
                with self._moving(self._driver.exclusive()):
                    due = self.next_due_ms
                    if due is None or due > target:
                        self._travel(max(target, self.now_ms))
                        return
                    events = self._travel(max(due, self.now_ms))
                if events:
                    yield events

    def run_due(self, *, beside_requests: bool = False) -> tuple[Event, ...]:
        """Let everything happen that is due now, callbacks included; the clock does not move.

        ``beside_requests`` leaves the gate open.  Raises as ``advance`` does.
        """
        driver = self._driver
        section = driver.serialised() if beside_requests else driver.exclusive()
        released = nullcontext if beside_requests else driver.released
        with self._moving(section):
            events: list[Event] = []
            now = self.now_ms
            while (due := self.next_due_ms) is not None and due <= now:
                self._run_instant(due, events, released)
            return tuple(events)

    def _require_movable(self, what: str) -> None:
        if self._mode == "system":
            raise _mode_error(
                f"{what}: a clock in system mode follows the process clock, so move that one"
                " (freezegun, time-machine), or use clock='frozen'"
            )

    @contextmanager
    def _moving(self, section: AbstractContextManager[None]) -> Iterator[None]:
        if self._mover == threading.get_ident():
            raise RuntimeError(
                "a callback cannot move the clock that is calling it; plan a further callback"
                " with call_at or call_every instead"
            )
        with section:
            self._mover = threading.get_ident()
            try:
                yield
            finally:
                self._mover = None

    def _travel(self, target: int) -> tuple[Event, ...]:
        events: list[Event] = []
        with self._pinned():
            while (due := self.next_due_ms) is not None and due <= target:
                instant = max(due, self.now_ms)
                self._standing_ms = instant
                self._run_instant(instant, events, self._driver.released)
            self._standing_ms = target
        return tuple(events)

    def _run_instant(
        self,
        instant: int,
        events: list[Event],
        released: Callable[[], AbstractContextManager[None]],
    ) -> None:
        for _ in range(CHAIN_LIMIT):
            events += self._driver.settle(instant)
            if self._run_callbacks(instant, events, released):
                continue
            events += self._driver.end_polls(instant)
            due = self.next_due_ms
            if due is None or due > instant:
                return
        last = f"; the last was: {events[-1]}" if events else ""
        raise RuntimeError(
            f"work at {_told(instant)} made new work for the same instant"
            f" {CHAIN_LIMIT} times in a row{last}"
        )

    def _run_callbacks(
        self,
        instant: int,
        events: list[Event],
        released: Callable[[], AbstractContextManager[None]],
    ) -> bool:
        """Run the callbacks due now, apart from those planned meanwhile; tells whether any ran."""
        mark = self._callbacks.mark()
        ran = False
        while (call := self._callbacks.take_due(instant, mark)) is not None:
            ran = True
            events.append(call.event(instant))
            with released():
                call.function()
        return ran

    @contextmanager
    def _pinned(self) -> Iterator[None]:
        """Keep a live clock standing; afterwards it has gained exactly what it was moved."""
        with self._state:
            resets = self._resets
            if self._pins == 0 and self._mode == "live":
                self._pinned_from_ms = self._standing_ms = self.now_ms
            self._pins += 1
        try:
            yield
        finally:
            with self._state:
                # A reset has taken out all pins; this one must not count twice.
                self._pins -= resets == self._resets
                if self._pins == 0 and self._mode == "live" and self._standing_ms is not None:
                    self._offset_ms += self._standing_ms - self._pinned_from_ms
                    self._standing_ms = None
            self._changed()

    # Callbacks, modes, holds

    def call_at(self, instant: dt.datetime | str, function: Callable[[], object]) -> ScheduledCall:
        """Call ``function`` when the clock reaches ``instant``, which may be now.

        It runs while the clock stands there, and may make requests.  An instant that is not
        ahead is due in the next advance or tick.
        """
        return self._plan(instant_ms(instant), function, None)

    def call_every(
        self, interval: float | dt.timedelta, function: Callable[[], object]
    ) -> ScheduledCall:
        """Call ``function`` each ``interval`` (seconds or timedelta), the first time after one."""
        every = duration_ms(interval)
        if every == 0:
            raise ValueError("an interval is at least a millisecond")
        return self._plan(self.now_ms + every, function, every)

    def _plan(
        self, at_ms: int, function: Callable[[], object], every_ms: int | None
    ) -> ScheduledCall:
        call = self._callbacks.plan(at_ms, function, every_ms)
        self._changed()
        return call

    def freeze(self) -> _Restorer:
        """Stand still from now on; as a context, until its end."""
        return self._switch("freeze", "frozen")

    def resume(self) -> _Restorer:
        """Run with real time again, from where the clock stands; as a context, until its end."""
        return self._switch("resume", "live")

    def _switch(self, what: str, mode: ClockMode) -> _Restorer:
        self._require_movable(what)
        previous = self._mode
        self._enter_mode(mode)
        return _Restorer(lambda: self._enter_mode(previous))

    def _enter_mode(self, mode: ClockMode) -> None:
        with self._state:
            now = self.now_ms
            self._mode = mode
            self._offset_ms = now - _RealTime.monotonic_ns() // 1_000_000
            self._pinned_from_ms = now
            self._standing_ms = None if mode == "live" and self._pins == 0 else now
        self._changed()

    def hold(self) -> _Restorer:
        """Let time make no jump by itself until this is released, or its context ends.

        Holds are counted.  Modes other than autojump never jump, and ignore them.
        """
        self._count_hold(1)
        return _Restorer(lambda: self._count_hold(-1))

    def _count_hold(self, change: int) -> None:
        with self._state:
            self._holds = max(0, self._holds + change)
        self._changed()

    def _changed(self) -> None:
        if self.on_changed is not None:
            self.on_changed()
