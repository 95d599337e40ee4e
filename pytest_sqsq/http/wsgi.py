"""The WSGI application, and which requests go to the service and which to the control API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

from pytest_sqsq.errors import MalformedInput, RequestEntityTooLarge, SqsError
from pytest_sqsq.gateway.gate import RequestGate
from pytest_sqsq.http.answers import refusal
from pytest_sqsq.http.parsing import BODY_BYTES
from pytest_sqsq.protocol import HttpRequest, HttpResponse
from pytest_sqsq.protocol.plain import error_answer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from pytest_sqsq.gateway.gateway import Gateway

Admin = Callable[[HttpRequest], HttpResponse | None]
"""The control API: an answer, or ``None`` where it has nothing at that path."""

CONTROL_PREFIX = "/_sqsq/"
DEVELOPER_PREFIX = "/_aws/sqs/messages"


def is_control_path(path: str) -> bool:
    """Whether ``path`` belongs to the control API; no queue URL begins so."""
    return path.startswith((CONTROL_PREFIX, DEVELOPER_PREFIX)) or path == CONTROL_PREFIX[:-1]


class Application:
    """The whole service as one WSGI application; any WSGI server with threads may run it.

    ``gateway`` and ``admin`` may be exchanged at any time; a request keeps what it began with.
    Our own server calls ``handle`` and writes the answer inside the gate.  Under another server
    the gate is left before the answer is written, since WSGI has no word for that moment.
    """

    def __init__(self, gateway: Gateway, gate: RequestGate, admin: Admin | None = None) -> None:
        self.gateway = gateway
        self.gate = gate
        self.admin = admin

    def handle(self, request: HttpRequest) -> HttpResponse:
        """The answer to ``request``; never raises.  To be called inside ``gate.request()``."""
        if request.path.startswith("/_") and is_control_path(request.path):
            return self._control(request)
        return self.gateway.handle(request)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one WSGI request."""
        request = _request_of(environ)
        with self.gate.request(f"{request.method} {request.path} from {request.client_address}"):
            try:
                request.body = _body_of(environ)
            except SqsError as error:
                response = refusal(error, request)
            else:
                response = self.handle(request)
        return _started(response, request.method, start_response)

    def _control(self, request: HttpRequest) -> HttpResponse:
        gateway = self.gateway
        try:
            response = None if self.admin is None else self.admin(request)
        except Exception as failure:  # noqa: BLE001 - the client gets an answer, the test the failure
            gateway.internal_failures.append(failure)
            return error_answer(500, f"the request has failed with {failure!r:.500}")
        if response is None:
            return error_answer(404, f"there is nothing at {request.path}")
        return response


def _started(response: HttpResponse, method: str, start_response: StartResponse) -> Iterable[bytes]:
    if response.cut is not None:
        # The one way to break a connection that WSGI leaves to an application.
        raise ConnectionAbortedError("this answer was to be cut off")
    headers = [*response.headers, ("Content-Length", str(len(response.body)))]
    if response.close:
        headers.append(("Connection", "close"))
    start_response(f"{response.status} {_phrase(response.status)}", headers)
    return [] if method == "HEAD" else [response.body]


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _request_of(environ: WSGIEnvironment) -> HttpRequest:
    headers = {
        name[5:].replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    if environ.get("CONTENT_TYPE"):
        headers["content-type"] = environ["CONTENT_TYPE"]
    return HttpRequest(
        environ["REQUEST_METHOD"],
        _path_of(environ),
        environ.get("QUERY_STRING", ""),
        headers,
        b"",
        _address_of(environ),
    )


def _address_of(environ: WSGIEnvironment) -> str:
    host, port = environ.get("REMOTE_ADDR", ""), environ.get("REMOTE_PORT")
    if not (host and port):
        return str(host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _path_of(environ: WSGIEnvironment) -> str:
    """The path as it was sent, where the server tells, else escaped anew."""
    sent = environ.get("REQUEST_URI") or environ.get("RAW_URI")
    if sent and sent.startswith("/"):
        return str(sent).partition("?")[0]
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    return quote(path.encode("latin-1"), safe="/:@!$&'()*+,;=~") or "/"


def _body_of(environ: WSGIEnvironment) -> bytes:
    stream = environ["wsgi.input"]
    length = environ.get("CONTENT_LENGTH", "")
    if length:
        if not (length.isascii() and length.isdigit()):
            raise MalformedInput("The Content-Length is not one number.")
        wanted = int(length)
    elif environ.get("wsgi.input_terminated"):
        wanted = BODY_BYTES + 1  # whatever there is
    else:
        return b""
    if wanted <= BODY_BYTES or not length:
        body: bytes = stream.read(wanted)
        if len(body) <= BODY_BYTES:
            return body
    raise RequestEntityTooLarge(f"The request body is larger than {BODY_BYTES} bytes.")
