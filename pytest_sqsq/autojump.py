"""Jumps in time: when nothing but time can make progress, and how far.

A jump is due when the consumers have come to rest: no request is open, time is not held, and for
a while nothing has changed.  If as many polls are parked as were at most since the last reset,
``threshold`` is long enough; if fewer are, a consumer is at work, and has ``grace``.  So has a
thread that was started since, and may be about to poll.  Where the process computes, or has to
wait for others that do, threads have longer: on a machine under load, or while coverage is
measured, little work takes long.  Time jumps to ends of polls, ends of visibility timeouts and
delays, steps of move tasks and callbacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import TYPE_CHECKING

from pytest_sqsq.clock import computed_seconds, monotonic
from pytest_sqsq.errors import GateTimeout
from pytest_sqsq.testing.threads import count_others

if TYPE_CHECKING:
    from pytest_sqsq.gateway.gate import RequestGate
    from pytest_sqsq.models import Event
    from pytest_sqsq.stack import Stack

# Jumps in a row, while nothing but ends of polls lies ahead, until real time has to pass.
FREE_JUMPS = 3

# Real seconds between two looks at what is waited for: no request tells of the end of a thread.
LOOK_SECONDS = 0.02

# Real seconds in which nothing may change after a callback, if a thread may have waited for it.
NUDGE_SECONDS = 0.05

# Where a process has computed, or been kept from it, for this part of the grace, a thread that is
# waited for may be at work still, and gets another grace.
BUSY_PART = 0.04

# How many graces it gets at most.
GRACES = 20


class Jumper:
    """Decides for one stack when time jumps, and where to.

    ``end_ms`` is an instant to jump to as to an event.  ``skip_empty_polls`` is that of the
    clock's rules where it is ``None``.
    """

    def __init__(
        self,
        stack: Stack,
        gate: RequestGate,
        *,
        end_ms: int | None = None,
        skip_empty_polls: bool | None = None,
    ) -> None:
        self.stack = stack
        self.broker = stack.broker
        self._clock = stack.clock
        self._gate = gate
        self._end_ms = end_ms
        self._skips = skip_empty_polls
        self._free = FREE_JUMPS
        # The most polls that were parked at once, as far as this jumper has seen.
        self.most_parked = 0
        # The threads without a parked poll when all was last at rest.
        self._absentees = 0
        # Whether a callback ran in the latest jump; it may have woken a thread.
        self._nudged = False
        # How much has happened on queues while this was watching.
        self.stirs = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A context in which what happens on queues counts as a change."""
        self.broker.add_listener(self._stir)
        self._clock.add_listener(self._nudge)
        try:
            yield
        finally:
            self._clock.remove_listener(self._nudge)
            self.broker.remove_listener(self._stir)

    def _stir(self, _: Event) -> None:
        self._free = FREE_JUMPS
        self.stirs += 1
        self._gate.note_change()

    def _nudge(self, event: Event) -> None:
        self._nudged = self._nudged or event.kind == "callback"

    @property
    def is_current(self) -> bool:
        """Whether the stack has not been emptied since."""
        return self.stack.broker is self.broker

    # When

    @property
    def is_busy(self) -> bool:
        """Whether a consumer that has polled before seems to be at work."""
        return self._gate.parked_count < self._gate.parked_high_water

    @property
    def is_obstructed(self) -> bool:
        """Whether time must stand, whatever has happened."""
        return self._clock.holds > 0 or self._gate.open_count > 0

    def rests(self, seen: int, *, hopeful: bool = False) -> bool:
        """Wait for as long as it takes; whether nothing has changed since ``seen``.

        ``hopeful`` is to have the patience that consumers at work get, though none is seen.
        """
        self.most_parked = max(self.most_parked, self._gate.parked_high_water)
        for _ in range(GRACES):
            hindered = self._waits_once(seen, hopeful)
            if hindered is None:
                return False
            if not hindered:
                break
        self._absentees = self._count_absentees()
        return self._gate.changes == seen

    def _waits_once(self, seen: int, hopeful: bool) -> bool | None:
        """Wait for as long as the rules say; ``None`` if something has changed.

        Else whether a thread is waited for that may have had too little of this time.
        """
        begun, computed, asked = monotonic(), computed_seconds(), 0.0
        while (waited := monotonic() - begun) < (patience := self._patience(hopeful)):
            left = min(patience - waited, LOOK_SECONDS)
            if self._gate.wait_for_rest(seen, left) != seen:
                return None
            asked += left
        # Waits that last longer than was asked for tell of other processes that are in the way.
        busy = computed_seconds() - computed + waited - asked
        return self._is_awaiting_threads and busy >= BUSY_PART * waited

    def _patience(self, hopeful: bool) -> float:
        """Real seconds without a change that are enough."""
        rules = self._clock.jump_rules
        if hopeful or self.is_busy or self._has_newcomers:
            return rules.grace
        if self._is_awaiting_threads:
            return max(rules.threshold, min(rules.grace, NUDGE_SECONDS))
        return rules.threshold

    @property
    def _has_newcomers(self) -> bool:
        """Whether there are threads that may be about to poll for the first time."""
        return self._count_absentees() > self.stack.absentees

    @property
    def _is_awaiting_threads(self) -> bool:
        """Whether there are threads for whose sake time waits."""
        concerned = self.is_busy or self._nudged or self._has_newcomers
        return concerned and self._count_absentees() > 0

    def _count_absentees(self) -> int:
        """How many threads that may be consumers are not in a parked poll."""
        return max(0, count_others(self.stack.bystanders) - self._gate.parked_count)

    # Where to

    @property
    def target_ms(self) -> int | None:
        """Where time would jump to now; ``None`` if there is nothing to jump to."""
        return self._find_target()[0]

    def _find_target(self) -> tuple[int | None, bool]:
        """The target, and whether it is one of the few that come without a reason."""
        poll = self.broker.due.next_poll_end()
        poll_ms = None if poll is None else poll.deadline_ms
        ahead = (self.broker.next_change_ms(), self._clock.next_call_ms, self._end_ms)
        event_ms = min((instant for instant in ahead if instant is not None), default=None)
        if event_ms is None:
            return (poll_ms if self._free else None), True
        if poll_ms is None or event_ms <= poll_ms or self._skips_polls:
            return event_ms, False
        return poll_ms, False

    @property
    def _skips_polls(self) -> bool:
        return self._clock.jump_rules.skip_empty_polls if self._skips is None else self._skips

    def jump(self, seen: int, *, limit_ms: int | None = None) -> bool:
        """Jump, unless something has changed since ``seen``; tells whether.

        Not beyond ``limit_ms``.  Raises as ``Clock.advance`` does.
        """

        def choose() -> int | None:
            if self._gate.changes != seen or not self.is_current or self._clock.holds:
                return None
            target, free = self._find_target()
            if target is None:
                return None
            if limit_ms is not None:
                target = min(target, limit_ms)
            self._free = self._free - 1 if free else FREE_JUMPS
            self._clock.count_jump(busy=self.is_busy)
            self._gate.lower_high_water()
            self.stack.absentees = self._absentees
            self._nudged = False
            if self._skips_polls and not free:
                self.broker.postpone_polls(target)
            return target

        return self._clock.jump(choose)


