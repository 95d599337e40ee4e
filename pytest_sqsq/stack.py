"""One world of queues: clock, store, broker, request log and gateway, put together."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from pytest_sqsq.clock import Clock
from pytest_sqsq.engine import Broker
from pytest_sqsq.engine.chances import Chances
from pytest_sqsq.environment import DUMMY_KEY
from pytest_sqsq.errors import QueueDoesNotExist
from pytest_sqsq.gateway.faults import Faults
from pytest_sqsq.gateway.gateway import Gateway
from pytest_sqsq.gateway.requests import RequestLog
from pytest_sqsq.store import MemoryStore, Store

if TYPE_CHECKING:
    from pytest_sqsq.gateway.gate import RequestGate
    from pytest_sqsq.models import Event, QueueKey
    from pytest_sqsq.options import ServerOptions
    from pytest_sqsq.protocol import Call, HttpRequest

# Where a clock that stands starts when ids are to be the same in each run.
SEEDED_START = "2030-01-01T00:00:00Z"


class Stack:
    """Everything that one set of options makes, behind a listener that does not change.

    ``gate`` is the listener's.  ``on_due_moved`` is called when something became due earlier than
    anything before, ``on_clock_changed`` when time may pass differently; neither may block.
    """

    def __init__(
        self,
        options: ServerOptions,
        gate: RequestGate,
        on_due_moved: Callable[[], None],
        on_clock_changed: Callable[[], None],
    ) -> None:
        self.options = options
        self._gate = gate
        self._base_url = "http://localhost"
        self._on_due_moved = on_due_moved
        self._failures: list[BaseException] = []
        self._store = open_store(options)
        self.clock = Clock(
            options["clock"],
            start=_first_instant(options),
            autojump_threshold=options["autojump_threshold"],
            autojump_grace=options["autojump_grace"],
        )
        self.requests = RequestLog(options["request_log_size"])
        self._build()
        self.clock.attach(_Driver(self, gate))
        self.clock.on_changed = on_clock_changed

    def _build(self) -> None:
        options = self.options
        self.chances = Chances(options["seed"])
        self.broker = Broker(
            self.clock,
            store=self._store,
            dead_letter_on=options["dead_letter_on"],
            in_flight_limit=options["in_flight_limit"],
            journal_size=options["journal_size"],
            seed=options["seed"],
            loose=self.chances if options["delivery"] == "realistic" else None,
        )
        self.faults = Faults(self.broker, self.clock, self._gate, self.chances)
        self.broker.due.on_earlier = self._on_due_moved
        self._open_gateway()

    def _open_gateway(self) -> None:
        options = self.options
        self.gateway = Gateway(
            self.broker,
            self._gate,
            self.requests,
            region=options["region"],
            account_id=options["account_id"],
            cooldowns=options["cooldowns"],
            base_url=self._base_url,
            is_known=self._is_known,
            faults=self.faults,
            authorize=signature_check(options),
        )

    def serve_at(self, url: str) -> None:
        """Begin queue URLs with ``url`` where a request does not say how it got here."""
        self._base_url = url
        self._open_gateway()

    @property
    def seed(self) -> int | None:
        """The seed of everything that was left to chance, ``None`` if nothing was."""
        return self.chances.seed if self.chances.drawn else self.options["seed"]

    def empty(self) -> None:
        """Back to the first instant, without queues, requests, faults and memory of any.

        Parked polls are told that their queue is gone.  Called with the gate closed.
        """
        self.broker.close_polls(QueueDoesNotExist())
        self.requests.clear()
        self.clock.reset()
        self._failures.clear()
        self._build()

    def close(self) -> None:
        """Let go of the store.  The queues can still be looked at."""
        self._store.close()

    def note_failure(self, failure: BaseException) -> None:
        """Keep what went wrong where no caller could be told."""
        self._failures.append(failure)

    def take_failures(self) -> list[BaseException]:
        """What went wrong inside since the last call, in requests and between them."""
        failures, self._failures = self._failures, []
        return [*self.gateway.take_internal_failures(), *failures]

    def _is_known(self, key: QueueKey) -> bool:
        broker = self.broker
        return broker.find_queue(key) is not None or broker.deleted_ms(key) is not None


class _Driver:
    """What the clock of a stack moves: its broker, behind the gate."""

    def __init__(self, stack: Stack, gate: RequestGate) -> None:
        self._stack = stack
        self._gate = gate

    def exclusive(self) -> AbstractContextManager[None]:
        return self._gate.closed()

    def serialised(self) -> AbstractContextManager[None]:
        return self._gate.serialised()

    def released(self) -> AbstractContextManager[None]:
        return self._gate.reopened()

    def next_due_ms(self) -> int | None:
        return self._stack.broker.next_due_ms()

    def next_event(self) -> Event | None:
        return self._stack.broker.next_event()

    def settle(self, now_ms: int) -> list[Event]:
        return self._stack.broker.settle(now_ms)

    def end_polls(self, now_ms: int) -> list[Event]:
        return self._stack.broker.end_polls(now_ms)


def open_store(options: ServerOptions) -> Store:
    """The store that the options name; ``ValueError`` for one that is not available."""
    store = options["store"]
    if store == "memory":
        return MemoryStore()
    raise ValueError(f"store={store!r} is not available yet; there is 'memory'")


def signature_check(options: ServerOptions) -> Callable[[HttpRequest, Call], None] | None:
    """What refuses requests that the dummy secret key did not sign; ``None`` where all may in."""
    if options["signatures"] == "ignore":
        return None
    from pytest_sqsq.gateway.signatures import SignatureCheck

    return SignatureCheck(DUMMY_KEY)


def _first_instant(options: ServerOptions) -> dt.datetime | str | None:
    start = options["start"]
    seeded = options["seed"] is not None and options["clock"] in {"frozen", "autojump"}
    return SEEDED_START if start is None and seeded else start
