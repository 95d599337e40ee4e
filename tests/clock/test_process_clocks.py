"""Servers of all modes beside freezegun and time-machine: who follows, and that nobody hangs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import freezegun
import pytest
import time_machine

from pytest_sqsq import SqsServer

START = "2030-01-01T00:00:00Z"
START_MS = 1_893_456_000_000
PATCHED = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
PATCHED_MS = round(PATCHED.timestamp() * 1000)
HOUR_MS = 3_600_000
WAIT = 20.0


class ProcessClock:
    """The process's clock, patched by one of the libraries; stands until it is shifted."""

    def __init__(self, library: str, context: ExitStack) -> None:
        if library == "freezegun":
            frozen = context.enter_context(freezegun.freeze_time(PATCHED))
            self.shift: Callable[[float], object] = lambda seconds: frozen.tick(
                dt.timedelta(seconds=seconds)
            )
        else:
            self.shift = context.enter_context(time_machine.travel(PATCHED, tick=False)).shift


@pytest.fixture(params=["freezegun", "time_machine"])
def library(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=["patched first", "started first"])
def make(request, library) -> Iterator[Callable[..., tuple[SqsServer, ProcessClock]]]:
    """Starts a server with the process's clock patched before or afterwards."""
    with ExitStack() as context:

        def start(mode: str) -> tuple[SqsServer, ProcessClock]:
            server = SqsServer(clock=mode, start=None if mode == "system" else START)
            if request.param == "started first":
                context.enter_context(server)
                return server, ProcessClock(library, context)
            process_clock = ProcessClock(library, context)
            return context.enter_context(server), process_clock

        yield start


@pytest.mark.parametrize("mode", ["live", "frozen", "autojump"])
def test_modes_with_a_time_of_their_own_do_not_notice(make, mode) -> None:
    server, process_clock = make(mode)
    before = server.clock.now_ms
    process_clock.shift(86_400)
    after = server.clock.now_ms

    assert START_MS <= before <= after < START_MS + HOUR_MS
    if mode != "live":
        assert before == after == START_MS


def test_a_system_clock_follows(make) -> None:
    server, process_clock = make("system")
    # A clock that was read before the process's clock was set back stands until that catches up.
    server.reset()
    assert server.clock.now_ms == PATCHED_MS
    process_clock.shift(86_400)
    assert server.clock.now_ms == PATCHED_MS + 86_400_000


def let_pass(server: SqsServer, process_clock: ProcessClock, mode: str, seconds: float) -> None:
    match mode:
        case "frozen":
            server.advance(seconds)
        case "system":
            process_clock.shift(seconds)


@pytest.mark.parametrize("mode", ["live", "frozen", "autojump", "system"])
def test_a_parked_poll_is_served_when_its_message_appears_and_ends_when_none_does(
    make, mode
) -> None:
    server, process_clock = make(mode)
    server.reset()
    orders, other = server.create_queue("orders"), server.create_queue("other")
    orders.send("hello", DelaySeconds=1)

    def receive(queue, seconds: int) -> list[str]:
        client = server.client()
        answer = client.receive_message(QueueUrl=queue.url, WaitTimeSeconds=seconds)
        return [message["Body"] for message in answer.get("Messages", [])]

    with ThreadPoolExecutor(2) as pool:
        served, ended = pool.submit(receive, orders, 20), pool.submit(receive, other, 2)
        if mode in {"frozen", "system"}:
            server.wait_for_pollers(2)
        let_pass(server, process_clock, mode, 1)
        assert served.result(timeout=WAIT) == ["hello"]
        let_pass(server, process_clock, mode, 1)
        assert ended.result(timeout=WAIT) == []


@pytest.mark.parametrize("mode", ["frozen", "system"])
def test_a_poll_ends_in_real_time_where_no_clock_moves(make, mode) -> None:
    server, _ = make(mode)
    server.reset()
    queue = server.create_queue("orders")
    before = server.clock.now_ms
    answer = server.client().receive_message(QueueUrl=queue.url, WaitTimeSeconds=1)

    assert "Messages" not in answer
    assert server.clock.now_ms == before


@pytest.mark.parametrize("mode", ["live", "frozen", "autojump", "system"])
def test_a_patch_that_ends_while_a_poll_is_parked_does_not_hang_it(library, mode) -> None:
    with ThreadPoolExecutor(1) as pool, ExitStack() as context:
        with ExitStack() as patch:
            ProcessClock(library, patch)
            server = context.enter_context(
                SqsServer(clock=mode, start=None if mode == "system" else START)
            )
            queue = server.create_queue("orders")
            client = server.client()
            with server.clock.hold():
                poll = pool.submit(client.receive_message, QueueUrl=queue.url, WaitTimeSeconds=1)
                server.wait_for_pollers(1)
        assert "Messages" not in poll.result(timeout=WAIT)
