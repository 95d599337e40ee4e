"""Which protocol a request speaks; its call; and the answers in the form it wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_sqsq.errors import SqsError, UnknownOperation
from pytest_sqsq.protocol import aws_json, aws_query, query_answers
from pytest_sqsq.protocol.credentials import claimed_credential
from pytest_sqsq.protocol.model import operations
from pytest_sqsq.protocol.wire import Call, HttpRequest, HttpResponse, Protocol

_TARGET_PREFIX = "AmazonSQS"
_JSON_TYPES = "application/x-amz-json-"
_FORM_TYPE = "application/x-www-form-urlencoded"


class ProtocolFault(Exception):
    """A request was refused before an action ran.

    ``call`` is what is known of it, always without parameters; its action is what the request
    named, known or not, or empty.
    """

    def __init__(self, error: SqsError, call: Call) -> None:
        super().__init__(error.message)
        self.error = error
        self.call = call

    @property
    def protocol(self) -> Protocol:
        return self.call.protocol

    def response(self, request_id: str) -> HttpResponse:
        """The answer to the request."""
        return encode_error(self.call.protocol, self.error, request_id)


class NoOperation(ProtocolFault):
    """The request names no action in any protocol, as when a browser opens a queue's URL."""

    def response(self, request_id: str) -> HttpResponse:
        return query_answers.no_operation_response(request_id)


def decode(request: HttpRequest) -> Call:
    """The call a request makes.  Raises ProtocolFault, and nothing else, if it makes none."""
    headers = request.headers
    access_key, region = claimed_credential(headers.get("authorization"), request.query_string)
    call = Call("", {}, "json", access_key, region, headers.get("x-amzn-trace-id"))
    target = headers.get("x-amz-target")
    try:
        if target is not None:
            _read_json(call, target, request.body)
        else:
            _read_query(call, request)
    except SqsError as error:
        raise ProtocolFault(error, call) from None
    return call


def _read_json(call: Call, target: str, body: bytes) -> None:
    prefix, _, call.action = target.rpartition(".")
    if prefix != _TARGET_PREFIX or call.action not in operations():
        raise UnknownOperation.action(call.action)
    call.parameters = aws_json.parameters_of(call.action, body)


def _read_query(call: Call, request: HttpRequest) -> None:
    content_type = request.headers.get("content-type", "").lower()
    if content_type.startswith(_JSON_TYPES):
        raise UnknownOperation("")
    as_json = "application/json" in request.headers.get("accept", "").lower()
    call.protocol = "query-json" if as_json else "query"
    # A client that names no type at all means a form; a file or a text is not one.
    is_form = not content_type or content_type.startswith(_FORM_TYPE)
    fields = aws_query.form_fields(request.query_string, request.body if is_form else b"")
    call.action = fields.get("Action", "")
    if not call.action or request.method not in {"GET", "POST"}:
        raise NoOperation(UnknownOperation(""), call)
    call.parameters = aws_query.parameters_of(call.action, fields, request.path)


def encode_result(call: Call, result: Mapping[str, Any] | None, request_id: str) -> HttpResponse:
    """The answer to a call that succeeded.

    ``result`` holds wire names and types, with empty collections left out and blobs as bytes;
    ``None`` where the action has no output.
    """
    if call.protocol == "json":
        return aws_json.result_response(call.action, result, request_id)
    if call.protocol == "query":
        return query_answers.xml_response(call.action, result, request_id)
    return query_answers.json_response(call.action, result, request_id)


def encode_error(protocol: Protocol, error: SqsError, request_id: str) -> HttpResponse:
    """The answer to a call that failed, in the protocol's own shape."""
    if protocol == "json":
        return aws_json.error_response(error, request_id)
    if protocol == "query":
        return query_answers.xml_error_response(error, request_id)
    return query_answers.json_error_response(error, request_id)
