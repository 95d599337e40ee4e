"""Random histories against models of a few lines, every invariant checked after each step.

``HYPOTHESIS_PROFILE=long pytest tests/engine/test_models.py`` searches for much longer.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pytest_sqsq.engine import settling
from pytest_sqsq.engine.invariants import check_queue
from pytest_sqsq.errors import InvalidParameterValue, OverLimit, ReceiptHandleIsInvalid

SECONDS = st.sampled_from([0, 1, 2, 10])
STEPS_MS = st.sampled_from([1, 500, 999, 1000, 2000, 10_000, 61_000])
MANY = st.integers(1, 4)
PICK = st.integers(0, 1000)
DEDUPLICATION_MS = 300_000


class Modelled:
    """A message as a model sees it: visible whenever its instant has come."""

    def __init__(self, message_id: str, now_ms: int, delay: int = 0, group: str = "") -> None:
        self.id, self.group, self.sent_ms = message_id, group, now_ms
        self.visible_ms = now_ms + delay * 1000
        self.handle: str | None = None
        self.count = self.count_here = 0

    def __repr__(self) -> str:
        return f"{self.id[:4]}×{self.count}@{self.visible_ms}"


class Machine(RuleBasedStateMachine):
    """What all machines share: one queue, a list of live messages, all handles ever given."""

    name = "orders"
    in_flight_limit = 120_000

    def __init__(self, make_world: Any) -> None:
        super().__init__()
        self.world = make_world(in_flight_limit=self.in_flight_limit)
        self.queue = self.world.queue(self.name)
        self.live: list[Modelled] = []
        self.handles: list[tuple[str, str]] = []

    @property
    def now_ms(self) -> int:
        return self.world.clock.now_ms

    def settle(self) -> None:
        retention_ms = self.queue.settings.message_retention_period * 1000
        self.live = [m for m in self.live if m.sent_ms + retention_ms > self.now_ms]

    def find(self, message_id: str) -> Modelled | None:
        return next((m for m in self.live if m.id == message_id), None)

    def taken(self, expected: list[Modelled], deliveries: list[Any], timeout: int) -> None:
        assert [d.message_id for d in deliveries] == [m.id for m in expected]
        for message, delivery in zip(expected, deliveries, strict=True):
            message.count += 1
            message.visible_ms = self.now_ms + timeout * 1000
            message.handle = delivery.receipt_handle
            assert delivery.receive_count == message.count
            self.handles.append((message.id, delivery.receipt_handle))

    @rule(milliseconds=STEPS_MS, visiting=st.booleans())
    def advance(self, milliseconds: int, visiting: bool) -> None:
        if visiting:
            self.world.advance(milliseconds / 1000)
        else:
            self.world.clock.now_ms += milliseconds
        self.settle()

    @rule()
    @precondition(lambda self: len(self.live) > 3)
    def purge(self) -> None:
        self.world.broker.purge(self.queue)
        self.live.clear()

    @rule(seconds=st.sampled_from([60, 120, 345_600]))
    def change_retention(self, seconds: int) -> None:
        self.world.set(self.queue, message_retention_period=seconds)
        self.settle()

    def is_delayed(self, message: Modelled) -> bool:
        return not message.count and message.visible_ms > self.now_ms

    @invariant()
    def the_queue_is_as_the_model_says(self) -> None:
        with self.world.broker.entry(self.queue):
            ids = [message.message_id for message in self.queue.log.live_messages()]
        self.world.broker.check()
        assert ids == [message.id for message in self.live]
        hidden = [message for message in self.live if message.visible_ms > self.now_ms]
        delayed = sum(self.is_delayed(message) for message in hidden)
        assert self.world.counts(self.queue) == (
            len(self.live) - len(hidden),
            len(hidden) - delayed,
            delayed,
        )
        due_ms = self.world.broker.next_due_ms()
        assert due_ms is None or due_ms > self.now_ms


class StandardMachine(Machine):
    """A standard queue: the oldest visible messages are delivered; any handle of ours acts."""

    @rule(count=MANY, delay=SECONDS, group=st.sampled_from([None, "a", "b"]))
    def send(self, count: int, delay: int, group: str | None) -> None:
        receipts = self.world.send(self.queue, *"x" * count, delay=delay, group=group)
        self.live += [Modelled(r.message_id, self.now_ms, delay) for r in receipts]

    @rule(count=MANY, timeout=SECONDS)
    def receive(self, count: int, timeout: int) -> None:
        visible = [m for m in self.live if m.visible_ms <= self.now_ms]
        self.taken(visible[:count], self.world.receive(self.queue, count, timeout=timeout), timeout)

    @rule(pick=PICK)
    @precondition(lambda self: self.handles)
    def delete(self, pick: int) -> None:
        message_id, handle = self.handles[pick % len(self.handles)]
        assert self.world.delete(self.queue, handle) == [None]
        self.live = [m for m in self.live if m.id != message_id]

    @rule(pick=PICK, seconds=SECONDS)
    @precondition(lambda self: self.handles)
    def change_visibility(self, pick: int, seconds: int) -> None:
        message_id, handle = self.handles[pick % len(self.handles)]
        error, message = self.world.change(self.queue, handle, seconds), self.find(message_id)
        assert (error is None) == (message is not None)
        if message is not None:
            message.visible_ms = self.now_ms + seconds * 1000


class FullStandardMachine(StandardMachine):
    """A standard queue that is soon full."""

    in_flight_limit = 3

    @rule(count=MANY, timeout=SECONDS)
    def receive(self, count: int, timeout: int) -> None:
        hidden = [m for m in self.live if m.visible_ms > self.now_ms and m.count]
        if len(hidden) >= 3:
            with pytest.raises(OverLimit):
                self.world.receive(self.queue, count)
        else:
            visible = [m for m in self.live if m.visible_ms <= self.now_ms]
            expected = visible[: min(count, 3 - len(hidden))]
            got = self.world.receive(self.queue, count, timeout=timeout)
            self.taken(expected, got, timeout)


class FifoMachine(Machine):
    """A FIFO queue: each group delivers its run of visible messages; served groups go last."""

    name = "orders.fifo"

    def __init__(self, make_world: Any) -> None:
        super().__init__(make_world)
        self.ranks: dict[str, int] = {}
        self.next_rank = 0
        self.accepted: dict[str, tuple[int, str]] = {}

    def settle(self) -> None:
        super().settle()
        delay_ms = self.queue.settings.delay_seconds * 1000
        for message in self.live:
            if not message.handle:
                message.visible_ms = message.sent_ms + delay_ms
                message.handle = "shown" if message.visible_ms <= self.now_ms else None

    def is_delayed(self, message: Modelled) -> bool:
        return not message.handle and message.visible_ms > self.now_ms

    def rank(self, group: str) -> None:
        self.next_rank += 1
        self.ranks[group] = self.next_rank

    @rule(body=st.sampled_from("vwxyz"), group=st.sampled_from("abc"), identified=st.booleans())
    def send(self, body: str, group: str, identified: bool) -> None:
        (receipt,) = self.world.send(
            self.queue, body, group=group, deduplication_id=body if identified else None
        )
        first = self.accepted.get(body)
        duplicate = identified and first and first[0] + DEDUPLICATION_MS > self.now_ms
        assert receipt.duplicate == bool(duplicate)
        if first and duplicate:
            assert receipt.message_id == first[1]
            return
        if identified:
            self.accepted[body] = (self.now_ms, receipt.message_id)
        if all(message.group != group for message in self.live):
            self.rank(group)
        delay = self.queue.settings.delay_seconds
        self.live.append(Modelled(receipt.message_id, self.now_ms, delay, group))
        self.settle()

    @rule(count=MANY, timeout=SECONDS)
    def receive(self, count: int, timeout: int) -> None:
        expected: list[Modelled] = []
        for group in sorted({m.group for m in self.live}, key=lambda name: self.ranks[name]):
            members = [m for m in self.live if m.group == group]
            ready = [m.visible_ms <= self.now_ms for m in members] + [False]
            expected += members[: ready.index(False)]
        del expected[count:]
        for group in dict.fromkeys(message.group for message in expected):
            self.rank(group)
        self.taken(expected, self.world.receive(self.queue, count, timeout=timeout), timeout)

    def is_current(self, message: Modelled, handle: str) -> bool:
        return message.handle == handle and message.visible_ms > self.now_ms

    @rule(pick=PICK)
    @precondition(lambda self: self.handles)
    def delete(self, pick: int) -> None:
        message_id, handle = self.handles[pick % len(self.handles)]
        message = self.find(message_id)
        (error,) = self.world.broker.delete(self.queue, [handle])
        if message is None or self.is_current(message, handle):
            assert error is None
            self.live = [m for m in self.live if m is not message]
        else:
            assert isinstance(error, InvalidParameterValue)

    @rule(pick=PICK, seconds=SECONDS)
    @precondition(lambda self: self.handles)
    def change_visibility(self, pick: int, seconds: int) -> None:
        message_id, handle = self.handles[pick % len(self.handles)]
        message = self.find(message_id)
        (error,) = self.world.broker.change_visibility(self.queue, [(handle, seconds)])
        if message is not None and self.is_current(message, handle):
            assert error is None
            message.visible_ms = self.now_ms + seconds * 1000
        else:
            assert isinstance(error, InvalidParameterValue)

    @rule(seconds=SECONDS)
    def change_delay(self, seconds: int) -> None:
        self.world.set(self.queue, delay_seconds=seconds)
        self.settle()

    @rule()
    @precondition(lambda self: len(self.live) > 3)
    def purge(self) -> None:
        super().purge()
        self.accepted.clear()


class DeadLetterMachine(RuleBasedStateMachine):
    """Two queues; what used up its receives in one moves to the back of the other.

    ``target`` says where the second one's dead letters go: back to the first, to itself, or
    nowhere.
    """

    def __init__(self, make_world: Any, mode: str) -> None:
        super().__init__()
        self.mode = mode
        self.world = make_world(dead_letter_on=mode)
        self.target: dict[str, str | None] = {"a": "b"}
        self.limit = {"a": 2, "b": 1}
        self.live: dict[str, list[Modelled]] = {"a": [], "b": []}
        self.handles: list[tuple[str, str, str]] = []

    @initialize(second=st.sampled_from(["a", "b", None]))
    def create(self, second: str | None) -> None:
        long = {"message_retention_period": 1_209_600}
        self.queues = {name: self.world.queue(name, **long) for name in "ab"}
        self.world.set_dead_letters(self.queues["a"], self.queues["b"], self.limit["a"])
        if second:
            self.world.set_dead_letters(self.queues["b"], self.queues[second], self.limit["b"])
        self.target["b"] = second

    @property
    def now_ms(self) -> int:
        return self.world.clock.now_ms

    def is_used_up(self, name: str, message: Modelled) -> bool:
        return self.target[name] is not None and message.count_here >= self.limit[name]

    def move(self, name: str, message: Modelled) -> None:
        target = self.target[name]
        assert target
        self.live[name].remove(message)
        message.count_here = 0
        self.live[target].append(message)

    def settle(self) -> None:
        if self.mode == "tick":
            due = [
                (message.visible_ms, name, place, message)
                for name in "ab"
                for place, message in enumerate(self.live[name])
                if message.visible_ms <= self.now_ms and self.is_used_up(name, message)
            ]
            for _, name, _, message in sorted(due, key=lambda entry: entry[:3]):
                self.move(name, message)

    @rule(name=st.sampled_from("ab"), count=MANY)
    def send(self, name: str, count: int) -> None:
        receipts = self.world.send(self.queues[name], *"x" * count)
        self.live[name] += [Modelled(r.message_id, self.now_ms) for r in receipts]

    @rule(name=st.sampled_from("ab"), count=MANY, timeout=SECONDS)
    def receive(self, name: str, count: int, timeout: int) -> None:
        got = self.world.receive(self.queues[name], count, timeout=timeout)
        expected: list[Modelled] = []
        while not expected:
            used_up = []
            for message in self.live[name]:
                if len(expected) < count and message.visible_ms <= self.now_ms:
                    full = self.is_used_up(name, message)
                    (used_up if full else expected).append(message)
            for message in expected:
                message.count += 1
                message.count_here += 1
                message.visible_ms = self.now_ms + timeout * 1000
            for message in used_up:
                self.move(name, message)
            if not used_up:
                break
        assert [(d.message_id, d.receive_count) for d in got] == [(m.id, m.count) for m in expected]
        self.handles += [(name, d.message_id, d.receipt_handle) for d in got]
        self.settle()

    @rule(pick=PICK, elsewhere=st.booleans())
    @precondition(lambda self: self.handles)
    def delete(self, pick: int, elsewhere: bool) -> None:
        name, message_id, handle = self.handles[pick % len(self.handles)]
        asked = name if not elsewhere else {"a": "b", "b": "a"}[name]
        (error,) = self.world.broker.delete(self.queues[asked], [handle])
        if elsewhere:
            assert isinstance(error, ReceiptHandleIsInvalid)
        else:
            assert error is None
            self.live[name] = [m for m in self.live[name] if m.id != message_id]

    @rule(pick=PICK, seconds=SECONDS)
    @precondition(lambda self: self.handles)
    def change_visibility(self, pick: int, seconds: int) -> None:
        name, message_id, handle = self.handles[pick % len(self.handles)]
        message = next((m for m in self.live[name] if m.id == message_id), None)
        assert (self.world.change(self.queues[name], handle, seconds) is None) == bool(message)
        if message is not None:
            message.visible_ms = self.now_ms + seconds * 1000
            self.settle()

    @rule(milliseconds=STEPS_MS)
    def advance(self, milliseconds: int) -> None:
        self.world.clock.now_ms += milliseconds
        self.settle()

    @invariant()
    def every_message_is_where_the_model_says(self) -> None:
        for name, queue in getattr(self, "queues", {}).items():
            with self.world.broker.entry(queue):
                found = [(m.message_id, m.receives_here) for m in queue.log.live_messages()]
            assert found == [(m.id, m.count_here) for m in self.live[name]], name
            hidden = sum(m.visible_ms > self.now_ms for m in self.live[name])
            assert self.world.counts(queue) == (len(found) - hidden, hidden, 0)
        self.world.broker.check()


@pytest.fixture
def make_interrupted_world(make_world, monkeypatch) -> Any:
    """Worlds in which everybody looks in after each single thing that happens by itself."""
    monkeypatch.setattr(settling, "PIECE", 1)

    def make(**options: Any) -> Any:
        looking = False

        def look() -> None:
            nonlocal looking
            if not looking:
                looking = True
                for queue in world.broker.queues:
                    with world.broker.entry(queue):
                        check_queue(queue)
                looking = False

        world = make_world(give_way=look, **options)
        return world

    return make


@pytest.mark.parametrize("machine", [StandardMachine, FullStandardMachine, FifoMachine])
def test_a_queue_behaves_as_its_model(make_world, machine_settings, machine) -> None:
    run_state_machine_as_test(lambda: machine(make_world), settings=machine_settings)


@pytest.mark.parametrize("mode", ["tick", "receive"])
def test_dead_letters_behave_as_their_model(make_world, machine_settings, mode: str) -> None:
    run_state_machine_as_test(
        lambda: DeadLetterMachine(make_world, mode), settings=machine_settings
    )


@pytest.mark.parametrize("machine", [StandardMachine, FifoMachine])
def test_a_queue_looked_at_between_all_that_is_due_behaves_as_its_model(
    make_interrupted_world, machine_settings, machine
) -> None:
    run_state_machine_as_test(lambda: machine(make_interrupted_world), settings=machine_settings)


@pytest.mark.parametrize("mode", ["tick", "receive"])
def test_dead_letters_looked_at_between_their_moves_behave_as_their_model(
    make_interrupted_world, machine_settings, mode: str
) -> None:
    run_state_machine_as_test(
        lambda: DeadLetterMachine(make_interrupted_world, mode), settings=machine_settings
    )
