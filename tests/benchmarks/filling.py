"""How fast a queue fills, and what a message weighs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .calls import new_queue
from .measure import Effort, Row, at_least, by_turns, ratio, spread
from .references import Contenders, contenders

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import SendMessageBatchRequestTypeDef

MESSAGES = 100_000
PARTS = 20
RATE = 7_000
BYTES = 900


def fill(effort: Effort) -> Iterator[Row]:
    """100,000 messages in batches of ten, in 20 parts, by turns with the references."""
    batches = effort.scaled(MESSAGES) // 10 // PARTS or 1
    with contenders() as bench:
        yield from _weight(bench, batches)
        for transport, (ours, reference) in bench.TRANSPORTS.items():
            url = new_queue(bench.direct, ours)
            bench.learn("SendMessageBatch", "send_message_batch", _batch(url, 0))
            times = by_turns(
                effort.times(PARTS).stop,
                {
                    name: partial(_send, bench.clients[name], url, batches)
                    for name in (ours, reference)
                },
            )
            rates = [batches * 10 / seconds for seconds in times[ours]]
            what = f"fill {batches * 10 * len(rates):,} messages, {transport}"
            yield at_least(what, median(rates), RATE, "{:,.0f} messages/s", rates)
            yield ratio(f"the same against `{reference}`", times[ours], times[reference])


def _batch(url: str, number: int) -> SendMessageBatchRequestTypeDef:
    entries: Any = [{"Id": str(n), "MessageBody": f"{10 * number + n:<200}"} for n in range(10)]
    return {"QueueUrl": url, "Entries": entries}


def _send(client: SQSClient, url: str, batches: int) -> float:
    started = perf_counter()
    for number in range(batches):
        client.send_message_batch(**_batch(url, number))
    return perf_counter() - started


def _weight(bench: Contenders, batches: int) -> Iterator[Row]:
    """Resident memory for each message, over HTTP, with everything that the server remembers."""
    if not Path("/proc/self/statm").exists():
        return
    url = new_queue(bench.direct, "weight")
    _send(bench.clients["http"], url, 1)
    weights = []
    for _ in range(PARTS):
        before = _resident_bytes()
        _send(bench.clients["http"], url, batches)
        weights.append((_resident_bytes() - before) / (10 * batches))
    mean = sum(weights) / len(weights)
    what = f"memory of a message of 200 bytes, {10 * batches * PARTS:,} of them"
    yield Row(what, f"<= {BYTES} bytes", f"{mean:.0f} bytes", spread(weights), mean <= BYTES)


def _resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
