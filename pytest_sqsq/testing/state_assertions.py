"""Assertions about the messages that are in a queue now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

from pytest_sqsq.models import MessageState, MessageView, QueueKey
from pytest_sqsq.testing.failures import (
    failure_text,
    message_lines,
    seconds_text,
    there_are,
)
from pytest_sqsq.testing.hints import find_hint, time_left
from pytest_sqsq.testing.looks import Look, take_look
from pytest_sqsq.testing.matching import STATE_NAMES, BodyMatcher, Criteria
from pytest_sqsq.testing.world import World


class StateAssertions:
    """What a probe can assert of the messages in its queue.

    Everything due by now has happened before an assertion looks; looking changes nothing.
    """

    _world: World
    key: QueueKey

    def assert_empty(self) -> None:
        """There is no message, in whatever state."""
        __tracebackhide__ = True
        look = take_look(self._world, self.key, Criteria())
        if look.live_count:
            raise AssertionError(
                failure_text(
                    "no message",
                    look,
                    found=there_are(look.live_count),
                    listed=("there", message_lines(look.views, look, look.live_count)),
                )
            )

    def assert_counts(
        self,
        *,
        visible: int | None = None,
        in_flight: int | None = None,
        delayed: int | None = None,
    ) -> None:
        """The named counts are exactly these; what is not named is not compared."""
        __tracebackhide__ = True
        look = take_look(self._world, self.key, Criteria())
        named = {
            state: (wanted, actual)
            for state, wanted, actual in (
                ("visible", visible, look.visible),
                ("in_flight", in_flight, look.in_flight),
                ("delayed", delayed, look.delayed),
            )
            if wanted is not None
        }
        if not named:
            raise TypeError("assert_counts needs at least one of visible, in_flight, delayed")
        if any(wanted != actual for wanted, actual in named.values()):
            expected = ", ".join(f"{n} {STATE_NAMES[state]}" for state, (n, _) in named.items())
            raise AssertionError(
                failure_text(
                    expected,
                    look,
                    listed=_listing(look),
                )
            )

    @overload
    def assert_contains(  # type: ignore[overload-overlap]
        self,
        body: BodyMatcher | None = ...,
        *,
        json: Any = ...,
        exact: bool = ...,
        attributes: Mapping[str, Any] | None = ...,
        group_id: str | None = ...,
        state: MessageState | None = ...,
        count: Literal[1] = ...,
    ) -> MessageView: ...

    @overload
    def assert_contains(
        self,
        body: BodyMatcher | None = ...,
        *,
        json: Any = ...,
        exact: bool = ...,
        attributes: Mapping[str, Any] | None = ...,
        group_id: str | None = ...,
        state: MessageState | None = ...,
        count: int | None,
    ) -> tuple[MessageView, ...]: ...

    def assert_contains(
        self,
        body: BodyMatcher | None = None,
        *,
        json: Any = None,
        exact: bool = False,
        attributes: Mapping[str, Any] | None = None,
        group_id: str | None = None,
        state: MessageState | None = None,
        count: int | None = 1,
    ) -> MessageView | tuple[MessageView, ...]:
        """Exactly ``count`` messages are there that match all that is given; ``None`` for any.

        ``body`` is the text, a pattern to search for, or a callable; ``json`` a part of the
        parsed body, or all of it with ``exact``; ``attributes`` plain values by name.  Returns
        the message where ``count`` is 1, else a tuple in order of arrival.
        """
        __tracebackhide__ = True
        criteria = Criteria(
            body=body,
            json=json,
            exact=exact,
            attributes=attributes,
            group_id=group_id,
            state=state,
        )
        look = take_look(self._world, self.key, criteria)
        found = tuple(view for view in look.views if criteria.matches(view))
        if (not found) if count is None else (len(found) != count):
            raise AssertionError(_contains_text(self._world, criteria, look, count, found))
        return found[0] if count == 1 else found

    def assert_in_flight(
        self,
        body: BodyMatcher | None = None,
        *,
        json: Any = None,
        exact: bool = False,
        for_seconds: float = 0,
    ) -> MessageView:
        """Such a message is in flight, for ``for_seconds`` more at least; returns the oldest."""
        __tracebackhide__ = True
        criteria = Criteria(body=body, json=json, exact=exact, state="in_flight")
        return _assert_waiting(self._world, self.key, criteria, for_seconds)

    def assert_delayed(
        self,
        body: BodyMatcher | None = None,
        *,
        json: Any = None,
        exact: bool = False,
        for_seconds: float = 0,
    ) -> MessageView:
        """Such a message is delayed, for ``for_seconds`` more at least; returns the oldest."""
        __tracebackhide__ = True
        criteria = Criteria(body=body, json=json, exact=exact, state="delayed")
        return _assert_waiting(self._world, self.key, criteria, for_seconds)


def _assert_waiting(
    world: World, key: QueueKey, criteria: Criteria, for_seconds: float
) -> MessageView:
    __tracebackhide__ = True
    look = take_look(world, key, criteria)
    found = [view for view in look.views if criteria.matches(view)]
    least_ms = look.now_ms + round(for_seconds * 1000)
    for view in found:
        if view.visible_at_ms is not None and view.visible_at_ms >= least_ms:
            return view
    expected = criteria.phrase(None)
    if for_seconds:
        expected += f" for at least {seconds_text(round(for_seconds * 1000))} more seconds"
    if found:
        latest = max(found, key=lambda view: view.visible_at_ms or 0)
        reason = f"the longest is {(time_left(latest, look.now_ms) or '').partition(':')[0]}"
        hint = None
    else:
        reason, hint = there_are(0), find_hint(world, criteria, look)
    raise AssertionError(failure_text(expected, look, found=reason, criteria=criteria, hint=hint))


def _contains_text(
    world: World, criteria: Criteria, look: Look, count: int | None, found: Sequence[MessageView]
) -> str:
    if found:
        listed = ("found", message_lines(found, look, len(found)))
        return failure_text(
            criteria.phrase(count), look, found=there_are(len(found)), listed=listed
        )
    return failure_text(
        criteria.phrase(count),
        look,
        found=there_are(0),
        criteria=criteria,
        hint=find_hint(world, criteria, look),
    )


def _listing(look: Look) -> tuple[str, list[str]] | None:
    if not look.live_count:
        return None
    return "there", message_lines(look.views, look, look.live_count)
