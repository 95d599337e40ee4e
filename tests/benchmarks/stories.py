"""Stories of four consumers that poll in threads while time jumps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING, Literal, TypeAlias

from botocore.exceptions import BotoCoreError

from pytest_sqsq import SqsServer
from pytest_sqsq.clock import AUTOJUMP_THRESHOLD

from .calls import BODY
from .measure import Effort, Row, duration, seconds_of

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

Transport: TypeAlias = Literal["http", "direct"]
TRANSPORTS: tuple[Transport, ...] = ("http", "direct")

CONSUMERS = 4
DAYS = timedelta(days=2)
HOURS = timedelta(hours=2)
GOAL_MS = 2000

# All consumers have polled here, so that time could jump as soon as all are parked.
SHORT_THRESHOLD = 0.0005


def stories(effort: Effort) -> Iterator[Row]:
    """Real seconds of whole calls of ``run_for``; a message comes each half hour."""
    with _consumers("http") as server:
        days = [_tell(server, DAYS, skip_empty_polls=True) for _ in effort.times(5)]
    yield duration("two days without empty polls, HTTP", days, at_most=GOAL_MS)
    hours = HOURS if effort.scale == 1 else timedelta(minutes=2)
    for transport in TRANSPORTS:
        for threshold in (AUTOJUMP_THRESHOLD, SHORT_THRESHOLD):
            with _consumers(transport, threshold) as server:
                times = [_tell(server, hours) for _ in effort.times(5)]
            what = f"two hours with every poll, {transport}, threshold {1000 * threshold:g} ms"
            yield duration(what, times, at_most=GOAL_MS)


def _tell(server: SqsServer, span: timedelta, *, skip_empty_polls: bool = False) -> float:
    return seconds_of(lambda: server.run_for(span, skip_empty_polls=skip_empty_polls))


@contextmanager
def _consumers(transport: Transport, threshold: float = AUTOJUMP_THRESHOLD) -> Iterator[SqsServer]:
    """A server whose clock stands, and its consumers, all of whom have polled."""
    with ExitStack() as stack:
        server = SqsServer(clock="frozen", autojump_threshold=threshold)
        stack.enter_context(server)
        queue = server.create_queue("orders", dead_letter_queue="failed", max_receive_count=3)
        stopping = Event()
        clients = [server.client(transport=transport) for _ in range(CONSUMERS)]
        threads = [Thread(target=_consume, args=(one, queue.url, stopping)) for one in clients]
        for thread in threads:
            stack.callback(thread.join)
            thread.start()
        stack.callback(server.stop)  # which ends their polls
        stack.callback(stopping.set)
        server.wait_for_pollers(CONSUMERS)
        server.clock.call_every(timedelta(minutes=30), lambda: queue.send(BODY))
        yield server
        assert server.clock.busy_jumps == 0


def _consume(client: SQSClient, url: str, stopping: Event) -> None:
    while not stopping.is_set():
        try:
            answer = client.receive_message(QueueUrl=url, WaitTimeSeconds=20)
            for message in answer.get("Messages", ()):
                client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        except (BotoCoreError, client.exceptions.ClientError):
            if not stopping.is_set():
                raise
