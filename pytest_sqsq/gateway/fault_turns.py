"""When, among the requests that it is for, a planned fault comes to pass; and its handle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Protocol, Self

from pytest_sqsq.timeline import MILLISECOND, duration_ms


class Turns(Protocol):
    """Decides, request by request.  Guarded by the lock of the faults."""

    def take(self, now_ms: int, draw: Callable[[], float]) -> bool:
        """Whether the fault comes to pass for one more request that it is for."""

    def is_over(self, now_ms: int) -> bool:
        """Whether it never will again."""


class PlannedTurns:
    """A number of times, a window, a sequence and a probability, each of which may say no.

    ``after`` is how many requests pass first, or how much time; ``for_ms`` counts from then.
    """

    def __init__(
        self,
        now_ms: int,
        *,
        times: object = None,
        after: object = 0,
        sequence: object = None,
        for_seconds: object = None,
        probability: object = 1.0,
    ) -> None:
        self._times = None if times is None else _checked_count("times", times, 1)
        self._skipped, delay_ms = _checked_after(after)
        self._starts_ms = now_ms + delay_ms
        self._delay_ms = delay_ms
        self._span_ms = None if for_seconds is None else checked_span("for_seconds", for_seconds)
        self._sequence = None if sequence is None else _checked_sequence(sequence)
        self.probability = _checked_probability(probability)
        self._seen = 0
        self._fired = 0

    def take(self, now_ms: int, draw: Callable[[], float]) -> bool:
        if now_ms < self._starts_ms or self.is_over(now_ms):
            return False
        self._seen += 1
        turn = self._seen - self._skipped
        if turn <= 0:
            return False
        if self._sequence is not None and self._sequence[turn - 1] == "pass":
            return False
        if self.probability < 1 and draw() >= self.probability:
            return False
        self._fired += 1
        return True

    def is_over(self, now_ms: int) -> bool:
        return (
            (self._times is not None and self._fired >= self._times)
            or (self._span_ms is not None and now_ms >= self._starts_ms + self._span_ms)
            or (self._sequence is not None and self._seen - self._skipped >= len(self._sequence))
        )

    def __str__(self) -> str:
        text = "" if self._times is None else f", {times_text(self._times)}"
        if self._skipped:
            text += f", after {self._skipped} request{'s' if self._skipped > 1 else ''}"
        if self._delay_ms:
            text += f", after {span_text(self._delay_ms)}"
        if self._span_ms is not None:
            text += f", for {span_text(self._span_ms)}"
        if self._sequence is not None:
            text += f", in the sequence {' '.join(self._sequence)}"
        if self.probability < 1:
            text += f", with probability {self.probability:g}"
        return text


class RateTurns:
    """So many requests a second pass, by the server's clock; the others do not.

    What was not used within a second is lost.
    """

    def __init__(self, now_ms: int, rate: object) -> None:
        if type(rate) not in (int, float) or not 0 < rate < float("inf"):  # type: ignore[operator]
            raise ValueError(f"rate must be a number of requests a second above 0, not {rate!r}")
        self._rate: float = rate  # type: ignore[assignment]
        # In thousandths of a request: a whole rate stays exact.
        self._limit = max(1000, self._rate * 1000)
        self._left = self._limit
        self._counted_ms = now_ms

    def take(self, now_ms: int, draw: Callable[[], float]) -> bool:
        gained = (now_ms - self._counted_ms) * self._rate
        self._left = min(self._limit, self._left + gained)
        self._counted_ms = now_ms
        if self._left >= 1000:
            self._left -= 1000
            return False
        return True

    def is_over(self, now_ms: int) -> bool:
        return False

    def __str__(self) -> str:
        return f" beyond {self._rate:g} a second"


class Fault:
    """A planned fault.  As a context it is removed at the end.

    ``text`` says in one line what was planned; ``fired`` is how often it came to pass.
    """

    def __init__(self, text: str, remove: Callable[[Fault], None]) -> None:
        self.text = text
        self._remove = remove
        self.fired = 0

    def remove(self) -> None:
        """Let it not happen any more; does nothing if it was removed before."""
        self._remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()

    def __str__(self) -> str:
        return f"{self.text}: {'never fired' if not self.fired else f'fired {self._fired_text()}'}"

    def _fired_text(self) -> str:
        return times_text(self.fired)

    def __repr__(self) -> str:
        return f"<Fault {self}>"


def times_text(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def span_text(milliseconds: int) -> str:
    """A duration for people to read, exact."""
    return (
        f"{milliseconds / 1000:g} s" if milliseconds < 60_000 else str(milliseconds * MILLISECOND)
    )


def listed(value: object) -> tuple[Any, ...]:
    """What is in a collection; nothing in what is none, such as a text."""
    return () if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)


def _checked_count(name: str, value: object, least: int) -> int:
    if type(value) is not int or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return value


def checked_span(name: str, value: Any) -> int:
    """A duration, in seconds or as a timedelta, in milliseconds; ``ValueError`` for any other."""
    try:
        milliseconds = duration_ms(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None
    if not milliseconds:
        raise ValueError(f"{name} must be at least a millisecond, not {value!r}")
    return milliseconds


def _checked_after(after: object) -> tuple[int, int]:
    """How many requests pass first, and how many milliseconds."""
    if isinstance(after, timedelta):
        return 0, checked_span("after", after)
    return _checked_count("after", after, 0), 0


def _checked_sequence(sequence: Any) -> Sequence[str]:
    words = listed(sequence)
    if "fail" not in words or not all(word in ("fail", "pass") for word in words):
        raise ValueError(
            f'sequence must be made of "fail" and "pass" and contain a "fail", not {sequence!r}'
        )
    return words


def _checked_probability(probability: object) -> float:
    if type(probability) not in (int, float) or not 0 < probability <= 1:  # type: ignore[operator]
        raise ValueError(f"probability must be above 0 and at most 1, not {probability!r}")
    return float(probability)  # type: ignore[arg-type]
