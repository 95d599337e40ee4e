"""Comparing by turns: many short repetitions of everything, and the medians of their ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter

Times = list[float]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to measure: repetitions of each thing, and the sizes of large ones."""

    rounds: int
    calls: int
    scale: float

    def scaled(self, count: int) -> int:
        """``count`` for a full run, less of it for a quick one."""
        return max(20, int(count * self.scale))

    def times(self, rounds: int) -> range:
        """``rounds`` for a full run, two for a quick one."""
        return range(rounds if self.scale == 1 else 2)


FULL = Effort(rounds=100, calls=12, scale=1)
QUICK = Effort(rounds=2, calls=4, scale=0.001)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; ``met`` is ``None`` where nothing was promised."""

    what: str
    goal: str
    measured: str
    spread: str = ""
    met: bool | None = None


def ratio(what: str, times: Times, reference: Times, *, at_most: float | None = None) -> Row:
    """``times`` against ``reference``, both by repetition; the spread is that of the quartiles."""
    return _compared(what, [a / b for a, b in zip(times, reference, strict=True)], "x", at_most)


def ratio_to(what: str, times: Times, reference: float, *, at_most: float | None = None) -> Row:
    """``times`` of single calls, which cannot be paired with what they are compared with."""
    return _compared(what, [seconds / reference for seconds in times], "x", at_most)


def duration(what: str, times: Times, *, at_most: float | None = None) -> Row:
    """Real seconds, shown as milliseconds; ``at_most`` is in milliseconds."""
    return _compared(what, [1000 * seconds for seconds in times], " ms", at_most)


def _compared(what: str, values: Times, unit: str, at_most: float | None) -> Row:
    value = median(values)
    return Row(
        what,
        "" if at_most is None else f"<= {at_most:g}{unit}",
        f"{value:.2f}{unit}",
        spread(values),
        None if at_most is None else value <= at_most,
    )


def at_least(what: str, value: float, goal: float, text: str, values: Times) -> Row:
    """A rate, with the values of the repetitions; ``text`` is its format, with one field."""
    return Row(what, f">= {text.format(goal)}", text.format(value), spread(values), value >= goal)


def rate(what: str, values: Times, text: str) -> Row:
    """The median of a rate that nothing was promised of; ``text`` as in :func:`at_least`."""
    return Row(what, "", text.format(median(values)), spread(values))


def spread(values: Sequence[float]) -> str:
    """The quartiles, or nothing where there was one repetition."""
    if len(values) < 2:
        return ""
    low, _, high = quantiles(values, n=4, method="inclusive")
    return f"{_short(low)} - {_short(high)}"


def _short(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


def seconds_of(action: Callable[[], object]) -> float:
    started = perf_counter()
    action()
    return perf_counter() - started


def by_turns(rounds: int, contenders: Mapping[str, Callable[[], float]]) -> dict[str, Times]:
    """The values that each contender gives, one after the other, in turning order.

    What the machine does beside is so shared out evenly.
    """
    values: dict[str, Times] = {name: [] for name in contenders}
    for turn in range(rounds):
        for name in in_turning_order(list(contenders), turn):
            values[name].append(contenders[name]())
    return values


def in_turning_order(names: Sequence[str], turn: int) -> Iterator[str]:
    return iter(names if turn % 2 == 0 else names[::-1])
