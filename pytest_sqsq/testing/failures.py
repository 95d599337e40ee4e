"""The texts of failures: what was expected, when, what the queue was like, and what comes closest.

A text is bounded whatever the queue holds.  Times are ISO 8601 in UTC; inside a history they are
seconds since the test's start, which is when the clock started.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from pytest_sqsq.models import Event, MessageView, QueueKey, instant_text, shortened
from pytest_sqsq.testing.looks import Look
from pytest_sqsq.testing.matching import STATE_NAMES, Criteria
from pytest_sqsq.testing.stories import Story

LISTED_MESSAGES = 10
LISTED_EVENTS = 12
COMPARED_MESSAGES = 200
COMPARED_CHARACTERS = 200


def plural(count: int, noun: str) -> str:
    """``1 message``, ``2 messages``, ``no message``."""
    if count == 0:
        return f"no {noun}"
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def there_are(count: int) -> str:
    """``there is none``, ``there is 1``, ``there are 2``."""
    if count == 0:
        return "there is none"
    return "there is 1" if count == 1 else f"there are {count}"


def times(count: int) -> str:
    """``once``, ``2 times``."""
    return "once" if count == 1 else f"{count} times"


def seconds_text(milliseconds: int) -> str:
    """Milliseconds as seconds without superfluous digits, such as ``30`` or ``0.5``."""
    whole, rest = divmod(abs(milliseconds), 1000)
    sign = "-" if milliseconds < 0 else ""
    return f"{sign}{whole}" + (f".{rest:03d}".rstrip("0") if rest else "")


def clock_line(now_ms: int, started_ms: int) -> str:
    since = seconds_text(now_ms - started_ms)
    return f"clock: {instant_text(now_ms)}, {since} s after the test's start"


def counts_text(visible: int, in_flight: int, delayed: int) -> str:
    return f"{visible} visible, {in_flight} in flight, {delayed} delayed"


def failure_text(
    expected: str,
    look: Look,
    *,
    found: str | None = None,
    listed: tuple[str, Sequence[str]] | None = None,
    criteria: Criteria | None = None,
    besides: Sequence[MessageView] = (),
    hint: str | None = None,
) -> str:
    """The text of a failed assertion: what was expected, what was found, and :func:`told`."""
    headline = f"expected {expected} on {look.key.name!r}" + (f"; {found}" if found else "")
    return told(headline, look, listed=listed, criteria=criteria, besides=besides, hint=hint)


def told(
    headline: str,
    look: Look,
    *,
    listed: tuple[str, Sequence[str]] | None = None,
    criteria: Criteria | None = None,
    besides: Sequence[MessageView] = (),
    hint: str | None = None,
) -> str:
    """A headline, and below it the clock and what the queue was like.

    ``listed`` is a heading and the lines below it.  With ``criteria`` the closest message
    ``besides`` some follows, with all in which it differs and with its history.  ``hint`` comes
    last.
    """
    lines = [clock_line(look.now_ms, look.started_ms)]
    lines.append(f"queue: {counts_text(look.visible, look.in_flight, look.delayed)}")
    if listed is not None:
        heading, entries = listed
        lines.append(f"{heading}:")
        lines += (f"  {entry}" for entry in entries)
    closest = find_closest(criteria, look, besides) if criteria is not None else None
    if criteria is not None and closest is not None:
        lines += _closest_lines(criteria, closest, look)
    if hint is not None:
        lines.append(f"hint: {hint}")
    return "\n  ".join([headline, *lines])


def live_listing(look: Look) -> tuple[str, list[str]] | None:
    """The live messages, to be listed; ``None`` where there are none."""
    if not look.live_count:
        return None
    return "there", message_lines(look.views, look, look.live_count)


def message_lines(views: Sequence[MessageView], look: Look, total: int) -> list[str]:
    """One line for each message, at most :data:`LISTED_MESSAGES` of ``total``."""
    lines = [message_line(view, look) for view in views[:LISTED_MESSAGES]]
    if total > len(lines):
        lines.append(f"… and {total - len(lines)} more")
    return lines


def message_line(view: MessageView, look: Look) -> str:
    """A message's body, state and number of receives."""
    if view.slot is None:
        standing = _departure_text(view, look)
    elif view.visible_at_ms is not None:
        standing = f"{STATE_NAMES[view.state]} until {offset_text(view.visible_at_ms, look)}"
    else:
        standing = STATE_NAMES[view.state]
    group = "" if view.message_group_id is None else f", group {view.message_group_id!r}"
    return f"{shortened(view.body)!r} {standing}{group}, {_received_text(view)}"


