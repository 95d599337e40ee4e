"""The server: one listener for as long as it runs, and behind it a world of queues."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, Unpack
from weakref import WeakSet

from pytest_sqsq import clients, running
from pytest_sqsq.actions import ActionContext
from pytest_sqsq.actions.addresses import queue_url
from pytest_sqsq.controls import control_of
from pytest_sqsq.environment import variables
from pytest_sqsq.life import Life
from pytest_sqsq.models import QueueKey
from pytest_sqsq.protocol import HttpResponse
from pytest_sqsq.testing import QueueProbe, Session, waits
from pytest_sqsq.testing.queues import create_queue, find_key
from pytest_sqsq.testing.report import world_report
from pytest_sqsq.testing.settled import assert_all_settled
from pytest_sqsq.testing.track import all_events

if TYPE_CHECKING:
    from threading import Thread

    from botocore.client import BaseClient
    from types_boto3_sqs import SQSClient, SQSServiceResource

    from pytest_sqsq.aio import Aio
    from pytest_sqsq.clock import Clock
    from pytest_sqsq.engine import Broker, Waiter
    from pytest_sqsq.gateway.faults import Faults
    from pytest_sqsq.gateway.gate import RequestGate
    from pytest_sqsq.gateway.requests import RequestLog
    from pytest_sqsq.http.server import ConnectionInfo
    from pytest_sqsq.models import Event
    from pytest_sqsq.options import ServerOptions
    from pytest_sqsq.protocol import HttpRequest


class MakeServer(Protocol):
    """What ``make_sqs_server`` and ``sqs_server_factory`` are."""

    def __call__(self, **options: Unpack[ServerOptions]) -> SqsServer:
        """A started server, with the options of the test but for those given."""


class SqsServer(Life):
    """An SQS server for tests, on a port of its own.

    Takes the options of :class:`~pytest_sqsq.options.ServerOptions` as keyword arguments, and
    raises ``TypeError`` and ``ValueError`` for those that are none.  A context manager, which
    starts and stops it.  Safe to use from any thread.

    It is a world of queues for the helpers of :mod:`pytest_sqsq.testing`.
    """

    def __init__(self, **options: Unpack[ServerOptions]) -> None:
        super().__init__(**options)
        self._direct_clients: WeakSet[BaseClient] = WeakSet()
        self._control = control_of(self)
        self.timeout_factor = 1.0

    def __repr__(self) -> str:
        return f"<SqsServer {self.url if self._http is not None else 'not started'}>"

    # Reaching it

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.url.rpartition(":")[2])

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables for a process that is to use this server."""
        every = variables(self.url, self._options["region"])
        return {name: value for name, value in every.items() if value is not None}

    def client(
        self, *, transport: Literal["http", "direct"] = "http", **boto3_arguments: Any
    ) -> SQSClient:
        """A boto3 SQS client of this server, deaf to the configuration of the process.

        ``transport="direct"`` calls the server in this process, without a socket.  Other
        arguments are those of ``boto3.client``; an access key id of 12 digits is an account.
        """
        client = clients.client(self.url, self._options["region"], boto3_arguments)
        self._connect(client, transport)
        return client

    def resource(
        self, *, transport: Literal["http", "direct"] = "http", **boto3_arguments: Any
    ) -> SQSServiceResource:
        """A boto3 SQS resource of this server; arguments as for ``client``."""
        resource = clients.resource(self.url, self._options["region"], boto3_arguments)
        self._connect(resource.meta.client, transport)
        return resource

    def _connect(self, client: SQSClient, transport: Literal["http", "direct"]) -> None:
        if transport == "direct":
            from pytest_sqsq import direct

            direct.attach(client, self, self._gate)
            self._direct_clients.add(client)
        elif transport != "http":
            raise ValueError(f"transport must be 'http' or 'direct', not {transport!r}")

    def handle(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request of a client without a socket; inside ``gate.request()``."""
        if self._suspended or self._http is None or self._application is None:
            return HttpResponse(503, [], b"", cut="unanswered")
        return self._application.handle(request)

    # Queues

    def create_queue(
        self,
        name: str,
        *,
        dead_letter_queue: str | QueueProbe | None = None,
        max_receive_count: int | None = None,
        attributes: Mapping[str, Any] | None = None,
        tags: Mapping[str, str] | None = None,
        account_id: str | None = None,
        region: str | None = None,
    ) -> QueueProbe:
        """CreateQueue; a name that ends in ``.fifo`` makes a FIFO queue.

        ``dead_letter_queue`` is a name, URL, ARN or probe; a missing one is created, of the
        right kind.  ``max_receive_count`` is 10 without.  Raises the ``SqsError`` that the API
        answers with, and ``ValueError`` for a dead-letter queue of the wrong kind, an account
        that has not 12 digits, and the like.
        """
        key = QueueKey(*self._home(account_id, region), name)
        target = (
            dead_letter_queue.arn
            if isinstance(dead_letter_queue, QueueProbe)
            else (dead_letter_queue)
        )
        create_queue(
            self,
            key,
            dead_letter_queue=target,
            max_receive_count=max_receive_count,
            attributes=attributes,
            tags=tags,
        )
        return QueueProbe(self, key)

    def queue(
        self, name: str, *, account_id: str | None = None, region: str | None = None
    ) -> QueueProbe:
        """The queue of a name, URL or ARN.

        Raises ``QueueNotFound``, naming close matches and where else the name exists.
        """
        return QueueProbe(self, find_key(self, name, *self._home(account_id, region)))

    @property
    def queues(self) -> tuple[QueueProbe, ...]:
        """All queues of all accounts and regions."""
        return tuple(QueueProbe(self, queue.key) for queue in self.broker.queues)

    def _home(self, account_id: str | None, region: str | None) -> tuple[str, str]:
        return (
            self._options["account_id"] if account_id is None else account_id,
            self._options["region"] if region is None else region,
        )

    # Time

    @property
    def clock(self) -> Clock:
        """The server's clock."""
        return self._running().clock

    @property
    def now(self) -> dt.datetime:
        """The server's time, in UTC."""
        return self.clock.now

    def advance(self, duration: float | dt.timedelta) -> tuple[Event, ...]:
        """``clock.advance``: let seconds or a timedelta pass; what happened, in order."""
        return self.clock.advance(duration)

    def run_for(
        self, duration: float | dt.timedelta, *, skip_empty_polls: bool | None = None
    ) -> tuple[Event, ...]:
        """Let ``duration`` pass, and wait at each instant until the consumers have done their part.

        Time jumps whenever they have come to rest, by the rules of autojump.  Returns all that
        happened, what they did included.  With ``skip_empty_polls`` polls that find nothing do
        not end; ``None`` takes what the clock's rules say.  Raises as ``clock.advance`` does, and
        ``WaitTimeout`` where the consumers never come to rest.
        """
        __tracebackhide__ = True
        stack, autojump = self._running(), self._jumping()
        return running.run_for(self, stack, autojump, duration, skip_empty_polls=skip_empty_polls)

    def run_until(
        self,
        predicate: Callable[[], object],
        limit: float | dt.timedelta = running.LIMIT,
        *,
        skip_empty_polls: bool | None = None,
    ) -> tuple[Event, ...]:
        """Let time pass as ``run_for`` does, until ``predicate()`` is true.

        It is asked at the start and whenever the consumers have come to rest, while the clock
        stands; it may make requests.  Raises ``WaitTimeout`` after ``limit``, and at once when
        nothing is left that can change.
        """
        __tracebackhide__ = True
        return running.run_until(
            self,
            self._running(),
            self._jumping(),
            predicate,
            limit=limit,
            skip_empty_polls=skip_empty_polls,
        )

    def tick(self) -> tuple[Event, ...]:
        """Let happen what is due now, and clean up; the clock does not move."""
        events = self.clock.run_due()
        self.broker.maintain()
        return events

    # What happened

    @property
    def requests(self) -> RequestLog:
        """The requests that clients made."""
        return self._running().requests

    @property
    def faults(self) -> Faults:
        """What is planned to go wrong; empty after a reset."""
        return self._running().faults

    @property
    def events(self) -> tuple[Event, ...]:
        """What has happened on all queues that are there, oldest first.

        Raises ``JournalForgotten`` where a queue's journal has dropped a part of it.
        """
        return all_events(self)

    def track(self) -> Session:
        """``with server.track() as session:`` the events that happen in between."""
        return Session(self)

    def check(self) -> None:
        """Raise what went wrong inside the server, each failure once; verify every queue.

        Raises the failure itself, or a group of several; ``AssertionError`` for a broken
        invariant.
        """
        self.raise_failures()
        self.broker.check()

    def assert_all_settled(self) -> None:
        """Assert that no message is in flight on any queue; names those that are."""
        __tracebackhide__ = True
        assert_all_settled(self)

    def report(self) -> str:
        """The queues, their first messages and the last requests, for people to read; bounded."""
        requests = self.requests
        astray = requests.astray_text()
        notes = () if astray is None else (astray,)
        return world_report(self, tuple(requests), self._running().seed, notes)

    def wait_until(self, predicate: Callable[[], object], timeout: float = 5.0) -> None:
        """Wait until ``predicate()`` is true; ``WaitTimeout`` after ``timeout`` real seconds."""
        __tracebackhide__ = True
        waits.wait_until(self, predicate, timeout)

    def wait_idle(self, timeout: float = 5.0) -> None:
        """Wait until the consumers have nothing left to do.

        Raises ``WaitTimeout`` after ``timeout`` real seconds.
        """
        __tracebackhide__ = True
        waits.wait_idle(self, timeout)

    def wait_for_pollers(
        self, n: int, queue: str | QueueProbe | None = None, timeout: float = 5.0
    ) -> None:
        """Wait until ``n`` polls are parked, on ``queue`` or on all queues together.

        Raises ``WaitTimeout`` after ``timeout`` real seconds.
        """
        __tracebackhide__ = True
        probe = self.queue(queue) if isinstance(queue, str) else queue
        waits.wait_for_pollers(self, n, None if probe is None else probe.key, timeout)

    @property
    def aio(self) -> Aio:
        """The helpers that block, as awaitables for tests on an event loop."""
        from pytest_sqsq.aio import Aio

        return Aio(self)

    # What the helpers for tests stand on

    @property
    def broker(self) -> Broker:
        return self._running().broker

    @property
    def traffic(self) -> RequestGate:
        return self._gate

    @property
    def connected_clients(self) -> int:
        """Open connections, idle ones included, and direct clients."""
        connections = () if self._http is None else self._http.connections
        return len(connections) + len(self._direct_clients)

    @property
    def bystanders(self) -> Collection[Thread]:
        """Threads that ran before the server was made, or was emptied last."""
        return self._running().bystanders

    @property
    def connections(self) -> tuple[ConnectionInfo, ...]:
        """The open connections of clients, oldest first."""
        return () if self._http is None else self._http.connections

    def context(self, account_id: str, region: str) -> ActionContext:
        """For actions of the test itself: neither logged nor counted as requests."""
        return ActionContext(
            self.broker,
            account_id,
            region,
            self.url,
            self._wait_for_poll,
            lambda: True,
            cooldowns=self._options["cooldowns"],
        )

    def _wait_for_poll(self, waiter: Waiter) -> None:
        if not waiter.wait(waiter.real_seconds):
            self.broker.cancel_poll(waiter)

    def queue_url(self, key: QueueKey) -> str:
        return queue_url(self.context(key.account_id, key.region), key)

    def raise_failures(self) -> None:
        """Raise what went wrong inside since the last time; each failure once."""
        failures = self._running().take_failures()
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise BaseExceptionGroup("several things went wrong in the server", failures)
