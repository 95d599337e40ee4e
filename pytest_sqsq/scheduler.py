"""The one thread that lets things happen while a clock runs by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Condition, Thread
from typing import TYPE_CHECKING

from pytest_sqsq.clock import monotonic
from pytest_sqsq.errors import GateTimeout

if TYPE_CHECKING:
    from pytest_sqsq.stack import Stack

# Real seconds between two looks at a process clock, which a test may move at any time.
LOOK_SECONDS = 0.02

# Real seconds between two maintenances.
MAINTENANCE_SECONDS = 1.0

# Real seconds until work that failed is tried again.
RETRY_SECONDS = 0.05


class Scheduler:
    """Sleeps until the next due instant of a live clock, then lets it happen.

    With a clock that stands it sleeps until that changes; an idle server burns nothing.
    ``current`` gives the stack to look after.  What a callback raises is noted as a failure of
    that stack.  ``_condition`` guards ``_called`` and ``_stopping``.
    """

    def __init__(self, current: Callable[[], Stack]) -> None:
        self._current = current
        self._condition = Condition()
        self._called = False
        self._stopping = False
        # The instant at which the thread wakes by itself: what is due earlier has to call it.
        # Minus infinity while nothing that becomes due matters, as with a clock that stands.
        self._wakes_at_ms = math.inf
        self._maintained = -math.inf
        self._thread = Thread(target=self._run, name="sqsq-scheduler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Have the thread end; does not wait for it."""
        with self._condition:
            self._stopping = True
            self._condition.notify()

    def join(self) -> None:
        """Wait until the thread has ended, after ``end``.  It may wait for its turn at the gate."""
        self._thread.join()

    def wake(self) -> None:
        """Have the thread look at everything anew."""
        with self._condition:
            self._called = True
            self._condition.notify()

    def due_moved(self, due_ms: int) -> None:
        """Have the thread look again if it would sleep beyond what is due at ``due_ms``.

        Called on the hot path: a consumer that receives and deletes moves the earliest due
        instant with each message, and must not wake this thread as often.
        """
        if due_ms < self._wakes_at_ms:
            self.wake()

    def _run(self) -> None:
        while True:
            with self._condition:
                if self._stopping:
                    return
                self._called = False
            self._wakes_at_ms = math.inf
            seconds = self._step(self._current())
            with self._condition:
                self._condition.wait_for(lambda: self._called or self._stopping, seconds)

    def _step(self, stack: Stack) -> float | None:
        """Do what is due; returns real seconds until the next look, ``None`` for no limit."""
        clock = stack.clock
        due = clock.next_due_ms
        if clock.mode == "system":
            # Read after the due instant: a poll that parks in between is seen here, one that
            # parks later moves the due instant and calls.  So does a request that is held up.
            if not (stack.broker.parked_polls or stack.faults.waiting):
                return None
            overdue = due is not None and due <= clock.now_ms
            return self._let_happen(stack) if overdue else LOOK_SECONDS
        if due is None:
            standing = clock.real_seconds_until(0) is None
            self._wakes_at_ms = -math.inf if standing else math.inf
            return None
        seconds = clock.real_seconds_until(due)
        if seconds is None:
            self._wakes_at_ms = -math.inf
            return None
        if seconds == 0:
            return self._let_happen(stack)
        self._wakes_at_ms = due
        return seconds

    def _let_happen(self, stack: Stack) -> float:
        try:
            stack.clock.run_due(beside_requests=True)
        except GateTimeout:
            return RETRY_SECONDS
        except BaseException as failure:  # noqa: BLE001 - no caller; the server's check raises it
            stack.note_failure(failure)
            return RETRY_SECONDS
        if monotonic() - self._maintained >= MAINTENANCE_SECONDS:
            self._maintained = monotonic()
            stack.broker.maintain()
        return 0.0
