"""How quickly a parked poll is answered, and what it costs while it waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Thread
from time import perf_counter, process_time
from typing import TYPE_CHECKING

from pytest_sqsq import SqsServer

from .calls import BODY, new_queue
from .measure import Effort, Row, duration

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

PARKED = 20
SECONDS = 5.0
CPU_SECONDS = 0.02


def polls(effort: Effort) -> Iterator[Row]:
    """Over HTTP."""
    with SqsServer() as server:
        url = new_queue(server.client(transport="direct"), "polls")
        seconds = [_until_received(server, url) for _ in range(effort.rounds)]
        yield duration("from a send to its parked receiver", seconds, at_most=3)
        yield _cpu(server, url, SECONDS if effort.scale == 1 else 0.1)


def _until_received(server: SqsServer, url: str) -> float:
    received: list[float] = []
    (receiver,) = _parked(server, url, 1, lambda: received.append(perf_counter()))
    sender = server.client()
    sender.get_queue_attributes(QueueUrl=url)  # connects
    started = perf_counter()
    sender.send_message(QueueUrl=url, MessageBody=BODY)
    receiver.join()
    return received[0] - started


def _parked(
    server: SqsServer, url: str, count: int, on_received: Callable[[], None]
) -> list[Thread]:
    def receive(client: SQSClient) -> None:
        client.receive_message(QueueUrl=url, WaitTimeSeconds=20)
        on_received()

    receivers = [Thread(target=receive, args=(server.client(),)) for _ in range(count)]
    for receiver in receivers:
        receiver.start()
    server.wait_for_pollers(count)
    return receivers


def _cpu(server: SqsServer, url: str, seconds: float) -> Row:
    """Of the whole process, clients included, which wait as well."""
    receivers = _parked(server, url, PARKED, lambda: None)
    before = process_time()
    Event().wait(seconds)
    spent = process_time() - before
    for _ in receivers:
        server.queue(url).send(BODY)
    for receiver in receivers:
        receiver.join()
    what = f"CPU of {PARKED} parked polls in {seconds:g} s"
    return Row(what, f"<= {CPU_SECONDS} s", f"{spent:.3f} s", met=spent <= CPU_SECONDS)
