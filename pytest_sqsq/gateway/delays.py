"""Requests that take their time because a test wants it so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition
from threading import Event as Signal
from typing import TYPE_CHECKING

from pytest_sqsq.clock import monotonic
from pytest_sqsq.timeline import EPOCH, MILLISECOND

if TYPE_CHECKING:
    from pytest_sqsq.clock import Clock
    from pytest_sqsq.gateway.gate import RequestGate
    from pytest_sqsq.gateway.gate_state import Parking

# Real seconds between two looks at whether the client of a delayed request is still there.
LOOK_SECONDS = 0.1


class Delays:
    """Holds requests up, in real or in virtual time, until nobody has time for that any more.

    ``_condition`` guards both fields.
    """

    def __init__(self, clock: Clock, gate: RequestGate) -> None:
        self._clock = clock
        self._gate = gate
        self._condition = Condition()
        self._hurries = 0
        self._waiting: dict[_End, None] = {}

    @property
    def waiting(self) -> int:
        """How many requests wait for virtual time."""
        return len(self._waiting)

    def real(self, seconds: float, is_alive: Callable[[], bool]) -> bool:
        """Let real seconds pass; whether the client has waited for it.  The request stays open."""
        deadline = monotonic() + seconds
        with self._condition:
            while not self._hurries and (remaining := deadline - monotonic()) > 0:
                self._condition.wait(min(remaining, LOOK_SECONDS))
                if not is_alive():
                    return False
        return is_alive()

    def virtual(self, milliseconds: int, is_alive: Callable[[], bool], label: str) -> bool:
        """Let virtual time pass, or as much real time; whether the client has waited for it.

        The request is parked meanwhile.  At the instant that it waits for, the clock stands
        until it has been answered.
        """
        deadline = monotonic() + milliseconds / 1000
        with self._gate.parked() as parking:
            end = _End(parking, label)
            instant = EPOCH + (self._clock.now_ms + milliseconds) * MILLISECOND
            call = self._clock.call_at(instant, end)
            self._enter(end)
            try:
                parking.leave(end.is_over)
                while (remaining := deadline - monotonic()) > 0:
                    if end.wait(min(remaining, LOOK_SECONDS)) or not is_alive():
                        break
            finally:
                call.cancel()
                with self._condition:
                    del self._waiting[end]
        return is_alive()

    def _enter(self, end: _End) -> None:
        with self._condition:
            self._waiting[end] = None
            hurried = self._hurries > 0
        if hurried:
            end()

    def hurry(self) -> None:
        """End all waits now, and let nobody wait from now on."""
        with self._condition:
            self._hurries += 1
            waiting = tuple(self._waiting)
            self._condition.notify_all()
        for end in waiting:
            end()

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """A context in which nobody waits."""
        self.hurry()
        try:
            yield
        finally:
            with self._condition:
                self._hurries -= 1


class _End:
    """Ends the wait of one request; planned as a callback of the clock."""

    def __init__(self, parking: Parking, label: str) -> None:
        self._parking = parking
        self._label = label
        self._over = Signal()
        self.is_over = self._over.is_set
        self.wait = self._over.wait

    def __call__(self) -> None:
        # Open again before its thread runs: whoever moves the clock waits for the answer.
        self._parking.wake()
        self._over.set()

    def __repr__(self) -> str:
        return self._label
