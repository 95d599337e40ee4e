"""The last line of a failure: what most likely is the matter, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_sqsq.errors import QueueDoesNotExist
from pytest_sqsq.models import Event, MessageView
from pytest_sqsq.testing.failures import arn_name, event_text, offset_text, seconds_text
from pytest_sqsq.testing.looks import Look, take_look
from pytest_sqsq.testing.matching import Criteria, json_difference, parse_json
from pytest_sqsq.testing.outlook import (
    advice,
    grouped_by_instant,
    left_text,
    next_change,
    sorted_changes,
    when_counted,
)
from pytest_sqsq.testing.world import World

RECEIVED, DELETED, EXTENDED = "received", "deleted", "extended in visibility"
"""What can have happened to a message, as failure texts put it."""

_UNDONE = {DELETED: "deleted", EXTENDED: "extended the timeout of"}


def find_missing_hint(
    world: World, criteria: Criteria, look: Look, count: int | None
) -> str | None:
    """For an assertion that found fewer than ``count`` messages: the first hint that applies."""
    there = _in_any_state(criteria, look)
    if not there:
        return _absence_hint(world, criteria.in_any_state, look)
    others = [view for view in there if view.state != criteria.state]
    if criteria.state is None or not others:
        return _departure_hint(criteria.in_any_state, look)
    if criteria.state == "visible":
        return _visible_hint(there, look, count)
    if criteria.state == "in_flight":
        return _receive_hint(others[0], look)
    return _delay_hint(others[0], look)


def find_undone_hint(
    world: World, criteria: Criteria, look: Look, what: str, *, again: bool
) -> str | None:
    """For an assertion to whose messages something has not happened, or not often enough."""
    there = _in_any_state(criteria, look)
    if not there:
        return _absence_hint(world, criteria, look)
    view = there[0]
    if view.state == "in_flight" and what != RECEIVED:
        return (
            f"it is in flight; its consumer has not {_UNDONE[what]} it{' again' if again else ''}"
        )
    return _receive_hint(view, look)


def find_dead_letter_hint(
    world: World, criteria: Criteria, look: Look, *, any_found: bool
) -> str | None:
    """What a matching message lacks to be dead-lettered."""
    policy = world.broker.get_queue(look.key).settings.redrive_policy
    if policy is None:
        return f"{look.key.name!r} has no redrive policy"
    if look.receive_limit is None:
        return f"the dead-letter queue {arn_name(policy.dead_letter_target_arn)!r} does not exist"
    there = _in_any_state(criteria, look)
    if not there:
        return None if any_found else _absence_hint(world, criteria, look)
    view = there[0]
    count = look.receives_here.get(view.message_id, 0)
    change = next_change(view, look)
    if change is not None and change.is_dead_lettering:
        next_step = f"{left_text(view, look)}: {advice(change.at_ms, look)}"
    else:
        next_step = _receive_hint(view, look)
    return f"received {count} of {look.receive_limit} times; {next_step}"


def find_counts_hint(look: Look, wanted: Mapping[str, int]) -> str | None:
    """When the counts will be as they are wanted, by time alone."""
    at_ms = when_counted(look, wanted)
    if at_ms is None:
        return None
    left = seconds_text(at_ms - look.now_ms)
    return f"so it is in {left} {'second' if left == '1' else 'seconds'}: {advice(at_ms, look)}"


def _in_any_state(criteria: Criteria, look: Look) -> list[MessageView]:
    anyhow = criteria.in_any_state
    return [view for view in look.views if anyhow.matches(view)]


def _visible_hint(views: Sequence[MessageView], look: Look, count: int | None) -> str | None:
    visible = sum(view.state == "visible" for view in views)
    changes = sorted_changes(views, look)
    for at_ms, group in grouped_by_instant(changes):
        shown = [change.view for change in group if change.becomes_visible]
        visible += len(shown)
        if shown and (count is None or visible == count):
            return f"{left_text(shown[-1], look)}: {advice(at_ms, look)}"
    first = changes[0].view
    return left_text(first, look) if changes[0].becomes_visible else _hidden_hint(first, look)


def _hidden_hint(view: MessageView, look: Look) -> str | None:
    """``in flight for 12 more seconds: advance(12)``, and what else there is to know."""
    change, left = next_change(view, look), left_text(view, look)
    if change is None or left is None:
        return None
    if change.becomes_visible:
        return f"{left}: {advice(change.at_ms, look)}"
    if change.is_dead_lettering:
        return f"{left}, and then it is dead-lettered"
    return f"{left}, and it expires before"


def _receive_hint(view: MessageView, look: Look) -> str:
    again = " again" if view.receive_count else ""
    change = next_change(view, look)
    if change is not None:
        then = f", then receive it{again}" if change.becomes_visible else ""
        return f"{_hidden_hint(view, look)}{then}"
    if view.why_not_deliverable is not None:
        return view.why_not_deliverable
    since = " since" if again else ""
    return f"it is visible{again}, and no consumer has received it{since}"


def _delay_hint(view: MessageView, look: Look) -> str | None:
    story = look.stories.get(view.message_id)
    if story is None or not story.begins_with_arrival:
        return None
    until_ms = story.events[0].detail.get("delayed_until_ms")
    if not isinstance(until_ms, int):
        return "it came without a delay"
    return f"its delay ended at {offset_text(until_ms, look)}"


def _absence_hint(world: World, anyhow: Criteria, look: Look) -> str | None:
    return (
        _departure_hint(anyhow, look)
        or _same_json_hint(anyhow, look)
        or _other_queue_hint(world, anyhow, look)
        or _blank_hint(look)
    )


def _departure_hint(anyhow: Criteria, look: Look) -> str | None:
    departure = _departure_of(anyhow, look)
    if departure is None:
        return None
    was = "" if departure.kind == "expired" else "was "
    what = event_text(departure, look)
    return f"such a message {was}{what} at {offset_text(departure.at_ms, look)}"


def _departure_of(anyhow: Criteria, look: Look) -> Event | None:
    for story in reversed(tuple(look.stories.values())):
        departure = story.departure
        if (
            departure is not None
            and anyhow.accepts_body(story.body)
            and anyhow.matches(look.view_of(story))
        ):
            return departure
    return None


def _blank_hint(look: Look) -> str | None:
    is_blank = not (look.live_count or look.events or look.forgotten or look.began_late)
    return f"no message has ever been on {look.key.name!r}" if is_blank else None


def _same_json_hint(criteria: Criteria, look: Look) -> str | None:
    if not isinstance(criteria.body, str):
        return None
    is_json, wanted = parse_json(criteria.body)
    if not is_json or not isinstance(wanted, dict | list):
        return None
    for view in look.views:
        is_json, actual = parse_json(view.body)
        if (
            is_json
            and view.body != criteria.body
            and json_difference(wanted, actual, exact=True) is None
        ):
            return "a body of the same JSON is there, written differently: use json= for body="
    return None


def _other_queue_hint(world: World, anyhow: Criteria, look: Look) -> str | None:
    if anyhow == Criteria():
        return None
    for queue in world.broker.queues:
        if queue.key == look.key:
            continue
        try:
            other = take_look(world, queue.key, anyhow)
        except QueueDoesNotExist:
            continue
        if any(anyhow.matches(view) for view in other.views):
            return f"such a message is on {_place(other, look)}"
        departure = _departure_of(anyhow, other)
        if departure is not None and departure.kind != "dead_lettered":
            return f"such a message was on {_place(other, look)}: {event_text(departure, look)}"
    return None


def _place(other: Look, look: Look) -> str:
    account_id, region, name = other.key
    if other.key[:2] == look.key[:2]:
        return repr(name)
    return f"{name!r} of account {account_id} in {region}"
