from __future__ import annotations

import pytest

from pytest_sqsq.engine.looking import why_not_deliverable
from pytest_sqsq.errors import QueueDoesNotExist, ServiceUnavailable
from pytest_sqsq.models import OutgoingMessage, QueueKey, QueueSettings, ReceiveRequest
from pytest_sqsq.store.records import PutMessage, RemoveMessage


def send(world, queue, deliveries) -> None:
    world.send(queue, "new 1", "new 2", deduplication_id=None)


def send_deduplicated(world, queue, deliveries) -> None:
    group = "x" if queue.settings.fifo else None
    world.broker.send(
        queue,
        [
            OutgoingMessage("one", message_group_id=group, message_deduplication_id="1"),
            OutgoingMessage("two", message_group_id=group, message_deduplication_id="2"),
        ],
    )


def receive(world, queue, deliveries) -> None:
    world.receive(queue, 10)


def receive_one(world, queue, deliveries) -> None:
    world.receive(queue, 1)


def poll(world, queue, deliveries) -> None:
    world.poll(queue, count=10)


def delete(world, queue, deliveries) -> None:
    world.delete(queue, *deliveries)


def change_visibility(world, queue, deliveries) -> None:
    world.broker.change_visibility(queue, [(d.receipt_handle, 77) for d in deliveries])


def show_at_once(world, queue, deliveries) -> None:
    world.broker.change_visibility(queue, [(d.receipt_handle, 0) for d in deliveries])


def purge(world, queue, deliveries) -> None:
    world.broker.purge(queue)


def change_settings(world, queue, deliveries) -> None:
    world.set(queue, visibility_timeout=99, message_retention_period=60)


def attach_policy(world, queue, deliveries) -> None:
    world.set_dead_letters(queue, "arn:aws:sqs:us-east-1:000000000000:dead")


def change_tags(world, queue, deliveries) -> None:
    world.broker.change_tags(queue, lambda tags: {**tags, "team": "blue"})


def delete_queue(world, queue, deliveries) -> None:
    world.broker.delete_queue(queue)


def start_move_task(world, queue, deliveries) -> None:
    world.broker.start_move_task(queue, None, 1)


OPERATIONS = [
    send,
    send_deduplicated,
    receive,
    receive_one,
    poll,
    delete,
    change_visibility,
    show_at_once,
    purge,
    change_settings,
    attach_policy,
    change_tags,
    delete_queue,
    start_move_task,
]


def busy_queue(world, name: str):
    queue = world.queue(name, visibility_timeout=60)
    world.send(queue, "a", "b", "c", group="1")
    world.send(queue, "d", "e", group="2")
    world.send(queue, "f", group="3", deduplication_id="f")
    if not queue.settings.fifo:
        world.send(queue, "g", delay=30)
    world.advance(1)
    return queue, world.receive(queue, 2, timeout=300)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_an_operation_whose_write_fails_has_changed_nothing_and_works_afterwards(
    stored, store, name: str, operation
) -> None:
    queue, deliveries = busy_queue(stored, name)
    before, broker = stored.picture(queue), stored.broker
    due_ms, polls, sources = broker.next_due_ms(), broker.parked_polls, broker.sources_of(queue)
    store.fail_next()
    with pytest.raises(ServiceUnavailable, match="was refused"):
        operation(stored, queue, deliveries)
    assert stored.picture(queue) == before
    assert (broker.next_due_ms(), broker.parked_polls) == (due_ms, polls)
    assert broker.sources_of(queue) == sources
    assert broker.move_tasks(queue) == []
    assert broker.find_queue(queue.key) is queue
    broker.check()
    operation(stored, queue, deliveries)
    broker.check()
    if operation is start_move_task:
        assert len(broker.move_tasks(queue)) == 1
    elif operation is delete_queue:
        assert broker.find_queue(queue.key) is None
    else:
        assert stored.picture(queue) != before


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_a_queue_whose_first_write_fails_was_never_there(stored, store, name: str) -> None:
    store.fail_next()
    with pytest.raises(ServiceUnavailable):
        stored.queue(name)
    key = QueueKey("000000000000", "us-east-1", name)
    assert stored.broker.find_queue(key) is None
    assert stored.broker.queues == ()
    with pytest.raises(QueueDoesNotExist):
        stored.broker.get_queue(key)
    queue, created = stored.broker.create_queue(key, QueueSettings(fifo="fifo" in name), {})
    assert created
    stored.send(queue, "a")
    assert stored.bodies(queue) == ["a"]


