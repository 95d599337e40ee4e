"""Message attributes: what a sender may attach, what it weighs, and what a receiver asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from pytest_sqsq import limits
from pytest_sqsq.actions.validation import VALID_TEXT, encoded
from pytest_sqsq.errors import InvalidParameterValue, UnsupportedOperation
from pytest_sqsq.models import MessageAttribute

WireAttributes = Mapping[str, Mapping[str, Any]]

TRACE_HEADER = "AWSTraceHeader"

_TYPES = ("Binary", "Number", "String")
_RESERVED_PREFIX = re.compile(r"(aws|amazon)\.", re.IGNORECASE)
#: Letters and digits of every script: AWS accepts more than the ASCII ones it documents.
_NAME = re.compile(r"[\w.-]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SMALLEST_NUMBER = Decimal("1e-128")
_LARGEST_NUMBER = Decimal("1e+126")

Kind = Literal["user", "system"]


def size_of(attributes: WireAttributes | None) -> int:
    """The bytes that attributes add to a message: names, data types, and raw values.

    Takes them as they came, checked or not, since the size of a batch is judged first.
    """
    if not attributes:
        return 0
    size = 0
    for name, attribute in attributes.items():
        size += len(encoded(name)) + len(encoded(attribute.get("DataType") or ""))
        size += len(encoded(attribute.get("StringValue") or ""))
        size += len(attribute.get("BinaryValue") or b"")
    return size


def parse_attributes(attributes: WireAttributes) -> dict[str, MessageAttribute]:
    """The attributes of a message being sent; raises for the first that is not allowed."""
    if len(attributes) > limits.MESSAGE_ATTRIBUTES:
        raise InvalidParameterValue(
            f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum"
            f" [{limits.MESSAGE_ATTRIBUTES}]."
        )
    for name in attributes:
        _check_name(name)
    return {name: _parse(name, attribute, "user") for name, attribute in attributes.items()}


def parse_system_attributes(attributes: WireAttributes) -> dict[str, MessageAttribute]:
    """The system attributes of a message being sent: a trace header, or nothing else."""
    for name in attributes:
        if name != TRACE_HEADER:
            raise InvalidParameterValue(f"Message system attribute name '{name}' is invalid.")
    parsed = {name: _parse(name, attribute, "system") for name, attribute in attributes.items()}
    for name, (data_type, _) in parsed.items():
        if data_type != "String":
            raise _bad_type(name, "system", ("String",))
    return parsed


def _check_name(name: str) -> None:
    if not name:
        raise InvalidParameterValue(
            "The request must contain non-empty message (user) attribute names."
        )
    if _RESERVED_PREFIX.match(name):
        raise InvalidParameterValue(
            "You can't use message attribute names beginning with 'AWS.' or 'Amazon'."
            " These strings are reserved for internal use."
        )
    if fault := _name_fault(name):
        raise InvalidParameterValue(f"Message (user) attribute name {fault}.")


def _name_fault(name: str) -> str | None:
    if name[0] == ".":
        return "must not begin with character '.'"
    if name[-1] == ".":
        return "must not end with character '.'"
    if ".." in name:
        return "must not have successive '.' characters"
    if len(name) > limits.MESSAGE_ATTRIBUTE_NAME_LENGTH:
        return f"must be shorter than {limits.MESSAGE_ATTRIBUTE_NAME_LENGTH} bytes"
    if not _NAME.fullmatch(name):
        # AWS refuses these; its words for it are not known.
        return "can only include letters, digits, hyphens, underscores and periods"
    return None


def _parse(name: str, attribute: Mapping[str, Any], kind: Kind) -> MessageAttribute:
    if attribute.get("StringListValues") or attribute.get("BinaryListValues"):
        raise UnsupportedOperation(
            "Message attribute list values in SendMessage operation are not supported."
        )
    data_type = _data_type(name, attribute.get("DataType"), kind)
    text, data = attribute.get("StringValue"), attribute.get("BinaryValue")
    if text is None and data is None:
        raise InvalidParameterValue(
            f"The message ({kind}) attribute '{name}' must contain a non-empty message"
            " attribute value."
        )
    if text is not None and data is not None:
        raise InvalidParameterValue(
            f"Message ({kind}) attribute '{name}' must have a single value."
        )
    field = "Binary" if data_type.startswith("Binary") else "String"
    value = data if field == "Binary" else text
    if value is None:
        raise InvalidParameterValue(
            f"Message ({kind}) attribute '{name}' with type '{data_type}' must use field '{field}'."
        )
    if not value:
        raise InvalidParameterValue(
            f"Message ({kind}) attribute '{name}' must contain a non-empty value of type"
            f" '{data_type}'."
        )
    if field == "String":
        _check_text(name, data_type, value, kind)
    return MessageAttribute(data_type, value)


def _data_type(name: str, data_type: str | None, kind: Kind) -> str:
    if not data_type:
        raise InvalidParameterValue(
            f"The message ({kind}) attribute '{name}' must contain a non-empty message"
            " attribute type."
        )
    if len(encoded(data_type)) > limits.MESSAGE_ATTRIBUTE_TYPE_BYTES:
        raise InvalidParameterValue(
            f"Message ({kind}) attribute type must be shorter than"
            f" {limits.MESSAGE_ATTRIBUTE_TYPE_BYTES} bytes."
        )
    if data_type.partition(".")[0] not in _TYPES:
        raise _bad_type(name, kind, _TYPES)
    if not VALID_TEXT.fullmatch(data_type):
        raise _bad_characters(name, kind)
    return data_type


def _bad_type(name: str, kind: Kind, types: Sequence[str]) -> InvalidParameterValue:
    return InvalidParameterValue(
        f"The type of message ({kind}) attribute '{name}' is invalid. You must use only the"
        f" following supported type prefixes: {', '.join(types)}."
    )


def _bad_characters(name: str, kind: Kind) -> InvalidParameterValue:
    # AWS refuses control characters here as in a body; its words for it are not known.
    return InvalidParameterValue(
        f"Message ({kind}) attribute '{name}' contains characters that are not allowed."
    )


def _check_text(name: str, data_type: str, value: str, kind: Kind) -> None:
    if not VALID_TEXT.fullmatch(value):
        raise _bad_characters(name, kind)
    if data_type.startswith("Number") and not _is_number(value):
        raise InvalidParameterValue(
            f"Can't cast the value of message ({kind}) attribute '{name}' to a number."
        )


def _is_number(text: str) -> bool:
    """Whether SQS takes the text as a number: 38 significant digits, 1e-128 to 1e+126."""
    if not _NUMBER.fullmatch(text):
        return False
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    if not number:
        return True
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    if len(digits) > limits.NUMBER_DIGITS:
        return False
    return _SMALLEST_NUMBER <= number.copy_abs() <= _LARGEST_NUMBER


def wire_attributes(attributes: Mapping[str, MessageAttribute]) -> dict[str, dict[str, Any]]:
    """Attributes as an answer holds them; binary values stay bytes."""
    return {
        name: {
            "StringValue" if isinstance(value, str) else "BinaryValue": value,
            "DataType": data_type,
        }
        for name, (data_type, value) in attributes.items()
    }


Filter = Callable[[Mapping[str, MessageAttribute]], Mapping[str, MessageAttribute]]

_EVERYTHING = {"All", ".*", "*"}


def attribute_filter(patterns: Sequence[str] | None) -> Filter | None:
    """What ``MessageAttributeNames`` chooses: exact names, ``prefix.*``, or all of them.

    ``None`` where nothing is asked for.  The dot of ``prefix.*`` need not be in the name, and a
    name that no attribute could have chooses nothing.
    """
    if not patterns:
        return None
    if not _EVERYTHING.isdisjoint(patterns):
        return _all_of
    names = {pattern for pattern in patterns if not pattern.endswith(".*")}
    prefixes = tuple(pattern[:-2] for pattern in patterns if pattern.endswith(".*"))

    def choose(attributes: Mapping[str, MessageAttribute]) -> dict[str, MessageAttribute]:
        return {
            name: attribute
            for name, attribute in attributes.items()
            if name in names or name.startswith(prefixes)
        }

    return choose


def _all_of(attributes: Mapping[str, MessageAttribute]) -> Mapping[str, MessageAttribute]:
    return attributes
