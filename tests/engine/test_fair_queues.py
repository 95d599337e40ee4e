"""Fair queues: the order in which a standard queue serves its message groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pytest_sqsq.engine import Broker, Queue
from pytest_sqsq.engine.looking import statistics_of
from pytest_sqsq.models import OutgoingMessage, QueueKey, QueueSettings, ReceiveRequest

MINUTE_MS = 60_000


@dataclass
class SettableClock:
    now_ms: int = 1_900_000_000_000


class FairQueue:
    """A standard queue with a long visibility timeout, spoken to in bodies and groups."""

    def __init__(self) -> None:
        self.clock = SettableClock()
        self.broker = Broker(self.clock)
        key = QueueKey("000000000000", "us-east-1", "jobs")
        settings = QueueSettings(visibility_timeout=43_200)
        self.queue: Queue = self.broker.create_queue(key, settings, {})[0]
        self.handles: dict[str, str] = {}

    def send(self, group: str | None, *bodies: str) -> None:
        self.broker.send(
            self.queue, [OutgoingMessage(body, message_group_id=group) for body in bodies]
        )

    def receive(self, count: int = 1) -> list[str]:
        bodies = []
        for _ in range(count):
            for delivery in self.broker.receive(self.queue, ReceiveRequest()):
                self.handles[delivery.body] = delivery.receipt_handle
                bodies.append(delivery.body)
            self.broker.check()
        return bodies

    def delete(self, *bodies: str) -> None:
        self.broker.delete(self.queue, [self.handles[body] for body in bodies])


@pytest.fixture
def jobs() -> Iterator[FairQueue]:
    queue = FairQueue()
    yield queue
    queue.broker.check()


def numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def test_a_group_that_fills_the_queue_lets_a_quiet_one_go_first(jobs: FairQueue) -> None:
    jobs.send("noisy", *numbered("n", 40))
    jobs.receive(30)
    jobs.send("quiet", "q0")
    assert jobs.receive(2) == ["q0", "n30"]


def test_below_thirty_in_flight_no_group_is_noisy(jobs: FairQueue) -> None:
    jobs.send("busy", *numbered("b", 40))
    jobs.receive(29)
    jobs.send("quiet", "q0")
    assert jobs.receive(1) == ["b29"]


def test_a_tenth_of_what_is_in_flight_is_not_yet_noisy(jobs: FairQueue) -> None:
    jobs.send(None, *numbered("other", 270))
    jobs.receive(270)
    jobs.send("busy", *numbered("b", 40))
    jobs.receive(30)
    jobs.send("quiet", "q0")
    assert jobs.queue.in_flight_count == 300
    assert jobs.receive(1) == ["b30"]


def test_more_than_a_tenth_of_what_is_in_flight_is_noisy(jobs: FairQueue) -> None:
    jobs.send(None, *numbered("other", 260))
    jobs.receive(260)
    jobs.send("busy", *numbered("b", 40))
    jobs.receive(30)
    jobs.send("quiet", "q0")
    assert jobs.receive(1) == ["q0"]


def test_among_noisy_groups_the_one_with_fewest_in_flight_goes_first(jobs: FairQueue) -> None:
    jobs.send("more", *numbered("m", 60))
    jobs.receive(50)
    jobs.send("fewer", *numbered("f", 60))
    jobs.receive(30)
    assert jobs.receive(3) == ["f30", "f31", "f32"]
    jobs.delete(*numbered("m", 40))
    assert jobs.receive(1) == ["m50"]


def test_the_mark_goes_when_the_backlog_is_empty(jobs: FairQueue) -> None:
    jobs.send("noisy", *numbered("n", 31))
    jobs.receive(30)
    jobs.send("quiet", "q0")
    assert jobs.receive(2) == ["q0", "n30"]
    jobs.delete(*numbered("n", 31))
    jobs.send("noisy", "again")
    jobs.send("quiet", "q1")
    assert jobs.receive(2) == ["again", "q1"]


def test_the_mark_goes_after_five_minutes_without_a_send(jobs: FairQueue) -> None:
    jobs.send("noisy", *numbered("n", 40))
    jobs.receive(31)
    jobs.clock.now_ms += 5 * MINUTE_MS
    assert jobs.receive(1) == ["n31"]
    jobs.send("quiet", "q0")
    assert jobs.receive(2) == ["n32", "n33"], "forgiven, it is served in order of arrival"


def test_a_mark_goes_after_five_minutes_also_while_quiet_groups_are_waiting(
    jobs: FairQueue,
) -> None:
    jobs.send("noisy", *numbered("n", 40))
    jobs.receive(30)
    jobs.send("quiet", "q0", "q1")
    jobs.clock.now_ms += 5 * MINUTE_MS - 1
    assert jobs.receive(1) == ["q0"]
    jobs.clock.now_ms += 1
    assert jobs.receive(2) == ["n30", "n31"]


def test_a_group_that_sends_on_keeps_its_mark(jobs: FairQueue) -> None:
    jobs.send("noisy", *numbered("n", 40))
    jobs.receive(31)
    jobs.clock.now_ms += 3 * MINUTE_MS
    jobs.send("noisy", "late")
    jobs.clock.now_ms += 3 * MINUTE_MS
    jobs.send("quiet", "q0")
    assert jobs.receive(2) == ["q0", "n31"]
    jobs.clock.now_ms += 2 * MINUTE_MS
    jobs.send("quiet", "q1")
    assert jobs.receive(1) == ["n32"]


def test_a_message_without_group_is_a_quiet_tenant_of_its_own(jobs: FairQueue) -> None:
    jobs.send("noisy", *numbered("n", 40))
    jobs.receive(30)
    jobs.send(None, "alone")
    assert jobs.receive(2) == ["alone", "n30"]


def test_a_queue_without_groups_keeps_the_order_of_arrival(jobs: FairQueue) -> None:
    jobs.send(None, *numbered("m", 50))
    assert jobs.receive(50) == numbered("m", 50)


def test_nothing_is_blocked_when_all_groups_are_noisy(jobs: FairQueue) -> None:
    jobs.send("one", *numbered("a", 50))
    jobs.send("two", *numbered("b", 50))
    assert sorted(jobs.receive(100)) == sorted(numbered("a", 50) + numbered("b", 50))


def test_messages_that_time_out_and_purges_leave_the_counts_right(jobs: FairQueue) -> None:
    jobs.send("noisy", *numbered("n", 40))
    jobs.receive(35)
    jobs.clock.now_ms += 12 * 60 * MINUTE_MS
    jobs.broker.settle(jobs.clock.now_ms)
    jobs.broker.check()
    assert statistics_of(jobs.queue).groups == 1
    jobs.broker.purge(jobs.queue)
    assert statistics_of(jobs.queue).groups == 0
