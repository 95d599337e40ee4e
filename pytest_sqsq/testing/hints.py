"""The last line of a failure: what most likely is the matter, and what to do about it."""

from __future__ import annotations

from pytest_sqsq.errors import QueueDoesNotExist
from pytest_sqsq.models import MessageView
from pytest_sqsq.testing.failures import event_text, offset_text, seconds_text, times
from pytest_sqsq.testing.looks import Look, take_look
from pytest_sqsq.testing.matching import STATE_NAMES, Criteria, json_difference, parse_json
from pytest_sqsq.testing.world import World


def find_hint(world: World, criteria: Criteria, look: Look) -> str | None:
    """The first hint that applies to an assertion that found too few messages."""
    anyhow = _without_state(criteria)
    if any(anyhow.matches(view) for view in look.views):
        return find_time_hint(criteria, look) if criteria.state == "visible" else None
    return (
        _departure_hint(criteria, look)
        or _same_json_hint(criteria, look)
        or _other_queue_hint(world, anyhow, look)
    )


def time_left(view: MessageView, now_ms: int) -> str | None:
    """``in flight for 12 more seconds: advance(12)``, or ``None`` for a visible message."""
    if view.visible_at_ms is None:
        return None
    left = seconds_text(view.visible_at_ms - now_ms)
    unit = "second" if left == "1" else "seconds"
    return f"{STATE_NAMES[view.state]} for {left} more {unit}: advance({left})"


def find_time_hint(criteria: Criteria, look: Look) -> str | None:
    """When a matching message that nobody can receive now becomes visible."""
    anyhow = _without_state(criteria)
    for view in look.views:
        left = time_left(view, look.now_ms)
        if left is not None and anyhow.matches(view):
            return left
    return None


def find_dead_letter_hint(world: World, criteria: Criteria, look: Look) -> str | None:
    """What a matching message lacks to be dead-lettered."""
    policy = world.broker.get_queue(look.key).settings.redrive_policy
    if policy is None:
        return f"{look.key.name!r} has no redrive policy"
    for view in look.views:
        if criteria.matches(view):
            left = time_left(view, look.now_ms)
            return f"received {view.receive_count} of {times(policy.max_receive_count)}" + (
                "" if left is None else f"; {left}"
            )
    return None


def _departure_hint(criteria: Criteria, look: Look) -> str | None:
    for story in reversed(tuple(look.stories.values())):
        departure = story.departure
        if departure is not None and criteria.accepts_body(story.body):
            what = event_text(departure, look)
            return f"such a message was {what} at {offset_text(departure.at_ms, look)}"
    return None


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
    return None


def _place(other: Look, look: Look) -> str:
    account_id, region, name = other.key
    if other.key[:2] == look.key[:2]:
        return repr(name)
    return f"{name!r} of account {account_id} in {region}"


def _without_state(criteria: Criteria) -> Criteria:
    return Criteria(
        body=criteria.body,
        json=criteria.json,
        exact=criteria.exact,
        attributes=criteria.attributes,
        group_id=criteria.group_id,
    )
