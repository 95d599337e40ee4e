"""The threaded werkzeug server: accepting, counting and ending connections."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
from collections import deque
from collections.abc import Callable
from threading import Condition, Event, Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakSet

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

from pytest_sqsq.clock import monotonic
from pytest_sqsq.errors import ServiceUnavailable
from pytest_sqsq.http.answers import octets_of, refusal
from pytest_sqsq.http.connection import Connection
from pytest_sqsq.http.port import Port
from pytest_sqsq.http.workers import WorkerPool
from pytest_sqsq.http.wsgi import Application

if TYPE_CHECKING:
    from pytest_sqsq.gateway.gate import RequestGate

# Real seconds.
STOP_SECONDS = 0.2
ACCEPT_PAUSE_SECONDS = 0.05

# Refused connections that stay open for their clients to read the refusal.
REFUSED_KEPT = 64


class ConnectionInfo(NamedTuple):
    """A client connection: the peer's address, and whether a request of it is being worked on."""

    address: str
    busy: bool


class HttpServer(ThreadedWSGIServer):
    """Serves ``application`` on an address of its own, from ``start`` to ``stop``.

    Each connection has a thread, at most ``max_connections``; a connection beyond them is
    answered with ServiceUnavailable 503 and closed.  The port is bound by the constructor, which
    raises :class:`ServerStartError`; 0 takes a free one.  ``claim`` is a port that listens already,
    in place of host and port.  ``end_polls`` is called by ``stop`` and
    has to let every parked poll go.

    ``_lock`` guards the connections.
    """

    def __init__(
        self,
        application: Application,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        claim: Port | None = None,
        max_connections: int = 2048,
        end_polls: Callable[[], None] | None = None,
    ) -> None:
        self._claim = claim or Port(host, port)
        listener = self._claim.listener
        super().__init__(
            host,
            self._claim.number,
            cast("Any", application),
            handler=cast("type[WSGIRequestHandler]", Connection),
            fd=listener.fileno(),
        )
        # The base class has made a copy of the listener; there must be one only, to be closed.
        self.socket.close()
        self.socket = listener
        self.address_family = self._claim.family
        self._application = application
        self._gate: RequestGate = application.gate
        self._end_polls = end_polls
        self._workers = WorkerPool(max_connections, "sqsq-http")
        self._lock = Lock()
        self._fewer = Condition(self._lock)
        self._connections: dict[Connection, None] = {}
        self._refused: deque[socket.socket] = deque()
        self._accepting: Thread | None = None
        self._quit = Event()
        self._waker, self._wakee = socket.socketpair()
        self._wakee.setblocking(False)
        _servers.add(self)

    # Life

    def start(self) -> None:
        """Accept connections from now on; returns at once."""
        self._accepting = Thread(target=self.serve_forever, name="sqsq-accept", daemon=True)
        self._accepting.start()

    def suspend(self) -> None:
        """Listen no more, keeping the port; open connections go on."""
        self._stop_accepting()
        self._claim.suspend()

    def resume(self) -> None:
        """Listen again after ``suspend``, on the same port; raises ``ServerStartError``."""
        self.socket = self._claim.resume()
        self.start()

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """End everything, for good; waits at most about ``timeout`` real seconds.

        Idle connections are closed, parked polls answered, and requests being worked on get half
        of the time to be answered; all answers close their connections.  Then they are cut.
        """
        deadline = monotonic() + timeout
        self._stop_accepting()
        self._claim.release()
        self.close_connections()
        if self._end_polls is not None:
            self._end_polls()
        with self._lock:
            self._fewer.wait_for(lambda: not self._connections, timeout / 2)
        self.cut_connections()
        self._workers.stop(deadline)
        while self._refused:
            self._refused.pop().close()
        self._waker.close()
        self._wakee.close()
        _servers.discard(self)

    def abandon(self) -> None:
        """Close a forked child's copies of the sockets, which are the parent's to use.

        The port does so by itself.
        """
        self._waker.close()
        self._wakee.close()
        for connection in list(self._connections):
            connection.abandon()
        for refused in self._refused:
            refused.close()

    # Connections

    @property
    def max_connections(self) -> int:
        """The most connections at once; those there are stay when it is lowered."""
        return self._workers.limit

    @max_connections.setter
    def max_connections(self, limit: int) -> None:
        self._workers.limit = limit

    @property
    def connections(self) -> tuple[ConnectionInfo, ...]:
        """The open client connections, oldest first."""
        with self._lock:
            connections = list(self._connections)
        return tuple(ConnectionInfo(each.address, each.busy) for each in connections)

    def close_connections(self) -> None:
        """Close idle connections now, and each other one after the answer it is waiting for.

        With the gate closed, a connection counts as idle once its answer is written; without,
        a moment later.
        """
        for connection in self._open_connections():
            connection.finish()

    def cut_connections(self) -> None:
        """Cut every connection, answered or not."""
        for connection in self._open_connections():
            connection.abort()

    def _open_connections(self) -> list[Connection]:
        with self._lock:
            return list(self._connections)

    def _forget(self, connection: Connection) -> None:
        with self._lock:
            self._connections.pop(connection, None)
            if not self._connections:
                self._fewer.notify_all()

    # Accepting

    def serve_forever(self, poll_interval: float = 0.5) -> None:
        """Accept connections until told otherwise; ``start`` runs this on a thread."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            selector.register(self._wakee, selectors.EVENT_READ)
            while not self._quit.is_set():
                selector.select()
                self._accept_waiting()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a new connection a thread, or refuse it."""
        connection = Connection(
            request, client_address, self._application, self._gate, self._forget
        )
        with self._lock:
            self._connections[connection] = None
        if not self._workers.submit(connection.serve):
            self._forget(connection)
            self._refuse(request)

    def _accept_waiting(self) -> None:
        while not self._quit.is_set():
            try:
                sock, address = self.socket.accept()
            except BlockingIOError:
                return
            except OSError:
                # The client is gone already, or no descriptor is left: the latter would come
                # back at once.
                self._quit.wait(ACCEPT_PAUSE_SECONDS)
                return
            sock.setblocking(True)
            self.process_request(sock, address)

    def _refuse(self, sock: socket.socket) -> None:
        error = ServiceUnavailable("The server has as many connections as it takes.")
        with contextlib.suppress(OSError):
            sock.setblocking(False)
            sock.send(octets_of(refusal(error), connection="close", without_body=False))
            # Closed later: a request arriving at a closed socket would reset the connection
            # before the client has read why.
            sock.shutdown(socket.SHUT_WR)
        self._refused.append(sock)
        if len(self._refused) > REFUSED_KEPT:
            self._refused.popleft().close()

    def _stop_accepting(self) -> None:
        thread, self._accepting = self._accepting, None
        if thread is not None:
            self._quit.set()
            self._waker.send(b"\0")
            thread.join()
            self._wakee.recv(1)
            self._quit.clear()


_servers: WeakSet[HttpServer] = WeakSet()


def _abandon_all() -> None:
    for server in list(_servers):
        server.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
