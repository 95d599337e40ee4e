"""What has happened in a queue according to its journal, counted and put into failure texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_sqsq.errors import QueueDoesNotExist
from pytest_sqsq.models import Event, EventKind, MessageView, QueueKey
from pytest_sqsq.testing.failures import failure_text, happening_lines
from pytest_sqsq.testing.failures import times as times_text
from pytest_sqsq.testing.hints import find_undone_hint
from pytest_sqsq.testing.looks import Look, take_look
from pytest_sqsq.testing.matching import Criteria, checked_count
from pytest_sqsq.testing.stories import Story
from pytest_sqsq.testing.world import World

EventsOf = Callable[[Story], tuple[Event, ...]]


def assert_happened(
    world: World,
    key: QueueKey,
    criteria: Criteria,
    *,
    what: str,
    events_of: EventsOf,
    times: int | None = None,
) -> MessageView | None:
    """``events_of`` gives ``times`` events over all matching messages, or any without.

    Returns the oldest of these messages, ``None`` where 0 times were asked for.
    """
    __tracebackhide__ = True
    checked_count(times, "times")
    look = take_look(world, key, criteria)
    found = matching_stories(look, criteria, events_of)
    total = sum(len(events_of(story)) for story in found)
    subject = criteria.phrase(0 if times == 0 else None)
    often = f" {times_text(times)} in all" if times else ""
    expected = f"{subject} to be {what}{often}"
    if is_met(total, times, look, expected):
        return look.view_of(found[0]) if found else None
    is_too_rare = times is None or total < times
    hint = find_undone_hint(world, criteria, look, what, again=bool(found)) if is_too_rare else None
    if found:
        raise AssertionError(happened_text(expected, look, what, found, events_of, hint=hint))
    raise AssertionError(
        failure_text(expected, look, found="it did not happen", criteria=criteria, hint=hint)
    )


def assert_never(
    world: World, key: QueueKey, criteria: Criteria, what: str, kinds: Sequence[EventKind]
) -> None:
    """No event of these kinds has happened to a matching message."""
    __tracebackhide__ = True
    look = take_look(world, key, criteria)
    expected = f"{criteria.phrase(0)} to be {what}"
    found = matching_stories(look, criteria, lambda story: story.of_kind(*kinds))
    if found:
        raise AssertionError(
            happened_text(expected, look, what, found, lambda story: story.of_kind(*kinds))
        )
    look.require_whole_journal(f"expected {expected} on {key.name!r}")


def matching_stories(look: Look, criteria: Criteria, events_of: EventsOf) -> list[Story]:
    """The messages to which it happened, oldest first."""
    return [
        story
        for story in look.stories.values()
        if events_of(story) and criteria.accepts_body(story.body)
    ]


def is_met(found: int, wanted: int | None, look: Look, expected: str) -> bool:
    """Whether the count is right; ``wanted`` ``None`` means at least one.

    Raises ``JournalForgotten`` where forgotten events might decide otherwise: they can only add
    to what was found.
    """
    is_open = found == 0 if wanted is None else found <= wanted
    if is_open:
        look.require_whole_journal(f"expected {expected} on {look.key.name!r}")
    return found > 0 if wanted is None else found == wanted


def happened_text(
    expected: str,
    look: Look,
    what: str,
    found: Sequence[Story],
    events_of: EventsOf,
    *,
    hint: str | None = None,
) -> str:
    """The text for what happened too often or not often enough, with all of its events."""
    events = sorted(
        (event for story in found for event in events_of(story)), key=lambda event: event.at_ms
    )
    return failure_text(
        expected,
        look,
        found=f"it happened {times_text(len(events))}",
        listed=(what, happening_lines(events, look)),
        hint=hint,
    )


def moved_view(world: World, look: Look, story: Story) -> MessageView:
    """A dead-lettered message as it stands in its target, or as it last stood here."""
    move = story.of_kind("dead_lettered")[-1]
    target = world.broker.find_arn(str(move.detail.get("target_arn")))
    if target is not None:
        try:
            there = take_look(world, target.key, Criteria(body=story.body))
        except QueueDoesNotExist:
            return look.view_of(story)
        if story.message_id in there.by_id:
            return there.by_id[story.message_id]
    return look.view_of(story)
