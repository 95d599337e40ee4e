"""What happened in a queue, so that questions about messages that are gone have an answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from threading import Lock

from pytest_sqsq.engine.message import Message
from pytest_sqsq.models import Event, EventKind

Listener = Callable[[Event], None]


class Listeners:
    """Who is told of each event, in every queue of a broker; may change at any time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.current: tuple[Listener, ...] = ()

    def add(self, listener: Listener) -> None:
        with self._lock:
            self.current = (*self.current, listener)

    def remove(self, listener: Listener) -> None:
        with self._lock:
            self.current = tuple(known for known in self.current if known != listener)


BODY_CHARACTERS = 64 * 1024 * 1024
"""At most so many characters of bodies are kept alive by one journal."""


class Journal:
    """A bounded history of one queue's events, oldest first.

    The oldest are forgotten when there are more than ``size``, or when the bodies they hold grow
    beyond ``BODY_CHARACTERS``; ``forgotten`` counts them.  Guarded by the queue's lock.
    ``listeners`` are shared by all queues of a broker; each event is told to them.
    """

    def __init__(self, queue_name: str, size: int, listeners: Listeners) -> None:
        self._queue_name = queue_name
        self._size = size
        self._events: deque[Event] = deque()
        self._listeners = listeners
        self._body_characters = 0
        self.forgotten = 0

    @property
    def events(self) -> tuple[Event, ...]:
        """All events remembered, oldest first.  O(n)."""
        return tuple(self._events)

    def record(
        self,
        at_ms: int,
        kind: EventKind,
        message: Message | None,
        detail: Mapping[str, str | int | None] | None = None,
    ) -> None:
        """Add an event; to be called before the message loses its body.  O(1) amortised."""
        if message is None:
            event = Event(at_ms, kind, self._queue_name, None, None, detail or {})
        else:
            body = message.body
            event = Event(at_ms, kind, self._queue_name, message.message_id, body, detail or {})
            if kind in {"sent", "moved"}:
                self._body_characters += len(body)
        events = self._events
        events.append(event)
        if len(events) > self._size or self._body_characters > BODY_CHARACTERS:
            self._forget()
        for listener in self._listeners.current:
            listener(event)

    def _forget(self) -> None:
        events = self._events
        while events and (len(events) > self._size or self._body_characters > BODY_CHARACTERS):
            event = events.popleft()
            self.forgotten += 1
            if event.kind in {"sent", "moved"} and event.body is not None:
                self._body_characters -= len(event.body)
