"""Sixteen clients at once over real HTTP: nothing lost, nothing twice, FIFO groups in order.

The clock is frozen, so no visibility timeout ends: a message delivered twice would be a fault.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING

import pytest

from pytest_sqsq import SqsServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_sqsq.testing import QueueProbe

MESSAGES = 5_000
SENDERS = 8
RECEIVERS = 8
BATCH = 10


@pytest.fixture
def server() -> Iterator[SqsServer]:
    with SqsServer(clock="frozen") as server:
        yield server
        server.check()


class Ledger:
    """What all receivers got, and in which order each group was handed out."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.received: list[str] = []

    def note(self, bodies: list[str]) -> None:
        with self._lock:
            self.received.extend(bodies)

    @property
    def is_full(self) -> bool:
        return len(self.received) >= MESSAGES


def send_all(
    server: SqsServer, url: str, sender: int, entry: Callable[[int], dict[str, str]]
) -> None:
    client = server.client()
    numbers = range(sender, MESSAGES, SENDERS)
    for start in range(0, len(numbers), BATCH):
        entries = [{"Id": str(n), **entry(n)} for n in numbers[start : start + BATCH]]
        answer = client.send_message_batch(QueueUrl=url, Entries=entries)
        assert len(answer["Successful"]) == len(entries)


def receive_all(server: SqsServer, url: str, ledger: Ledger) -> None:
    client = server.client()
    while not ledger.is_full:
        answer = client.receive_message(QueueUrl=url, MaxNumberOfMessages=BATCH, WaitTimeSeconds=1)
        messages = answer.get("Messages", [])
        if not messages:
            continue
        # Before the deletion: in a FIFO queue nobody gets the rest of a group until then.
        ledger.note([message["Body"] for message in messages])
        deleted = client.delete_message_batch(
            QueueUrl=url,
            Entries=[
                {"Id": str(i), "ReceiptHandle": message["ReceiptHandle"]}
                for i, message in enumerate(messages)
            ],
        )
        assert "Failed" not in deleted


def run(server: SqsServer, queue: QueueProbe, entry: Callable[[int], dict[str, str]]) -> list[str]:
    ledger = Ledger()
    with ThreadPoolExecutor(SENDERS + RECEIVERS) as threads:
        work = [threads.submit(send_all, server, queue.url, n, entry) for n in range(SENDERS)]
        work += [threads.submit(receive_all, server, queue.url, ledger) for _ in range(RECEIVERS)]
        for task in work:
            task.result(timeout=120)
    return ledger.received


def test_a_standard_queue_delivers_each_message_to_exactly_one_client(server: SqsServer) -> None:
    queue = server.create_queue("jobs")
    received = run(server, queue, lambda n: {"MessageBody": str(n)})
    assert Counter(received) == Counter(map(str, range(MESSAGES)))
    queue.assert_empty()
    assert queue.statistics.deleted == MESSAGES


def test_a_fifo_queue_keeps_each_group_in_order_among_eight_clients(server: SqsServer) -> None:
    queue = server.create_queue("orders.fifo")
    # A group belongs to one sender, so that the order of its sends is known.
    received = run(
        server,
        queue,
        lambda n: {
            "MessageBody": str(n),
            "MessageGroupId": f"{n % SENDERS}-{n // SENDERS % 3}",
            "MessageDeduplicationId": str(n),
        },
    )
    assert Counter(received) == Counter(map(str, range(MESSAGES)))
    by_group: dict[tuple[int, int], list[int]] = {}
    for body in received:
        number = int(body)
        by_group.setdefault((number % SENDERS, number // SENDERS % 3), []).append(number)
    assert len(by_group) == SENDERS * 3
    for group, numbers in by_group.items():
        assert numbers == sorted(numbers), f"group {group} was delivered out of order"
    queue.assert_empty()
