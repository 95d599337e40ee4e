from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from queue import Queue
from threading import Event, Thread

import pytest

from pytest_sqsq.gateway.gate import RequestGate
from pytest_sqsq.http.server import HttpServer
from pytest_sqsq.protocol import HttpRequest, HttpResponse

# Real seconds; a passing test never waits this long.
LONG = 5.0


class FakeApplication:
    """Answers every request with its body, and keeps what it was asked.

    ``/wait`` parks until ``let_go`` is set, as a poll does; ``/hold`` stays open until then.
    """

    def __init__(self) -> None:
        self.gate = RequestGate()
        self.requests: Queue[HttpRequest] = Queue()
        self.let_go = Event()
        self.answer = HttpResponse(200, [("Content-Type", "text/plain")], b"")

    def handle(self, request: HttpRequest) -> HttpResponse:
        self.requests.put(request)
        if request.path == "/wait":
            with self.gate.parked() as parking:
                parking.leave(lambda: False)
                assert self.let_go.wait(LONG)
                parking.wake()
        if request.path == "/hold":
            assert self.let_go.wait(LONG)
        answer = self.answer
        return HttpResponse(
            answer.status, answer.headers, answer.body or request.body, answer.close, answer.cut
        )

    def wait_for_parked(self, count: int) -> None:
        changes = self.gate.changes
        while self.gate.parked_count != count:
            changed = self.gate.wait_for_change(changes, LONG)
            assert changed != changes, f"{self.gate.parked_count} parked instead of {count}"
            changes = changed

    def next_request(self) -> HttpRequest:
        return self.requests.get(timeout=LONG)


class Client:
    """A bare socket to a server."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=LONG)
        self.address = "{}:{}".format(*self.socket.getsockname())
        self.received = b""

    def send(self, octets: bytes) -> Client:
        self.socket.sendall(octets)
        return self

    def answer(self, *, without_body: bool = False) -> tuple[int, dict[str, str], bytes]:
        """The next answer: status, headers by lower-case name, body."""
        while b"\r\n\r\n" not in self.received:
            self._receive()
        head, _, self.received = self.received.partition(b"\r\n\r\n")
        status_line, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        length = 0 if without_body else int(headers.get("content-length", 0))
        while len(self.received) < length:
            self._receive()
        body, self.received = self.received[:length], self.received[length:]
        return int(status_line.split(" ")[1]), headers, body

    def is_closed(self) -> bool:
        """Whether the server closes the connection; blocks until it has, or something comes."""
        assert self.received == b""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _receive(self) -> None:
        octets = self.socket.recv(65536)
        assert octets, f"closed after {self.received!r}"
        self.received += octets


@pytest.fixture
def application() -> Iterator[FakeApplication]:
    application = FakeApplication()
    yield application
    application.let_go.set()


@pytest.fixture
def server(application) -> Iterator[HttpServer]:
    server = HttpServer(application)
    server.start()
    yield server
    application.let_go.set()
    server.stop()


@pytest.fixture
def connect(server) -> Iterator[Callable[[], Client]]:
    clients: list[Client] = []

    def connect() -> Client:
        clients.append(Client(server.port))
        return clients[-1]

    yield connect
    for client in clients:
        client.socket.close()


@pytest.fixture
def client(connect) -> Client:
    return connect()


@pytest.fixture
def run() -> Iterator[Callable[[Callable[[], object]], Thread]]:
    """Starts a function on a thread, which is joined at the end."""
    threads: list[Thread] = []

    def start(function: Callable[[], object]) -> Thread:
        threads.append(Thread(target=function, daemon=True))
        threads[-1].start()
        return threads[-1]

    yield start
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()
