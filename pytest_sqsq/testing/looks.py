"""One consistent look at a queue: its messages and its journal at one instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pytest_sqsq.engine.journal import Content
from pytest_sqsq.errors import JournalForgotten
from pytest_sqsq.models import Event, MessageView, QueueKey
from pytest_sqsq.testing.matching import Criteria
from pytest_sqsq.testing.stories import Story, stories_of
from pytest_sqsq.testing.views import gone_view, live_view
from pytest_sqsq.testing.world import World

SAMPLE = 100
"""So many of the oldest messages are looked at beside those an assertion asks for."""


@dataclass(frozen=True)
class Look:
    """A queue as it stood at ``now_ms``.

    ``views`` holds the messages that were asked for and the oldest ones beside them, in order of
    arrival; the counts are of all messages.  ``forgotten`` counts the events that the journal
    has dropped; ``began_late`` says that a restart has cut off what was before.
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

    @property
    def live_count(self) -> int:
        return self.visible + self.in_flight + self.delayed

    @cached_property
    def stories(self) -> Mapping[str, Story]:
        """The journal by message, in order of each message's first event."""
        return stories_of(self.events)

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


def take_look(world: World, key: QueueKey, criteria: Criteria | None = None) -> Look:
    """Look at a queue, once everything due by now has happened; changes nothing.

    All messages that may match ``criteria`` are in the look (all at all without), and the oldest
    :data:`SAMPLE` beside them.  O(live messages + journal) under the queue's lock.  Raises
    ``QueueDoesNotExist``.
    """
    queue = world.broker.get_queue(key)
    with world.broker.entry(queue) as now_ms:
        views = tuple(
            live_view(queue, message)
            for position, message in enumerate(queue.log.live_messages())
            if criteria is None or position < SAMPLE or criteria.may_match(message)
        )
        return Look(
            key=key,
            now_ms=now_ms,
            started_ms=world.clock.started_ms,
            visible=queue.visible_count,
            in_flight=queue.in_flight_count,
            delayed=queue.delayed_count,
            retention_seconds=queue.settings.message_retention_period,
            views=views,
            events=queue.journal.events,
            contents=queue.journal.contents,
            forgotten=queue.journal.forgotten,
            began_late=queue.journal.began_late,
        )
