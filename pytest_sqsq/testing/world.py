"""What the helpers for tests need to know of the server that they work on."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from pytest_sqsq.models import QueueKey

if TYPE_CHECKING:
    from threading import Thread

    from pytest_sqsq.actions import ActionContext
    from pytest_sqsq.clock import Clock
    from pytest_sqsq.engine import Broker


class Traffic(Protocol):
    """The requests of all front ends, as the gate counts them."""

    @property
    def open_count(self) -> int:
        """Requests being read, handled or answered now; parked polls do not count."""

    @property
    def changes(self) -> int:
        """Rises whenever a request begins, ends, parks or wakes, and with each ``note_change``."""

    def wait_for_change(self, since: int, timeout: float | None) -> int:
        """Block until ``changes`` differs from ``since``, or ``timeout`` real seconds."""

    def note_change(self) -> None:
        """Count as a change something that happened elsewhere; does not block."""


class World(Protocol):
    """One broker with its clock; the server is one, and so is any pair put together by hand."""

    @property
    def broker(self) -> Broker: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def traffic(self) -> Traffic: ...

    @property
    def connected_clients(self) -> int:
        """Connections that are open, idle ones included, and clients that need none."""

    @property
    def bystanders(self) -> Collection[Thread]:
        """Threads that ran before there was this world, so that they are no consumers of it."""

    @property
    def timeout_factor(self) -> float:
        """What every timeout in real seconds is multiplied by."""

    def context(self, account_id: str, region: str) -> ActionContext:
        """For actions that a test arranges by itself: not logged, not counted as a request."""

    def queue_url(self, key: QueueKey) -> str: ...

    def raise_failures(self) -> None:
        """Raise what went wrong inside the server since it was last asked; each failure once."""
