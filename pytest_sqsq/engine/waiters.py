"""Parked polls: receives that found nothing and wait."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event as Signal
from typing import TYPE_CHECKING

from pytest_sqsq.errors import SqsError
from pytest_sqsq.models import Delivery, ReceiveRequest

if TYPE_CHECKING:
    from pytest_sqsq.engine.queue import Queue


class Waiter:
    """One long poll, parked or already answered.

    A passive object: whoever makes messages available serves it under the queue's lock and
    wakes it afterwards.  ``deadline_ms`` is where it ends in virtual time; ``real_seconds`` is
    how long its thread may wait at most, whatever the clock does.  ``is_alive`` tells whether
    the client is still there.  ``on_resolved`` is called once, by the thread that answers the
    poll, just before the waiting thread is let go.
    """

    def __init__(
        self,
        queue: Queue,
        request: ReceiveRequest,
        deadline_ms: int,
        is_alive: Callable[[], bool],
    ) -> None:
        self.queue = queue
        self.request = request
        self.deadline_ms = deadline_ms
        self.real_seconds = float(request.wait_time_seconds)
        self.is_alive = is_alive
        self.on_resolved: Callable[[], None] | None = None
        self.close_connection = False
        self._deliveries: list[Delivery] = []
        self._error: SqsError | None = None
        self._answered = False
        # A short poll never parks, so nobody waits for it.
        self._signal = Signal() if request.wait_time_seconds else None

    @property
    def resolved(self) -> bool:
        """Whether the answer is there."""
        return self._answered if self._signal is None else self._signal.is_set()

    @property
    def answered(self) -> bool:
        """Whether an answer was settled on, under the queue's lock; ``resolved`` follows it."""
        return self._answered

    def answer(self, deliveries: list[Delivery], error: SqsError | None = None) -> None:
        """Settle on an answer; under the queue's lock, at most once."""
        assert not self._answered, "a poll is answered once"
        self._answered = True
        self._deliveries = deliveries
        self._error = error

    def wake(self) -> None:
        """Let the waiting thread go; after the queue's lock was released."""
        if self.on_resolved is not None:
            self.on_resolved()
        if self._signal is not None:
            self._signal.set()

    def wait(self, timeout: float) -> bool:
        """Block until resolved, or for ``timeout`` real seconds; whether it is resolved."""
        return self._signal is None or self._signal.wait(timeout)

    def result(self) -> list[Delivery]:
        """The messages delivered; raises the error the poll was ended with."""
        if self._error is not None:
            raise self._error
        return self._deliveries


class ParkedPolls:
    """The polls parked on one queue, in order of arrival.  Guarded by the queue's lock."""

    def __init__(self) -> None:
        self._waiters: dict[Waiter, None] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def park(self, waiter: Waiter) -> None:
        """Put a poll behind all others.  O(1)."""
        self._waiters[waiter] = None

    def oldest_alive(self) -> tuple[Waiter | None, list[Waiter]]:
        """The poll to serve next, and those found dead on the way, which are parked no more.

        The former stays parked.  Who has gone is still to be answered.  O(parked).
        """
        dead: list[Waiter] = []
        for waiter in list(self._waiters):
            if waiter.is_alive():
                return waiter, dead
            self.remove(waiter)
            dead.append(waiter)
        return None, dead

    def take_dead(self) -> list[Waiter]:
        """Those whose clients have gone, which are parked no more.  O(parked)."""
        dead = [waiter for waiter in self._waiters if not waiter.is_alive()]
        for waiter in dead:
            self.remove(waiter)
        return dead

    def postpone(self, instant_ms: int) -> None:
        """Let polls that would end by an instant end after it.

        Each ends when it would if it were repeated at its end for as often as it takes.
        """
        for waiter in self._waiters:
            late_ms = instant_ms - waiter.deadline_ms
            if late_ms >= 0:
                wait_ms = waiter.request.wait_time_seconds * 1000
                waiter.deadline_ms += (late_ms // wait_ms + 1) * wait_ms

    def remove(self, waiter: Waiter) -> None:
        """Park a poll no more; one that is not parked is no fault.  O(1)."""
        self._waiters.pop(waiter, None)

    def of_attempt(self, attempt_id: str) -> Waiter | None:
        """The parked poll that carries this ReceiveRequestAttemptId.  O(parked)."""
        for waiter in self._waiters:
            if waiter.request.receive_request_attempt_id == attempt_id:
                return waiter
        return None

    def remove_all(self) -> list[Waiter]:
        """Park none any more; returns those there were, oldest first, still to be answered."""
        waiters = list(self._waiters)
        for waiter in waiters:
            self.remove(waiter)
        return waiters
