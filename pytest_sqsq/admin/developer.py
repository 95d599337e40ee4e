"""The messages of a queue without receiving them, as LocalStack's developer endpoint shows them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pytest_sqsq.actions.message_attributes import attribute_filter
from pytest_sqsq.actions.messages import SYSTEM_ATTRIBUTE_NAMES, received_message
from pytest_sqsq.admin.queues import walk
from pytest_sqsq.admin.routing import wrong_method
from pytest_sqsq.errors import InvalidAddress, QueueDoesNotExist, SqsError
from pytest_sqsq.gateway.gateway import new_request_id
from pytest_sqsq.models import Delivery, MessageState, QueueKey
from pytest_sqsq.protocol import (
    Call,
    HttpRequest,
    HttpResponse,
    ProtocolFault,
    decode,
    encode_error,
    encode_result,
)
from pytest_sqsq.protocol.aws_query import form_fields
from pytest_sqsq.protocol.plain import JSON_TYPE

if TYPE_CHECKING:
    from pytest_sqsq.admin.controlled import Controlled
    from pytest_sqsq.engine.message import LifeState, Message

PREFIX = "/_aws/sqs/messages"

ACTION = "ReceiveMessage"

#: In place of receipt handles: these messages were not received.
HANDLE = "SQS/BACKDOOR/ACCESS"

_PLACES = re.compile(PREFIX + "(?:/|/([^/]+)/([^/]+)/([^/]+))?")
_ACCOUNT = re.compile("[0-9]{12}")


class InvalidRequest(SqsError):
    """Another action than the only one; SQS itself has no such error."""

    shape = "InvalidRequest"
    query_code = "InvalidRequest"

    def __init__(self) -> None:
        super().__init__("This endpoint only accepts ReceiveMessage calls")


def answer(server: Controlled, request: HttpRequest) -> HttpResponse | None:
    """The answer, in the protocol of the request; ``None`` where there is nothing at its path."""
    place = _PLACES.fullmatch(request.path)
    if place is None:
        return None
    if request.method not in {"GET", "HEAD", "POST"}:
        raise wrong_method(request, ("GET", "POST"))
    request_id = new_request_id()
    call = Call(ACTION, {}, "query")
    try:
        call = _call(request)
        key = _key_of_path(place) or _key_of_url(server, call)
        result = {"Messages": _messages(server, key, _shown_states(request, call))}
        response = encode_result(_written(call), result, request_id)
    except SqsError as error:
        response = encode_error(_written(call).protocol, error, request_id)
    except ProtocolFault as fault:
        call = fault.call
        refused = fault.error if call.action == ACTION else InvalidRequest()
        response = encode_error(_written(call).protocol, refused, request_id)
    return _as_json(response) if call.protocol == "query-json" else response


def _key_of_path(place: re.Match[str]) -> QueueKey | None:
    region, account_id, name = place.groups()
    if name is None:
        return None
    return QueueKey(*(unquote(part, errors="replace") for part in (account_id, region, name)))


def _call(request: HttpRequest) -> Call:
    """The call of ReceiveMessage, which is meant where the Query protocol names no action.

    Raises ``ProtocolFault``, and ``InvalidRequest`` for another action.
    """
    call = decode(
        replace(
            request,
            method="POST" if request.method == "POST" else "GET",
            path="/",  # or it would be taken for the queue's
            query_string=f"Action={ACTION}&{request.query_string}",
        )
    )
    if call.action != ACTION:
        raise ProtocolFault(InvalidRequest(), call)
    return call


def _key_of_url(server: Controlled, call: Call) -> QueueKey:
    url = call.parameters.get("QueueUrl")
    if not url:
        raise QueueDoesNotExist
    account_id, _, name = url.rstrip("/").rpartition("/")
    account_id = account_id.rpartition("/")[2]
    if not _ACCOUNT.fullmatch(account_id):
        raise InvalidAddress(f"The address {url} is not valid for this endpoint.")
    return QueueKey(account_id, call.region or server.options["region"], name)


def _shown_states(request: HttpRequest, call: Call) -> set[MessageState]:
    form = b"" if call.protocol == "json" else request.body
    fields = form_fields(request.query_string, form)
    shown: set[MessageState] = {"visible"}
    if fields.get("ShowInvisible", "").lower() == "true":
        shown.add("in_flight")
    if fields.get("ShowDelayed", "").lower() == "true":
        shown.add("delayed")
    return shown


def _messages(server: Controlled, key: QueueKey, shown: set[MessageState]) -> list[dict[str, Any]]:
    broker = server.broker
    choose = attribute_filter(["All"])

    def take(message: Message) -> tuple[LifeState, Delivery] | None:
        if message.state not in shown:
            return None
        first_ms = message.first_received_ms or 0
        return message.state, message.delivery(HANDLE, message.receive_count, first_ms)

    messages = []
    for state, delivery in walk(broker, broker.get_queue(key), take):
        told = received_message(delivery, SYSTEM_ATTRIBUTE_NAMES, choose)
        told["Attributes"]["IsVisible"] = "true" if state == "visible" else "false"
        told["Attributes"]["IsDelayed"] = "true" if state == "delayed" else "false"
        messages.append(told)
    return messages


def _written(call: Call) -> Call:
    """The call in the form that its answer is made from."""
    return replace(call, protocol="query") if call.protocol == "query-json" else call


def _as_json(response: HttpResponse) -> HttpResponse:
    """An answer in XML as the same tree in JSON: what is there once is no list."""
    from xmltodict import parse

    tree = parse(response.body, xml_attribs=False, strip_whitespace=False)
    headers = [header for header in response.headers if header[0] != JSON_TYPE[0]]
    return replace(response, headers=[*headers, JSON_TYPE], body=json.dumps(tree).encode("ascii"))
