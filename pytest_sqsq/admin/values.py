"""Events and messages as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from pytest_sqsq.models import Event, MessageView, instant_text


def event_document(event: Event) -> dict[str, Any]:
    return {
        "at": instant_text(event.at_ms),
        "at_ms": event.at_ms,
        "kind": event.kind,
        "queue": event.queue,
        "message_id": event.message_id,
        "body": event.body,
        "detail": dict(event.detail),
    }


def event_documents(events: Iterable[Event]) -> list[dict[str, Any]]:
    return [event_document(event) for event in events]


def message_document(view: MessageView) -> dict[str, Any]:
    """All that is known of a message; binary values of attributes stay bytes."""
    return asdict(view)
