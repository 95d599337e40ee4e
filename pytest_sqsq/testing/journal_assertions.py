"""Assertions about what has happened in a queue, also to messages that are gone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from pytest_sqsq.models import Event, MessageView, QueueKey, shortened
from pytest_sqsq.testing.failures import body_lines, failure_text, plural
from pytest_sqsq.testing.happenings import (
    assert_happened,
    assert_never,
    happened_text,
    is_met,
    matching_stories,
    moved_view,
)
from pytest_sqsq.testing.hints import (
    DELETED,
    EXTENDED,
    RECEIVED,
    find_dead_letter_hint,
    find_missing_hint,
    find_undone_hint,
)
from pytest_sqsq.testing.looks import Look, take_look
from pytest_sqsq.testing.matching import BodyMatcher, Criteria, checked_count
from pytest_sqsq.testing.stories import Story, is_arrival
from pytest_sqsq.testing.world import World


class JournalAssertions:
    """What a probe can assert of the events in its queue.

    All rest on the queue's journal, which is bounded: an assertion that would need an event the
    journal has dropped raises ``JournalForgotten`` instead of passing or failing.  They are
    exact at once; nothing is waited for.
    """

    _world: World
    key: QueueKey

    @overload
    def assert_received(  # type: ignore[overload-overlap]
        self,
        body: BodyMatcher | None = ...,
        *,
        json: Any = ...,
        exact: bool = ...,
        times: Literal[0],
    ) -> None: ...

    @overload
    def assert_received(
        self,
        body: BodyMatcher | None = ...,
        *,
        json: Any = ...,
        exact: bool = ...,
        times: int | None = ...,
    ) -> MessageView: ...

    def assert_received(
        self,
        body: BodyMatcher | None = None,
        *,
        json: Any = None,
        exact: bool = False,
        times: int | None = None,
    ) -> MessageView | None:
        """Matching messages were received, ``times`` in all; at least once without.

        Returns the oldest of them.
        """
        __tracebackhide__ = True
        criteria = Criteria(body=body, json=json, exact=exact)
        return assert_happened(
            self._world,
            self.key,
            criteria,
            what=RECEIVED,
            events_of=lambda s: s.of_kind("received"),
            times=times,
        )

    def assert_never_received(
        self, body: BodyMatcher | None = None, *, json: Any = None, exact: bool = False
    ) -> None:
        """No matching message was ever received."""
        __tracebackhide__ = True
        criteria = Criteria(body=body, json=json, exact=exact)
        assert_never(self._world, self.key, criteria, RECEIVED, ["received"])

    def assert_deleted(
        self, body: BodyMatcher | None = None, *, json: Any = None, exact: bool = False
    ) -> MessageView:
        """A matching message was deleted by its receipt handle; returns it as it last stood.

        A purge, the end of retention and a move are no deletion.
        """
        __tracebackhide__ = True
        criteria = Criteria(body=body, json=json, exact=exact)
        view = assert_happened(
            self._world,
            self.key,
            criteria,
            what=DELETED,
            events_of=lambda s: s.of_kind("deleted"),
        )
        assert view is not None
        return view

    @overload
    def assert_visibility_extended(  # type: ignore[overload-overlap]
        self,
        body: BodyMatcher | None = ...,
        *,
        json: Any = ...,
        exact: bool = ...,
        times: Literal[0],
    ) -> None: ...

    @overload
    def assert_visibility_extended(
        self,
        body: BodyMatcher | None = ...,
        *,
        json: Any = ...,
        exact: bool = ...,
        times: int | None = ...,
    ) -> MessageView: ...

    def assert_visibility_extended(
        self,
        body: BodyMatcher | None = None,
        *,
        json: Any = None,
        exact: bool = False,
        times: int | None = None,
    ) -> MessageView | None:
        """Visibility of matching messages was extended, ``times`` in all; at least once without.

        An extension is a ChangeMessageVisibility that ends no earlier than the deadline it
        replaces.  Returns the oldest of them.
        """
        __tracebackhide__ = True
        criteria = Criteria(body=body, json=json, exact=exact)
        return assert_happened(
            self._world,
            self.key,
            criteria,
            what=EXTENDED,
            events_of=lambda s: s.extensions,
            times=times,
        )

    @overload
    def assert_dead_lettered(  # type: ignore[overload-overlap]
        self,
        body: BodyMatcher | None = ...,
        *,
        json: Any = ...,
        exact: bool = ...,
        count: Literal[1] = ...,
    ) -> MessageView: ...

    @overload
    def assert_dead_lettered(
        self,
        body: BodyMatcher | None = ...,
        *,
        json: Any = ...,
        exact: bool = ...,
        count: int | None,
    ) -> tuple[MessageView, ...]: ...

    def assert_dead_lettered(
        self,
        body: BodyMatcher | None = None,
        *,
        json: Any = None,
        exact: bool = False,
        count: int | None = 1,
    ) -> MessageView | tuple[MessageView, ...]:
        """Exactly ``count`` matching messages left this queue for its dead-letter queue.

        To be asked of the source queue.  ``None`` means at least one.  Returns the messages as
        they stand in the dead-letter queue, or as they left here where they are gone there too:
        one message where ``count`` is 1, else a tuple.
        """
        __tracebackhide__ = True
        checked_count(count, "count")
        criteria = Criteria(body=body, json=json, exact=exact)
        look = take_look(self._world, self.key, criteria)
        found = matching_stories(look, criteria, _dead_letterings)
        expected = f"{criteria.phrase(count)} to be dead-lettered"
        if not is_met(len(found), count, look, expected):
            is_too_few = count is None or len(found) < count
            raise AssertionError(
                _undead_text(self._world, criteria, look, expected, found, is_too_few=is_too_few)
            )
        views = tuple(moved_view(self._world, look, story) for story in found)
        return views[0] if count == 1 else views

    def assert_order(
        self,
        bodies: Sequence[BodyMatcher],
        *,
        by: Literal["arrival", "receipt"] = "arrival",
    ) -> tuple[MessageView, ...]:
        """Messages with these bodies came in this order; others may have come between them.

        ``by="arrival"`` goes by when messages entered the queue, also those that are gone;
        ``by="receipt"`` by every receive, in which a message may come several times.
        """
        __tracebackhide__ = True
        if by not in ("arrival", "receipt"):
            raise ValueError(f"by={by!r} is neither 'arrival' nor 'receipt'")
        if isinstance(bodies, str):
            raise TypeError(f"assert_order takes a list of bodies, not {bodies!r}")
        look = take_look(self._world, self.key)
        came = [
            look.stories[event.message_id]
            for event in look.events
            if event.message_id is not None
            and (is_arrival(event) if by == "arrival" else event.kind == "received")
        ]
        wanted = [Criteria(body=body) for body in bodies]
        found = _longest_start(wanted, came)
        if len(found) < len(wanted):
            look.require_whole_journal("assert_order")
            hint = _order_hint(self._world, wanted[len(found)], came, look, by)
            raise AssertionError(_order_text(wanted, found, came, look, by=by, hint=hint))
        return tuple(look.view_of(story) for story in found)

    def assert_nothing_sent(self) -> None:
        """Nobody has sent to this queue; duplicates that a FIFO queue dropped count as sent."""
        __tracebackhide__ = True
        assert_never(self._world, self.key, Criteria(), "sent", ["sent", "deduplicated"])


def _dead_letterings(story: Story) -> tuple[Event, ...]:
    return story.of_kind("dead_lettered")


def _undead_text(
    world: World,
    criteria: Criteria,
    look: Look,
    expected: str,
    found: Sequence[Story],
    *,
    is_too_few: bool,
) -> str:
    hint = (
        find_dead_letter_hint(world, criteria, look, any_found=bool(found)) if is_too_few else None
    )
    if found:
        return happened_text(expected, look, "dead-lettered", found, _dead_letterings, hint=hint)
    return failure_text(expected, look, found="it did not happen", criteria=criteria, hint=hint)


def _longest_start(wanted: Sequence[Criteria], came: Sequence[Story]) -> list[Story]:
    found: list[Story] = []
    for story in came:
        if len(found) < len(wanted) and wanted[len(found)].accepts_body(story.body):
            found.append(story)
    return found


def _order_text(
    wanted: Sequence[Criteria],
    found: Sequence[Story],
    came: Sequence[Story],
    look: Look,
    *,
    by: str,
    hint: str | None,
) -> str:
    where = f" after {shortened(found[-1].body)!r}" if found else ""
    return failure_text(
        f"{plural(len(wanted), 'message')} in the order given",
        look,
        found=f"{wanted[len(found)].phrase(0)} came{where}",
        listed=(f"order of {by}", body_lines(came)) if came else None,
        hint=hint,
    )


def _order_hint(
    world: World, missing: Criteria, came: Sequence[Story], look: Look, by: str
) -> str | None:
    if any(missing.accepts_body(story.body) for story in came):
        return None
    if by == "receipt":
        return find_undone_hint(world, missing, look, RECEIVED, again=False)
    return find_missing_hint(world, missing, look, None)
