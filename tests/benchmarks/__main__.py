"""``python -m tests.benchmarks [name ...] [--quick]``, from the root of the repository."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .measure import FULL, QUICK
from .registry import BENCHMARKS, run

_VERDICTS = {True: "met", False: "missed"}


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for, and print a table as each part of it is done."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="see that it runs; measure nothing")
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    _print("what", "goal", "measured", "quartiles", "")
    _print("---", "---", "---", "---", "---")
    for name in chosen.names or BENCHMARKS:
        for row in run(name, QUICK if chosen.quick else FULL):
            verdict = "" if chosen.quick or row.met is None else _VERDICTS[row.met]
            _print(row.what, row.goal, row.measured, row.spread, verdict)
    return 0


def _print(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)  # noqa: T201 - the table is what it is for


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
