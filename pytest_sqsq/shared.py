"""The one server of a test run: started on first use, and handed from test to test."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from selectors import EVENT_READ, DefaultSelector
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Any, cast

from pytest_sqsq.environment import Endpoint, apply, endpoint_variables, url_of, variables
from pytest_sqsq.options import ADDRESS_OPTIONS, SERVER_OPTIONS, PluginOptions, ServerOptions
from pytest_sqsq.store import plugin_prefix

if TYPE_CHECKING:
    from pytest_sqsq.http.port import Port
    from pytest_sqsq.server import SqsServer


class SharedServer:
    """Starts the run's server on first use, and gives it to each test with that test's options.

    ``options`` are those of the whole run, ``latest`` those of the test that used it last.
    """

    def __init__(self, options: PluginOptions) -> None:
        self.options = self.latest = options
        self._lock = RLock()
        self._server: SqsServer | None = None
        self._early: EarlyPort | None = None
        # Whether something of a test is left, since its store could not be written at its end.
        self._is_soiled = False

    @property
    def url(self) -> str:
        """Where it listens, from now on, if not before; a server is started for the first client.

        Raises ``ServerStartError``.
        """
        with self._lock:
            if self._server is not None:
                return self._server.url
            host = self.options["host"]
            if self._early is None:
                self._early = EarlyPort(host, self.options["port"], self._serve_first_client)
            return url_of(host, self._early.port.number)

    def _serve_first_client(self) -> None:
        with self._lock:
            if self._early is not None:  # neither started nor stopped meanwhile
                self._started(self.options)

    @property
    def running(self) -> SqsServer | None:
        """The server, if a test or a session fixture has needed it."""
        return self._server

    @property
    def endpoint(self) -> Endpoint:
        """Where it listens; starts it."""
        server = self._started(self.options)
        return Endpoint(server.url, server.port, server.environment)

    def lend(self, options: PluginOptions) -> SqsServer:
        """The server with a test's options; emptied if it had other ones.

        Raises ``ServerStartError`` and what a store raises that cannot be opened.
        """
        server = self._started(options)
        if self._is_soiled:
            self._reset(server)
        wanted = in_namespace(of_server(options))
        if any(server.options[name] != value for name, value in wanted.items()):  # type: ignore[literal-required]
            server.configure(**cast("ServerOptions", wanted))
        server.timeout_factor = options["timeout_factor"]
        self.latest = options
        return server

    def _started(self, options: PluginOptions) -> SqsServer:
        # The thread that waits for a first client may be here at the same time as a test.
        with self._lock:
            if self._server is None:
                self._server = self._new_server(options, self.options["port"])
            elif not self._server.is_running:
                # A test has stopped it; the clients that others hold know its port.
                self._server = self._new_server(options, self._server.port)
            return self._server

    def _new_server(self, options: PluginOptions, port: int) -> SqsServer:
        from pytest_sqsq.server import SqsServer

        early, self._early = self._early, None
        claim = None if early is None else early.hand_over()
        address = {"host": self.options["host"], "port": port}
        server = SqsServer(**{**in_namespace(of_server(options)), **address})
        server.creator, server.begins_empty = "plugin", True
        return server.start(claim)

    def empty(self, options: PluginOptions, *, failed: bool) -> None:
        """Empty the server at the end of a test, or of what ``reset`` names.

        What was left behind is told first; ``failed`` says whether a test has failed meanwhile.
        """
        __tracebackhide__ = True
        server = self._server
        if server is None:
            return
        from pytest_sqsq.strict import look_back

        try:
            look_back(server, options, failed=failed)
        finally:
            self._reset(server)

    def _reset(self, server: SqsServer) -> None:
        self._is_soiled = True
        if server.is_running:
            server.reset()
        else:
            # A test has stopped it, and it has let go of its store.  A new one begins empty.
            self._started(self.latest)
        self._is_soiled = False

    def stop(self) -> None:
        """Stop the server, if there is one."""
        with self._lock:
            server, self._server = self._server, None
            early, self._early = self._early, None
        if server is not None:
            server.stop()
        if early is not None:
            early.hand_over().release()


class EarlyPort:
    """A port that listens before there is a server; ``on_client`` is called for the first client.

    It is called on a thread of its own, once at most, and takes the port over.
    """

    def __init__(self, host: str, port: int, on_client: Callable[[], object]) -> None:
        from pytest_sqsq.http.port import Port

        self.port = Port(host, port)
        self._on_client = on_client
        self._waker, self._wakee = socket.socketpair()
        self._waited = Event()
        Thread(target=self._wait, name="sqsq-early", daemon=True).start()

    def _wait(self) -> None:
        with DefaultSelector() as selector:
            selector.register(self.port.listener, EVENT_READ)
            selector.register(self._wakee, EVENT_READ)
            ready = [key.fileobj for key, _ in selector.select()]
        self._waited.set()
        if self._wakee not in ready:
            self._on_client()

    def hand_over(self) -> Port:
        """The port, still listening; nobody waits for a client any more."""
        self._waker.send(b"\0")
        self._waited.wait()
        self._waker.close()
        self._wakee.close()
        return self.port


def of_server(options: PluginOptions) -> dict[str, Any]:
    """The options of a server that has no say in where it listens."""
    return {
        name: options[name]  # type: ignore[literal-required]
        for name in SERVER_OPTIONS
        if name not in ADDRESS_OPTIONS
    }


def in_namespace(options: Mapping[str, Any], part: str = "") -> dict[str, Any]:
    """Server options with the namespace of this worker's fixtures, unless they name one.

    ``part`` tells servers of one worker apart.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    default = plugin_prefix(worker) + part
    return {**options, "store_prefix": options["store_prefix"] or default}


@contextmanager
def surroundings(shared: SharedServer, options: PluginOptions) -> Iterator[None]:
    """The environment of a test, put back afterwards; boto3's default session is set aside."""
    match options["environment"]:
        case "test":
            undo = apply(variables(shared.url, options["region"]))
        case "endpoint":
            undo = apply(endpoint_variables(shared.url))
        case _:
            yield
            return
    default_session = _swap_default_session(None)
    try:
        yield
    finally:
        _swap_default_session(default_session)
        apply(undo)


def _swap_default_session(session: Any) -> Any:
    boto3 = sys.modules.get("boto3")
    if boto3 is None:
        return None
    aside, boto3.DEFAULT_SESSION = boto3.DEFAULT_SESSION, session  # type: ignore[attr-defined]
    return aside
