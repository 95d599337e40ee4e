"""AWS Query requests: parameters from query strings and form bodies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeAlias, assert_never
from urllib.parse import parse_qsl, unquote

from pytest_sqsq.errors import MalformedInput, MissingParameter, UnknownOperation
from pytest_sqsq.protocol.conversions import boolean_of, bytes_of, integer_of
from pytest_sqsq.protocol.model import Kind, ListOf, MapOf, Scalar, Shape, Structure, operations


@dataclass(slots=True)
class _Node:
    """What the fields say at and below one name, taken apart at its dots.

    Indexes are parts like others, so that a huge one costs nothing.
    """

    text: str | None = None
    parts: dict[str, _Node] = field(default_factory=dict)


_Decode: TypeAlias = Callable[[_Node], Any]

_DEEPEST_NAME = 8
_INDEX = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_NOT_ON_A_QUEUE = frozenset(("CreateQueue", "ListQueues"))


def form_fields(query_string: str, body: bytes) -> dict[str, str]:
    """The fields of a query string (Latin-1 text, as in WSGI) and of a form body, merged.

    Of a name given twice the last value counts.  Raises MalformedInput where the octets are not
    UTF-8; a percent sign without two hexadecimal digits stands for itself.
    """
    try:
        fields = dict(_pairs(query_string.encode("latin-1")))
        if body:
            fields.update(_pairs(body))
    except UnicodeError:
        raise MalformedInput("The request's parameters are not valid UTF-8.") from None
    return fields


def _pairs(octets: bytes) -> list[tuple[str, str]]:
    return parse_qsl(
        octets.decode("utf-8"), keep_blank_values=True, encoding="utf-8", errors="strict"
    )


def parameters_of(action: str, fields: Mapping[str, str], path: str) -> dict[str, Any]:
    """The parameters of a call of any action, sent to this path.

    On any path but ``/`` the path names the queue, unless a parameter does.  Raises
    UnknownOperation for an action that does not exist, or not there; MalformedInput for a value
    that is not of the type that the model names; MissingParameter for half of a map entry.
    """
    on_a_queue = bool(path.strip("/"))
    decode = _decoders().get(action)
    if decode is None or (on_a_queue and action in _NOT_ON_A_QUEUE):
        raise UnknownOperation.action(action)
    parameters: dict[str, Any] = decode(_tree(fields))
    if on_a_queue and "QueueUrl" in operations()[action].input.members:
        parameters.setdefault("QueueUrl", unquote(path, encoding="utf-8", errors="replace"))
    # ReceiveMessage: recorded from AWS, where JSON in contrast asks for the union of both.
    if parameters.get("AttributeNames"):
        parameters.pop("MessageSystemAttributeNames", None)
    return parameters


def _tree(fields: Mapping[str, str]) -> _Node:
    root = _Node()
    for name, text in fields.items():
        node = root
        for part in name.split(".", _DEEPEST_NAME):
            below = node.parts.get(part)
            if below is None:
                below = node.parts[part] = _Node()
            node = below
        node.text = text
    return root


@cache
def _decoders() -> Mapping[str, _Decode]:
    return {name: _structure(operation.input) for name, operation in operations().items()}


def _decoder(shape: Shape) -> _Decode:
    match shape:
        case Scalar():
            return _scalar(shape)
        case ListOf():
            return _list(shape)
        case MapOf():
            return _map(shape)
        case Structure():
            return _structure(shape)
        case _:
            assert_never(shape)


_CONVERSIONS: Mapping[Kind, Callable[[str], Any]] = {
    "string": str,
    "integer": partial(integer_of, kind="integer"),
    "long": partial(integer_of, kind="long"),
    "boolean": boolean_of,
    "blob": bytes_of,
}


def _scalar(shape: Scalar) -> _Decode:
    """``None`` where only longer names are given, which are unknown then."""
    convert = _CONVERSIONS[shape.kind]
    return lambda node: None if node.text is None else convert(node.text)


def _elements(node: _Node) -> Iterator[tuple[str, _Node]]:
    """What repeats under a name, in order of its indexes, with the prefix of each one's names.

    Un-numbered elements count as the only one; an empty text is how SDKs write an empty list.
    """
    numbered = sorted((int(part), part) for part in node.parts if _INDEX.fullmatch(part))
    for _, part in numbered:
        yield f"{part}.", node.parts[part]
    if not numbered and (node.text or node.parts):
        yield "", node


def _list(shape: ListOf) -> _Decode:
    decode_member = _decoder(shape.member)

    def decode(node: _Node) -> list[Any]:
        members = (decode_member(element) for _, element in _elements(node))
        return [member for member in members if member is not None]

    return decode


def _map(shape: MapOf) -> _Decode:
    decode_value = _decoder(shape.value)
    # A structure without any member leaves no trace in a form; it still is one.
    absent = _Node() if isinstance(shape.value, Structure) else None

    def decode(node: _Node) -> dict[str, Any]:
        result = {}
        for prefix, element in _elements(node):
            key = element.parts.get(shape.key_name)
            held = element.parts.get(shape.value_name, absent)
            if key is None or key.text is None:
                raise MissingParameter(f"{shape.element}.{prefix}{shape.key_name}")
            value = None if held is None else decode_value(held)
            if value is None:
                raise MissingParameter(f"{shape.element}.{prefix}{shape.value_name}")
            result[key.text] = value
        return result

    return decode


def _structure(shape: Structure) -> _Decode:
    wire_names = {
        member.element if isinstance(member, ListOf | MapOf) else name: (name, _decoder(member))
        for name, member in shape.members.items()
    }
    # botocore wrote an empty list under the member's own name: "Entries=".
    empty_forms: dict[str, Callable[[], Any]] = {
        name: list if isinstance(member, ListOf) else dict
        for name, member in shape.members.items()
        if isinstance(member, ListOf | MapOf)
    }

    def decode(node: _Node) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for wire_name, held in node.parts.items():
            if wire_name in wire_names:
                name, decode_member = wire_names[wire_name]
                value = decode_member(held)
                if value is not None:
                    result[name] = value
            elif held.text == "" and wire_name in empty_forms:
                result.setdefault(wire_name, empty_forms[wire_name]())
        return result

    return decode
