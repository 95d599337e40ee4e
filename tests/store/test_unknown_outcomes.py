"""Writes that were sent and never answered: memory has not changed, the store perhaps has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from pytest_sqsq.errors import OutcomeUnknown, ServiceUnavailable, SqsError, StoreError
from pytest_sqsq.store.records import PutMessage, Record


class Unanswered:
    """Carries out a write, or does not, and answers or does not; ``plan`` decides each time.

    All else is done by the store before which it stands.
    """

    def __init__(self, store: Any, plan: Callable[[], str] = lambda: "answered") -> None:
        self.store = store
        self.plan = plan

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def reopened(self, contents: Any) -> Unanswered:
        return Unanswered(self.store.reopened(contents))

    def write(self, records: Sequence[Record]) -> None:
        how = self.plan()
        if how == "refused":
            raise StoreError("refused")
        if how != "lost":
            self.store.write(records)
        if how != "answered":
            raise OutcomeUnknown(how)

    def once(self, how: str) -> None:
        """Let the next write end so, and then all be well."""
        ends = iter([how])
        self.plan = lambda: next(ends, "answered")


@pytest.fixture
def world(open_fake, make_world):
    return make_world(Unanswered(open_fake()))


def send(world, queue, held) -> None:
    world.send(queue, "new 1", "new 2", message_deduplication_id=None)


def send_with_id(world, queue, held) -> None:
    world.send(queue, "new", message_deduplication_id="id")


def receive(world, queue, held) -> None:
    world.receive(queue, 1)


def delete(world, queue, held) -> None:
    world.delete(queue, *held)


def change_visibility(world, queue, held) -> None:
    world.broker.change_visibility(queue, [(held[0].receipt_handle, 500)])


def purge(world, queue, held) -> None:
    world.broker.purge(queue)


def change_settings(world, queue, held) -> None:
    world.set(queue, visibility_timeout=77)


def change_tags(world, queue, held) -> None:
    world.broker.change_tags(queue, lambda tags: {"n": "1"})


def delete_queue(world, queue, held) -> None:
    world.broker.delete_queue(queue)


def start_move_task(world, queue, held) -> None:
    world.broker.start_move_task(queue, world.queue("dead").arn, 1)


def create_queue(world, queue, held) -> None:
    world.queue("new")


OPERATIONS = [
    send,
    send_with_id,
    receive,
    delete,
    change_visibility,
    purge,
    change_settings,
    change_tags,
    delete_queue,
    start_move_task,
    create_queue,
]


def busy(world, name: str):
    world.queue("dead")
    queue = world.queue(name, visibility_timeout=60)
    world.send(queue, "a", group="1")
    world.send(queue, "b", group="2", message_deduplication_id="b")
    world.send(queue, "c", "d", group="3")
    world.broker.cancel_move_task(world.broker.start_move_task(world.queue("dead"), queue.arn, 1))
    return queue, world.receive(queue, 2)


@pytest.mark.parametrize("how", ["lost", "unanswered"])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_an_operation_without_an_answer_is_undone_by_the_next_write(
    world, name: str, operation, how: str
) -> None:
    queue, held = busy(world, name)
    before = world.picture()
    world.store.once(how)
    with pytest.raises(ServiceUnavailable):
        operation(world, queue, held)
    assert world.picture() == before
    world.send(queue, "next", group="9")
    world.broker.catch_up()
    after = world.picture()
    assert len(after) == len(before)
    assert world.crashed().picture() == after


@pytest.mark.parametrize("operation", OPERATIONS)
def test_until_then_a_crash_may_leave_it_done(world, operation) -> None:
    """At least once: what a client was not told of may have happened."""
    queue, held = busy(world, "orders")
    before = {m.message_id for m in queue.log.live_messages()}
    removes = {delete, purge, delete_queue}
    world.store.once("unanswered")
    with pytest.raises(ServiceUnavailable):
        operation(world, queue, held)
    world = world.crashed()
    found = world.broker.find_queue(queue.key)
    after = set() if found is None else {m.message_id for m in found.log.live_messages()}
    assert before <= after or operation in removes
    world.broker.check()


def test_a_send_tried_again_with_its_deduplication_id_is_there_once(world) -> None:
    queue = world.queue("orders.fifo")
    world.send(queue, "before")
    for how in ("unanswered", "lost", "unanswered"):
        world.store.once(how)
        with pytest.raises(ServiceUnavailable):
            world.send(queue, "a", message_deduplication_id="1")
    [sent] = world.send(queue, "a", message_deduplication_id="1")
    assert not sent.duplicate
    world = world.crashed()
    queue = world.queue("orders.fifo")
    assert world.bodies(queue) == ["before", "a"]
    [again] = world.send(queue, "a", message_deduplication_id="1")
    assert (again.message_id, again.duplicate) == (sent.message_id, True)


def test_a_message_left_by_an_unanswered_send_is_dropped_when_it_was_sent_anew(
    world, open_fake
) -> None:
    queue = world.queue("orders.fifo")
    [first] = world.send(queue, "a", message_deduplication_id="1")
    key = "ssq:msg:000000000000:us-east-1:orders.fifo"
    text = open_fake.client.hget(key, first.message_id)
    open_fake.client.hset(key, "left-over", text)
    world = world.crashed()
    assert [m.message_id for m in world.queue("orders.fifo").log.live_messages()] == [
        first.message_id
    ]
    world.broker.catch_up()
    assert open_fake.client.hkeys(key) == [first.message_id]


@pytest.mark.parametrize("how", ["lost", "unanswered"])
@pytest.mark.parametrize("first", ["orders", "dead"])
def test_a_dead_letter_move_without_an_answer_is_never_in_neither_queue(
    world, how: str, first: str
) -> None:
    world.queue("dead")
    queue = world.dead_lettering("orders", "dead", visibility_timeout=30)
    world.send(queue, "a")
    world.receive(queue)
    world.store.once(how)
    world.advance(30)
    assert world.counts(queue) == (0, 1, 0)
    # Whichever of the two queues is written next, a crash finds the message.
    for name in (first, "orders" if first == "dead" else "dead"):
        world.send(world.queue(name), "b")
        kept = {queue.key.name: set() for queue in world.broker.queues}
        for record in world.store.load():
            if isinstance(record, PutMessage):
                kept[record.queue.name].add(record.message.body)
        assert "a" in kept["orders"] | kept["dead"]
    assert ("a" in kept["orders"], "a" in kept["dead"]) == (True, False)
    world.advance(1)
    world = world.crashed()
    assert world.bodies(world.queue("orders")) == ["b"]
    assert world.bodies(world.queue("dead")) == ["b", "a"]


@pytest.mark.parametrize("forget", ["purge", "delete_queue"])
def test_a_queue_is_not_emptied_while_it_is_unknown_what_moved_there(world, forget: str) -> None:
    dead = world.queue("dead")
    queue = world.dead_lettering("orders", "dead", visibility_timeout=30)
    world.send(queue, "a")
    world.receive(queue)
    ends = iter(["unanswered"])
    world.store.plan = lambda: next(ends, "refused")
    world.advance(30)
    assert world.bodies(queue) == ["a"]
    with pytest.raises(ServiceUnavailable, match="where some messages are"):
        getattr(world.broker, forget)(dead)
    assert [r.message.body for r in world.store.load() if isinstance(r, PutMessage)] == ["a"]
    world.store.plan = lambda: "answered"
    getattr(world.broker, forget)(dead)
    world.broker.catch_up()
    before = world.picture()
    assert world.crashed().picture() == before


def test_a_queue_that_was_perhaps_made_does_not_return(world) -> None:
    world.queue("other")
    world.store.once("unanswered")
    with pytest.raises(ServiceUnavailable):
        world.queue("orders")
    assert [queue.key.name for queue in world.broker.queues] == ["other"]
    world.broker.catch_up()
    assert world.crashed().loaded == (1, 0)


def test_a_queue_that_was_perhaps_made_can_be_made(world) -> None:
    world.store.once("unanswered")
    with pytest.raises(ServiceUnavailable):
        world.queue("orders", visibility_timeout=1)
    queue = world.queue("orders", visibility_timeout=2)
    world.send(queue, "a")
    world.broker.catch_up()
    world = world.crashed()
    assert world.loaded == (1, 1)
    assert world.queue("orders").settings.visibility_timeout == 2


def test_many_expired_messages_are_taken_out_piece_by_piece(world, open_fake) -> None:
    queue = world.queue(message_retention_period=60)
    for _ in range(500):
        world.send(queue, *"0123456789")
    world.store.plan = lambda: "refused"
    world.advance(60)
    world.store.plan = lambda: "answered"
    world.broker.catch_up()
    assert open_fake.client.keys("ssq:msg:*") == []


def test_an_interrupted_write_is_as_open_as_an_unanswered_one(world) -> None:
    queue = world.queue()
    world.send(queue, "a")
    inner = world.store.store

    class Interrupted:
        keeps, emptied, trouble = True, 0, None

        def write(self, records) -> None:
            inner.write(records)
            raise KeyboardInterrupt

    world.store.store = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        world.send(queue, "b")
    world.store.store = inner
    world.send(queue, "c")
    world = world.crashed()
    assert world.bodies(world.queue()) == ["a", "c"]


class Chaos:
    """Random operations on a store that refuses, loses and answers as it likes.

    ``asked`` are the ids of messages that somebody wanted removed, with whatever answer.
    """

    def __init__(self, world: Any, seed: int) -> None:
        self.random = Random(seed)
        self.world = world
        self.dead = world.queue("dead")
        queue = world.dead_lettering("orders", "dead", 2, visibility_timeout=20)
        fifo = world.queue("orders.fifo", visibility_timeout=20)
        self.queues = [queue, queue, fifo, self.dead]
        self.held: list[tuple[Any, Any]] = []
        self.asked: set[str] = set()

    def operate(self) -> None:
        queue = self.random.choice(self.queues)
        action = self.random.choices(
            [self.send, self.receive, self.delete, self.advance, self.purge],
            weights=[4, 5, 4, 2, 0.3],
        )
        with suppress(SqsError):
            action[0](queue)

    def send(self, queue: Any) -> None:
        self.world.send(queue, "a", "b", group=self.random.choice("xy"))

    def receive(self, queue: Any) -> None:
        self.held += [(queue, delivery) for delivery in self.world.receive(queue, 3)]

    def delete(self, queue: Any) -> None:
        if self.held:
            where, delivery = self.random.choice(self.held)
            self.asked.add(delivery.message_id)
            self.world.delete(where, delivery)

    def advance(self, queue: Any) -> None:
        self.world.advance(self.random.choice([1, 20]))

    def purge(self, queue: Any) -> None:
        self.asked |= {message.message_id for message in queue.log.live_messages()}
        self.world.broker.purge(queue)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_or_returns_whatever_the_answers(open_fake, make_world, seed: int) -> None:
    world = make_world(Unanswered(open_fake()))
    chaos = Chaos(world, seed)
    hows, weights = ["answered", "refused", "lost", "unanswered"], [6, 1, 1, 2]
    world.store.plan = lambda: chaos.random.choices(hows, weights)[0]
    for _ in range(300):
        chaos.operate()
        live = {m.message_id for q in world.broker.queues for m in q.log.live_messages()}
        kept = {r.message.message_id for r in world.store.load() if isinstance(r, PutMessage)}
        assert live - chaos.asked <= kept
    world.store.plan = lambda: "answered"
    world.broker.catch_up()
    world.broker.catch_up()
    after = world.picture()
    assert world.crashed().picture() == after
