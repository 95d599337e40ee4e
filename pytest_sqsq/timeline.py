"""What a clock works with: durations and instants, what it moves, and the planned callbacks.

Durations and instants are integer milliseconds, instants since the epoch.
"""

from __future__ import annotations

import datetime as dt
import heapq
import itertools
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pytest_sqsq.models import Event

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MILLISECOND = dt.timedelta(milliseconds=1)

# Nothing that a queue knows of lies more than a century ahead, and no calendar ends before then.
LAST_INSTANT = "9900-01-01T00:00:00Z"


def duration_ms(duration: float | dt.timedelta) -> int:
    """A duration in whole milliseconds, rounded to the nearest.

    Takes seconds or a timedelta.  Raises ``ValueError`` for a negative or endless one,
    ``TypeError`` for anything else.
    """
    if isinstance(duration, dt.timedelta):
        milliseconds = round(duration / MILLISECOND)
    elif type(duration) in (int, float):
        if not math.isfinite(duration):
            raise ValueError(f"a duration must be finite, not {duration}")
        milliseconds = round(duration * 1000)
    else:
        raise TypeError(f"a duration is seconds or a timedelta, not {duration!r}")
    if milliseconds < 0:
        raise ValueError(f"time cannot go back: the duration is {duration!r}")
    return milliseconds


def instant_ms(instant: dt.datetime | str) -> int:
    """An instant in milliseconds since the epoch, rounded to the nearest.

    Takes an aware datetime, or ISO 8601 text (UTC where it names no offset).  Raises
    ``ValueError`` for a datetime without a time zone and for text that is no instant.
    """
    if isinstance(instant, str):
        try:
            moment = dt.datetime.fromisoformat(instant)
        except ValueError:
            raise ValueError(f"{instant!r} is not an instant in ISO 8601") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=dt.UTC)
    elif isinstance(instant, dt.datetime):
        moment = instant
    else:
        raise TypeError(f"an instant is an aware datetime or ISO 8601 text, not {instant!r}")
    if moment.tzinfo is None:
        raise ValueError(f"{instant!r} has no time zone; give it one, such as tzinfo=UTC")
    return round((moment - EPOCH) / MILLISECOND)


def within_calendar(instant: int) -> int:
    """``instant``, in milliseconds; ``ValueError`` if it is later than a clock goes."""
    if instant > instant_ms(LAST_INSTANT):
        raise ValueError(f"the clock goes to {LAST_INSTANT} at most")
    return instant


class TimeDriver(Protocol):
    """What a clock moves.

    All instants are milliseconds; ``settle`` and ``end_polls`` return what happened, in order.
    """

    def exclusive(self) -> AbstractContextManager[None]:
        """One mover at a time, and no request runs meanwhile."""

    def serialised(self) -> AbstractContextManager[None]:
        """One mover at a time, beside the requests that run."""

    def released(self) -> AbstractContextManager[None]:
        """Inside ``exclusive``: requests may run again, for as long as this lasts."""

    def next_due_ms(self) -> int | None:
        """The earliest instant at which something happens by itself, ends of polls included."""

    def next_event(self) -> Event | None:
        """What will happen then."""

    def settle(self, now_ms: int) -> list[Event]:
        """Let everything happen that is due, apart from ends of polls."""

    def end_polls(self, now_ms: int) -> list[Event]:
        """End the parked polls whose wait is over."""


class NothingToMove:
    """The driver of a clock that stands alone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._lock:
            yield

    serialised = exclusive

    def released(self) -> AbstractContextManager[None]:
        return nullcontext()

    def next_due_ms(self) -> int | None:
        return None

    def next_event(self) -> Event | None:
        return None

    def settle(self, now_ms: int) -> list[Event]:
        return []

    end_polls = settle


class ScheduledCall:
    """A callback that waits for its instant; ``cancel()`` takes it back."""

    __slots__ = ("at_ms", "cancelled", "every_ms", "function", "order")

    def __init__(
        self, at_ms: int, order: int, function: Callable[[], object], every_ms: int | None
    ) -> None:
        self.at_ms = at_ms
        self.order = order
        self.function = function
        self.every_ms = every_ms
        self.cancelled = False

    def cancel(self) -> None:
        """Never call it (again); does nothing if it is already over."""
        self.cancelled = True

    def __lt__(self, other: ScheduledCall) -> bool:
        return (self.at_ms, self.order) < (other.at_ms, other.order)

    def event(self, at_ms: int) -> Event:
        # Not at the top: the plugin loads the clock into every run, and the models take longer to
        # load than everything else that an idle plugin needs.
        from pytest_sqsq.models import Event

        name = getattr(self.function, "__qualname__", None) or repr(self.function)
        return Event(at_ms, "callback", "", detail={"function": name})


class Callbacks:
    """The planned callbacks in due order, those of one instant as they were planned.

    Its lock guards the heap and the numbers.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heap: list[ScheduledCall] = []
        self._orders = itertools.count()

    def plan(
        self, at_ms: int, function: Callable[[], object], every_ms: int | None = None
    ) -> ScheduledCall:
        """Plan a call; O(log n)."""
        with self._lock:
            call = ScheduledCall(at_ms, next(self._orders), function, every_ms)
            heapq.heappush(self._heap, call)
        return call

    def clear(self) -> None:
        with self._lock:
            self._heap.clear()

    def next(self) -> ScheduledCall | None:
        """The earliest call that was not cancelled; O(log n) amortised."""
        with self._lock:
            return self._first()

    def mark(self) -> int:
        """A number between those of the calls planned so far and of those to come."""
        with self._lock:
            return next(self._orders)

    def take_due(self, instant: int, mark: int) -> ScheduledCall | None:
        """Take the earliest call that is due at ``instant`` and was planned before ``mark``.

        One that repeats is planned again at once, so that it survives its own error.
        """
        with self._lock:
            call = self._first()
            if call is None or call.at_ms > instant or call.order > mark:
                return None
            heapq.heappop(self._heap)
            if call.every_ms is not None:
                call.at_ms += call.every_ms
                heapq.heappush(self._heap, call)
            return call

    def _first(self) -> ScheduledCall | None:
        while self._heap and self._heap[0].cancelled:
            heapq.heappop(self._heap)
        return self._heap[0] if self._heap else None
