"""Starting, stopping and emptying a server; and what the plugin costs a run without it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Self

from pytest_sqsq import SqsServer

from .measure import Effort, Row, Times, by_turns, duration, seconds_of, spread

ROOT = Path(__file__).parents[2]
QUEUES = 10
UNUSED_MS = 5
HEAVY = ("boto3", "botocore", "fakeredis", "redis", "werkzeug", "xmltodict")

FIRST_START = """
import pytest  # whatever it imports is there already in a run
from time import perf_counter
started = perf_counter()
from pytest_sqsq import SqsServer
server = SqsServer().start()
print(perf_counter() - started)
server.stop()
"""

RUN = """
import sys, time
import pytest
code = pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]])
print("spent", time.process_time())
print("imported", *sorted(set(sys.modules) & {heavy}))
sys.exit(code)
"""


def life(effort: Effort) -> Iterator[Row]:
    """With imports, in a new process; then again and again in this one."""
    with _Interpreter() as python:
        first = [float(python.run(FIRST_START)) for _ in effort.times(20)]
    yield duration("first start in a pytest process, with imports", first, at_most=100)
    starts, stops = [], []
    for _ in range(effort.rounds):
        server = SqsServer()
        starts.append(seconds_of(server.start))
        stops.append(seconds_of(server.stop))
    yield duration("later start", starts, at_most=15)
    yield duration("stop", stops, at_most=20)
    with SqsServer() as server:
        resets = [_reset(server) for _ in range(effort.rounds)]
    yield duration(f"reset with {QUEUES} queues", resets, at_most=2)


def _reset(server: SqsServer) -> float:
    for number in range(QUEUES):
        server.create_queue(f"queue-{number}").send("hello")
    return seconds_of(server.reset)


def unused(effort: Effort) -> Iterator[Row]:
    """CPU of a whole pytest run with the plugin, less that of one with an empty plugin."""
    with _Interpreter() as python:
        imported: set[str] = set()
        times = by_turns(
            effort.times(20).stop,
            {
                "with": lambda: _spent(python, imported, "-p", "pytest_sqsq.plugin"),
                "without": lambda: _spent(python, set(), "-p", "nothing"),
            },
        )
    yield _difference("CPU of a pytest run with the plugin unused", times)
    what = f"of {', '.join(HEAVY)} it imports"
    yield Row(what, "none", ", ".join(sorted(imported)) or "none", met=not imported)


def _difference(what: str, times: dict[str, Times]) -> Row:
    pairs = zip(times["with"], times["without"], strict=True)
    differences = [1000 * (a - b) for a, b in pairs]
    value = median(differences)
    met = value <= UNUSED_MS
    return Row(what, f"<= {UNUSED_MS} ms", f"{value:.1f} ms", spread(differences), met)


def _spent(python: _Interpreter, imported: set[str], *options: str) -> float:
    lines = python.run(RUN.format(heavy=set(HEAVY)), *options)
    said = dict(line.partition(" ")[::2] for line in lines.splitlines())
    imported.update(said["imported"].split())
    return float(said["spent"])


class _Interpreter:
    """Runs code in new processes that find everything compiled, as after an installation."""

    def __enter__(self) -> Self:
        self._temporary = tempfile.TemporaryDirectory()
        self._folder = Path(self._temporary.name)
        test = "def test_nothing():\n    pass\n"
        (self._folder / "test_nothing.py").write_text(test, encoding="utf-8")
        (self._folder / "nothing.py").touch()
        self._environment = {
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "PYTHONPYCACHEPREFIX": str(self._folder / "compiled"),
        }
        for code in (FIRST_START, RUN.format(heavy=set(HEAVY))):
            self.run(code, "-p", "pytest_sqsq.plugin")
        return self

    def __exit__(self, *_: object) -> None:
        self._temporary.cleanup()

    def run(self, code: str, *arguments: str) -> str:
        """What the code printed."""
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout
