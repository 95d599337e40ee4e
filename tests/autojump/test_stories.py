"""Whole stories of consumers in threads: the same happens each time, however fast they are."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

CONSUMERS = 4
HOUR = 3600
START_MS = 1_893_456_000_000


@pytest.fixture(params=["idle", "loaded"])
def machine(request: pytest.FixtureRequest) -> Iterator[None]:
    """A process in which another thread may be computing all the time."""
    stopping = threading.Event()

    def compute() -> None:
        while not stopping.is_set():
            sum(range(1000))

    thread = threading.Thread(target=compute)
    if request.param == "loaded":
        thread.start()
    yield
    stopping.set()
    if request.param == "loaded":
        thread.join()


def facts(events, kinds) -> list[tuple[float, str, str]]:
    """When what happened to which message, in an order that does not depend on threads."""
    found = [
        ((event.at_ms - START_MS) / 1000, event.kind, event.body)
        for event in events
        if event.kind in kinds
    ]
    assert [fact[0] for fact in found] == sorted(fact[0] for fact in found)
    return sorted(found)


class Shop:
    """What the consumers do with orders, by name of the order.

    ``poison`` never succeeds, ``late`` at the second attempt.  ``left`` and ``right`` each take
    until the other is being handled as well, so they need two consumers at work at once.
    """

    def __init__(self) -> None:
        self.attempts: Counter[str] = Counter()
        self.begun = {name: threading.Event() for name in ("left", "right")}

    def handle(self, order: str) -> bool:
        self.attempts[order] += 1
        match order:
            case "poison":
                return False
            case "late":
                return self.attempts[order] == 2
            case "left" | "right":
                self.begun[order].set()
                other = self.begun["right" if order == "left" else "left"]
                return other.wait(30)
            case _:
                return True


def run(server) -> None:
    server.run_for(timedelta(days=2), skip_empty_polls=True)


def jump_by_itself(server) -> None:
    with server.clock.autojump(skip_empty_polls=True):
        server.wait_until(lambda: server.queue("orders").statistics.deleted == 5, timeout=30)


@pytest.mark.parametrize("pass_time", [run, jump_by_itself])
@pytest.mark.usefixtures("machine")
def test_two_days_of_four_consumers(server, consumers, pass_time: Callable[..., None]) -> None:
    queue = server.create_queue(
        "orders",
        dead_letter_queue="failed",
        max_receive_count=3,
        attributes={"VisibilityTimeout": HOUR},
    )
    client = server.client()

    def order(name: str, delay: int = 0) -> Callable[[], object]:
        return lambda: client.send_message(QueueUrl=queue.url, MessageBody=name, DelaySeconds=delay)

    consumers.start(queue.url, Shop().handle, CONSUMERS)
    server.wait_for_pollers(CONSUMERS)
    for hours, name, delay in [
        (6, "first", 0),
        (12, "poison", 0),
        (12, "late", 900),
        (30, "left", 0),
        (30, "right", 0),
        (47, "last", 600),
    ]:
        server.clock.call_at(server.now + timedelta(hours=hours), order(name, delay))

    with server.track() as session:
        pass_time(server)

    kinds = {"sent", "visible", "received", "deleted", "dead_lettered", "expired"}
    assert facts(session.events, kinds) == sorted(
        [
            (6 * HOUR, "sent", "first"),
            (6 * HOUR, "received", "first"),
            (6 * HOUR, "deleted", "first"),
            (12 * HOUR, "sent", "poison"),
            (12 * HOUR, "received", "poison"),
            (12 * HOUR, "sent", "late"),
            (12 * HOUR + 900, "visible", "late"),
            (12 * HOUR + 900, "received", "late"),
            (13 * HOUR, "visible", "poison"),
            (13 * HOUR, "received", "poison"),
            (13 * HOUR + 900, "visible", "late"),
            (13 * HOUR + 900, "received", "late"),
            (13 * HOUR + 900, "deleted", "late"),
            (14 * HOUR, "visible", "poison"),
            (14 * HOUR, "received", "poison"),
            (15 * HOUR, "dead_lettered", "poison"),
            (30 * HOUR, "sent", "left"),
            (30 * HOUR, "sent", "right"),
            (30 * HOUR, "received", "left"),
            (30 * HOUR, "received", "right"),
            (30 * HOUR, "deleted", "left"),
            (30 * HOUR, "deleted", "right"),
            (47 * HOUR, "sent", "last"),
            (47 * HOUR + 600, "visible", "last"),
            (47 * HOUR + 600, "received", "last"),
            (47 * HOUR + 600, "deleted", "last"),
        ]
    )
    assert server.clock.busy_jumps == 0
    # Each consumer polls once more than it receives; those that are parked are not logged yet.
    if pass_time is run:
        polls = server.requests.calls(action="ReceiveMessage")
        assert len(polls) == len(session.received)


def all_that_happens(server, consumers) -> list[tuple[int, str, str, str]]:
    """Two days in the life of consumers that were only just started, and poll when they do."""
    orders = server.create_queue("orders", dead_letter_queue="failed", max_receive_count=3)
    receipts = server.create_queue("receipts", attributes={"DelaySeconds": 90})
    client = server.client()
    shop = Shop()

    def handle(order: str) -> bool:
        handled = shop.handle(order)
        if handled:
            client.send_message(QueueUrl=receipts.url, MessageBody=f"{order}, paid")
        return handled

    plan = {"first": 6, "poison": 12, "late": 12, "left": 30, "right": 30, "last": 47}
    for order, hours in plan.items():
        server.clock.call_at(
            server.now + timedelta(hours=hours),
            lambda order=order: client.send_message(QueueUrl=orders.url, MessageBody=order),
        )
    consumers.start(orders.url, handle, CONSUMERS)
    consumers.start(receipts.url, count=1)
    events = server.run_for(timedelta(days=2), skip_empty_polls=True)
    assert server.clock.busy_jumps == 0
    return sorted((event.at_ms, event.kind, event.queue, event.body or "") for event in events)


def test_ten_runs_in_a_row_are_alike(make_server, make_consumers) -> None:
    runs = []
    for _ in range(10):
        server = make_server()
        consumers = make_consumers(server)
        runs.append(all_that_happens(server, consumers))
        consumers.stop()

    assert len(runs[0]) == 51
    assert runs == [runs[0]] * 10


@pytest.mark.parametrize(
    ("machine", "transport"),
    [("idle", "http"), ("idle", "direct"), ("loaded", "http")],
    indirect=["machine"],
)
@pytest.mark.usefixtures("machine")
def test_two_hours_of_four_consumers_with_every_poll(server, consumers, transport: str) -> None:
    queue = server.create_queue(
        "orders",
        dead_letter_queue="failed",
        max_receive_count=3,
        attributes={"VisibilityTimeout": 600},
    )
    consumers.start(queue.url, Shop().handle, CONSUMERS, transport=transport)
    server.wait_for_pollers(CONSUMERS)
    client = server.client()
    for seconds, name in [(1800, "poison"), (1800, "late"), (3600, "left"), (3600, "right")]:
        server.clock.call_at(
            server.now + timedelta(seconds=seconds),
            lambda name=name: client.send_message(QueueUrl=queue.url, MessageBody=name),
        )

    events = server.run_for(timedelta(hours=2))

    kinds = {"sent", "visible", "received", "deleted", "dead_lettered", "expired"}
    assert facts(events, kinds) == sorted(
        [
            (1800, "sent", "poison"),
            (1800, "received", "poison"),
            (1800, "sent", "late"),
            (1800, "received", "late"),
            (2400, "visible", "poison"),
            (2400, "visible", "late"),
            (2400, "received", "poison"),
            (2400, "received", "late"),
            (2400, "deleted", "late"),
            (3000, "visible", "poison"),
            (3000, "received", "poison"),
            (3600, "dead_lettered", "poison"),
            (3600, "sent", "left"),
            (3600, "sent", "right"),
            (3600, "received", "left"),
            (3600, "received", "right"),
            (3600, "deleted", "left"),
            (3600, "deleted", "right"),
        ]
    )
    # Everything happens at multiples of 20 seconds, so each poll ends at one: without a message,
    # unless it got one of the seven.
    ends = Counter(
        (event.at_ms - START_MS) / 1000 for event in events if event.kind == "poll_ended"
    )
    delivered = {1800: 2, 2400: 2, 3000: 1, 3600: 2}
    assert ends == {second: CONSUMERS - delivered.get(second, 0) for second in range(20, 7201, 20)}
    assert server.clock.busy_jumps == 0
    assert server.clock.now_ms == START_MS + 2 * HOUR * 1000
