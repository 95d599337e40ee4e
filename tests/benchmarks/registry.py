"""All benchmarks by name, each run in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from typing import cast

from .measure import Effort, Row

#: The module and the function of each.
BENCHMARKS = {
    "calls": ("calls", "single_calls"),
    "batches": ("calls", "batches"),
    "depth": ("depth", "depth"),
    "fill": ("filling", "fill"),
    "threads": ("threads", "threads"),
    "advance": ("advancing", "advance"),
    "ticks": ("ticking", "ticks"),
    "stores": ("stores", "stores"),
    "polls": ("polling", "polls"),
    "stories": ("stories", "stories"),
    "life": ("life", "life"),
    "unused": ("life", "unused"),
    "moto": ("moto_server", "moto"),
}


def run(name: str, effort: Effort) -> list[Row]:
    """The rows of a benchmark.

    From another process: a million messages would be in the way of what is measured after them.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_rows, name, effort).result()


def _rows(name: str, effort: Effort) -> list[Row]:
    module, function = BENCHMARKS[name]
    measure = cast(
        "Callable[[Effort], Iterable[Row]]",
        getattr(import_module(f".{module}", __package__), function),
    )
    return list(measure(effort))
