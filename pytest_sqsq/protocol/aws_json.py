"""AWS JSON 1.0: parameters from a body, bodies from results and errors."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NoReturn, TypeAlias, assert_never

from pytest_sqsq.errors import AccessDenied, MalformedInput, SqsError
from pytest_sqsq.protocol.conversions import HIGHEST_INTEGER, LOWEST_INTEGER, bytes_of, misfit
from pytest_sqsq.protocol.model import Kind, ListOf, MapOf, Scalar, Shape, Structure, operations
from pytest_sqsq.protocol.wire import HttpResponse

CONTENT_TYPE = ("Content-Type", "application/x-amz-json-1.0")

_Decode: TypeAlias = Callable[[Any], Any]


def parameters_of(action: str, body: bytes) -> dict[str, Any]:
    """The parameters in the body of a call of a known action; an empty body has none.

    Raises MalformedInput for what is not a JSON object of the types that the model names.
    """
    if not body:
        return {}
    try:
        document = _parse(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise MalformedInput("The request body is not valid JSON.") from None
    parameters: dict[str, Any] = _decoders()[action](document)
    return parameters


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_parse = json.JSONDecoder(parse_constant=_refuse_constant).decode


@cache
def _decoders() -> Mapping[str, _Decode]:
    return {name: _structure(operation.input) for name, operation in operations().items()}


def _decoder(shape: Shape) -> _Decode:
    match shape:
        case Scalar():
            return _SCALARS[shape.kind]
        case ListOf():
            return _list(shape)
        case MapOf():
            return _map(shape)
        case Structure():
            return _structure(shape)
        case _:
            assert_never(shape)


# Exact type tests: what the parser makes has no subclasses, and a bool must not pass for an int.
def _string(value: Any) -> str:
    if type(value) is str:
        return value
    raise misfit(value, "string")


def _string_in_map(value: Any) -> str:
    if type(value) is list:
        raise MalformedInput("Unrecognized collection type class java.lang.String")
    return _string(value)


def _blob(value: Any) -> bytes:
    if type(value) is str:
        return bytes_of(value)
    raise misfit(value, "blob")


def _boolean(value: Any) -> bool:
    if type(value) is bool:
        return value
    raise misfit(value, "boolean")


def _integer(value: Any, kind: Kind) -> int:
    if type(value) is int and LOWEST_INTEGER <= value <= HIGHEST_INTEGER:
        return value
    raise misfit(value, kind)


_SCALARS: Mapping[Kind, _Decode] = {
    "string": _string,
    "integer": partial(_integer, kind="integer"),
    "long": partial(_integer, kind="long"),
    "boolean": _boolean,
    "blob": _blob,
}


def _list(shape: ListOf) -> _Decode:
    decode_member = _decoder(shape.member)

    def decode(value: Any) -> list[Any]:
        if type(value) is not list:
            raise misfit(value)
        return [decode_member(item) for item in value if item is not None]

    return decode


def _map(shape: MapOf) -> _Decode:
    decode_value = _decoder(shape.value)
    if decode_value is _string:
        decode_value = _string_in_map

    def decode(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise misfit(value)
        return {key: decode_value(item) for key, item in value.items() if item is not None}

    return decode


def _structure(shape: Structure) -> _Decode:
    members = {name: _decoder(member) for name, member in shape.members.items()}

    def decode(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise misfit(value)
        result = {}
        for name, item in value.items():
            decode_member = members.get(name)
            if decode_member is not None and item is not None:
                result[name] = decode_member(item)
        return result

    return decode


def result_response(action: str, result: Mapping[str, Any] | None, request_id: str) -> HttpResponse:
    """The answer to a call that succeeded; empty where the action has no output."""
    if result is not None:
        body = document_bytes(result)
    else:
        body = b"" if operations()[action].output is None else b"{}"
    return HttpResponse(200, [("x-amzn-RequestId", request_id), CONTENT_TYPE], body)


def error_response(error: SqsError, request_id: str) -> HttpResponse:
    """The answer to a call that failed; the text is left out where the error has none."""
    document = {"__type": f"{error.namespace}#{error.shape}"}
    if error.message:
        # AWS writes this one body with a capital; every other was seen in lower case.
        document["Message" if isinstance(error, AccessDenied) else "message"] = error.message
    headers = [
        ("x-amzn-RequestId", request_id),
        ("x-amzn-query-error", f"{error.query_code};{error.fault}"),
        CONTENT_TYPE,
    ]
    return HttpResponse(error.status, headers, document_bytes(document))


def _blob_text(value: object) -> str:
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_blob_text).encode


def document_bytes(document: Mapping[str, Any]) -> bytes:
    """A document as compact JSON in UTF-8; bytes become base64, lone surrogates ``?``."""
    return _write(document).encode("utf-8", "replace")
