"""Waiting for what consumers do."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, cast, get_args

from pytest_sqsq.admin.fields import Fields, Refusal, refusing_nonsense
from pytest_sqsq.admin.routing import Asked
from pytest_sqsq.admin.values import message_document
from pytest_sqsq.errors import WaitTimeout
from pytest_sqsq.models import MessageState, MessageView
from pytest_sqsq.protocol import HttpResponse
from pytest_sqsq.protocol.plain import json_answer

if TYPE_CHECKING:
    from pytest_sqsq.admin.controlled import Wait
    from pytest_sqsq.models import QueueKey

# Real seconds.
DEFAULT_TIMEOUT = 5.0
LONGEST_TIMEOUT = 600.0
# Between two looks at whether somebody still waits, which free the thread.
ALIVE_CHECK_SECONDS = 1.0

#: What can be waited for, and the keys that belong to it.
AIMS = {
    "idle": (),
    "pollers": ("queue", "count"),
    "messages": ("queue", "count", "body", "state"),
    "empty": ("queue",),
}

KEYS = ("for", "timeout", *AIMS["messages"])


def wait(asked: Asked) -> HttpResponse:
    """``POST wait``: for so many real seconds at most."""
    body = asked.body
    body.require("for")
    aim = body.choice("for", tuple(AIMS)) or "idle"
    for key in body:
        if key not in {*AIMS[aim], "for", "timeout"}:
            raise Refusal(400, f"{key} has no meaning in a wait for {aim}")
    steps = _steps(asked, aim)
    try:
        result = _run(asked, steps)
    except WaitTimeout as error:
        raise Refusal(408, str(error)) from None
    if aim != "messages":
        return json_answer({})
    views = cast("tuple[MessageView, ...]", result)
    return json_answer({"messages": [message_document(view) for view in views]})


def _steps(asked: Asked, aim: str) -> Wait:
    body, helpers = asked.body, asked.helpers
    timeout = body.seconds("timeout", at_most=LONGEST_TIMEOUT)
    seconds = DEFAULT_TIMEOUT if timeout is None else timeout
    if aim == "idle":
        return helpers.until_idle(seconds)
    key = _queue(asked)
    if aim == "pollers":
        return helpers.until_parked(_count(body, 1), key, seconds)
    if key is None:
        raise Refusal(400, f"queue is missing: its name, URL or ARN, for a wait for {aim}")
    if aim == "empty":
        return helpers.until_empty(key, seconds)
    state = body.choice("state", get_args(MessageState))
    return helpers.until_there(key, body.body("body"), _count(body, 0), state, seconds)


def _queue(asked: Asked) -> QueueKey | None:
    name = asked.body.text("queue")
    with refusing_nonsense():
        return None if name is None else asked.helpers.find_key(name)


def _count(body: Fields, least: int) -> int:
    count = body.integer("count", least)
    return 1 if count is None else count


def _run(asked: Asked, steps: Wait) -> Any:
    server = asked.server
    with closing(steps), server.traffic.set_aside():
        while True:
            try:
                since, seconds = next(steps)
            except StopIteration as end:
                return end.value
            server.traffic.wait_for_change(since, min(seconds, ALIVE_CHECK_SECONDS))
            if not server.is_running:
                raise Refusal(503, "the server was stopped")
            if not asked.request.is_alive():
                raise Refusal(503, "the client has gone")
