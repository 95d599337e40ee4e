"""Answers as octets, and the refusals that the front end gives by itself."""

from __future__ import annotations

from http import HTTPStatus

from werkzeug.http import http_date

from pytest_sqsq.clock import real_now_ms
from pytest_sqsq.errors import SqsError
from pytest_sqsq.gateway.gateway import new_request_id
from pytest_sqsq.protocol import HttpRequest, HttpResponse, ProtocolFault, decode, encode_error
from pytest_sqsq.protocol.wire import Protocol

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus
}
_WITHOUT_BODY = {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}


class _DateLine:
    """The Date header of real time, formatted once a second."""

    def __init__(self) -> None:
        self._line = (0, "")  # one tuple: threads see a second and its text together

    def __call__(self) -> str:
        second = real_now_ms() // 1000
        known, line = self._line
        if known != second:
            line = f"Date: {http_date(second)}\r\n"
            self._line = (second, line)
        return line


_date_line = _DateLine()


def octets_of(response: HttpResponse, *, connection: str | None, without_body: bool) -> bytes:
    """The whole answer, for one write.

    ``connection`` is the value of that header, if one is to be sent; ``without_body`` leaves the
    body out but not its length, as the answer to HEAD has it.
    """
    body = response.body
    status = response.status
    head = _STATUS_LINES.get(status) or f"HTTP/1.1 {status} Unknown\r\n"
    for name, value in response.headers:
        head += f"{name}: {value}\r\n"
    if status not in _WITHOUT_BODY:
        head += f"Content-Length: {len(body)}\r\n"
    if connection is not None:
        head += f"Connection: {connection}\r\n"
    head += _date_line() + "\r\n"
    octets = head.encode("latin-1", "replace")
    return octets if without_body else octets + body


def truncated(octets: bytes, response: HttpResponse) -> bytes:
    """An answer broken off in the middle of its body, or of its first line if it has none."""
    missing = len(response.body) // 2
    return octets[:-missing] if missing else octets[: len("HTTP/1.1 2")]


def refusal(error: SqsError, request: HttpRequest | None = None) -> HttpResponse:
    """``error`` in the shape of the protocol that ``request`` speaks, as far as it was read."""
    protocol: Protocol = "json"
    if request is not None:
        try:
            protocol = decode(request).protocol
        except ProtocolFault as fault:
            protocol = fault.protocol
    response = encode_error(protocol, error, new_request_id())
    response.close = True
    return response
