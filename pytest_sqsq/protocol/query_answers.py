"""AWS Query answers: XML, and the JSON that a Query client gets when it asks for it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias, assert_never

from pytest_sqsq.errors import SqsError
from pytest_sqsq.protocol.aws_json import document_bytes
from pytest_sqsq.protocol.model import ListOf, MapOf, Scalar, Shape, Structure, operations
from pytest_sqsq.protocol.wire import HttpResponse

XML_TYPE = ("Content-Type", "text/xml")
JSON_TYPE = ("Content-Type", "application/json")

_NAMESPACE = "http://queue.amazonaws.com/doc/2012-11-05/"
# AWS's answers follow the order of the model, but for this one.
_FIRST_MEMBERS = {"SendMessageResult": "MessageId"}
_JSON_NAMES = {"Messages": "messages", "QueueUrls": "queueUrls"}
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

_Render: TypeAlias = Callable[[Any], Any]


def xml_response(action: str, result: Mapping[str, Any] | None, request_id: str) -> HttpResponse:
    """The answer in XML to a call that succeeded."""
    tree = _envelope(action, result, _xml_renderers(), request_id)
    return _xml(200, f"{action}Response", tree, request_id)


def json_response(action: str, result: Mapping[str, Any] | None, request_id: str) -> HttpResponse:
    """The answer in Query's own JSON to a call that succeeded: absent members are null."""
    document = {f"{action}Response": _envelope(action, result, _json_renderers(), request_id)}
    return _json(200, document, request_id)


def xml_error_response(error: SqsError, request_id: str) -> HttpResponse:
    """The answer in XML to a call that failed."""
    tree = {"Error": {**_error(error), "Detail": {}}, "RequestId": request_id}
    return _xml(error.status, "ErrorResponse", tree, request_id)


def json_error_response(error: SqsError, request_id: str) -> HttpResponse:
    """The answer in Query's own JSON to a call that failed."""
    return _json(error.status, {"Error": _error(error), "RequestId": request_id}, request_id)


def no_operation_response(request_id: str) -> HttpResponse:
    """What AWS says to a request that names no action at all."""
    headers = [("x-amzn-RequestId", request_id), XML_TYPE]
    return HttpResponse(404, headers, b"<UnknownOperationException/>")


def _error(error: SqsError) -> dict[str, str]:
    return {"Type": error.fault, "Code": error.query_code, "Message": error.query_message}


def _envelope(
    action: str,
    result: Mapping[str, Any] | None,
    renderers: Mapping[str, _Render],
    request_id: str,
) -> dict[str, Any]:
    """The inside of ``<ActionResponse>``; actions without output have no result element."""
    tree: dict[str, Any] = {}
    if action in renderers:
        tree[f"{action}Result"] = renderers[action](result or {})
    tree["ResponseMetadata"] = {"RequestId": request_id}
    return tree


def _xml(status: int, root: str, tree: Mapping[str, Any], request_id: str) -> HttpResponse:
    from xmltodict import unparse

    inside = unparse(tree, full_document=False, short_empty_elements=True)
    # The root is added afterwards: inside it, quotes and carriage returns stand in texts only.
    # AWS escapes both, and an XML parser would read a bare carriage return as a line feed.
    inside = inside.replace('"', "&quot;").replace("\r", "&#xD;")
    inside = _NOT_IN_XML.sub("\ufffd", inside)
    document = f'<?xml version="1.0"?><{root} xmlns="{_NAMESPACE}">{inside}</{root}>'
    headers = [("x-amzn-RequestId", request_id), XML_TYPE]
    return HttpResponse(status, headers, document.encode("utf-8"))


def _json(status: int, document: Mapping[str, Any], request_id: str) -> HttpResponse:
    headers = [("x-amzn-RequestId", request_id), JSON_TYPE]
    return HttpResponse(status, headers, document_bytes(document))


@cache
def _xml_renderers() -> Mapping[str, _Render]:
    return _renderers(_xml_structure)


@cache
def _json_renderers() -> Mapping[str, _Render]:
    return _renderers(_json_structure)


_StructureRenderer: TypeAlias = Callable[[Structure], _Render]


def _renderers(structure: _StructureRenderer) -> Mapping[str, _Render]:
    return {
        name: structure(operation.output)
        for name, operation in operations().items()
        if operation.output is not None
    }


def _renderer(shape: Shape, structure: _StructureRenderer) -> _Render:
    match shape:
        case Scalar():
            return _scalar(shape, structure)
        case ListOf():
            render_member = _renderer(shape.member, structure)
            return lambda value: [render_member(item) for item in value]
        case MapOf():
            return _map(shape, structure)
        case Structure():
            return structure(shape)
        case _:
            assert_never(shape)


def _scalar(shape: Scalar, structure: _StructureRenderer) -> _Render:
    if shape.kind == "blob":
        return lambda value: b64encode(value).decode("ascii")
    if structure is _json_structure or shape.kind == "string":
        return lambda value: value
    if shape.kind == "boolean":
        return lambda value: "true" if value else "false"
    return str


def _map(shape: MapOf, structure: _StructureRenderer) -> _Render:
    """Entries in alphabetical order of their keys."""
    render_value = _renderer(shape.value, structure)
    return lambda value: [
        {shape.key_name: key, shape.value_name: render_value(value[key])} for key in sorted(value)
    ]


def _xml_structure(shape: Structure) -> _Render:
    names = list(shape.members)
    if first := _FIRST_MEMBERS.get(shape.name):
        names.sort(key=lambda name: name != first)
    members = []
    for name in names:
        member = shape.members[name]
        tag = member.element if isinstance(member, ListOf | MapOf) else name
        members.append((name, tag, _renderer(member, _xml_structure)))
    return lambda value: {
        tag: render(value[name]) for name, tag, render in members if name in value
    }


def _json_structure(shape: Structure) -> _Render:
    members = [
        (name, _JSON_NAMES.get(name, name), _renderer(member, _json_structure))
        for name, member in shape.members.items()
    ]
    return lambda value: {
        written: render(value[name]) if name in value else None for name, written, render in members
    }
