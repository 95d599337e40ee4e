"""One client connection: requests in, answers out, in order, until either side has enough."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from pytest_sqsq.clock import monotonic
from pytest_sqsq.errors import MalformedInput, RequestHeadTooLarge, SqsError
from pytest_sqsq.http.answers import CONTINUE, octets_of, refusal, truncated
from pytest_sqsq.http.liveness import is_alive
from pytest_sqsq.http.parsing import (
    BODY_BYTES,
    END_OF_HEAD,
    HEAD_BYTES,
    ChunkedBody,
    Head,
    parse_head,
)
from pytest_sqsq.protocol import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from pytest_sqsq.gateway.gate import RequestGate

# Real seconds.  Between requests a connection may be idle for as long as it likes.
HEAD_SECONDS = 10.0
BODY_SECONDS = 60.0
WRITE_SECONDS = 60.0
LINGER_SECONDS = 1.0

RECEIVE_BYTES = 64 * 1024

# The flag that has a socket give what it has and not wait; ``None`` where there is none.
RECEIVE_AT_ONCE: int | None = getattr(socket, "MSG_DONTWAIT", None)

# Answers up to this size fit the socket's buffer of an idle connection and need no time limit.
UNTIMED_WRITE_BYTES = 64 * 1024


class Application(Protocol):
    """What answers requests; never raises."""

    def handle(self, request: HttpRequest) -> HttpResponse: ...


class Connection:
    """Serves one client on the thread that calls ``serve``.

    ``finish`` and ``abort`` may be called by any thread.  ``_lock`` guards ``_busy``,
    ``_finishing``, ``_aborted`` and the closing of the socket.
    """

    protocol_version = "HTTP/1.1"

    def __init__(
        self,
        sock: socket.socket,
        address: tuple[str, int],
        application: Application,
        gate: RequestGate,
        on_closed: Callable[[Connection], None],
    ) -> None:
        host, port = address[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._sock = sock
        self._application = application
        self._gate = gate
        self._on_closed = on_closed
        self._lock = Lock()
        self._busy = False
        self._finishing = False
        self._aborted = False
        self._closed = False
        self._buffer = b""
        self._timed = False
        self._request: HttpRequest | None = None
        self._is_alive = self.is_alive

    def __str__(self) -> str:
        request = self._request
        if request is None:
            return f"an unfinished request from {self.address}"
        action = request.headers.get("x-amz-target", "").rpartition(".")[2]
        return f"{action or f'{request.method} {request.path}'} from {self.address}"

    @property
    def busy(self) -> bool:
        """Whether a request has begun to arrive and its answer is not yet written."""
        return self._busy

    def is_alive(self) -> bool:
        """Whether the client still has its side open; one system call, never blocks."""
        return is_alive(self._sock)

    def serve(self) -> None:
        """Answer requests until the connection ends; never raises."""
        try:
            # Answers are written whole; waiting for more would only delay them.
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while self._serve_request():
                pass
        except OSError:
            pass  # the client has gone, is too slow, or was cut off: nobody is left to tell
        finally:
            self._close()
            self._on_closed(self)

    def finish(self) -> None:
        """Close now if idle, else after the answer being worked on."""
        with self._lock:
            self._finishing = True
            if not self._busy:
                self._shut_down()

    def abort(self) -> None:
        """Cut the connection: what is not yet written never will be."""
        with self._lock:
            self._finishing = self._aborted = True
            self._shut_down()

    def abandon(self) -> None:
        """Close this process's copy of the socket alone; for a forked child, takes no lock."""
        self._sock.close()

    def _serve_request(self) -> bool:
        """Answer the next request; whether another one may follow."""
        if not self._buffer:
            self._buffer = self._sock.recv(RECEIVE_BYTES)
            if not self._buffer:
                return False
        if not self._begin():
            return False
        try:
            with self._gate.request(self):
                lasts = not self._aborted and self._exchange()
                # Idle before the gate is left: who closes connections behind a closed gate
                # meets no connection that is busy only for having just answered.
                return self._end() and lasts
        except _Refused as refused:
            self._write(octets_of(refused.response, connection="close", without_body=False))
            self._linger()
            return False
        finally:
            self._request = None

    def _begin(self) -> bool:
        with self._lock:
            self._busy = not self._finishing
            return self._busy

    def _end(self) -> bool:
        with self._lock:
            self._busy = False
            return not self._finishing

    def _exchange(self) -> bool:
        request: HttpRequest | None = None
        try:
            head = parse_head(self._read_head())
            request = HttpRequest(
                head.method,
                head.path,
                head.query_string,
                head.headers,
                b"",
                self.address,
                "http",
                self._is_alive,
            )
            self._request = request
            request.body = self._read_body(head)
        except SqsError as error:
            raise _Refused(refusal(error, request)) from error
        self._untime()
        return self._answer(head, self._application.handle(request))

    def _answer(self, head: Head, response: HttpResponse) -> bool:
        lasts = head.keep_alive and not response.close and not self._finishing
        connection = None
        if not lasts:
            connection = "close"
        elif head.is_http_1_0:
            connection = "keep-alive"
        if response.cut == "unanswered":
            return False
        octets = octets_of(response, connection=connection, without_body=head.method == "HEAD")
        if response.cut == "truncated":
            self._write(truncated(octets, response))
            return False
        self._write(octets)
        return lasts

    def _read_head(self) -> bytes:
        """The next head without its empty line; the octets after it stay in the buffer."""
        buffer = self._buffer
        end = buffer.find(END_OF_HEAD)
        if end < 0 or buffer[0] in b"\r\n":
            buffer, end = self._read_whole_head(buffer)
        if end > HEAD_BYTES:
            raise RequestHeadTooLarge(f"The request head is larger than {HEAD_BYTES} bytes.")
        self._buffer = buffer[end + len(END_OF_HEAD) :]
        return buffer[:end]

    def _read_whole_head(self, buffer: bytes) -> tuple[bytes, int]:
        deadline = monotonic() + HEAD_SECONDS
        while True:
            # Empty lines before a request line are allowed, for old clients' sake.
            buffer = buffer.lstrip(b"\r\n")
            end = buffer.find(END_OF_HEAD)
            if end >= 0 or len(buffer) > HEAD_BYTES:
                return buffer, end if end >= 0 else len(buffer)
            _check_beginning(buffer)
            buffer += self._receive(deadline)

    def _read_body(self, head: Head) -> bytes:
        if head.chunked:
            return self._read_chunked(head)
        length = head.content_length
        buffer = self._buffer
        if len(buffer) < length:
            return self._read_rest(head, length)
        self._buffer = buffer[length:]
        return buffer[:length] if self._buffer else buffer

    def _read_rest(self, head: Head, length: int) -> bytes:
        self._send_continue(head)
        deadline = monotonic() + BODY_SECONDS
        parts = [self._buffer]
        missing = length - len(self._buffer)
        while missing:
            parts.append(self._receive(deadline, min(missing, BODY_BYTES)))
            missing -= len(parts[-1])
        self._buffer = b""
        return b"".join(parts)

    def _read_chunked(self, head: Head) -> bytes:
        body = ChunkedBody()
        complete = body.feed(self._buffer)
        if not complete:
            self._send_continue(head)
        deadline = monotonic() + BODY_SECONDS
        while not complete:
            complete = body.feed(self._receive(deadline))
        self._buffer = body.rest
        return body.body

    def _send_continue(self, head: Head) -> None:
        if head.expects_continue:
            self._write(CONTINUE)

    def _receive(self, deadline: float, size: int = RECEIVE_BYTES) -> bytes:
        """At least one octet; ``OSError`` if the client has closed or the deadline has passed."""
        octets = self._receive_at_once(size)
        if octets is None:
            self._sock.settimeout(max(0.001, deadline - monotonic()))
            self._timed = True
            octets = self._sock.recv(size)
        if not octets:
            raise ConnectionError("the client closed the connection within a request")
        return octets

    def _receive_at_once(self, size: int) -> bytes | None:
        # What is there already, as a body mostly is, costs one system call this way, not four.
        if self._timed or RECEIVE_AT_ONCE is None:
            return None
        try:
            return self._sock.recv(size, RECEIVE_AT_ONCE)
        except BlockingIOError:
            return None

    def _write(self, octets: bytes) -> None:
        if len(octets) > UNTIMED_WRITE_BYTES:
            self._sock.settimeout(WRITE_SECONDS)
            self._timed = True
        self._sock.sendall(octets)
        self._untime()

    def _untime(self) -> None:
        # Without a time limit a socket needs one system call less for each receive and send.
        if self._timed:
            self._sock.settimeout(None)
            self._timed = False

    def _linger(self) -> None:
        """Read on for a moment after a refusal.

        Closing a socket with unread input resets the connection, and the client may lose the
        answer.
        """
        self._sock.shutdown(socket.SHUT_WR)
        deadline = monotonic() + LINGER_SECONDS
        with contextlib.suppress(OSError):
            while monotonic() < deadline:
                self._receive(deadline)

    def _shut_down(self) -> None:
        if not self._closed:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        # Shut down first: a forked child may hold a copy of the socket, which would keep the
        # client waiting for the end.
        with self._lock:
            self._shut_down()
            self._closed = True
            self._sock.close()


class _Refused(Exception):
    """The request cannot be read; the answer says why, and the connection ends."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__()
        self.response = response


def _check_beginning(buffer: bytes) -> None:
    """Refuse at once what will never become a request, such as a TLS handshake."""
    if buffer and not buffer[:1].isalpha():
        raise MalformedInput("This is not an HTTP request; HTTPS is not spoken here.")
    line_end = buffer.find(b"\n")
    if line_end >= 0 and buffer[line_end - 1 : line_end] != b"\r":
        raise MalformedInput("The lines of a request head end with CR and LF.")
