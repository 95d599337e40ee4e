"""What the server is compared with: answers of the same size from nobody who does anything.

Neither holds a queue, computes a digest or validates a request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

from botocore.awsrequest import AWSResponse
from werkzeug.serving import WSGIRequestHandler, make_server

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

    from pytest_sqsq import SqsServer

Answers = dict[str, bytes]
"""Bodies by action."""

_CONTENT_TYPE = "application/x-amz-json-1.0"
_REQUEST_ID = "131c1e2a-e228-4b70-90ba-139655512618"


class _KeepAlive(WSGIRequestHandler):
    """Parses heads as the standard library does, reads the body, and answers in one write."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    answers: Answers

    def handle(self) -> None:
        self.close_connection = True
        self.handle_one_request()
        while not self.close_connection:
            self.handle_one_request()

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline:
            self.close_connection = True
        elif self.parse_request():
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = self.answers[_action(self.headers["X-Amz-Target"])]
            head = (
                f"HTTP/1.1 200 OK\r\nx-amzn-RequestId: {_REQUEST_ID}\r\n"
                f"Content-Type: {_CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\n"
                f"Date: {self.date_time_string()}\r\n\r\n"
            )
            self.wfile.write(head.encode("latin-1") + body)
            self.wfile.flush()


@contextmanager
def keep_alive(answers: Answers) -> Iterator[str]:
    """A threaded werkzeug server that answers with ``answers``; its URL."""
    handler = type("Handler", (_KeepAlive,), {"answers": answers})
    server = make_server("127.0.0.1", 0, lambda *_: [], threaded=True, request_handler=handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def hook(client: SQSClient, answers: Answers) -> SQSClient:
    """Let the requests of ``client`` be answered before they are sent, with ``answers``."""

    def answer(request: Any, **_: Any) -> AWSResponse:
        body = answers[_action(request.headers["X-Amz-Target"])]
        headers = {"x-amzn-RequestId": _REQUEST_ID, "Content-Type": _CONTENT_TYPE}
        return AWSResponse(request.url, 200, cast("Any", headers), cast("Any", _Body(body)))

    client.meta.events.register("before-send.sqs", cast("Any", answer))
    return client


class _Body:
    def __init__(self, octets: bytes) -> None:
        self._octets = octets

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._octets


def _action(target: str | bytes) -> str:
    text = target.decode() if isinstance(target, bytes) else target
    return text.rpartition(".")[2]


class Contenders:
    """A server, its clients over both transports, and the clients of the two references.

    ``answers`` are what the references say; :meth:`learn` takes them from the server.
    """

    TRANSPORTS: Mapping[str, tuple[str, str]] = {
        "direct": ("direct", "hook"),
        "HTTP": ("http", "keep-alive"),
    }

    def __init__(self, server: SqsServer, reference_url: str, answers: Answers) -> None:
        self.server = server
        self.answers = answers
        self.direct = server.client(transport="direct")
        self.clients: dict[str, SQSClient] = {
            "direct": self.direct,
            "hook": hook(server.client(), answers),
            "http": server.client(),
            "keep-alive": server.client(endpoint_url=reference_url),
        }

    def learn(self, action: str, method: str, arguments: Mapping[str, Any]) -> None:
        """Make a call, and let the references answer it as the server did."""

        def keep(http_response: AWSResponse, **_: Any) -> None:
            self.answers[action] = http_response.content

        events = self.direct.meta.events
        events.register("after-call.sqs", cast("Any", keep))
        getattr(self.direct, method)(**arguments)
        events.unregister("after-call.sqs", cast("Any", keep))


@contextmanager
def contenders() -> Iterator[Contenders]:
    """Everything started, and stopped at the end."""
    from pytest_sqsq import SqsServer

    answers: Answers = {}
    with SqsServer() as server, keep_alive(answers) as url:
        yield Contenders(server, url, answers)
