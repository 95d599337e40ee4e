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
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, get_args

from pytest_sqsq.timeline import EPOCH, MILLISECOND, instant_ms, within_calendar
from pytest_sqsq.travel import Traveller

if TYPE_CHECKING:
    from types import TracebackType

ClockMode = Literal["live", "frozen", "autojump", "system"]

# Real seconds; what they are for stands at ``JumpRules``.
AUTOJUMP_THRESHOLD = 0.002
AUTOJUMP_GRACE = 0.5

# Not 0: then a thread that waits for the interpreter need not get it.
GIVE_WAY_SECONDS = 0.0001


class _RealTime:
    """Real time, whatever is patched: functions are class attributes, which freezegun spares."""

    # The performance counter is monotonic too, and no version of time-machine patches it; some
    # patch time.monotonic in C, where a reference taken before does not help.
    monotonic = staticmethod(time.perf_counter)
    monotonic_ns = staticmethod(time.perf_counter_ns)
    wall = staticmethod(time.time)
    computed = staticmethod(time.process_time)
    sleep = staticmethod(time.sleep)

    freezegun = sys.modules.get("freezegun.api")
    if freezegun is not None and time.time is freezegun.fake_time:
        monotonic = staticmethod(freezegun.real_perf_counter)
        monotonic_ns = staticmethod(freezegun.real_perf_counter_ns)
        wall = staticmethod(freezegun.real_time)

    time_machine = sys.modules.get("time_machine")
    if time_machine is not None and time_machine.escape_hatch.is_travelling():
        wall = staticmethod(time_machine.escape_hatch.time.time)

    # What to add to a monotonic reading to get the real wall clock, in milliseconds.
    wall_offset_ms = round(wall() * 1000) - monotonic_ns() // 1_000_000


def monotonic() -> float:
    """Real seconds since some fixed moment; never goes back, and no patched clock moves it."""
    return _RealTime.monotonic()


def give_way() -> None:
    """Let other threads of this process run that want to, for the shortest real time there is."""
    _RealTime.sleep(GIVE_WAY_SECONDS)


def computed_seconds() -> float:
    """Seconds for which this process has computed so far, in all its threads."""
    return _RealTime.computed()


def real_now_ms() -> int:
    """The real wall clock in milliseconds since the epoch, whatever the process clock says."""
    return _RealTime.monotonic_ns() // 1_000_000 + _RealTime.wall_offset_ms


class JumpRules(NamedTuple):
    """How time jumps in autojump mode, and inside ``run_for`` and ``run_until``.

    ``threshold`` is how many real seconds nothing may happen before a jump, ``grace`` the same
    while fewer polls are parked than have been; it begins anew, a number of times at most, where
    this process or others have been computing meanwhile.  With ``skip_empty_polls`` polls do not
    end where something else lies ahead: they stay parked, as if each had been repeated at its end.
    """

    threshold: float = AUTOJUMP_THRESHOLD
    grace: float = AUTOJUMP_GRACE
    skip_empty_polls: bool = False


class _Restorer:
    """What a change of mode or a hold returns: leaving it as a context undoes the change."""

    def __init__(self, undo: Callable[[], None]) -> None:
        self._undo: Callable[[], None] | None = undo

    def release(self) -> None:
        """Undo; does nothing the second time, or after a reset of the clock."""
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