def offset_text(at_ms: int, look: Look) -> str:
    """An instant as seconds since the test's start, such as ``+30 s``."""
    sign = "+" if at_ms >= look.started_ms else ""
    return f"{sign}{seconds_text(at_ms - look.started_ms)} s"


def event_lines(events: Sequence[Event], look: Look) -> list[str]:
    """A history, one line for each event, at most the latest :data:`LISTED_EVENTS`."""
    left_out = len(events) - LISTED_EVENTS
    lines = [f"… {plural(left_out, 'event')} before"] if left_out > 0 else []
    lines += (
        f"{offset_text(event.at_ms, look)} {event_text(event, look)}"
        for event in events[-LISTED_EVENTS:]
    )
    return lines


def find_closest(
    criteria: Criteria, look: Look, besides: Sequence[MessageView] = ()
) -> MessageView | None:
    """The message that differs least, gone ones included; the later one of equals.

    Of at most :data:`COMPARED_MESSAGES` messages, without those in ``besides``.
    """
    known = {view.message_id for view in besides}
    candidates = [
        view for view in (*_gone_views(look), *look.views) if view.message_id not in known
    ]
    return max(
        reversed(candidates[-COMPARED_MESSAGES:]),
        key=lambda view: _closeness(criteria, view),
        default=None,
    )


def _gone_views(look: Look) -> Iterator[MessageView]:
    for story in list(look.stories.values())[-COMPARED_MESSAGES:]:
        if story.departure is not None and story.message_id not in look.by_id:
            yield look.view_of(story)


def _closeness(criteria: Criteria, view: MessageView) -> tuple[int, float]:
    if isinstance(criteria.body, str):
        wanted = criteria.body
    else:
        wanted = "" if criteria.json is None else json.dumps(criteria.json, default=str)
    texts = (wanted[:COMPARED_CHARACTERS], view.body[:COMPARED_CHARACTERS])
    return -len(criteria.differences(view)), SequenceMatcher(None, *texts).ratio()


def _closest_lines(criteria: Criteria, view: MessageView, look: Look) -> Iterator[str]:
    yield f"closest: {message_line(view, look)}, id {view.message_id}"
    for difference in criteria.differences(view):
        yield f"  {difference}"
    story = look.stories.get(view.message_id)
    if story is not None:
        for line in event_lines(story.events, look):
            yield f"  {line}"


def _received_text(view: MessageView) -> str:
    return f"received {times(view.receive_count)}" if view.receive_count else "never received"


def _departure_text(view: MessageView, look: Look) -> str:
    story = look.stories.get(view.message_id)
    departure = story.departure if story is not None else None
    if departure is None:
        return "gone"
    return f"{event_text(departure, look)} at {offset_text(departure.at_ms, look)}"


def event_text(event: Event, look: Look) -> str:
    """What happened, without when and to what."""
    detail = event.detail
    until = detail.get("visible_at_ms", detail.get("delayed_until_ms"))
    ending = f" until {offset_text(until, look)}" if isinstance(until, int) else ""
    texts = {
        "sent": f"sent, delayed{ending}" if ending else "sent",
        "received": f"received #{detail.get('receive_count')}, in flight{ending}",
        "visibility_changed": f"visibility changed, in flight{ending}",
        "delete_lost": f"deleted in vain{f', in flight{ending}' if ending else ''}",
        "deduplicated": "sent again and dropped as a duplicate",
        "returned": "given back by its consumer",
        "dead_lettered": f"dead-lettered to {arn_name(detail.get('target_arn'))!r}",
        "moved": (
            f"moved here from {arn_name(detail['source_arn'])!r}"
            if "source_arn" in detail
            else f"moved to {arn_name(detail.get('target_arn'))!r}"
        ),
    }
    return texts.get(event.kind, event.kind)


def arn_name(arn: object) -> str:
    """The queue's name in an ARN; the text itself where it is none."""
    key = QueueKey.from_arn(str(arn))
    return str(arn) if key is None else key.name


def happening_lines(events: Sequence[Event], look: Look) -> list[str]:
    """One line for each event with the body it happened to, at most :data:`LISTED_EVENTS`."""
    lines = [
        f"{offset_text(event.at_ms, look)} {shortened(event.body or '')!r}"
        f" {event_text(event, look)}"
        for event in events[:LISTED_EVENTS]
    ]
    if len(events) > len(lines):
        lines.append(f"… and {plural(len(events) - len(lines), 'event')} more")
    return lines


def body_lines(stories: Sequence[Story]) -> list[str]:
    """The bodies one by one, at most twice :data:`LISTED_MESSAGES`."""
    lines = [repr(shortened(story.body)) for story in stories[: 2 * LISTED_MESSAGES]]
    if len(stories) > len(lines):
        lines.append(f"… and {len(stories) - len(lines)} more")
    return lines
