"""One consistent look at a queue: its messages and its journal at one instant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from pytest_sqsq.engine.journal import Content
from pytest_sqsq.errors import JournalForgotten
from pytest_sqsq.models import Event, MessageView, QueueKey
from pytest_sqsq.testing.stories import Story, stories_of
from pytest_sqsq.testing.views import gone_view, live_view
from pytest_sqsq.testing.world import World

if TYPE_CHECKING:
    from pytest_sqsq.engine.message import Message

SAMPLE = 100
"""So many of the oldest messages are looked at beside those an assertion asks for."""


@dataclass(frozen=True)
class Look:
    """A queue as it stood at ``now_ms``.

    ``views`` holds the messages that were asked for and the oldest ones beside them, in order of
    arrival; the counts are of all messages.  ``forgotten`` counts the events that the journal
    has dropped; ``began_late`` says that a restart has cut off what was before.
    ``receives_here`` counts by message id how often this queue delivered a message of ``views``,
    without those it never did; at ``receive_limit`` the message leaves for the dead-letter queue:
    at the end of its timeout where the queue ``moves_early``, else at the next receive.
    ``follows_process_clock`` says that the clock cannot be advanced.
    """

    key: QueueKey
    now_ms: int
    started_ms: int
    visible: int
    in_flight: int
    delayed: int
    retention_seconds: int
    views: tuple[MessageView, ...]
    events: tuple[Event, ...]
    contents: Mapping[str, Content]
    forgotten: int
    began_late: bool = False
    receives_here: Mapping[str, int] = field(default_factory=dict)
    receive_limit: int | None = None
    moves_early: bool = True
    parked_polls: int = 0
    follows_process_clock: bool = False

    @property
    def live_count(self) -> int:
        return self.visible + self.in_flight + self.delayed

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of all messages, by state."""
        return {"visible": self.visible, "in_flight": self.in_flight, "delayed": self.delayed}

    def has_counts(self, wanted: Mapping[str, int]) -> bool:
        """Whether the counts of the named states are these."""
        return wanted.items() <= self.counts.items()

    @cached_property
    def stories(self) -> Mapping[str, Story]:
        """The journal by message, in order of each message's first event."""
        return stories_of(self.events)

    def is_used_up(self, view: MessageView) -> bool:
        """Whether a live message may not be delivered any more."""
        limit = self.receive_limit
        return limit is not None and self.receives_here.get(view.message_id, 0) >= limit

    def view_of(self, story: Story) -> MessageView:
        """The message as it stands, or as it last stood in this queue if it is gone."""
        live = self.by_id.get(story.message_id)
        if live is not None:
            return live
        content = self.contents.get(story.message_id)
        return gone_view(self.key.name, self.retention_seconds, story, content)

    @cached_property
    def by_id(self) -> Mapping[str, MessageView]:
        return {view.message_id: view for view in self.views}

    def history(
        self, message_id: str | None, accepts_body: Callable[[str], bool]
    ) -> tuple[Event, ...]:
        """All events of the messages with this id, or any, whose bodies are accepted.

        Raises :class:`JournalForgotten` where the journal has dropped a part of it.
        """
        chosen = {
            story.message_id: story
            for story in self.stories.values()
            if message_id in (None, story.message_id) and accepts_body(story.body)
        }
        is_whole = message_id is not None and all(
            story.begins_with_arrival for story in chosen.values()
        )
        if not (chosen and is_whole):
            self.require_whole_journal("history")
        # A purge is an event of the queue, and so of each message that was there.
        purges = {
            id(event)
            for story in chosen.values()
            for event in story.events
            if event.message_id is None
        }
        return tuple(
            event for event in self.events if event.message_id in chosen or id(event) in purges
        )

    def require_whole_journal(self, what_for: str) -> None:
        """Raise :class:`JournalForgotten` if the journal no longer holds everything."""
        if self.began_late:
            raise JournalForgotten(
                f"{what_for}: the server was restarted, and {self.key.name!r} has no history from"
                " before, which might decide this; ask before the restart"
            )
        if self.forgotten:
            events = "1 event" if self.forgotten == 1 else f"{self.forgotten} events"
            raise JournalForgotten(
                f"{what_for}: the journal of {self.key.name!r} has dropped its oldest {events},"
                " which might decide this; give the server a larger journal_size"
            )


class Selection(Protocol):
    """Which messages a look is about."""

    def may_match(self, message: Message) -> bool:
        """Runs under the queue's lock, so it must not run code of the test."""


class Hidden:
    """The messages that time makes visible: those in flight or delayed."""

    def may_match(self, message: Message) -> bool:
        return message.state != "visible"


class Sample:
    """No message but for the oldest ones, which are in every look."""

    def may_match(self, message: Message) -> bool:
        return False


def take_look(world: World, key: QueueKey, selection: Selection | None = None) -> Look:
    """Look at a queue, once everything due by now has happened; changes nothing.

    All messages that ``selection`` may match are in the look (all at all without), and the
    oldest :data:`SAMPLE` beside them.  O(live messages + journal) under the queue's lock.  Raises
    ``QueueDoesNotExist``.
    """
    queue = world.broker.get_queue(key)
    with world.broker.entry(queue) as now_ms:
        messages = [
            message
            for position, message in enumerate(queue.log.live_messages())
            if selection is None or position < SAMPLE or selection.may_match(message)
        ]
        return Look(
            key=key,
            now_ms=now_ms,
            started_ms=world.clock.started_ms,
            visible=queue.visible_count,
            in_flight=queue.in_flight_count,
            delayed=queue.delayed_count,
            retention_seconds=queue.settings.message_retention_period,
            views=tuple(live_view(queue, message) for message in messages),
            events=queue.journal.events,
            contents=queue.journal.contents,
            forgotten=queue.journal.forgotten,
            began_late=queue.journal.began_late,
            receives_here={
                message.message_id: message.receives_here
                for message in messages
                if message.receives_here
            },
            receive_limit=queue.receive_limit,
            moves_early=world.broker.dead_letter_on == "tick",
            parked_polls=len(queue.parked),
            follows_process_clock=world.clock.mode == "system",
        )
