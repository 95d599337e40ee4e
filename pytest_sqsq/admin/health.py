"""Whether the server serves, and whether its store does."""

from __future__ import annotations

from importlib.metadata import version

from pytest_sqsq.admin.routing import Asked
from pytest_sqsq.protocol import HttpResponse
from pytest_sqsq.protocol.plain import json_answer

_KINDS = ("memory", "fakeredis")


def show(asked: Asked) -> HttpResponse:
    """``GET health``: never waits for the store."""
    server = asked.server
    trouble = server.broker.store_trouble
    store = server.options["store"]
    return json_answer(
        {
            "status": "ok" if trouble is None else "degraded",
            "version": version("pytest-sqsq"),
            "store": {"kind": store if store in _KINDS else "redis", "trouble": trouble},
            "clock": server.clock.mode,
            "queues": len(server.broker.queues),
        }
    )
