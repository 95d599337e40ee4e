"""The command in processes of their own, and in this one where a process would show no more."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, NamedTuple

import pytest

from pytest_sqsq.cli import main

SECONDS = 60
"""How long anything may take; nothing takes long that works."""


class Done(NamedTuple):
    status: int
    stdout: str
    stderr: str


class Output:
    """Lines of a process, as they come."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._stream:
            for line in self._stream:
                self._lines.put(line)

    def line(self) -> str:
        return self._lines.get(timeout=SECONDS)

    def rest(self) -> str:
        """All that was not asked for yet, once the process has ended."""
        self._reader.join(SECONDS)
        lines = []
        with suppress(Empty):
            while True:
                lines.append(self._lines.get_nowait())
        return "".join(lines)


class Command:
    """``sqsq`` in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pytest_sqsq", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.stdout = Output(self.process.stdout)
        self.stderr = Output(self.process.stderr)

    def end(self, how: signal.Signals = signal.SIGTERM) -> Done:
        self.process.send_signal(how)
        status = self.process.wait(SECONDS)
        return Done(status, self.stdout.rest(), self.stderr.rest())


@pytest.fixture
def start() -> Iterator[Callable[..., Command]]:
    """Start ``sqsq`` with arguments."""
    started: list[Command] = []

    def start_one(*arguments: str) -> Command:
        started.append(Command(*arguments))
        return started[-1]

    yield start_one
    for command in started:
        command.end(signal.SIGKILL)


@pytest.fixture
def run(capsys) -> Callable[..., Done]:
    """Run ``sqsq`` in this process; for what ends by itself."""

    def run_one(*arguments: str) -> Done:
        try:
            status = main(arguments)
        except SystemExit as ended:
            status = ended.code
        return Done(status, *capsys.readouterr())

    return run_one
