"""The same calls and batches against moto's threaded server, where moto is installed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING
from warnings import catch_warnings

from pytest_sqsq import SqsServer

from .calls import BATCHES, SINGLE, timing
from .measure import Effort, Row, by_turns, ratio

if TYPE_CHECKING:
    from moto.server import ThreadedMotoServer


def moto(effort: Effort) -> Iterable[Row]:
    """How many times as long moto takes, over HTTP."""
    try:
        with catch_warnings(action="ignore"):  # it warns as well where its extra is missing
            from moto.server import ThreadedMotoServer
    except ImportError:
        return [Row("moto", "", "not installed", 'needs "moto[server]"')]
    return _rows(ThreadedMotoServer, effort)


def _rows(make_server: type[ThreadedMotoServer], effort: Effort) -> Iterator[Row]:
    server = make_server(port=0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it would log each request
    server.start()
    host, port = server.get_host_and_port()
    with SqsServer() as ours:
        clients = {
            "ours": ours.client(),
            "moto": ours.client(endpoint_url=f"http://{host}:{port}"),
        }
        for call in (*SINGLE, *BATCHES):
            times = by_turns(
                effort.rounds,
                {
                    name: timing(client, call, effort.calls, client)
                    for name, client in clients.items()
                },
            )
            what = f"{call.what}, HTTP, moto {version('moto')} against this server"
            yield ratio(what, times["moto"], times["ours"])
    server.stop()
