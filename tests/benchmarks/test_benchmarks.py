from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_benchmark_runs_and_gives_a_line_for_each_of_its_goals() -> None:
    done = run("--quick")

    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
    assert rows[:2] == [["what", "goal", "measured", "quartiles", ""], ["---"] * 5]
    assert {len(row) for row in rows} == {5}
    goals = [(what, goal, measured) for what, goal, measured, *_ in rows[2:] if goal]
    assert len(goals) == 20 + 4 * 8 + 3 + 3 + 2 + 2 + 5 + 4 + 2 + 1
    assert len({what for what, *_ in goals}) == len(goals)
    assert all(re.match(r"-?[\d.]|none", measured) for _, _, measured in goals)


def test_no_message_is_lost_or_received_twice_while_threads_are_measured() -> None:
    done = run("threads", "--quick")

    assert "lost, received twice, left over | 0, 0, 0 | 0, 0, 0 |" in done.stdout, done.stderr


@pytest.mark.parametrize("name", ["call", "Calls"])
def test_an_unknown_name_is_refused(name: str) -> None:
    done = run(name)

    assert done.returncode == 2
    assert f"no such benchmark: {name}" in done.stderr
