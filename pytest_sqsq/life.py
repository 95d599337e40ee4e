"""The life of a server: starting, stopping, emptying, and times in which nobody listens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TypeVar, Unpack, cast

from pytest_sqsq.autojump import Autojump
from pytest_sqsq.environment import url_of
from pytest_sqsq.errors import GateTimeout
from pytest_sqsq.gateway.gate import RequestGate
from pytest_sqsq.options import (
    ADDRESS_OPTIONS,
    SERVER_OPTIONS,
    ServerOptions,
    checked,
    server_options,
)
from pytest_sqsq.scheduler import Scheduler
from pytest_sqsq.stack import Stack
from pytest_sqsq.store import Creator

if TYPE_CHECKING:
    from types import TracebackType

    from pytest_sqsq.http.port import Port
    from pytest_sqsq.http.server import HttpServer
    from pytest_sqsq.http.wsgi import Admin, Application

Part = TypeVar("Part")

_CHANGEABLE = {
    name: option for name, option in SERVER_OPTIONS.items() if name not in ADDRESS_OPTIONS
}


def _namespace(options: ServerOptions) -> tuple[object, str | None]:
    return options["store"], options["store_prefix"]


class Life:
    """One listener for as long as it runs, and behind it one :class:`Stack` at a time.

    Whoever exchanges or empties the stack keeps the gate closed.  To be set before the start:
    ``creator`` is noted in a namespace that a store makes, and ``begins_empty`` tells whether
    what is found in one is erased.
    """

    creator: Creator = "server"
    begins_empty = False
    _control: Admin | None = None

    def __init__(self, **options: Unpack[ServerOptions]) -> None:
        self._options = server_options(options)
        self._gate = RequestGate()
        self._stack: Stack | None = None
        self._http: HttpServer | None = None
        self._application: Application | None = None
        self._scheduler: Scheduler | None = None
        self._autojump: Autojump | None = None
        self._url: str | None = None
        self._suspended = False

    @property
    def is_running(self) -> bool:
        return self._http is not None

    @property
    def options(self) -> ServerOptions:
        """All options in force; a copy."""
        return cast("ServerOptions", dict(self._options))

    @property
    def url(self) -> str:
        """Where it listens, or did before it was stopped, without a trailing slash."""
        if self._url is None:
            raise RuntimeError("the server was not started and has no URL")
        return self._url

    def start(self, claim: Port | None = None) -> Self:
        """Listen, and answer requests from the moment this returns.

        ``claim`` is a port that listens already, in place of the options ``host`` and ``port``.

        Raises ``ServerStartError`` if the address cannot be had, ``RuntimeError`` if the server
        runs already.  A server that was stopped starts anew, with nothing of its past.
        """
        from pytest_sqsq.http.server import HttpServer
        from pytest_sqsq.http.wsgi import Application

        if self._http is not None:
            raise RuntimeError(f"the server runs already, at {self.url}")
        options = self._options
        scheduler = Scheduler(self._running)
        self._scheduler = scheduler
        stack = self._new_stack(options)
        application = Application(stack.gateway, self._gate, self._control)
        with _closed_on_failure(stack):
            http = HttpServer(
                application,
                host=options["host"],
                port=options["port"],
                claim=claim,
                max_connections=options["max_connections"],
                end_polls=self._end_polls,
            )
        self._application, self._http = application, http
        self._autojump = Autojump(self._running, self._gate)
        self._url = url_of(options["host"], http.port)
        self._adopt(stack)
        http.start()
        scheduler.start()
        return self

    def stop(self) -> None:
        """End everything within about 0.2 real seconds; does nothing if it does not run.

        Parked polls are answered, empty.  The queues can still be looked at.  Waits for an
        advance in another thread; if that stands in a callback for 5 real seconds, the server is
        stopped all the same and ``GateTimeout`` is raised.
        """
        if self._http is not None:
            self._running().faults.hurry()
        try:
            with self._gate.serialised():
                movers = self._shut_down()
        except GateTimeout:
            # One of the threads that move time may be the one that stands in the callback.
            if self._shut_down():
                self._running().close()
            raise
        if movers:
            # Only now: they may have been waiting for their turn at the gate.
            for mover in movers:
                mover.join()
            self._running().close()

    def _shut_down(self) -> tuple[Scheduler | Autojump, ...]:
        """Stop listening; returns what moves time by itself, which is told to end."""
        http, self._http = self._http, None
        if http is None or self._scheduler is None or self._autojump is None:
            return ()
        http.stop()
        movers = (self._scheduler, self._autojump)
        for mover in movers:
            mover.end()
        return movers

    def _end_polls(self) -> None:
        self._running().broker.close_polls(close_connection=True)
        self._gate.note_change()  # for requests that wait for one

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def reset(self) -> None:
        """Empty the server: no queues, no memory of any, the clock where it was at the start.

        Clients are disconnected; parked polls are told that their queue is gone.  Planned faults
        are forgotten.
        """
        self.configure()

    def configure(self, **options: Unpack[ServerOptions]) -> None:
        """Empty the server as ``reset`` does, and let ``options`` hold from now on.

        The listener keeps its address.  Raises as the constructor does.
        """
        changes = checked(options, _CHANGEABLE)
        merged = cast("ServerOptions", {**self._options, **changes})
        with self._running().faults.hurried(), self._gate.closed():
            stack = self._running()
            if merged == self._options:
                stack.empty()
                self._adopt(stack)
            elif _namespace(merged) == _namespace(self._options):
                # One namespace has one holder, so the old one goes before the new one comes.
                stack.empty()
                stack.close()
                self._options = merged
                self._adopt(self._new_stack(merged))
            else:
                replacement = self._new_stack(merged)
                with _closed_on_failure(replacement):
                    stack.empty()
                stack.close()
                self._options = merged
                self._adopt(replacement)
        if self._http is not None:
            self._http.max_connections = merged["max_connections"]
            self._http.close_connections()

    def restart(self) -> None:
        """Cut all clients off and begin anew with what the store has kept.

        Queues, messages and receipt handles are as they were, whichever the store; so are clock,
        options, request log and faults.  The history of the queues is forgotten.
        """
        with self.outage():
            self._running().reload()
            self._adopt(self._running())

    @contextmanager
    def outage(self) -> Iterator[None]:
        """A context in which nobody listens: clients are cut off and refused, the port is kept.

        Queues, clock, request log and faults stay as they are; parked polls end without an answer.
        """
        http = self._http
        if http is None:
            raise RuntimeError("the server does not run")
        with self._running().faults.hurried(), self._gate.closed():
            self._suspended = True
            http.suspend()
            http.cut_connections()
            self._running().broker.close_polls()
        try:
            yield
        finally:
            self._suspended = False
            http.resume()

    def _new_stack(self, options: ServerOptions) -> Stack:
        assert self._scheduler is not None
        return Stack(
            options,
            self._gate,
            self._scheduler.due_moved,
            self._clock_changed,
            creator=self.creator,
            begins_empty=self.begins_empty,
        )

    def _adopt(self, stack: Stack) -> None:
        """Let requests go to ``stack``; with the gate closed, or before anyone listens."""
        assert self._application is not None
        assert self._scheduler is not None
        stack.serve_at(self.url)
        self._stack = stack
        self._application.gateway = stack.gateway
        self._gate.lower_high_water()
        self._clock_changed()

    def _clock_changed(self) -> None:
        assert self._scheduler is not None
        assert self._autojump is not None
        self._scheduler.wake()
        self._autojump.look_again()

    def _running(self) -> Stack:
        return _made(self._stack)

    def _jumping(self) -> Autojump:
        return _made(self._autojump)


@contextmanager
def _closed_on_failure(stack: Stack) -> Iterator[None]:
    """Lets go of what a new stack holds where it does not come to be used."""
    try:
        yield
    except BaseException:
        stack.close()
        raise


def _made(part: Part | None) -> Part:
    if part is None:
        raise RuntimeError(
            "the server was not started: call start(), or use it as a context manager"
        )
    return part
