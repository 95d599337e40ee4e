"""What happens during a part of a test."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from types import TracebackType
from typing import Self

from pytest_sqsq.errors import QueueDoesNotExist
from pytest_sqsq.models import Event, EventKind
from pytest_sqsq.testing.looks import Sample, take_look
from pytest_sqsq.testing.world import World


def all_events(world: World) -> tuple[Event, ...]:
    """What has happened on all queues that are there, oldest first.

    What happened at one instant comes queue by queue, those with a dead-letter queue first.
    Raises ``JournalForgotten`` where a journal has dropped a part.  O(events).
    """
    return tuple(merge(*_journals(world), key=lambda event: event.at_ms))


def _journals(world: World) -> Iterator[tuple[Event, ...]]:
    # What is dead-lettered leaves one queue before it arrives in the other.
    sources_first = sorted(
        world.broker.queues, key=lambda queue: queue.settings.redrive_policy is None
    )
    for queue in sources_first:
        try:
            look = take_look(world, queue.key, Sample())
        except QueueDoesNotExist:
            continue
        look.require_whole_journal("events")
        yield look.events


class Session:
    """The events on all queues while its context lasts, oldest first; readable afterwards.

    What is due when the context begins has happened before it, what is due when it ends belongs
    to it.  Usable once: entering it again, and asking before it was entered, is a
    ``RuntimeError``.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        # Appending to a list is atomic: listeners are called under the locks of many queues.
        self._events: list[Event] = []
        self._is_entered = False

    def __enter__(self) -> Self:
        if self._is_entered:
            raise RuntimeError("this session is over: call track() for another one")
        self._is_entered = True
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
        """All of them."""
        if not self._is_entered:
            raise RuntimeError("nothing is tracked yet: with server.track() as session")
        return tuple(self._events)

    @property
    def sent(self) -> tuple[Event, ...]:
        """Messages that were sent, with their body."""
        return self._of("sent")

    @property
    def deduplicated(self) -> tuple[Event, ...]:
        """Sends that a FIFO queue took for repetitions and dropped."""
        return self._of("deduplicated")

    @property
    def received(self) -> tuple[Event, ...]:
        """Deliveries, one event each."""
        return self._of("received")

    @property
    def visibility_changed(self) -> tuple[Event, ...]:
        """Changes of a visibility timeout to anything but 0."""
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
        """Messages that were deleted by a receipt handle."""
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
        """Messages whose retention period was over."""
        return self._of("expired")

    @property
    def purged(self) -> tuple[Event, ...]:
        """Purges, one event each, whatever was there."""
        return self._of("purged")

    def _of(self, kind: EventKind) -> tuple[Event, ...]:
        return tuple(event for event in self.events if event.kind == kind)
