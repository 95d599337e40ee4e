"""How a clock is moved: through each due instant, in order, until all of it has happened."""

from __future__ import annotations

import datetime as dt
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from pytest_sqsq.timeline import (
    Callbacks,
    NothingToMove,
    ScheduledCall,
    TimeDriver,
    duration_ms,
    instant_ms,
    within_calendar,
)

if TYPE_CHECKING:
    from pytest_sqsq.models import Event

Listener = Callable[["Event"], None]

# Rounds of work at one instant before the clock calls it endless.  A round runs everything that
# was due when it began, so only work that keeps making new work gets this far.
CHAIN_LIMIT = 1_000


class Traveller(ABC):
    """Moves time, and with it whatever is attached; what time it is, a subclass says.

    Moving visits every due instant in order, and returns when all of it has happened.  At one
    instant the queues settle first, then callbacks run, then polls end.  While time is moved it
    stands, so ``_standing_ms`` is where a move has got to.
    """

    _standing_ms: int | None

    def __init__(self) -> None:
        self._driver: TimeDriver = NothingToMove()
        self._mover: int | None = None
        self._settling = False
        self._callbacks = Callbacks()
        self._listeners: tuple[Listener, ...] = ()

    def attach(self, driver: TimeDriver) -> None:
        """Let this clock move ``driver``; without one only the time moves."""
        self._driver = driver

    # What a subclass gives

    @property
    @abstractmethod
    def now_ms(self) -> int:
        """Milliseconds since the epoch."""

    @abstractmethod
    def standing(self) -> AbstractContextManager[None]:
        """A context in which time stands, unless it is moved."""

    @abstractmethod
    def require_movable(self, what: str) -> None:
        """Raise ``ClockModeError`` where time cannot be moved; ``what`` names the attempt."""

    @abstractmethod
    def _changed(self) -> None:
        """Time may pass differently from now on, or something was planned."""

    # What lies ahead

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
        call_ms = self.next_call_ms
        due = self._driver.next_due_ms()
        if call_ms is not None and (due is None or call_ms < due):
            return call_ms
        return due

    @property
    def next_call_ms(self) -> int | None:
        """The instant of the next callback."""
        call = self._callbacks.next()
        return None if call is None else call.at_ms

    # Moving

    def advance(self, duration: float | dt.timedelta) -> tuple[Event, ...]:
        """Let ``duration`` (seconds or timedelta, exact to the millisecond) pass at once.

        Returns what happened, in order.  Raises what a callback raises, with the clock standing
        at that callback's instant and everything after it still due; ``ValueError`` for a
        negative duration, or one of thousands of years; ``ClockModeError`` in system mode;
        ``RuntimeError`` from inside a callback, and if work at one instant keeps making new work
        for the same instant.
        """
        self.require_movable("advance")
        span = duration_ms(duration)
        with self._moving(self._driver.exclusive()):
            return self._travel(within_calendar(self.now_ms + span))

    def travel_to(self, instant: dt.datetime | str) -> tuple[Event, ...]:
        """Advance to ``instant``; ``ValueError`` if it lies in the past.  Else as ``advance``."""
        self.require_movable("travel_to")
        target = within_calendar(instant_ms(instant))
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
        self.require_movable("advance_to_next_event")
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
        self.require_movable("steps")
        return self._steps(duration_ms(duration))

    def _steps(self, span: int) -> Iterator[tuple[Event, ...]]:
        with self.standing():
            target = within_calendar(self.now_ms + span)
            while True:
                with self._moving(self._driver.exclusive()):
                    due = self.next_due_ms
                    if due is None or due > target:
                        self._travel(max(target, self.now_ms))
                        return
                    events = self._travel(max(due, self.now_ms))
                if events:
                    yield events

    def jump(self, choose: Callable[[], int | None]) -> bool:
        """Advance to the instant that ``choose`` gives, in milliseconds; tells whether.

        ``choose`` is asked when no request runs any more and none can begin; ``None`` stays.
        Raises as ``advance`` does.
        """
        self.require_movable("jump")
        with self._moving(self._driver.exclusive()):
            target = choose()
            if target is None:
                return False
            self._travel(max(target, self.now_ms))
            return True

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

    def let_others_happen(self) -> None:
        """In a pause of what the driver settles: what else is due now happens, in order.

        That is all up to the next callback, which has to wait until everything is settled.  Does
        nothing in other threads, outside of settling, and in a pause within a pause.
        """
        if self._mover != threading.get_ident() or not self._settling:
            return
        self._settling = False
        try:
            driver = self._driver
            while (due := driver.next_due_ms()) is not None and due <= self.now_ms:
                call_ms = self.next_call_ms
                if call_ms is not None and call_ms <= due:
                    return
                driver.settle(due)
                self._tell(*driver.end_polls(due))
        finally:
            self._settling = True

    @contextmanager
    def _moving(self, section: AbstractContextManager[None]) -> Iterator[None]:
        self.require_no_callback()
        with section:
            self._mover = threading.get_ident()
            try:
                yield
            finally:
                self._mover = None

    def require_no_callback(self) -> None:
        """Raise ``RuntimeError`` inside a callback, which cannot move the clock that calls it."""
        if self._mover == threading.get_ident():
            raise RuntimeError(
                "a callback cannot move the clock that is calling it; plan a further callback"
                " with call_at or call_every instead"
            )

    def _travel(self, target: int) -> tuple[Event, ...]:
        events: list[Event] = []
        with self.standing():
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
            events += self._settle(instant)
            if self._run_callbacks(instant, events, released):
                continue
            ended = self._driver.end_polls(instant)
            events += ended
            self._tell(*ended)
            due = self.next_due_ms
            if due is None or due > instant:
                return
        last = f"; the last was: {events[-1]}" if events else ""
        raise RuntimeError(
            f"work at {_told(instant)} made new work for the same instant"
            f" {CHAIN_LIMIT} times in a row{last}"
        )

    def _settle(self, instant: int) -> list[Event]:
        self._settling = True
        try:
            return self._driver.settle(instant)
        finally:
            self._settling = False

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
            event = call.event(instant)
            events.append(event)
            self._tell(event)
            with self.standing(), released():
                call.function()
        return ran

    # Listeners

    def add_listener(self, listener: Listener) -> None:
        """Have each callback and each end of a poll told as it happens; must not block."""
        self._listeners = (*self._listeners, listener)

    def remove_listener(self, listener: Listener) -> None:
        self._listeners = tuple(each for each in self._listeners if each != listener)

    def _tell(self, *events: Event) -> None:
        for listener in self._listeners:
            for event in events:
                listener(event)

    # Callbacks

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
        call = self._callbacks.plan(within_calendar(at_ms), function, every_ms)
        self._changed()
        return call


def _told(instant: int) -> str:
    # Not at the top: the plugin loads the clock into every run, and must cost nothing there.
    from pytest_sqsq.models import instant_text

    return instant_text(instant)
