"""Which messages an assertion means, and in what a message differs from that."""

from __future__ import annotations

import json as json_module
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from pytest_sqsq.models import MessageState, MessageView, shortened

if TYPE_CHECKING:
    from pytest_sqsq.engine.message import Message

BodyMatcher = str | re.Pattern[str] | Callable[[str], object]

STATE_NAMES: Mapping[str, str] = {
    "visible": "visible",
    "in_flight": "in flight",
    "delayed": "delayed",
}


VALUE_CHARACTERS = 300
"""So much of a value stands in a failure text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """What a message must be like; ``None`` means that anything will do.

    ``body`` is the whole text, a pattern to search for, or a callable that accepts a body;
    ``json`` is matched as a subset of the parsed body, as the whole with ``exact``;
    ``attributes`` holds plain values by name, numbers compared as numbers.
    """

    message_id: str | None = None
    body: BodyMatcher | None = None
    json: Any = None
    exact: bool = False
    attributes: Mapping[str, Any] | None = None
    group_id: str | None = None
    state: MessageState | None = None

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in STATE_NAMES:
            raise ValueError(f"state {self.state!r} is none of {', '.join(map(repr, STATE_NAMES))}")
        if self.exact and self.json is None:
            raise TypeError("exact=True is about json=, and there is none")
        if self.body == object():  # as unittest.mock.ANY is
            object.__setattr__(self, "body", None)
        if not _is_body_matcher(self.body):
            raise TypeError(
                f"body is text, a compiled pattern for text, or a callable, not {self.body!r}"
            )
        if self.attributes is not None and not isinstance(self.attributes, Mapping):
            raise TypeError(f"attributes are plain values by name, not {self.attributes!r}")

    @property
    def in_any_state(self) -> Criteria:
        """The same, whatever the state."""
        return replace(self, state=None)

    def may_match(self, message: Message) -> bool:
        """False only for what cannot match.  Runs no code of the test: safe under a lock."""
        return (
            (self.message_id is None or message.message_id == self.message_id)
            and (not isinstance(self.body, str) or message.body == self.body)
            and (self.group_id is None or message.message_group_id == self.group_id)
            and (self.state is None or message.state == self.state)
        )

    def accepts_body(self, body: str) -> bool:
        return next(self._body_differences(body), None) is None

    def matches(self, view: MessageView) -> bool:
        return next(self._differences(view), None) is None

    def differences(self, view: MessageView) -> tuple[str, ...]:
        """All in which the message differs, one text each."""
        return tuple(self._differences(view))

    def phrase(self, count: int | None) -> str:
        """``2 visible messages with body 'a'``; ``None`` for at least one."""
        number = {None: "at least 1", 0: "no"}.get(count, str(count))
        noun = "message" if count in {None, 0, 1} else "messages"
        named = {
            None: noun,
            "visible": f"visible {noun}",
            "in_flight": f"{noun} in flight",
            "delayed": f"delayed {noun}",
        }[self.state]
        wanted = [] if self.message_id is None else [f"id {self.message_id!r}"]
        wanted += [text for text in (self._body_wanted(), self._json_wanted()) if text]
        if self.attributes is not None:
            wanted.append(f"attributes {_value_text(dict(self.attributes))}")
        with_what = " with " + " and ".join(wanted) if wanted else ""
        group = "" if self.group_id is None else f" in group {self.group_id!r}"
        return f"{number} {named}{with_what}{group}"

    def _body_wanted(self) -> str | None:
        if self.body is None:
            return None
        if isinstance(self.body, str):
            return f"body {shortened(self.body)!r}"
        if isinstance(self.body, re.Pattern):
            return f"a body matching {self.body.pattern!r}"
        return f"a body that {_name(self.body)} accepts"

    def _json_wanted(self) -> str | None:
        if self.json is None:
            return None
        return f"{'exactly the json' if self.exact else 'json'} {_value_text(self.json)}"

    def _differences(self, view: MessageView) -> Iterator[str]:
        if self.message_id is not None and view.message_id != self.message_id:
            yield f"the id is {view.message_id!r}, not {self.message_id!r}"
        yield from self._body_differences(view.body)
        for name, wanted in (self.attributes or {}).items():
            if name not in view.attributes:
                yield f"there is no attribute {name!r}"
            elif not _attribute_matches(wanted, view.attributes[name]):
                actual = _value_text(view.attributes[name])
                yield f"attribute {name!r} is {actual}, not {_value_text(wanted)}"
        if self.group_id is not None and view.message_group_id != self.group_id:
            yield f"the group is {view.message_group_id!r}, not {self.group_id!r}"
        if self.state is not None and view.state != self.state:
            yield f"it is {STATE_NAMES[view.state]}, not {STATE_NAMES[self.state]}"

    def _body_differences(self, body: str) -> Iterator[str]:
        if isinstance(self.body, str):
            if body != self.body:
                yield _text_difference(self.body, body)
        elif isinstance(self.body, re.Pattern):
            if self.body.search(body) is None:
                yield f"the body {shortened(body)!r} does not match {self.body.pattern!r}"
        elif self.body is not None and not self.body(body):
            yield f"the body {shortened(body)!r} is not accepted by {_name(self.body)}"
        if self.json is not None:
            difference = _body_json_difference(self.json, body, exact=self.exact)
            if difference is not None:
                yield difference


def checked_count(count: int | None, name: str) -> None:
    """Raise ``ValueError`` for what cannot be a number of messages or events."""
    if count is not None and (type(count) is not int or count < 0):
        raise ValueError(f"{name} is {count!r}; it is a whole number, 0 for none at all")


def parse_json(text: str) -> tuple[bool, Any]:
    """Whether the text is JSON, and its value."""
    try:
        return True, json_module.loads(text)
    except ValueError:
        return False, None


def json_difference(expected: Any, actual: Any, *, exact: bool, path: str = "$") -> str | None:
    """The first difference between two JSON values by its path, or ``None``.

    Objects may hold more than expected, at every depth, unless ``exact``.  Arrays have the
    length expected.  An expected value with an ``__eq__`` of its own, such as
    ``unittest.mock.ANY``, decides by that.
    """
    if isinstance(expected, Mapping) and isinstance(actual, dict):
        return _object_difference(expected, actual, exact, path)
    if isinstance(expected, list | tuple) and isinstance(actual, list):
        return _array_difference(expected, actual, exact, path)
    if expected == actual and not _is_bool_for_number(expected, actual):
        return None
    return f"{path} is {_value_text(actual)}, not {_value_text(expected)}"


def _object_difference(
    expected: Mapping[str, Any], actual: Mapping[str, Any], exact: bool, path: str
) -> str | None:
    for name, value in expected.items():
        if name not in actual:
            return f"{path}.{name} is missing"
        difference = json_difference(value, actual[name], exact=exact, path=f"{path}.{name}")
        if difference is not None:
            return difference
    surplus = [name for name in actual if name not in expected] if exact else []
    return f"{path}.{surplus[0]} is not expected" if surplus else None


def _array_difference(
    expected: list[Any] | tuple[Any, ...], actual: list[Any], exact: bool, path: str
) -> str | None:
    if len(expected) != len(actual):
        return f"{path} has length {len(actual)}, not {len(expected)}"
    for position, (left, right) in enumerate(zip(expected, actual, strict=True)):
        difference = json_difference(left, right, exact=exact, path=f"{path}[{position}]")
        if difference is not None:
            return difference
    return None


def _is_bool_for_number(expected: Any, actual: Any) -> bool:
    # True == 1 in Python, true and 1 are two values in JSON.
    return isinstance(expected, bool | int | float) and (
        isinstance(expected, bool) != isinstance(actual, bool)
    )


def _text_difference(expected: str, actual: str) -> str:
    if shortened(actual) != shortened(expected):
        return f"the body is {shortened(actual)!r}, not {shortened(expected)!r}"
    shorter = min(len(actual), len(expected))
    alike = bisect_left(range(shorter), True, key=lambda at: actual[: at + 1] != expected[: at + 1])
    left, right = shortened(actual[alike:], 20), shortened(expected[alike:], 20)
    return f"the body goes on with {left!r} after {alike} characters, not with {right!r}"


def _body_json_difference(expected: Any, body: str, *, exact: bool) -> str | None:
    is_json, value = parse_json(body)
    if not is_json:
        return f"the body {shortened(body)!r} is not JSON"
    difference = json_difference(expected, value, exact=exact)
    return None if difference is None else f"in the body {difference}"


def _value_text(value: Any) -> str:
    return shortened(repr(value), VALUE_CHARACTERS)


def _attribute_matches(expected: Any, actual: str | bytes) -> bool:
    if isinstance(expected, int | float | Decimal) and isinstance(actual, str):
        try:
            return Decimal(actual) == Decimal(str(expected))
        except InvalidOperation:
            return False
    if isinstance(expected, re.Pattern):
        return isinstance(actual, str) and expected.search(actual) is not None
    return bool(expected == actual)


def _is_body_matcher(body: object) -> bool:
    if isinstance(body, re.Pattern):
        return isinstance(body.pattern, str)
    return body is None or isinstance(body, str) or callable(body)


def _name(predicate: Callable[[str], object]) -> str:
    return getattr(predicate, "__name__", None) or repr(predicate)
