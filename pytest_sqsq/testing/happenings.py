"""What has happened in a queue according to its journal, counted and put into failure texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_sqsq.errors import QueueDoesNotExist
from pytest_sqsq.models import Event, EventKind, MessageView, QueueKey
from pytest_sqsq.testing.failures import failure_text, plural, story_lines
from pytest_sqsq.testing.hints import find_hint
from pytest_sqsq.testing.looks import Look, take_look
from pytest_sqsq.testing.matching import Criteria
from pytest_sqsq.testing.stories import Story
from pytest_sqsq.testing.world import World


def assert_happened(
    world: World,
    key: QueueKey,
    criteria: Criteria,
    *,
    what: str,
    events_of: Callable[[Story], tuple[Event, ...]],
    times: int | None = None,
) -> MessageView | None:
    """``events_of`` gives ``times`` events over all matching messages, or any without.

    Returns the oldest of these messages, ``None`` where 0 times were asked for.
    """
    __tracebackhide__ = True
    look = take_look(world, key, criteria)
    found = [s for s in look.stories.values() if events_of(s) and criteria.accepts_body(s.body)]
    total = sum(len(events_of(story)) for story in found)
    expected = expected_text(criteria, what, times)
    if is_met(total, times, look, expected):
        return look.view_of(found[0]) if found else None
    raise AssertionError(
        unmet_text(world, criteria, look, expected=expected, total=total, found=found)
    )


def assert_never(
    world: World, key: QueueKey, criteria: Criteria, what: str, kinds: Sequence[EventKind]
) -> None:
    """No event of these kinds has happened to a matching message."""
    __tracebackhide__ = True
    look = take_look(world, key, criteria)
    expected = expected_text(criteria, what, 0)
    found = [e for e in look.events if e.kind in kinds and criteria.accepts_body(e.body or "")]
    if found:
        ids = dict.fromkeys(event.message_id for event in found if event.message_id is not None)
        stories = [look.stories[message_id] for message_id in ids]
        raise AssertionError(
            failure_text(
                expected,
                look,
                found=f"it happened {plural(len(found), 'time')}",
                listed=(what, story_lines(stories, look)) if stories else None,
            )
        )
    look.require_whole_journal(f"expected {expected} on {key.name!r}")


def expected_text(criteria: Criteria, what: str, times: int | None) -> str:
    """``a message with body 'a' to be received 2 times``."""
    if times == 0:
        return f"no message{criteria.describe()} to be {what}"
    often = "" if times is None else f" {plural(times, 'time')} in all"
    return f"a message{criteria.describe()} to be {what}{often}"


def is_met(found: int, wanted: int | None, look: Look, expected: str) -> bool:
    """Whether the count is right; ``wanted`` ``None`` means at least one.

    Raises ``JournalForgotten`` where forgotten events might decide otherwise: they can only add
    to what was found.
    """
    if wanted is None:
        enough = found > 0
        if not enough:
            look.require_whole_journal(f"expected {expected} on {look.key.name!r}")
        return enough
    if found <= wanted:
        look.require_whole_journal(f"expected {expected} on {look.key.name!r}")
    return found == wanted


def unmet_text(
    world: World,
    criteria: Criteria,
    look: Look,
    *,
    expected: str,
    total: int,
    found: Sequence[Story],
) -> str:
    """The text for a count that is not met, by ``total`` events of the messages ``found``."""
    if found:
        happened = f"it happened {plural(total, 'time')}"
        listed = ("matching", story_lines(found, look))
        return failure_text(expected, look, found=happened, listed=listed)
    return failure_text(
        expected,
        look,
        found="it did not happen",
        criteria=criteria,
        hint=find_hint(world, criteria, look),
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
