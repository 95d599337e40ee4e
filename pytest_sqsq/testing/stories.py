"""The journal of a queue, message by message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pytest_sqsq.models import Event, EventKind


def is_arrival(event: Event) -> bool:
    """Whether the event brought its message into the queue: a send, or a move from elsewhere."""
    return event.kind == "sent" or (event.kind == "moved" and "source_arn" in event.detail)


def is_departure(event: Event) -> bool:
    """Whether the event took its message out of the queue."""
    return event.kind in ("deleted", "dead_lettered", "expired", "purged") or (
        event.kind == "moved" and "source_arn" not in event.detail
    )


@dataclass(frozen=True)
class Story:
    """What the journal of a queue holds about one message, oldest first; never empty."""

    message_id: str
    events: tuple[Event, ...]

    @cached_property
    def body(self) -> str:
        return next((event.body for event in self.events if event.body is not None), "")

    @property
    def begins_with_arrival(self) -> bool:
        """Whether nothing of the message's time in this queue has been forgotten."""
        return is_arrival(self.events[0])

    @property
    def departure(self) -> Event | None:
        """The event that took the message out, or ``None`` while it is there."""
        return self.events[-1] if is_departure(self.events[-1]) else None

    @property
    def extensions(self) -> tuple[Event, ...]:
        """The changes of visibility that end no earlier than the deadline they replaced."""
        found = []
        deadline = 0
        for event in self.events:
            visible_at_ms = event.detail.get("visible_at_ms")
            if not isinstance(visible_at_ms, int):
                continue
            if event.kind == "visibility_changed" and visible_at_ms >= deadline:
                found.append(event)
            deadline = visible_at_ms
        return tuple(found)

    def of_kind(self, *kinds: EventKind) -> tuple[Event, ...]:
        return tuple(event for event in self.events if event.kind in kinds)


def stories_of(events: Sequence[Event]) -> Mapping[str, Story]:
    """The events by message, in order of each message's first one.  O(n).

    A purge is one event of the queue; it belongs to every message that was there.
    """
    found: dict[str, list[Event]] = {}
    present: dict[str, None] = {}
    for event in events:
        if event.message_id is None:
            if event.kind == "purged":
                for message_id in present:
                    found[message_id].append(event)
                present.clear()
            continue
        found.setdefault(event.message_id, []).append(event)
        if is_departure(event):
            present.pop(event.message_id, None)
        elif event.kind != "deduplicated":
            present[event.message_id] = None
    return {message_id: Story(message_id, tuple(found[message_id])) for message_id in found}
