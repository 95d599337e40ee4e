"""Reading what a request says, and refusing what makes no sense."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar, cast

from pytest_sqsq.errors import MalformedInput
from pytest_sqsq.models import shortened
from pytest_sqsq.options import unknown_text
from pytest_sqsq.protocol import HttpRequest
from pytest_sqsq.protocol.aws_query import form_fields

Choice = TypeVar("Choice", bound=str)

LONGEST_SECONDS = 1_000_000_000
"""About 30 years: no thread can be made to wait for longer than a few times that."""


class Refusal(Exception):
    """A request is answered with an error."""

    def __init__(self, status: int, text: str, headers: Collection[tuple[str, str]] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers


@contextmanager
def refusing_nonsense() -> Iterator[None]:
    """A context in which a ``ValueError`` is about what the client has sent."""
    try:
        yield
    except ValueError as error:
        raise Refusal(400, str(error)) from None


class Fields:
    """The values of a request by key; ``null`` is as good as absent.

    Each way to read one returns ``None`` where there is none, and raises :class:`Refusal` for one
    that is no such value.
    """

    def __init__(self, kind: str, values: Mapping[str, Any], known: Collection[str]) -> None:
        for name in values:
            if name not in known:
                hint = (
                    unknown_text(kind, shortened(name), known)
                    if known
                    else (f"unknown {kind} {shortened(name)!r}; this request takes none")
                )
                raise Refusal(400, hint)
        self._kind = kind
        self._values = {name: value for name, value in values.items() if value is not None}

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def raw(self, key: str) -> Any:
        """The value, whatever it is."""
        return self._values.get(key)

    def require(self, key: str) -> None:
        if key not in self._values:
            raise Refusal(400, f"{key} is missing")

    def text(self, key: str) -> str | None:
        value = self._values.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self._misfit(key, "a text")

    def flag(self, key: str) -> bool | None:
        value = self._values.get(key)
        if value is None or isinstance(value, bool):
            return value
        raise self._misfit(key, "true or false")

    def choice(self, key: str, choices: Collection[Choice]) -> Choice | None:
        value = self._values.get(key)
        if value is None or (isinstance(value, str) and value in choices):
            return cast("Choice | None", value)
        raise self._misfit(key, f"one of {', '.join(map(repr, choices))}")

    def integer(self, key: str, low: int, high: float = math.inf) -> int | None:
        """In a query string, digits."""
        value = self._values.get(key)
        if isinstance(value, str) and self._kind == "parameter":
            value = int(value) if re.fullmatch("[0-9]{1,18}", value) else value
        if value is None or (type(value) is int and low <= value <= high):
            return value
        span = f"of at least {low}" if high == math.inf else f"from {low} to {high}"
        raise self._misfit(key, f"an integer {span}")

    def number(self, key: str) -> float | None:
        value = self._values.get(key)
        if value is None or (type(value) in (int, float) and abs(value) <= LONGEST_SECONDS):
            return cast("float | None", value)
        raise self._misfit(key, f"a number, at most {LONGEST_SECONDS:g}")

    def seconds(
        self, key: str, *, above: float | None = None, at_most: float = LONGEST_SECONDS
    ) -> float | None:
        """A duration; of 0 too, unless it must be ``above`` that."""
        value = self._values.get(key)
        if value is None or (
            type(value) in (int, float)
            and 0 <= value <= at_most
            and (above is None or value > above)
        ):
            return cast("float | None", value)
        least = "from 0" if above is None else f"above {above:g}"
        raise self._misfit(key, f"a number of seconds {least}, at most {at_most:g}")

    def body(self, key: str) -> str | re.Pattern[str] | None:
        """The body of messages: a text, or ``{"pattern": "a regular expression"}``."""
        value = self._values.get(key)
        if isinstance(value, dict) and value.keys() == {"pattern"}:
            pattern = value["pattern"]
            if isinstance(pattern, str):
                return _compiled(key, pattern)
        elif value is None or isinstance(value, str):
            return value
        raise self._misfit(key, 'a text or {"pattern": "a regular expression"}')

    def _misfit(self, key: str, wanted: str) -> Refusal:
        value = self._values[key]
        shown = value if self._kind == "parameter" and value else _shown(value)
        return Refusal(400, f"{key} must be {wanted}, not {shortened(shown)}")


def _compiled(key: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise Refusal(
            400, f"{key}: {shortened(pattern)!r} is no regular expression: {error}"
        ) from None


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def query_fields(request: HttpRequest, known: Collection[str]) -> Fields:
    """What the query string says."""
    try:
        values = form_fields(request.query_string, b"")
    except MalformedInput as error:
        raise Refusal(400, error.message) from None
    return Fields("parameter", values, known)


def body_fields(request: HttpRequest, known: Collection[str]) -> Fields:
    """What the body says: a JSON object, or nothing.

    Its type must be declared: a page of another site can make a browser post anything else.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        declared = f"not {shortened(media_type)!r}" if media_type else "which is missing"
        raise Refusal(415, f"the Content-Type must be application/json, {declared}")
    return Fields("key", _json_object(request.body), known)


def _json_object(body: bytes) -> Mapping[str, Any]:
    if not body.strip():
        return {}
    try:
        document = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise Refusal(400, "the body is nested too deeply") from None
    except ValueError as error:
        raise Refusal(400, f"the body is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise Refusal(400, f"the body must be a JSON object, not {shortened(_shown(document))}")
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
