"""What the control API needs of a server, which gives it itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pytest_sqsq.models import MessageState, MessageView, QueueKey

if TYPE_CHECKING:
    from pytest_sqsq.clock import Clock
    from pytest_sqsq.engine import Broker, Message, Queue
    from pytest_sqsq.gateway.faults import Faults
    from pytest_sqsq.gateway.gate import RequestGate
    from pytest_sqsq.gateway.requests import RequestLog
    from pytest_sqsq.models import Event
    from pytest_sqsq.options import ServerOptions

Body = str | re.Pattern[str]

Wait = Generator[Any, Any, object]
"""A wait: gives pauses, each until something has changed since a count of changes, or for so many
real seconds, and returns its result."""


@dataclass(frozen=True, kw_only=True)
class Helpers:
    """What the helpers for tests do, for this server.

    ``view`` is to be called inside ``broker.entry``.  ``find_key`` takes a name, URL or ARN, and
    raises ``QueueNotFound``, and ``ValueError`` for what names no queue.  The waits raise
    ``WaitTimeout`` after so many real seconds.
    """

    view: Callable[[Queue, Message], MessageView]
    find_key: Callable[[str], QueueKey]
    until_idle: Callable[[float], Wait]
    until_parked: Callable[[int, QueueKey | None, float], Wait]
    until_there: Callable[[QueueKey, Body | None, int, MessageState | None, float], Wait]
    until_empty: Callable[[QueueKey, float], Wait]


class Controlled(Protocol):
    """A running server."""

    @property
    def broker(self) -> Broker: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def requests(self) -> RequestLog: ...

    @property
    def faults(self) -> Faults: ...

    @property
    def traffic(self) -> RequestGate: ...

    @property
    def options(self) -> ServerOptions: ...

    @property
    def is_running(self) -> bool: ...

    def tick(self) -> tuple[Event, ...]: ...

    def reset(self) -> None: ...

    def queue_url(self, key: QueueKey) -> str: ...
