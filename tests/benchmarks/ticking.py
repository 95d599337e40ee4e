"""A tick that has a hundred thousand messages to deal with, and what others notice of it."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import perf_counter

import redis

from pytest_sqsq import SqsServer

from .advancing import fill
from .calls import BODY
from .measure import Effort, Row, Times, duration, rate, ratio_to, seconds_of
from .redis_server import redis_server

MESSAGES = 100_000
IDLE_CALLS = 300
DUE_SECONDS = 60

FAIR_SHARE = 2.0
"""So many times as long takes who shares the interpreter with one other thread."""


def ticks(effort: Effort) -> Iterator[Row]:
    """All due at one instant, in Redis, while a client sends to another queue."""
    count = effort.scaled(MESSAGES)
    with redis_server() as url:
        with SqsServer(store=url, clock="frozen") as server:
            queue = {"MessageRetentionPeriod": str(DUE_SECONDS)}
            tick = _Tick(server, url, count, queue)
            for _ in effort.times(3):
                tick.run(in_flight=False)
            yield from tick.rows("removed by retention", FAIR_SHARE)
        with SqsServer(store=url, clock="frozen") as server:
            queue = {"VisibilityTimeout": str(DUE_SECONDS)}
            tick = _Tick(server, url, count, queue, dead_letter_queue="dead")
            tick.run(in_flight=True)
            yield from tick.rows("moved to a dead-letter queue")


class _Tick:
    """A full queue, and another one that knows nothing of it."""

    def __init__(
        self,
        server: SqsServer,
        url: str,
        count: int,
        attributes: dict[str, str],
        dead_letter_queue: str | None = None,
    ) -> None:
        self._server = server
        self._count = count
        server.reset()
        if dead_letter_queue is not None:
            server.create_queue(dead_letter_queue)
        self._queue = server.create_queue(
            "full",
            attributes=attributes,
            dead_letter_queue=dead_letter_queue,
            max_receive_count=None if dead_letter_queue is None else 1,
        )
        self._other = server.create_queue("other")
        self._client = server.client(transport="direct")
        self._redis = redis.Redis.from_url(url)
        self._key = f"ssq:msg:000000000000:us-east-1:{self._queue.name}"
        self._seconds: Times = []
        self._idle: Times = []
        self._beside: Times = []

    def run(self, *, in_flight: bool) -> None:
        """One tick, which the clock begins by itself as it runs again."""
        server = self._server
        fill(server, self._queue.url, self._count, receive=in_flight)
        server.advance(DUE_SECONDS - 0.05)
        self._idle += [self._send() for _ in range(IDLE_CALLS)]
        server.clock.resume()
        started = perf_counter()
        while self._redis.hlen(self._key):
            self._beside.append(self._send())
        self._seconds.append(perf_counter() - started)
        server.clock.freeze()

    def rows(self, what: str, goal: float | None = None) -> Iterator[Row]:
        rates = [self._count / seconds for seconds in self._seconds]
        yield rate(f"{self._count:,} messages in Redis {what}", rates, "{:,.0f} messages/s")
        beside = f"send to another queue while they are {what}"
        yield ratio_to(f"{beside}, against before", self._beside, median(self._idle), at_most=goal)
        yield duration(f"longest {beside}", [max(self._beside)])

    def _send(self) -> float:
        return seconds_of(
            lambda: self._client.send_message(QueueUrl=self._other.url, MessageBody=BODY)
        )
