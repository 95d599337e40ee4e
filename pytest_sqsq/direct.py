"""The in-process transport: a boto3 client whose requests never reach a socket."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError

from pytest_sqsq.protocol import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest
    from botocore.client import BaseClient

    from pytest_sqsq.gateway.gate import RequestGate


class Application(Protocol):
    """What answers requests; never raises."""

    def handle(self, request: HttpRequest) -> HttpResponse: ...


def attach(client: BaseClient, application: Application, gate: RequestGate) -> None:
    """Let ``application`` answer all requests of a boto3 SQS ``client``, in the calling thread.

    Signing, parsing, retries and events stay botocore's own.  An answer that is to be left out
    raises ``botocore.exceptions.ConnectionClosedError``, as it would over a socket; so does one
    that is to be broken off and has no body.  In a forked child the requests go to the server of
    the parent, over a socket: the child has but a copy of it.
    """
    home = os.getpid()

    def answer(request: AWSPreparedRequest, **_: Any) -> AWSResponse | None:
        if os.getpid() != home:
            return None
        with gate.request(f"a direct request to {request.url}"):
            response = application.handle(_request_of(request))
        body = response.body
        if response.cut is not None:
            # botocore does not compare a body with its Content-Length, so it takes half of one.
            body = body[: -(len(body) // 2)] if response.cut == "truncated" else b""
            if not body:
                raise ConnectionClosedError(endpoint_url=request.url)
        headers = cast("Any", dict(response.headers))  # any mapping will do
        return AWSResponse(request.url, response.status, headers, _Body(body))

    client.meta.events.register("before-send.sqs", cast("Any", answer))


class _Body:
    """What botocore reads an answer's body from."""

    __slots__ = ("_octets",)

    def __init__(self, octets: bytes) -> None:
        self._octets = octets

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self._octets


class _Headers(Mapping[str, str]):
    """The headers of a request, and the host that it goes to where they name none.

    Read through: botocore's own mapping takes long to copy, and few of them are asked for.
    """

    __slots__ = ("_host", "_sent")

    def __init__(self, sent: Mapping[str, Any], host: str) -> None:
        self._sent = sent  # by name in any case, as text or octets
        self._host = host

    def get(self, name: str, default: Any = None, /) -> Any:
        value = self._sent.get(name)
        if value is None:
            return self._host if name == "host" else default
        return value.decode("latin-1") if isinstance(value, bytes) else value

    def __getitem__(self, name: str) -> str:
        value: str | None = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter({"host", *(name.lower() for name in self._sent)})

    def __len__(self) -> int:
        return len(set(self))


def _request_of(request: AWSPreparedRequest) -> HttpRequest:
    url = urlsplit(request.url)
    return HttpRequest(
        request.method,
        url.path or "/",
        url.query,
        _Headers(cast("Any", request.headers), url.netloc),
        _octets(request.body),
        transport="direct",
    )


def _octets(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    if body is None:
        return b""
    content = body.read() if hasattr(body, "read") else body
    return content.encode() if isinstance(content, str) else bytes(content)
