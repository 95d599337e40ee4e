"""Eight senders and eight long-polling receivers at once, against the references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import median
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING

from botocore.config import Config

from .calls import BODY, new_queue
from .measure import Effort, Row, at_least, by_turns
from .references import Contenders, contenders, hook

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

SIDES = 8
GOAL = 0.85


def threads(effort: Effort) -> Iterator[Row]:
    """Each receiver takes its share of the messages, one by one, and deletes them."""
    with contenders() as bench:
        url = new_queue(bench.direct, "threads")
        _learn(bench, url)
        each = 25 if effort.scale == 1 else 2
        flows = {name: _Flow(client, url, each) for name, client in _clients(bench).items()}
        times = by_turns(effort.times(20).stop, {name: flow.run for name, flow in flows.items()})
        left = bench.server.queue(url).statistics.live_count
    for transport, (ours, reference) in bench.TRANSPORTS.items():
        rates = [b / a for a, b in zip(times[ours], times[reference], strict=True)]
        what = f"{SIDES} senders and {SIDES} receivers, {transport}, rate against `{reference}`"
        yield at_least(what, median(rates), GOAL, "{:.2f}x", rates)
    received = flows["direct"].received + flows["http"].received
    sent = flows["direct"].sent | flows["http"].sent
    lost, twice = len(sent - received.keys()), sum(n > 1 for n in received.values())
    yield Row(
        f"of these {len(sent):,} messages: lost, received twice, left over",
        "0, 0, 0",
        f"{lost}, {twice}, {left}",
        met=not (lost or twice or left),
    )


def _learn(bench: Contenders, url: str) -> None:
    bench.learn("SendMessage", "send_message", {"QueueUrl": url, "MessageBody": BODY})
    bench.learn("ReceiveMessage", "receive_message", {"QueueUrl": url})
    bench.learn("DeleteMessage", "delete_message", {"QueueUrl": url, "ReceiptHandle": _held(bench)})
    bench.direct.purge_queue(QueueUrl=url)


def _held(bench: Contenders) -> str:
    return bench.server.queue("threads").messages()[0].receipt_handle or ""


def _clients(bench: Contenders) -> dict[str, SQSClient]:
    pool = Config(max_pool_connections=2 * SIDES)
    reference = bench.clients["keep-alive"].meta.endpoint_url
    return {
        "direct": bench.server.client(transport="direct"),
        "hook": hook(bench.server.client(), bench.answers),
        "http": bench.server.client(config=pool),
        "keep-alive": bench.server.client(config=pool, endpoint_url=reference),
    }


class _Flow:
    """``each`` messages by each sender, through a queue, with a thread for each participant."""

    def __init__(self, client: SQSClient, url: str, each: int) -> None:
        self.sent: set[str] = set()
        self.received: Counter[str] = Counter()
        self._client = client
        self._url = url
        self._each = each

    def run(self) -> float:
        """Real seconds until every message was received and deleted."""
        client = id(self._client)
        bodies = [f"{client} {len(self.sent) + n:<190}" for n in range(SIDES * self._each)]
        self.sent.update(bodies)
        taken: list[str] = []
        working = [Thread(target=self._receive, args=(taken,)) for _ in range(SIDES)]
        working += [Thread(target=self._send, args=(bodies[n::SIDES],)) for n in range(SIDES)]
        started = perf_counter()
        for thread in working:
            thread.start()
        for thread in working:
            thread.join()
        seconds = perf_counter() - started
        self.received.update(taken)
        return seconds

    def _send(self, bodies: list[str]) -> None:
        for body in bodies:
            self._client.send_message(QueueUrl=self._url, MessageBody=body)

    def _receive(self, taken: list[str]) -> None:
        for _ in range(self._each):
            answer = self._client.receive_message(QueueUrl=self._url, WaitTimeSeconds=20)
            for message in answer.get("Messages", ()):
                taken.append(message["Body"])
                handle = message["ReceiptHandle"]
                self._client.delete_message(QueueUrl=self._url, ReceiptHandle=handle)