def test_a_queue_that_exists_is_answered_without_a_write(stored, store) -> None:
    queue = stored.queue()
    store.fails = lambda number: True
    assert stored.broker.create_queue(queue.key, QueueSettings(), {}) == (queue, False)


def test_what_needs_no_write_goes_on_while_the_store_is_down(stored, store) -> None:
    queue = stored.queue(visibility_timeout=10, message_retention_period=60)
    stored.send(queue, "a")
    stored.receive(queue)
    store.fails = lambda number: True
    assert stored.receive(queue) == []
    assert stored.delete(queue, "nonsense")[0] is not None
    stored.advance(10)
    assert stored.counts(queue) == (1, 0, 0)
    stored.advance(50)
    assert stored.live(queue) == []
    assert not stored.poll(queue).answered


def test_a_batch_is_written_as_a_whole_or_not_at_all(stored, store) -> None:
    queue = stored.queue("orders.fifo")
    stored.send(queue, *"abc")
    writes = store.writes
    stored.delete(queue, *stored.receive(queue, 10))
    assert store.writes == writes + 2
    assert [type(record).__name__ for record in store.written[-3:]] == ["RemoveMessage"] * 3


def test_message_ids_and_sequence_numbers_go_on_after_a_failed_send(make_world, store) -> None:
    world = make_world(store=store, seed=1)
    queue = world.queue("orders.fifo")
    (first,) = world.send(queue, "a")
    store.fail_next()
    with pytest.raises(ServiceUnavailable):
        world.send(queue, "lost")
    (second,) = world.send(queue, "b")
    assert second.sequence_number > first.sequence_number
    assert second.message_id != first.message_id
    assert world.live(queue) == ["a", "b"]


def test_a_deduplication_id_of_a_failed_send_is_free(stored, store) -> None:
    queue = stored.queue("orders.fifo")
    store.fail_next()
    with pytest.raises(ServiceUnavailable):
        stored.send(queue, "a", deduplication_id="1")
    (receipt,) = stored.send(queue, "b", deduplication_id="1")
    assert not receipt.duplicate
    assert stored.live(queue) == ["b"]


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_a_failed_receive_takes_nothing_from_anybody(stored, store, name: str) -> None:
    queue = stored.queue(name)
    stored.send(queue, "a", "b", group="1")
    stored.send(queue, "c", group="2")
    store.fail_next(3)
    for count in (1, 3, 10):
        with pytest.raises(ServiceUnavailable):
            stored.receive(queue, count)
        assert queue.order.has_ready
        stored.broker.check()
    deliveries = stored.receive(queue, 10)
    assert [(d.body, d.receive_count) for d in deliveries] == [("a", 1), ("b", 1), ("c", 1)]


def test_a_replayed_attempt_whose_write_fails_can_be_replayed_again(stored, store) -> None:
    queue = stored.queue("orders.fifo", visibility_timeout=30)
    stored.send(queue, "a")
    (first,) = stored.receive(queue, attempt="x")
    before = stored.picture(queue)
    store.fail_next()
    with pytest.raises(ServiceUnavailable):
        stored.receive(queue, attempt="x")
    assert stored.picture(queue) == before
    assert stored.receive(queue, attempt="x") == [first]


def test_a_used_up_message_stays_put_when_the_receive_that_finds_it_fails(
    make_world, store
) -> None:
    world = make_world(store=store, dead_letter_on="receive")
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead)
    world.send(queue, "used up", "fresh")
    world.receive(queue, timeout=0)
    before = world.picture(queue)
    store.fail_next()
    with pytest.raises(ServiceUnavailable):
        world.receive(queue, 10)
    assert world.picture(queue) == before
    assert world.bodies(queue) == ["fresh"]
    assert world.live(dead) == ["used up"]


