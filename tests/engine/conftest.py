"""A small world around the engine: a clock that a test sets, a store that can fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from pytest_sqsq.engine import Broker, Message, Queue, Waiter
from pytest_sqsq.engine.looking import statistics_of
from pytest_sqsq.errors import StoreError
from pytest_sqsq.models import (
    Delivery,
    Event,
    OutgoingMessage,
    QueueKey,
    QueueSettings,
    ReceiveRequest,
    RedrivePolicy,
    SendReceipt,
)
from pytest_sqsq.store.records import PutClock

START_MS = 1_893_456_000_000
ACCOUNT = "000000000000"


class SettableClock:
    """All the engine wants of a clock: an instant."""

    def __init__(self) -> None:
        self.now_ms = START_MS


class FailingStore:
    """Keeps what it is given, apart from the time.

    The writes that ``fails`` is true for end in ``error``; it is asked with the number of the
    write, counted from 1.
    """

    keeps = True
    settled_ms = None
    opening = 1
    emptied = 0
    trouble = None

    def __init__(self) -> None:
        self.on_back: Callable[[], None] | None = None
        self.written: list[Any] = []
        self.writes = 0
        self.fails: Callable[[int], bool] = lambda number: False
        self.error: type[StoreError] = StoreError

    def write(self, records: Sequence[Any]) -> None:
        self.writes += 1
        if self.fails(self.writes):
            raise self.error(f"write {self.writes} was refused")
        self.written.extend(r for r in records if not isinstance(r, PutClock))

    def fail_next(self, count: int = 1) -> None:
        first = self.writes + 1
        self.fails = lambda number: first <= number < first + count

    def close(self) -> None:
        """Nothing to let go of."""


class World:
    """A broker, its clock, and short words for what tests do with them."""

    def __init__(self, **options: Any) -> None:
        self.clock = SettableClock()
        self.broker = Broker(self.clock, **options)

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return (self.clock.now_ms - START_MS) / 1000

    def queue(
        self,
        name: str = "orders",
        *,
        dead_letters: Queue | str | None = None,
        max_receive_count: int = 1,
        account_id: str = ACCOUNT,
        region: str = "us-east-1",
        **attributes: Any,
    ) -> Queue:
        """Create a queue, FIFO by its name."""
        if dead_letters is not None:
            arn = dead_letters if isinstance(dead_letters, str) else dead_letters.arn
            attributes["redrive_policy"] = RedrivePolicy(arn, max_receive_count)
        chosen = QueueSettings(fifo=name.endswith(".fifo"), **attributes)
        queue, created = self.broker.create_queue(QueueKey(account_id, region, name), chosen, {})
        assert created
        return queue

    def set(self, queue: Queue, **attributes: Any) -> None:
        self.broker.change_settings(queue, lambda before: replace(before, **attributes))

    def set_dead_letters(self, queue: Queue, target: Queue | str | None, count: int = 1) -> None:
        arn = target.arn if isinstance(target, Queue) else target
        self.set(queue, redrive_policy=None if arn is None else RedrivePolicy(arn, count))

    def send(
        self,
        queue: Queue,
        *bodies: str,
        delay: int | None = None,
        group: str | None = None,
        deduplication_id: str | None = None,
    ) -> list[SendReceipt]:
        """Send bodies in one call; on FIFO queues to group ``g`` unless told otherwise."""
        if group is None and queue.settings.fifo:
            group = "g"
        return self.broker.send(
            queue,
            [
                OutgoingMessage(
                    body,
                    delay_seconds=delay,
                    message_group_id=group,
                    message_deduplication_id=deduplication_id,
                )
                for body in bodies
            ],
        )

    def receive(
        self,
        queue: Queue,
        count: int = 1,
        *,
        timeout: int | None = None,
        attempt: str | None = None,
    ) -> list[Delivery]:
        return self.broker.receive(queue, ReceiveRequest(count, timeout, 0, attempt))

    def bodies(self, queue: Queue, count: int = 10, *, timeout: int | None = None) -> list[str]:
        """Receive, and tell the bodies."""
        return [delivery.body for delivery in self.receive(queue, count, timeout=timeout)]

    def poll(
        self,
        queue: Queue,
        seconds: int = 20,
        count: int = 1,
        *,
        timeout: int | None = None,
        attempt: str | None = None,
        is_alive: Callable[[], bool] = lambda: True,
    ) -> Waiter:
        return self.broker.poll(queue, ReceiveRequest(count, timeout, seconds, attempt), is_alive)

    def delete(self, queue: Queue, *deliveries: Delivery | str) -> list[str | None]:
        """Delete, and tell the error texts."""
        handles = [d if isinstance(d, str) else d.receipt_handle for d in deliveries]
        return [None if e is None else e.message for e in self.broker.delete(queue, handles)]

    def change(self, queue: Queue, delivery: Delivery | str, seconds: int) -> str | None:
        """Change the visibility of one message, and tell the error text."""
        handle = delivery if isinstance(delivery, str) else delivery.receipt_handle
        (error,) = self.broker.change_visibility(queue, [(handle, seconds)])
        return None if error is None else error.message

    def advance(self, seconds: float) -> list[Event]:
        """Move the clock as a driver does: from one due instant to the next."""
        broker, clock = self.broker, self.clock
        target_ms = clock.now_ms + round(seconds * 1000)
        events: list[Event] = []
        while True:
            due_ms = broker.next_due_ms()
            at_ms = target_ms if due_ms is None else min(due_ms, target_ms)
            clock.now_ms = max(clock.now_ms, at_ms)
            events += broker.settle(clock.now_ms)
            events += broker.end_polls(clock.now_ms)
            if clock.now_ms >= target_ms and (due_ms is None or due_ms > target_ms):
                return events

    def counts(self, queue: Queue) -> tuple[int, int, int]:
        """Visible, in flight, delayed."""
        with self.broker.entry(queue):
            return queue.visible_count, queue.in_flight_count, queue.delayed_count

    def live(self, queue: Queue) -> list[str]:
        """The bodies of all live messages in arrival order."""
        with self.broker.entry(queue):
            return [message.body for message in queue.log.live_messages()]

    def events(self, queue: Queue, *kinds: str) -> list[tuple[float, str, str | None]]:
        """Seconds since the start, kind and body of what happened in a queue."""
        return [
            ((event.at_ms - START_MS) / 1000, event.kind, event.body)
            for event in queue.journal.events
            if not kinds or event.kind in kinds
        ]

    def picture(self, queue: Queue) -> dict[str, Any]:
        """Everything that can be seen of a queue, to compare before and after."""
        fields = set(Message.__slots__) - {"group", "next_in_group", "previous_in_group"}
        with self.broker.entry(queue):
            return {
                "messages": [
                    {field: getattr(message, field) for field in fields}
                    for message in queue.log.live_messages()
                ],
                "statistics": statistics_of(queue),
                "settings": queue.settings,
                "tags": dict(queue.tags),
                "last_modified_ms": queue.last_modified_ms,
                "purged_ms": queue.purged_ms,
                "next": queue.order.peek(),
                "has_ready": queue.order.has_ready,
                "journal": queue.journal.events,
                "deduplication": len(queue.deduplication),
                "next_sequence": queue.next_sequence,
                "due": queue.find_next_due_ms(),
                "deleted": queue.deleted,
            }


@pytest.fixture
def make_world() -> Callable[..., World]:
    return World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def store() -> FailingStore:
    return FailingStore()


@pytest.fixture
def stored(store: FailingStore) -> World:
    """A world that writes to ``store``."""
    return World(store=store)


@pytest.fixture
def machine_settings() -> settings:
    """A short, repeatable run; ``HYPOTHESIS_PROFILE=long`` searches far and anew each time."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "long":
        return settings(
            max_examples=3000,
            stateful_step_count=80,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
    return settings(
        max_examples=200,
        stateful_step_count=30,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
