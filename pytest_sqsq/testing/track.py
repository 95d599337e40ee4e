"""What happens during a part of a test."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from pytest_sqsq.models import Event, EventKind
from pytest_sqsq.testing.world import World


class Session:
    """The events on all queues while its context lasts, oldest first; readable afterwards.

    What is due when the context begins has happened before it, what is due when it ends belongs
    to it.  Usable once.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        # Appending to a list is atomic: listeners are called under the locks of many queues.
        self._events: list[Event] = []

    def __enter__(self) -> Self:
        broker = self._world.broker
        broker.settle(self._world.clock.now_ms)
        broker.add_listener(self._events.append)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        broker = self._world.broker
        broker.settle(self._world.clock.now_ms)
        broker.remove_listener(self._events.append)

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def sent(self) -> tuple[Event, ...]:
        return self._of("sent")

    @property
    def deduplicated(self) -> tuple[Event, ...]:
        """Sends that a FIFO queue took for repetitions and dropped."""
        return self._of("deduplicated")

    @property
    def received(self) -> tuple[Event, ...]:
        return self._of("received")

    @property
    def visibility_changed(self) -> tuple[Event, ...]:
        return self._of("visibility_changed")

    @property
    def returned(self) -> tuple[Event, ...]:
        """Messages that a consumer gave back at once, by a visibility timeout of 0."""
        return self._of("returned")

    @property
    def visible(self) -> tuple[Event, ...]:
        """Messages whose delay or visibility timeout ended."""
        return self._of("visible")

    @property
    def deleted(self) -> tuple[Event, ...]:
        return self._of("deleted")

    @property
    def dead_lettered(self) -> tuple[Event, ...]:
        """Messages that left for a dead-letter queue, on the queue that they left."""
        return self._of("dead_lettered")

    @property
    def moved(self) -> tuple[Event, ...]:
        """Moves between queues, dead-letter moves as arrivals included."""
        return self._of("moved")

    @property
    def expired(self) -> tuple[Event, ...]:
        return self._of("expired")

    @property
    def purged(self) -> tuple[Event, ...]:
        """Purges, one event each, whatever was there."""
        return self._of("purged")

    def _of(self, kind: EventKind) -> tuple[Event, ...]:
        return tuple(event for event in self.events if event.kind == kind)
