from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection
from typing import Any, NamedTuple

import pytest

from pytest_sqsq import SqsServer

START = "2030-01-01T00:00:00Z"
START_MS = 1_893_456_000_000

# Real seconds; a passing test never waits this long.
LONG = 10.0


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json", self
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str]:
        assert self.json.keys() == {"error"}, self.json
        return self.status, self.json["error"]


class Remote:
    """A client of a server's control API, over real HTTP; a connection for each request."""

    def __init__(self, server: SqsServer) -> None:
        self.server = server

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=LONG)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, names, response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        return self.send("GET", f"/_sqsq/{path}")

    def delete(self, path: str) -> Answer:
        return self.send("DELETE", f"/_sqsq/{path}")

    def post(self, path: str, **values: Any) -> Answer:
        return self.post_bytes(path, json.dumps(values).encode() if values else b"")

    def post_bytes(self, path: str, body: bytes) -> Answer:
        return self.send("POST", f"/_sqsq/{path}", body, {"Content-Type": "application/json"})


@pytest.fixture
def make_server() -> Iterator[Callable[..., SqsServer]]:
    with ExitStack() as stack:

        def make(**options: Any) -> SqsServer:
            settings = {"clock": "frozen", "start": START, **options}
            return stack.enter_context(SqsServer(**settings))

        yield make


@pytest.fixture
def server(make_server: Callable[..., SqsServer]) -> SqsServer:
    return make_server()


@pytest.fixture
def connect() -> type[Remote]:
    """What makes a client of the control API of a server."""
    return Remote


@pytest.fixture
def remote(server: SqsServer) -> Remote:
    return Remote(server)


@pytest.fixture
def beside() -> Iterator[Callable[..., Future[Any]]]:
    """Calls a function in a thread of its own."""
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit
