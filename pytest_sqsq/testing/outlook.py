"""What time alone will make of the messages in a look, if nobody calls meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from pytest_sqsq.models import MessageView
from pytest_sqsq.testing.failures import seconds_text
from pytest_sqsq.testing.looks import Look
from pytest_sqsq.testing.matching import STATE_NAMES


class Change(NamedTuple):
    """A hidden message becomes visible at an instant, or it leaves the queue."""

    at_ms: int
    view: MessageView
    becomes_visible: bool = False
    is_dead_lettering: bool = False


def left_text(view: MessageView, look: Look) -> str | None:
    """``in flight for 12 more seconds``, or ``None`` for a visible message."""
    if view.visible_at_ms is None:
        return None
    left = seconds_text(view.visible_at_ms - look.now_ms)
    unit = "second" if left == "1" else "seconds"
    return f"{STATE_NAMES[view.state]} for {left} more {unit}"


def advice(at_ms: int, look: Look) -> str:
    """What to do to come to an instant: ``advance(12)``."""
    return advice_for(at_ms - look.now_ms, follows_process_clock=look.follows_process_clock)


def advice_for(milliseconds: int, *, follows_process_clock: bool) -> str:
    """How to let so much time pass."""
    left = seconds_text(max(0, milliseconds))
    return f"move the process clock by {left} s" if follows_process_clock else f"advance({left})"


def next_change(view: MessageView, look: Look) -> Change | None:
    """What becomes of a hidden message at the end of its timeout or delay, or before it."""
    if view.visible_at_ms is None:
        return None
    if view.expires_at_ms <= view.visible_at_ms:
        return Change(view.expires_at_ms, view)
    is_leaving = look.moves_early and view.state == "in_flight" and look.is_used_up(view)
    return Change(view.visible_at_ms, view, not is_leaving, is_leaving)


def when_counted(look: Look, wanted: Mapping[str, int]) -> int | None:
    """The first instant at which the counts by state are as ``wanted``; ``None`` if never.

    Takes a look at all hidden messages.  Of a queue that others are about to change too, by a
    poll that waits for messages, there is no telling.
    """
    if look.parked_polls:
        return None
    counts = look.counts
    expiry_ms = min((view.expires_at_ms for view in look.views), default=None)
    for at_ms, changes in grouped_by_instant(sorted_changes(look.views, look)):
        if expiry_ms is not None and expiry_ms <= at_ms:
            return None
        for change in changes:
            counts[change.view.state] -= 1
            counts["visible"] += change.becomes_visible
        if wanted.items() <= counts.items():
            return at_ms
    return None


def sorted_changes(views: Sequence[MessageView], look: Look) -> list[Change]:
    """What becomes of the hidden ones among some messages, in order of time."""
    changes = (change for view in views if (change := next_change(view, look)))
    return sorted(changes, key=_instant)


def grouped_by_instant(changes: Iterable[Change]) -> Iterator[tuple[int, Iterator[Change]]]:
    """Changes in order of time, instant by instant."""
    return groupby(changes, key=_instant)


def _instant(change: Change) -> int:
    return change.at_ms
