"""Values that do not fit the model: the conversions, and the texts of their refusal."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Final

from pytest_sqsq.errors import MalformedInput
from pytest_sqsq.protocol.model import Kind

LOWEST_INTEGER: Final = -(2**63)
HIGHEST_INTEGER: Final = 2**63 - 1

# The quantifier also keeps int() away from texts that it would take long over, or refuse.
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_JAVA_NAMES: Final[dict[Kind, str]] = {
    "string": "a String",
    "integer": "an Integer",
    "long": "a Long",
    "boolean": "a Boolean",
    "blob": "a Blob",
}


def misfit(value: object, kind: Kind | None = None) -> MalformedInput:
    """The refusal of a parsed JSON value where a scalar of this kind, or a collection, belongs."""
    if isinstance(value, dict):
        return MalformedInput("Start of structure or map found where not expected.")
    if isinstance(value, list):
        return MalformedInput("Start of list found where not expected")
    if kind is None:
        return MalformedInput("Unexpected field type")
    return MalformedInput(f"{_token(value)} can not be converted to {_JAVA_NAMES[kind]}")


def _token(value: object) -> str:
    if isinstance(value, bool):
        return "TRUE_VALUE" if value else "FALSE_VALUE"
    return "STRING_VALUE" if isinstance(value, str) else "NUMBER_VALUE"


def integer_of(text: str, kind: Kind) -> int:
    """The integer a text names.  Raises MalformedInput if it is none, or beyond 64 bits."""
    if _INTEGER.fullmatch(text):
        value = int(text)
        if LOWEST_INTEGER <= value <= HIGHEST_INTEGER:
            return value
    raise misfit(text, kind)


def boolean_of(text: str) -> bool:
    """The truth value a Query text names.  Raises MalformedInput if it is none."""
    if text not in {"true", "false"}:
        raise misfit(text, "boolean")
    return text == "true"


def bytes_of(text: str) -> bytes:
    """The bytes a base64 text stands for.  Raises MalformedInput if it is not base64."""
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise MalformedInput("A binary value is not valid base64.") from None
