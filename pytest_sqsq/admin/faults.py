"""Planning what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pytest_sqsq.admin.fields import Fields, Refusal, refusing_nonsense
from pytest_sqsq.admin.routing import Asked
from pytest_sqsq.protocol import HttpResponse
from pytest_sqsq.protocol.plain import json_answer

if TYPE_CHECKING:
    from pytest_sqsq.gateway.fault_turns import Fault

#: What each method of the faults takes, by the keys of a request.
KINDS: Mapping[str, tuple[str, ...]] = {
    "add": (
        *("action", "queue", "body"),
        *("times", "after", "after_seconds", "sequence", "for_seconds", "probability"),
        *("error", "status", "latency", "clock", "drop_connection", "truncate", "fail_entries"),
    ),
    "throttle": ("rate", "action", "queue"),
    "duplicate_delivery": ("queue", "probability", "times"),
    "late_duplicate": ("queue", "after_seconds", "times"),
    "lost_delete": ("queue", "times"),
    "stale_counts": ("queue",),
    "store_down": (),
}

KEYS = ("kind", *dict.fromkeys(key for keys in KINDS.values() for key in keys))


def show(asked: Asked) -> HttpResponse:
    """``GET faults``: all since the last reset, those that are over too."""
    planned = enumerate(asked.server.faults, 1)
    return json_answer(
        {"faults": [{**_document(number, each), "fired": each.fired} for number, each in planned]}
    )


def plan(asked: Asked) -> HttpResponse:
    """``POST faults``."""
    body, faults = asked.body, asked.server.faults
    kind = body.choice("kind", tuple(KINDS)) or "add"
    for key in body:
        if key not in (*KINDS[kind], "kind"):
            takes = ", ".join(KINDS[kind]) or "nothing else"
            raise Refusal(400, f"{key} is not for {kind}, which takes {takes}")
    if kind == "throttle":
        body.require("rate")
    arguments = _arguments(body)
    with refusing_nonsense():
        fault: Fault = getattr(faults, kind)(**arguments)
    number = list(faults).index(fault) + 1
    return json_answer(_document(number, fault), 201)


def remove(asked: Asked) -> HttpResponse:
    """``DELETE faults/{id}``."""
    text = asked.captured["id"]
    planned = {str(number): fault for number, fault in enumerate(asked.server.faults, 1)}
    if text not in planned:
        raise Refusal(404, f"there is no fault {text!r}; {len(planned)} were planned")
    planned[text].remove()
    return json_answer({})


def clear(asked: Asked) -> HttpResponse:
    """``DELETE faults``."""
    asked.server.faults.clear()
    return json_answer({})


def _document(number: int, fault: Fault) -> dict[str, Any]:
    return {"id": number, "text": fault.text}


def _arguments(body: Fields) -> dict[str, Any]:
    """What a method of the faults is called with; it checks the values by itself."""
    if "after" in body and "after_seconds" in body:
        raise Refusal(400, "give after, a number of requests, or after_seconds, not both")
    arguments = {}
    for key in body:
        if key != "kind":
            name, read = _READERS.get(key, (key, Fields.raw))
            arguments[name] = read(body, key)
    return arguments


def _span(body: Fields, key: str) -> timedelta:
    return timedelta(seconds=body.seconds(key, above=0) or 0)


def _seconds(body: Fields, key: str) -> float | None:
    return body.seconds(key, above=0)


_READERS: Mapping[str, tuple[str, Callable[[Fields, str], Any]]] = {
    "after_seconds": ("after", _span),
    "body": ("body", Fields.body),
    "for_seconds": ("for_seconds", _seconds),
    "latency": ("latency", _seconds),
    "rate": ("rate", Fields.number),
}
