"""Reading and moving the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_sqsq.admin.fields import Refusal, refusing_nonsense
from pytest_sqsq.admin.routing import Asked
from pytest_sqsq.admin.values import event_document, event_documents
from pytest_sqsq.models import instant_text
from pytest_sqsq.protocol import HttpResponse
from pytest_sqsq.protocol.plain import json_answer
from pytest_sqsq.timeline import duration_ms, instant_ms, within_calendar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_sqsq.clock import Clock
    from pytest_sqsq.models import Event


def show(asked: Asked) -> HttpResponse:
    """``GET clock``."""
    return json_answer(_document(asked.server.clock))


def advance(asked: Asked) -> HttpResponse:
    """``POST clock/advance``."""
    asked.body.require("seconds")
    seconds = asked.body.seconds("seconds", at_most=float(10**12)) or 0
    clock = asked.server.clock
    clock.require_movable("advance")
    with refusing_nonsense():
        within_calendar(clock.now_ms + duration_ms(seconds))
    return _moved(clock, clock.advance(seconds))


def travel_to(asked: Asked) -> HttpResponse:
    """``POST clock/travel_to``."""
    asked.body.require("instant")
    instant = asked.body.text("instant") or ""
    with refusing_nonsense():
        target = within_calendar(instant_ms(instant))
    clock = asked.server.clock
    try:
        return _moved(clock, clock.travel_to(instant))
    except ValueError as error:
        if clock.now_ms > target:
            raise Refusal(400, str(error)) from None
        raise  # by a callback on the way


def advance_to_next_event(asked: Asked) -> HttpResponse:
    """``POST clock/advance_to_next_event``."""
    clock = asked.server.clock
    event = clock.advance_to_next_event()
    return _moved(clock, () if event is None else (event,))


def freeze(asked: Asked) -> HttpResponse:
    """``POST clock/freeze``."""
    asked.server.clock.freeze()
    return _moved(asked.server.clock)


def resume(asked: Asked) -> HttpResponse:
    """``POST clock/resume``."""
    asked.server.clock.resume()
    return _moved(asked.server.clock)


def autojump(asked: Asked) -> HttpResponse:
    """``POST clock/autojump``."""
    body = asked.body
    asked.server.clock.autojump(
        threshold=body.seconds("threshold", above=0),
        grace=body.seconds("grace", above=0),
        skip_empty_polls=body.flag("skip_empty_polls") or False,
    )
    return _moved(asked.server.clock)


def tick(asked: Asked) -> HttpResponse:
    """``POST tick``."""
    return json_answer({"events": event_documents(asked.server.tick())})


def reset(asked: Asked) -> HttpResponse:
    """``POST reset``."""
    asked.server.reset()
    return show(asked)


def _document(clock: Clock) -> dict[str, Any]:
    now_ms, event = clock.now_ms, clock.next_event
    return {
        "now": instant_text(now_ms),
        "now_ms": now_ms,
        "mode": clock.mode,
        "next_event": None if event is None else event_document(event),
    }


def _moved(clock: Clock, events: Iterable[Event] = ()) -> HttpResponse:
    return json_answer({**_document(clock), "events": event_documents(events)})