class Clock(Traveller):
    """A server's time.

    ``live`` runs with real time plus what was advanced; ``frozen`` stands still until it is
    moved; ``autojump`` stands too, and its server moves it while nothing but time can make
    progress; ``system`` follows the process clock and cannot be moved.  Safe to use from any
    thread; ``_state`` guards the mode, the pins, the counts and the latest reading of the process
    clock.

    ``start`` is the first instant, by default the real now; ``system`` takes none.
    """

    def __init__(
        self,
        mode: ClockMode = "live",
        *,
        start: dt.datetime | str | None = None,
        autojump_threshold: float = AUTOJUMP_THRESHOLD,
        autojump_grace: float = AUTOJUMP_GRACE,
    ) -> None:
        super().__init__()
        if mode not in get_args(ClockMode):
            raise ValueError(
                f"unknown clock mode {mode!r}; one of {', '.join(get_args(ClockMode))}"
            )
        if mode == "system" and start is not None:
            raise ValueError("a clock in system mode follows the process clock and takes no start")
        self._first_mode: ClockMode = mode
        self._first_rules = JumpRules(autojump_threshold, autojump_grace)
        self._start_ms = None if start is None else within_calendar(instant_ms(start))
        self._state = threading.RLock()
        self._resets = 0
        # Called when time may pass differently or a callback was planned; must not block.
        self.on_changed: Callable[[], None] | None = None
        self.reset()

    def reset(self) -> None:
        """Back to the first mode and instant, without callbacks and holds.  Fires nothing."""
        with self._state:
            self._mode: ClockMode = self._first_mode
            self._rules = self._first_rules
            self._callbacks.clear()
            self._holds = 0
            self._jumps = self._busy_jumps = 0
            self._resets += 1
            self._pins = 0
            self._pinned_from_ms = 0
            self._latest_process_ms = 0
            first_ms = real_now_ms() if self._start_ms is None else self._start_ms
            self._offset_ms = first_ms - _RealTime.monotonic_ns() // 1_000_000
            self._standing_ms = None if self._mode in {"live", "system"} else first_ms
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
    def holds(self) -> int:
        """How many ``hold()`` are in force."""
        return self._holds

    @property
    def jump_rules(self) -> JumpRules:
        """What jumps go by."""
        return self._rules

    @property
    def jumps(self) -> int:
        """How often time has jumped by itself since the start."""
        return self._jumps

    @property
    def busy_jumps(self) -> int:
        """How many of the jumps happened while a consumer seemed to be at work."""
        return self._busy_jumps

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

    # How time passes

    def require_movable(self, what: str) -> None:
        if self._mode == "system":
            # Not at the top: the plugin loads this module into every run, to take its reading of
            # real time, and must cost nothing there.
            from pytest_sqsq.errors import ClockModeError

            raise ClockModeError(
                f"{what}: a clock in system mode follows the process clock, so move that one"
                " (freezegun, time-machine), or use clock='frozen'"
            )

    @contextmanager
    def standing(self) -> Iterator[None]:
        """A context that keeps a live clock standing.

        Afterwards it has gained exactly what it was moved.
        """
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
                runs_again = self._pins == 0 and self._mode == "live"
                if runs_again and self._standing_ms is not None:
                    self._offset_ms += self._standing_ms - self._pinned_from_ms
                    self._standing_ms = None
            if runs_again:
                self._changed()

    def freeze(self) -> _Restorer:
        """Stand still from now on; as a context, until its end."""
        return self._switch("freeze", "frozen", self._rules)

    def resume(self) -> _Restorer:
        """Run with real time again, from where the clock stands; as a context, until its end."""
        return self._switch("resume", "live", self._rules)

    def autojump(
        self,
        *,
        threshold: float | None = None,
        grace: float | None = None,
        skip_empty_polls: bool = False,
    ) -> _Restorer:
        """Stand still from now on, and jump while nothing but time can make progress.

        As a context, until its end.  ``threshold`` and ``grace`` are real seconds, by default
        those that the clock was made with; see :class:`JumpRules`.  Only a started server jumps.
        """
        first = self._first_rules
        rules = JumpRules(
            first.threshold if threshold is None else threshold,
            first.grace if grace is None else grace,
            skip_empty_polls,
        )
        if not (rules.threshold > 0 and rules.grace > 0):
            raise ValueError("threshold and grace are real seconds, more than 0")
        return self._switch("autojump", "autojump", rules)

    def _switch(self, what: str, mode: ClockMode, rules: JumpRules) -> _Restorer:
        self.require_movable(what)
        previous = self._mode, self._rules
        self._enter_mode(mode, rules)
        return self._undoing(lambda: self._enter_mode(*previous))

    def _enter_mode(self, mode: ClockMode, rules: JumpRules) -> None:
        with self._state:
            now = self.now_ms
            self._mode = mode
            self._rules = rules
            self._offset_ms = now - _RealTime.monotonic_ns() // 1_000_000
            self._pinned_from_ms = now
            self._standing_ms = None if mode == "live" and self._pins == 0 else now
        self._changed()

    def hold(self) -> _Restorer:
        """Let time make no jump by itself until this is released, or its context ends.

        Holds are counted.  They hold no ``advance``, and a jump under way goes on to its end.
        """
        self._count_hold(1)
        return self._undoing(lambda: self._count_hold(-1))

    def _count_hold(self, change: int) -> None:
        with self._state:
            self._holds += change
        self._changed()

    def _undoing(self, undo: Callable[[], None]) -> _Restorer:
        # A reset has undone everything already, and what came after it is not ours.
        resets = self._resets
        return _Restorer(lambda: undo() if resets == self._resets else None)

    def count_jump(self, *, busy: bool) -> None:
        """Count a jump; ``busy`` tells whether a consumer seemed to be at work."""
        with self._state:
            self._jumps += 1
            self._busy_jumps += busy

    def _changed(self) -> None:
        if self.on_changed is not None:
            self.on_changed()
