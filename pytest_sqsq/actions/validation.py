"""Checks that several actions share: presence, ranges, identifiers, characters, JSON texts."""

from __future__ import annotations

import json
import re
from typing import Any

from pytest_sqsq import limits
from pytest_sqsq.actions.context import Parameters
from pytest_sqsq.errors import InvalidParameterValue, MissingParameter

#: Matches a whole text that a body or an attribute may hold: the characters of XML 1.0.  It takes
#: half as long as a search for the others, which counts in a body of 1 MiB.
VALID_TEXT = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


def name_pattern(length: int, suffix: str = "") -> re.Pattern[str]:
    """What queues, batch entries and permissions may be called, up to a length in all.

    ``suffix`` is what the name has to end in.
    """
    return re.compile(rf"[A-Za-z0-9_-]{{1,{length - len(suffix)}}}{re.escape(suffix)}")


def name_rule(length: int) -> str:
    """SQS's words for :func:`name_pattern`; without a full stop."""
    return (
        "Can only include alphanumeric characters, hyphens, or underscores."
        f" 1 to {length} in length"
    )


#: Letters, digits, and all of ASCII punctuation: everything printable but the space.
_IDENTIFIER = re.compile(rf"[!-~]{{1,{limits.GROUP_ID_LENGTH}}}")


def require(parameters: Parameters, name: str) -> Any:
    """The parameter's value; raises MissingParameter where it is absent."""
    value = parameters.get(name)
    if value is None:
        raise MissingParameter(name)
    return value


def encoded(text: str) -> bytes:
    """The text in UTF-8; lone surrogates, which a later check refuses, do not raise."""
    return text.encode("utf-8", "surrogatepass")


def check_range(value: int, allowed: limits.Range, parameter: str, reason: str) -> None:
    """Raises InvalidParameterValue outside ``allowed``, whose bounds fill the reason."""
    if value not in allowed:
        text = reason.format(low=allowed.low, high=allowed.high)
        raise InvalidParameterValue.for_value(value, parameter, text)


def identifier_fault(value: str, parameter: str) -> str | None:
    """Why this is no message group, deduplication or attempt id; without a full stop."""
    if _IDENTIFIER.fullmatch(value):
        return None
    return (
        f"{parameter} can only include alphanumeric and punctuation characters."
        f" 1 to {limits.GROUP_ID_LENGTH} in length"
    )


#: The reason, without its full stop, for what only the other type of queue accepts.
WRONG_QUEUE_TYPE = "The request include parameter that is not valid for this queue type"


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object that the text holds, or ``None`` where it holds none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def compact_json(value: object) -> str:
    """JSON without white space, the form in which SQS keeps and returns policies."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
