"""What an advance costs: as much as is due, and nothing for what is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .measure import Effort, Row, by_turns, ratio, seconds_of

if TYPE_CHECKING:
    from pytest_sqsq import SqsServer

DUE = 10_000
IDLE = 1_000_000
TIMES = 10
# The logarithm of heaps, and the passes of the garbage collector over what an advance returns.
LINEAR = 2.0


def advance(effort: Effort) -> Iterator[Row]:
    """The end of the visibility timeouts of messages in flight."""
    from pytest_sqsq import SqsServer

    rounds = effort.times(20).stop
    due, idle = effort.scaled(DUE), effort.scaled(IDLE)
    with SqsServer(clock="frozen") as few, SqsServer(clock="frozen") as many:
        _fill(few, due)
        _fill(many, TIMES * due)
        ends = {"few": _end_of(few, due), "many": _end_of(many, TIMES * due)}
        times = by_turns(rounds, ends)
        each = [seconds / TIMES for seconds in times["many"]]
        what = f"advance over {TIMES * due:,} due messages, each against {due:,} due"
        yield ratio(what, each, times["few"], at_most=LINEAR)
    with SqsServer(clock="frozen") as alone, SqsServer(clock="frozen") as beside:
        _fill(alone, due)
        _fill(beside, due)
        _fill(beside, idle, queue="idle")
        times = by_turns(rounds, {"alone": _end_of(alone, due), "beside": _end_of(beside, due)})
        what = f"advance over {due:,} due messages beside {idle:,} idle ones, against none idle"
        yield ratio(what, times["beside"], times["alone"], at_most=1.25)


def fill(server: SqsServer, url: str, count: int, *, receive: bool = False) -> None:
    """So many messages of 200 bytes; at once in flight if ``receive``."""
    from pytest_sqsq.actions import perform

    context = server.context("000000000000", "us-east-1")
    entries = [{"Id": str(n), "MessageBody": "x" * 200} for n in range(10)]
    for _ in range(0, count, 10):
        perform(context, "SendMessageBatch", {"QueueUrl": url, "Entries": entries})
        if receive:
            perform(context, "ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 10})


def _fill(server: SqsServer, count: int, queue: str = "due") -> None:
    fill(server, server.create_queue(queue).url, count)


def _end_of(server: SqsServer, count: int) -> Callable[[], float]:
    from pytest_sqsq.actions import perform

    context = server.context("000000000000", "us-east-1")
    ask = {"QueueUrl": server.queue("due").url, "MaxNumberOfMessages": 10}

    def seconds() -> float:
        for _ in range(0, count, 10):
            perform(context, "ReceiveMessage", ask)
        spent = seconds_of(lambda: server.advance(30))
        assert server.queue("due").statistics.visible == server.queue("due").statistics.live_count
        return spent

    return seconds
