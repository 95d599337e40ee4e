"""The shapes of SQS's operations, read from botocore's service model.

The model is loaded on first use and once; both codecs compile their own functions from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, cast

Kind = Literal["string", "integer", "long", "boolean", "blob"]


@dataclass(frozen=True, slots=True)
class Scalar:
    kind: Kind


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; ``element`` is the name of each element in Query."""

    element: str
    member: Shape


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map with text keys, in Query elements that hold a key and a value under these names."""

    element: str
    key_name: str
    value_name: str
    value: Shape


@dataclass(frozen=True, slots=True)
class Structure:
    name: str
    members: Mapping[str, Shape]


Shape: TypeAlias = Scalar | ListOf | MapOf | Structure


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation; ``output`` is ``None`` where it answers without a result."""

    name: str
    input: Structure
    output: Structure | None


# Today's model describes the JSON protocol; these are Query's names for what repeats, from the
# last models that described Query (botocore before 1.31.81).  A list that is not here repeats
# under the name of its member's shape.
_LIST_ELEMENTS = {
    "ActionNameList": "ActionName",
    "AttributeNameList": "AttributeName",
    "AWSAccountIdList": "AWSAccountId",
    "BinaryList": "BinaryListValue",
    "QueueUrlList": "QueueUrl",
    "StringList": "StringListValue",
}
_MAP_ELEMENTS = {
    "MessageBodyAttributeMap": ("MessageAttribute", "Name", "Value"),
    "MessageBodySystemAttributeMap": ("MessageSystemAttribute", "Name", "Value"),
    "MessageSystemAttributeMap": ("Attribute", "Name", "Value"),
    "QueueAttributeMap": ("Attribute", "Name", "Value"),
    "TagMap": ("Tag", "Key", "Value"),
}
_KINDS = frozenset(("string", "integer", "long", "boolean", "blob"))


@cache
def operations() -> Mapping[str, Operation]:
    """All operations by name.  The first call loads the model, which takes about 15 ms."""
    document = _service_model()
    shapes = document["shapes"]
    return {
        name: Operation(
            name,
            _structure(description["input"]["shape"], shapes),
            _structure(description["output"]["shape"], shapes) if "output" in description else None,
        )
        for name, description in document["operations"].items()
    }


def _service_model() -> Mapping[str, Any]:
    from botocore.loaders import Loader

    # Only what botocore ships: models in a user's home directory do not change the server.
    loader = Loader(
        extra_search_paths=[Loader.BUILTIN_DATA_PATH], include_default_search_paths=False
    )
    return cast("Mapping[str, Any]", loader.load_service_model("sqs", "service-2"))


def _shape(name: str, shapes: Mapping[str, Any]) -> Shape | None:
    """The shape of this name, or ``None`` for a type that SQS does not use today.

    A member of such a type, in a model newer than this package, is left out: to the codecs it
    is an unknown member.
    """
    description = shapes[name]
    kind = description["type"]
    if kind in _KINDS:
        return Scalar(kind)
    if kind == "structure":
        return _structure(name, shapes)
    if kind == "list":
        member_name = description["member"]["shape"]
        member = _shape(member_name, shapes)
        return member and ListOf(_LIST_ELEMENTS.get(name, member_name), member)
    if kind == "map":
        value = _shape(description["value"]["shape"], shapes)
        return value and MapOf(*_MAP_ELEMENTS.get(name, (name, "Name", "Value")), value)
    return None


def _structure(name: str, shapes: Mapping[str, Any]) -> Structure:
    described = {
        member: _shape(description["shape"], shapes)
        for member, description in shapes[name]["members"].items()
    }
    return Structure(name, {member: shape for member, shape in described.items() if shape})