def test_a_parked_poll_that_cannot_be_served_is_told_so_and_the_message_stays(
    stored, store
) -> None:
    queue = stored.queue()
    poll = stored.poll(queue)
    stored.send(queue, "a", delay=5)
    store.fail_next()
    stored.advance(5)
    with pytest.raises(ServiceUnavailable):
        poll.result()
    assert stored.counts(queue) == (1, 0, 0)
    assert stored.bodies(queue) == ["a"]
    stored.broker.check()


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
@pytest.mark.parametrize("mode", ["tick", "receive"])
def test_a_dead_letter_move_that_fails_is_tried_again_a_second_later(
    make_world, store, name: str, mode: str
) -> None:
    world = make_world(store=store, dead_letter_on=mode)
    dead = world.queue("dead" + name.removeprefix("orders"))
    queue = world.queue(name, dead_letters=dead)
    world.send(queue, "a")
    world.receive(queue, timeout=30)
    store.fail_next(2)
    world.advance(30)
    if mode == "receive":
        assert world.receive(queue) == []
    assert (world.counts(queue), world.live(dead)) == ((0, 1, 0), [])
    with world.broker.entry(queue):
        (message,) = queue.log.live_messages()
        assert why_not_deliverable(queue, message) == (
            "its move to the dead-letter queue failed; it waits until 2030-01-01T00:00:31.000Z"
            " to try again"
        )
    assert world.broker.next_event().kind == "dead_lettered"
    world.broker.check()
    world.advance(1)
    assert world.live(dead) == []
    assert world.receive(queue) == []
    world.advance(0.999)
    assert world.live(dead) == []
    world.advance(0.001)
    assert (world.live(queue), world.live(dead)) == ([], ["a"])
    assert world.events(dead, "moved") == [(32.0, "moved", "a")]
    assert store.written[-2:] == [
        PutMessage(dead.key, next(dead.log.live_messages()).record()),
        RemoveMessage(queue.key, message.message_id),
    ]
    world.broker.check()


def test_a_message_whose_move_failed_can_still_be_deleted(stored, store) -> None:
    dead = stored.queue("dead")
    queue = stored.queue(dead_letters=dead)
    stored.send(queue, "a")
    (delivery,) = stored.receive(queue, timeout=30)
    store.fail_next()
    stored.advance(30)
    assert stored.delete(queue, delivery) == [None]
    stored.advance(10)
    assert (stored.live(queue), stored.live(dead)) == ([], [])


def test_what_is_written_for_a_message_is_what_holds_afterwards(stored, store) -> None:
    dead = stored.queue("dead.fifo")
    queue = stored.queue("orders.fifo", dead_letters=dead, visibility_timeout=30)
    stored.send(queue, *"abcd")
    a, b, _c = stored.receive(queue, 3)
    stored.change(queue, b, 90)
    stored.delete(queue, a)
    stored.advance(30)
    stored.receive(queue)
    kept: dict[str, object] = {}
    for record in store.written:
        if isinstance(record, PutMessage):
            kept[record.queue.name, record.message.message_id] = record.message
        elif isinstance(record, RemoveMessage):
            del kept[record.queue.name, record.message_id]
    live = {
        (owner.key.name, message.message_id): message.record()
        for owner in (queue, dead)
        for message in owner.log.live_messages()
    }
    assert [message.body for message in dead.log.live_messages()] == ["c"]
    assert kept == live


@pytest.mark.parametrize("number", range(1, 14))
def test_whichever_write_fails_no_message_is_lost_or_doubled(make_world, store, number) -> None:
    world = make_world(store=store)
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead, max_receive_count=2, visibility_timeout=10)
    first = store.writes + number
    store.fails = lambda write: write == first
    accepted, deleted = set(), set()
    for step in range(6):
        try:
            world.send(queue, f"{step}")
            accepted.add(f"{step}")
        except ServiceUnavailable:
            pass
        try:
            deliveries = world.broker.receive(queue, ReceiveRequest(2))
            if step % 2 and deliveries:
                world.delete(queue, deliveries[0])
                deleted.add(deliveries[0].body)
        except ServiceUnavailable:
            pass
        world.advance(4)
        world.broker.check()
    remaining = world.live(queue) + world.live(dead)
    assert sorted(remaining) == sorted(accepted - deleted)
    assert len(accepted) >= 5