class Autojump:
    """Lets the clock of the current stack jump while it is in autojump mode.

    In a thread of its own, which there is only then.  ``current`` gives the stack.  What a
    callback raises is noted as a failure of the stack, and time stands until something changes.
    ``_lock`` guards the fields.
    """

    def __init__(self, current: Callable[[], Stack], gate: RequestGate) -> None:
        self._current = current
        self._gate = gate
        self._lock = Lock()
        self._thread: Thread | None = None
        self._stopping = False
        self._handed_over = False

    def look_again(self) -> None:
        """See to it that there is a thread if one is needed, and that it looks at everything."""
        with self._lock:
            if self._thread is None and self._is_needed:
                self._thread = Thread(target=self._run, name="sqsq-autojump", daemon=True)
                self._thread.start()
        self._gate.note_change()

    def end(self) -> None:
        """Have the thread end; does not wait for it."""
        with self._lock:
            self._stopping = True
        self._gate.note_change()

    def join(self) -> None:
        """Wait until the thread has ended, after ``end``."""
        thread = self._thread
        if thread is not None:
            thread.join()

    @contextmanager
    def handed_over(self) -> Iterator[None]:
        """A context in which the calling thread decides about jumps, and nobody else.

        Raises ``RuntimeError`` while another one does, or this one does already.
        """
        with self._lock:
            if self._handed_over:
                raise RuntimeError(
                    "run_for or run_until is running already; only one of them can let time"
                    " jump, so wait for it, or use wait_until here"
                )
            self._handed_over = True
        self._gate.note_change()
        try:
            yield
        finally:
            with self._lock:
                self._handed_over = False
            self._gate.note_change()

    @property
    def _is_needed(self) -> bool:
        return not self._stopping and self._current().clock.mode == "autojump"

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._is_needed:
                    self._thread = None
                    return
            self._look_after(self._current())

    def _look_after(self, stack: Stack) -> None:
        jumper = Jumper(stack, self._gate)
        failed_at: int | None = None
        with jumper.watching():
            while True:
                # Read before anything is looked at, so that no change is missed afterwards.
                seen = self._gate.changes
                if not (self._is_needed and self._current() is stack and jumper.is_current):
                    return
                if self._handed_over or failed_at == seen:
                    self._gate.wait_for_change(seen)
                elif not self._step(jumper, seen):
                    failed_at = self._gate.changes

    def _step(self, jumper: Jumper, seen: int) -> bool:
        """Wait for rest and jump, or for a change; ``False`` if a jump has failed."""
        gate = self._gate
        if gate.open_count:
            gate.wait_for_rest(seen, LOOK_SECONDS)
        elif jumper.is_obstructed or not gate.parked_count:
            gate.wait_for_change(seen)
        elif jumper.rests(seen):
            if jumper.target_ms is None:
                gate.wait_for_change(seen)
            else:
                return self._jump(jumper, seen)
        return True

    def _jump(self, jumper: Jumper, seen: int) -> bool:
        try:
            jumper.jump(seen)
        except GateTimeout:
            return True  # a request is open for long: there is no rest until it has ended
        except BaseException as failure:  # noqa: BLE001 - no caller; the server's check raises it
            jumper.stack.note_failure(failure)
            self._gate.note_change()  # waits raise it
            return False
        return True
