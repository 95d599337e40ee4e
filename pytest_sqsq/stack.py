"""One world of queues: clock, store, broker, request log and gateway, put together."""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING
from weakref import WeakSet

from pytest_sqsq.clock import Clock, give_way, real_now_ms
from pytest_sqsq.engine import Broker
from pytest_sqsq.engine.chances import Chances
from pytest_sqsq.environment import DUMMY_KEY
from pytest_sqsq.errors import QueueDoesNotExist
from pytest_sqsq.gateway.faults import Faults
from pytest_sqsq.gateway.gateway import Gateway
from pytest_sqsq.gateway.requests import RequestLog
from pytest_sqsq.store import SERVER_PREFIX, Creator, Store, make_store
from pytest_sqsq.timeline import instant_ms

if TYPE_CHECKING:
    from pytest_sqsq.gateway.gate import RequestGate
    from pytest_sqsq.models import Event, QueueKey
    from pytest_sqsq.options import ServerOptions
    from pytest_sqsq.protocol import Call, HttpRequest

_log = logging.getLogger("pytest_sqsq")

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
        on_due_moved: Callable[[int], None],
        on_clock_changed: Callable[[], None],
        *,
        creator: Creator = "server",
        begins_empty: bool = False,
    ) -> None:
        self.options = options
        self._gate = gate
        self._base_url = "http://localhost"
        self._on_due_moved = on_due_moved
        self._failures: list[BaseException] = []
        self._store = open_store(options, creator)
        try:
            self._begin(begins_empty=begins_empty)
        except BaseException:
            # Who comes next is to find the namespace free.
            self._store.close()
            raise
        self.clock.attach(_Driver(self, gate))
        self.clock.on_changed = on_clock_changed

    def _begin(self, *, begins_empty: bool) -> None:
        options = self.options
        if begins_empty:
            self._store.erase()
        self.clock = Clock(
            options["clock"],
            start=_first_instant(options, self._store.settled_ms),
            autojump_threshold=options["autojump_threshold"],
            autojump_grace=options["autojump_grace"],
        )
        self.requests = RequestLog(options["request_log_size"])
        self._build()
        self._load()

    def _build(self) -> None:
        self.bystanders = WeakSet(threading.enumerate())
        # How many threads that came later were waited for in vain: they are no pollers.
        self.absentees = 0
        self.chances = Chances(self.options["seed"])
        self.broker = self._new_broker()
        self.faults = Faults(self.broker, self.clock, self._gate, self.chances)
        self._open_gateway()

    def _new_broker(self) -> Broker:
        options = self.options
        return Broker(
            self.clock,
            store=self._store,
            dead_letter_on=options["dead_letter_on"],
            in_flight_limit=options["in_flight_limit"],
            journal_size=options["journal_size"],
            seed=options["seed"],
            loose=self.chances if options["delivery"] == "realistic" else None,
            give_way=self._give_way,
        )

    def _give_way(self) -> None:
        # While the gate is closed nobody else has anything to do, and time stands.
        if not self._gate.is_closed:
            give_way()
            self.clock.let_others_happen()

    def _load(self) -> None:
        """Take over what the store has kept, and let happen what fell due meanwhile."""
        loaded = self.broker.load()
        if loaded.queues:
            self.broker.settle(self.clock.now_ms)
            _log.info(
                "%r held %d queues with %d messages; the clock begins at %s",
                self._store,
                loaded.queues,
                loaded.messages,
                self.clock.now.isoformat(),
            )

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
        """Let requests come, and tell when something becomes due.

        Queue URLs begin with ``url`` where a request does not say how it got here.
        """
        self.broker.due.on_earlier = self._on_due_moved
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
        # What is still answered is no request of the world that begins.
        self.gateway.retire()
        self.broker.close_polls(QueueDoesNotExist())
        self._store.erase()
        self.requests.clear()
        self.clock.reset()
        self._failures.clear()
        self._build()

    def reload(self) -> None:
        """Begin anew with what the store has kept, as a process that was restarted does.

        Clock, options, faults and request log stay.  Called with the gate closed, and no poll
        parked.  Raises ``StoreRefused`` and ``StoreInUse`` as opening the store does.
        """
        self._store = self.broker.hand_over()
        self.broker = self._new_broker()
        self._load()
        self.faults.move_to(self.broker)
        self._open_gateway()

    def close(self) -> None:
        """Let go of the store.  The queues can still be looked at."""
        self.broker.close()

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

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._gate.closed():
            yield
            self._stack.broker.note_time()

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


def open_store(options: ServerOptions, creator: Creator) -> Store:
    """The store that the options name.

    Raises ``ValueError`` for an option that names none, ``StoreInUse`` and ``StoreRefused``.
    """
    return make_store(
        options["store"],
        prefix=options["store_prefix"] or SERVER_PREFIX,
        timeout=options["store_timeout"],
        creator=creator,
    )


def signature_check(options: ServerOptions) -> Callable[[HttpRequest, Call], None] | None:
    """What refuses requests that the dummy secret key did not sign; ``None`` where all may in."""
    if options["signatures"] == "ignore":
        return None
    from pytest_sqsq.gateway.signatures import SignatureCheck

    return SignatureCheck(DUMMY_KEY)


def _first_instant(options: ServerOptions, settled_ms: int | None) -> dt.datetime | str | None:
    """Where time begins: as asked for, but never before what the store has seen happen."""
    start = _asked_start(options)
    if settled_ms is None or settled_ms <= (real_now_ms() if start is None else instant_ms(start)):
        return start
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=settled_ms)


def _asked_start(options: ServerOptions) -> dt.datetime | str | None:
    start = options["start"]
    seeded = options["seed"] is not None and options["clock"] in {"frozen", "autojump"}
    return SEEDED_START if start is None and seeded else start
