"""What happened in a queue, so that questions about messages that are gone have an answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from threading import Lock
from typing import NamedTuple

from pytest_sqsq.engine.message import Message
from pytest_sqsq.models import NO_DETAIL, Event, EventKind, MessageAttribute

Listener = Callable[[Event], None]


class Listeners:
    """Who is told of each event, in every queue of a broker; may change at any time.

    ``current`` is replaced whole, so that it is read without the lock.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.current: tuple[Listener, ...] = ()

    def add(self, listener: Listener) -> None:
        """Tell a listener of all events from now on, in the thread in which each happens."""
        with self._lock:
            self.current = (*self.current, listener)

    def remove(self, listener: Listener) -> None:
        """Tell a listener no more; one that is not there is no fault."""
        with self._lock:
            self.current = tuple(known for known in self.current if known != listener)


CONTENT_CHARACTERS = 64 * 1024 * 1024
"""At most so many characters of bodies and attributes are kept alive by one journal."""


class Content(NamedTuple):
    """What a message that may be gone consisted of when it arrived, beside its body."""

    arrival: Event
    sent_ms: int
    receive_count: int
    first_received_ms: int | None
    attributes: Mapping[str, MessageAttribute] | None
    message_group_id: str | None
    message_deduplication_id: str | None
    sequence_number: int | None
    trace_header: str | None
    dead_letter_source_arn: str | None


class Journal:
    """A bounded history of one queue's events, oldest first.

    The oldest are forgotten when there are more than ``size``, or when the contents they hold
    grow beyond ``CONTENT_CHARACTERS``; ``forgotten`` counts them.  ``began_late`` says
    that the queue is older than its journal: a restart came between.  Guarded by the queue's lock.
    ``listeners`` are shared by all queues of a broker; each event is told to them.
    """

    def __init__(self, queue_name: str, size: int, listeners: Listeners) -> None:
        self._queue_name = queue_name
        self._size = size
        self._events: deque[Event] = deque()
        # Only of messages that have more to them than a body, as long as their arrival is known.
        self._contents: dict[str, Content] = {}
        self._listeners = listeners
        self._characters = 0
        self.forgotten = 0
        self.began_late = False

    @property
    def events(self) -> tuple[Event, ...]:
        """All events remembered, oldest first.  O(n)."""
        return tuple(self._events)

    @property
    def contents(self) -> Mapping[str, Content]:
        """What messages consisted of, by message id; one without an entry was a body only.

        Of messages whose arrival is remembered.  A copy: O(n).
        """
        return dict(self._contents)

    def record(
        self,
        at_ms: int,
        kind: EventKind,
        message: Message | None,
        detail: Mapping[str, str | int | None] | None = None,
    ) -> None:
        """Add an event; to be called before the message loses its body.  O(1) amortised."""
        if detail is None:
            detail = NO_DETAIL
        if message is None:
            event = Event(at_ms, kind, self._queue_name, None, None, detail)
        else:
            body = message.body
            event = Event(at_ms, kind, self._queue_name, message.message_id, body, detail)
            if kind in {"sent", "moved"}:
                self._keep_content(event, message)
        self._add(event)

    def record_duplicate(self, at_ms: int, original_message_id: str, body: str) -> None:
        """Add that a send of ``body`` was taken for a repetition of an earlier message."""
        self._add(Event(at_ms, "deduplicated", self._queue_name, original_message_id, body))

    def _add(self, event: Event) -> None:
        events = self._events
        events.append(event)
        if len(events) > self._size or self._characters > CONTENT_CHARACTERS:
            self._forget()
        for listener in self._listeners.current:
            listener(event)

    def _keep_content(self, event: Event, message: Message) -> None:
        self._characters += len(message.body)
        attributes = message.attributes
        if (
            attributes is None
            and message.message_group_id is None
            and message.trace_header is None
            and event.kind == "sent"
        ):
            return
        replaced = self._contents.get(message.message_id)
        if replaced is not None:
            self._characters -= _characters(replaced.attributes)
        self._characters += _characters(attributes)
        self._contents[message.message_id] = Content(
            event,
            message.sent_ms,
            message.receive_count,
            message.first_received_ms,
            attributes,
            message.message_group_id,
            message.message_deduplication_id,
            message.sequence_number,
            message.trace_header,
            message.dead_letter_source_arn,
        )

    def _forget(self) -> None:
        events = self._events
        while events and (len(events) > self._size or self._characters > CONTENT_CHARACTERS):
            event = events.popleft()
            self.forgotten += 1
            if event.kind in {"sent", "moved"} and event.message_id is not None:
                self._forget_content(event, event.message_id)

    def _forget_content(self, event: Event, message_id: str) -> None:
        self._characters -= len(event.body or "")
        content = self._contents.get(message_id)
        # A message that came back has a later arrival, which is still remembered.
        if content is not None and content.arrival is event:
            del self._contents[message_id]
            self._characters -= _characters(content.attributes)


def _characters(attributes: Mapping[str, MessageAttribute] | None) -> int:
    if attributes is None:
        return 0
    return sum(len(name) + len(value) for name, (_, value) in attributes.items())
