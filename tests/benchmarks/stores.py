"""The same calls with each kind of store: what it costs to keep everything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from pytest_sqsq import SqsServer

from .calls import BATCHES, SINGLE, timing
from .measure import Effort, Row, by_turns, rate, ratio
from .redis_server import redis_server

CALLS = ("send", "send 10", "receive 1", "delete")


def stores(effort: Effort) -> Iterator[Row]:
    """Whole boto3 calls, ``transport="direct"``; Redis runs in a process of its own."""
    with ExitStack() as stack:
        kinds = {
            "memory": "memory",
            "fakeredis": "fakeredis",
            "Redis": stack.enter_context(redis_server()),
        }
        servers = {
            name: stack.enter_context(SqsServer(store=store)) for name, store in kinds.items()
        }
        clients = {name: server.client(transport="direct") for name, server in servers.items()}
        for call in (*SINGLE, *BATCHES):
            if call.what not in CALLS:
                continue
            times = by_turns(
                effort.rounds,
                {
                    name: timing(client, call, effort.calls, client)
                    for name, client in clients.items()
                },
            )
            for name in kinds:
                rates = [effort.calls / seconds for seconds in times[name]]
                yield rate(f"{call.what}, kept in {name}", rates, "{:,.0f} calls/s")
            for name in ("fakeredis", "Redis"):
                yield ratio(f"{call.what}, {name} against memory", times[name], times["memory"])
