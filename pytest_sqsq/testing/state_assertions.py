"""Assertions about the messages that are in a queue now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, overload

from pytest_sqsq.models import MessageState, MessageView, QueueKey
from pytest_sqsq.testing.failures import (
    failure_text,
    live_listing,
    message_lines,
    seconds_text,
    there_are,
)
from pytest_sqsq.testing.hints import find_counts_hint, find_missing_hint
from pytest_sqsq.testing.looks import Hidden, Look, Sample, take_look
from pytest_sqsq.testing.matching import STATE_NAMES, BodyMatcher, Criteria, checked_count
from pytest_sqsq.testing.outlook import left_text
from pytest_sqsq.testing.world import World
from pytest_sqsq.timeline import duration_ms


class StateAssertions:
    """What a probe can assert of the messages in its queue.

    Everything due by now has happened before an assertion looks; looking changes nothing.
    """

    _world: World
    key: QueueKey

    def assert_empty(self) -> None:
        """There is no message, in whatever state."""
        __tracebackhide__ = True
        look = self._miscounted(dict.fromkeys(STATE_NAMES, 0))
        if look is not None:
            raise AssertionError(
                failure_text(
                    "no message",
                    look,
                    found=there_are(look.live_count),
                    listed=live_listing(look),
                    hint=find_counts_hint(look, dict.fromkeys(STATE_NAMES, 0)),
                )
            )

    def assert_counts(
        self,
        *,
        visible: int | None = None,
        in_flight: int | None = None,
        delayed: int | None = None,
    ) -> None:
        """The named counts are exactly these; what is not named is not compared.

        Raises ``TypeError`` where none is named.
        """
        __tracebackhide__ = True
        given = {"visible": visible, "in_flight": in_flight, "delayed": delayed}
        for state, count in given.items():
            checked_count(count, state)
        wanted = {state: count for state, count in given.items() if count is not None}
        if not wanted:
            raise TypeError("assert_counts needs at least one of visible, in_flight, delayed")
        look = self._miscounted(wanted)
        if look is not None:
            raise AssertionError(
                failure_text(
                    ", ".join(f"{count} {STATE_NAMES[state]}" for state, count in wanted.items()),
                    look,
                    listed=live_listing(look),
                    hint=find_counts_hint(look, wanted),
                )
            )

    def _miscounted(self, wanted: Mapping[str, int]) -> Look | None:
        """``None`` if the counts are as wanted, else a look at all that time will make visible."""
        if take_look(self._world, self.key, Sample()).has_counts(wanted):
            return None
        look = take_look(self._world, self.key, Hidden())
        return None if look.has_counts(wanted) else look

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
        checked_count(count, "count")
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
            raise AssertionError(miscount_text(self._world, criteria, look, count, found))
        return found[0] if count == 1 else found

    def assert_in_flight(
        self,
        body: BodyMatcher | None = None,
        *,
        json: Any = None,
        exact: bool = False,
        for_seconds: float | timedelta = 0,
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
        for_seconds: float | timedelta = 0,
    ) -> MessageView:
        """Such a message is delayed, for ``for_seconds`` more at least; returns the oldest."""
        __tracebackhide__ = True
        criteria = Criteria(body=body, json=json, exact=exact, state="delayed")
        return _assert_waiting(self._world, self.key, criteria, for_seconds)


def _assert_waiting(
    world: World, key: QueueKey, criteria: Criteria, for_seconds: float | timedelta
) -> MessageView:
    __tracebackhide__ = True
    least_ms = duration_ms(for_seconds)
    look = take_look(world, key, criteria)
    found = [view for view in look.views if criteria.matches(view)]
    for view in found:
        if view.visible_at_ms is not None and view.visible_at_ms >= look.now_ms + least_ms:
            return view
    expected = criteria.phrase(None)
    if least_ms:
        expected += f" for at least {seconds_text(least_ms)} more seconds"
    if found:
        latest = max(found, key=lambda view: view.visible_at_ms or 0)
        reason, hint = f"the longest is {left_text(latest, look)}", None
    else:
        reason, hint = there_are(0), find_missing_hint(world, criteria, look, None)
    raise AssertionError(failure_text(expected, look, found=reason, criteria=criteria, hint=hint))


def miscount_text(
    world: World, criteria: Criteria, look: Look, count: int | None, found: Sequence[MessageView]
) -> str:
    """The text for too few or too many messages in a look."""
    is_too_few = count is None or len(found) < count
    return failure_text(
        criteria.phrase(count),
        look,
        found=there_are(len(found)),
        listed=("found", message_lines(found, look, len(found))) if found else None,
        criteria=criteria if is_too_few else None,
        besides=found,
        hint=find_missing_hint(world, criteria, look, count) if is_too_few else None,
    )
