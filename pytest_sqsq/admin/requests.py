"""The requests that clients made."""

from __future__ import annotations

from pytest_sqsq.admin.fields import refusing_nonsense
from pytest_sqsq.admin.routing import Asked
from pytest_sqsq.gateway.fault_conditions import checked_action
from pytest_sqsq.protocol import HttpResponse
from pytest_sqsq.protocol.plain import json_answer


def show(asked: Asked) -> HttpResponse:
    """``GET requests``: oldest first; ``limit`` leaves the latest of them."""
    log, query = asked.server.requests, asked.query
    limit = query.integer("limit", 1)
    with refusing_nonsense():
        action = checked_action(query.text("action"))
        found = log.calls(action, query.text("queue"))
    shown = found if limit is None else found[-limit:]
    return json_answer(
        {"requests": [record._asdict() for record in shown], "forgotten": log.forgotten}
    )


def clear(asked: Asked) -> HttpResponse:
    """``DELETE requests``."""
    asked.server.requests.clear()
    return json_answer({})
