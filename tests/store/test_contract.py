"""What holds for every store: in memory, in fakeredis and in a real Redis."""

from __future__ import annotations

from contextlib import contextmanager
from random import Random

import pytest

from pytest_sqsq.engine.looking import why_not_deliverable
from pytest_sqsq.errors import (
    InvalidParameterValue,
    QueueDoesNotExist,
    ReceiptHandleIsInvalid,
    ServiceUnavailable,
)
from pytest_sqsq.models import MessageAttribute, QueueKey, RedriveAllowPolicy
from pytest_sqsq.store.records import PutMessage, PutQueue


@pytest.fixture
def world(open_store, make_world):
    return make_world(open_store())


@pytest.fixture(params=["orders", "orders.fifo"])
def name(request) -> str:
    return request.param


def test_an_empty_store_loads_nothing(world) -> None:
    assert world.loaded == (0, 0)
    assert world.restarted().loaded == (0, 0)


def test_messages_return_in_order_and_whole(world, name: str) -> None:
    queue = world.queue(name)
    attributes = {
        "text": MessageAttribute("String.note", 'ü "quoted" \t\n\U0001f600'),
        "number": MessageAttribute("Number", "1.50"),
        "bytes": MessageAttribute("Binary", b"\x00\xff\n"),
    }
    world.send(queue, "first", attributes=attributes, trace_header="Root=1")
    world.send(queue, *(f"{n} ä\r\n<&>" for n in range(9)))
    before = world.picture()
    world = world.restarted()
    assert world.loaded == (1, 10)
    assert world.picture() == before
    first, *others = world.receive(world.queue(name))
    assert (first.body, first.attributes, first.trace_header) == ("first", attributes, "Root=1")
    assert [delivery.body for delivery in others] == [f"{n} ä\r\n<&>" for n in range(9)]


def test_what_is_sent_after_a_restart_comes_behind(world, name: str) -> None:
    world.send(world.queue(name), "a", "b", "c")
    world.delete(world.queue(name), *world.receive(world.queue(name), 1))
    world = world.restarted().restarted()
    world.send(world.queue(name), "d")
    world = world.restarted()
    assert world.bodies(world.queue(name)) == ["b", "c", "d"]


def test_deleted_and_purged_messages_do_not_return(world, name: str) -> None:
    queue = world.queue(name)
    world.send(queue, "a", "b", "c")
    world.delete(queue, *world.receive(queue, 2))
    world = world.restarted()
    assert world.bodies(world.queue(name)) == ["c"]
    world.broker.purge(world.queue(name))
    world = world.restarted()
    assert world.bodies(world.queue(name)) == []
    assert world.queue(name).purged_ms == world.clock.now_ms


def test_messages_in_flight_return_with_handles_that_work(world, name: str) -> None:
    queue = world.queue(name, visibility_timeout=30)
    world.send(queue, "a", group="1")
    world.send(queue, "b", group="2")
    world.send(queue, "c", group="3")
    first, second, third = world.receive(queue)
    world.broker.change_visibility(queue, [(second.receipt_handle, 500)])
    world = world.restarted(after=10)
    queue = world.queue(name)
    assert world.counts(queue) == (0, 3, 0)
    assert world.delete(queue, first) == [None]
    assert world.broker.change_visibility(queue, [(third.receipt_handle, 0)]) == [None]
    [again] = world.receive(queue)
    assert (again.body, again.receive_count) == ("c", 2)
    assert again.first_received_ms == third.first_received_ms
    world.advance(489)
    assert world.bodies(queue) == ["b", "c"]
    assert world.counts(queue) == (1, 1, 0)
    world.advance(1)
    assert world.counts(queue) == (2, 0, 0)
    assert world.broker.delete(queue, ["garbage"])[0].__class__ is ReceiptHandleIsInvalid


def test_the_twelve_hours_of_a_receive_go_on(world) -> None:
    queue = world.queue()
    world.send(queue, "a")
    [held] = world.receive(queue, timeout=43_000)
    world = world.restarted(after=3_600)
    queue = world.queue()
    [error] = world.broker.change_visibility(queue, [(held.receipt_handle, 43_000)])
    assert isinstance(error, InvalidParameterValue)
    assert world.broker.change_visibility(queue, [(held.receipt_handle, 39_600)]) == [None]


def test_visibility_that_ended_during_the_restart_has_ended(world, name: str) -> None:
    queue = world.queue(name, visibility_timeout=30)
    world.send(queue, "a")
    world.receive(queue)
    world = world.restarted(after=30)
    assert world.counts(world.queue(name)) == (1, 0, 0)
    assert [event.at_ms for event in world.queue(name).journal.events] == [world.clock.now_ms]


def test_delays_go_on(world, name: str) -> None:
    queue = world.queue(name, delay_seconds=60)
    world.send(queue, "a", "b")
    world.advance(20)
    world = world.restarted(after=20)
    queue = world.queue(name)
    assert world.counts(queue) == (0, 0, 2)
    world.advance(19.999)
    assert world.counts(queue) == (0, 0, 2)
    world.advance(0.001)
    assert world.counts(queue) == (2, 0, 0)


def test_a_message_sent_without_delay_gets_none_by_a_restart(world) -> None:
    queue = world.queue("orders.fifo")
    world.send(queue, "a")
    world.set(queue, delay_seconds=300)
    world = world.restarted()
    assert world.counts(world.queue("orders.fifo")) == (1, 0, 0)


def test_retention_counts_from_the_first_sending(world, name: str) -> None:
    queue = world.queue(name, message_retention_period=60)
    world.send(queue, "a")
    world.advance(30)
    world.send(queue, "b")
    world = world.restarted(after=29.999)
    queue = world.queue(name)
    assert world.bodies(queue) == ["a", "b"]
    world.advance(0.001)
    assert world.bodies(queue) == ["b"]
    assert world.restarted(after=30).bodies(queue) == []


def test_settings_tags_and_policies_return(world) -> None:
    dead = world.queue("dead", redrive_allow_policy=RedriveAllowPolicy("byQueue", ("arn:x", "y")))
    queue = world.dead_lettering(
        "orders",
        "dead",
        5,
        tags={"team": "blue", "ключ": ""},
        delay_seconds=1,
        maximum_message_size=2048,
        message_retention_period=61,
        receive_message_wait_time_seconds=20,
        visibility_timeout=0,
        policy='{"Version": "2012-10-17"}',
        kms_master_key_id="key",
        kms_data_key_reuse_period_seconds=60,
        sqs_managed_sse_enabled=False,
    )
    world.advance(5)
    world.broker.change_tags(queue, lambda tags: {**tags, "more": "1"})
    world.set(dead, redrive_allow_policy=RedriveAllowPolicy("byQueue", ("arn:z",)))
    world.queue(
        "x.fifo",
        content_based_deduplication=True,
        deduplication_scope="messageGroup",
        fifo_throughput_limit="perMessageGroupId",
    )
    before = world.picture()
    world = world.restarted(after=100)
    assert world.picture() == before
    assert world.broker.sources_of(world.queue("dead")) == [world.queue("orders")]


def test_text_that_is_no_valid_unicode_returns_as_it_was(world) -> None:
    world.queue("orders", kms_master_key_id="half \ud800")
    world = world.restarted()
    assert world.queue("orders").settings.kms_master_key_id == "half \ud800"


def test_accounts_and_regions_are_kept_apart(world) -> None:
    places = [("000000000000", "us-east-1"), ("111111111111", "us-east-1"), ("0" * 12, "eu-west-1")]
    for number, (account_id, region) in enumerate(places):
        key = QueueKey(account_id, region, "orders")
        queue, _ = world.broker.create_queue(key, world.queue("template").settings, {})
        world.send(queue, str(number))
    world = world.restarted()
    for number, (account_id, region) in enumerate(places):
        queue = world.broker.get_queue(QueueKey(account_id, region, "orders"))
        assert world.bodies(queue) == [str(number)]


def test_deleted_queues_do_not_return_nor_do_their_messages(world, name: str) -> None:
    queue = world.queue(name)
    world.send(queue, "a", message_deduplication_id="1")
    world.broker.delete_queue(queue)
    world = world.restarted()
    with pytest.raises(QueueDoesNotExist):
        world.broker.get_queue(queue.key)
    queue = world.queue(name)
    assert not world.send(queue, "b", message_deduplication_id="1")[0].duplicate
    world = world.restarted()
    assert world.bodies(world.queue(name)) == ["b"]


def test_fifo_groups_stay_blocked_and_in_order(world) -> None:
    queue = world.queue("orders.fifo", visibility_timeout=30)
    for number in range(3):
        for group in "xyz":
            world.send(queue, f"{group}{number}", group=group)
    held = [world.receive(queue, 1)[0] for _ in range(2)]
    assert [delivery.body for delivery in held] == ["x0", "y0"]
    world = world.restarted()
    queue = world.queue("orders.fifo")
    assert [d.body for d in world.receive(queue)] == ["z0", "z1", "z2"]
    assert world.receive(queue) == []
    world.delete(queue, held[0])
    world = world.restarted()
    queue = world.queue("orders.fifo")
    assert [d.body for d in world.receive(queue)] == ["x1", "x2"]
    world.advance(30)
    bodies = [d.body for d in world.receive(queue)]
    assert {group: [b for b in bodies if b[0] == group] for group in "xyz"} == {
        "x": ["x1", "x2"],
        "y": ["y0", "y1", "y2"],
        "z": ["z0", "z1", "z2"],
    }


def test_sequence_numbers_go_on_rising(world) -> None:
    numbers = []
    for _ in range(3):
        queue = world.queue("orders.fifo")
        for _ in range(3):
            numbers += [receipt.sequence_number for receipt in world.send(queue, "a", "b")]
        world.delete(queue, *world.receive(queue))
        world = world.restarted()
    assert numbers == sorted(set(numbers))
    assert all(len(str(number)) == 20 for number in numbers)


@pytest.mark.parametrize("scope", ["queue", "messageGroup"])
def test_deduplication_memory_returns_for_what_is_left_of_its_window(world, scope: str) -> None:
    queue = world.queue("orders.fifo", deduplication_scope=scope)
    [first] = world.send(queue, "a", group="x", message_deduplication_id="1")
    world.delete(queue, *world.receive(queue))
    world.advance(100)
    world = world.restarted(after=199.999)
    queue = world.queue("orders.fifo")
    [again] = world.send(queue, "a", group="x", message_deduplication_id="1")
    assert again == (first.message_id, first.sequence_number, True)
    [other] = world.send(queue, "a", group="y", message_deduplication_id="1")
    assert other.duplicate == (scope == "queue")
    world.advance(0.001)
    assert not world.send(queue, "a", group="x", message_deduplication_id="1")[0].duplicate


def test_an_old_message_stays_whose_deduplication_id_is_used_again(world) -> None:
    queue = world.queue("orders.fifo")
    world.send(queue, "old", message_deduplication_id="1")
    world.advance(300)
    world.send(queue, "new", message_deduplication_id="1")
    world = world.restarted()
    assert world.bodies(world.queue("orders.fifo")) == ["old", "new"]


def test_dead_letter_links_work_at_once(world, name: str) -> None:
    dead = "dead" + name[6:]
    queue = world.dead_lettering(name, dead, visibility_timeout=30)
    world.queue(dead)
    world.send(queue, "a")
    world.receive(queue)
    world = world.restarted(after=30)
    [letter] = world.receive(world.queue(dead))
    assert (letter.body, letter.dead_letter_source_arn) == ("a", queue.arn)
    assert (letter.receive_count, letter.sent_ms) == (2, world.clock.now_ms - 30_000)
    assert world.bodies(world.queue(name)) == []
    world = world.restarted()
    assert world.counts(world.queue(dead)) == (0, 1, 0)


def test_what_fell_due_during_a_restart_happens_in_its_order(world) -> None:
    world.queue("dead", message_retention_period=120)
    queue = world.dead_lettering("orders", "dead", visibility_timeout=30)
    world.send(queue, "a", "b")
    world.receive(queue, 1, timeout=50)
    world.receive(queue, 1, timeout=40)
    world = world.restarted(after=1000)
    events = world.broker.settle(world.clock.now_ms)
    start_ms = world.clock.now_ms - 1_000_000
    assert [(e.at_ms - start_ms, e.kind, e.queue, e.body) for e in events] == [
        (40_000, "dead_lettered", "orders", "b"),
        (40_000, "moved", "dead", "b"),
        (50_000, "dead_lettered", "orders", "a"),
        (50_000, "moved", "dead", "a"),
        (120_000, "expired", "dead", "b"),
        (120_000, "expired", "dead", "a"),
    ]


def test_a_move_task_goes_on_where_it_was(world) -> None:
    world.queue("orders")
    world.dead_lettering("orders", "dead")
    dead = world.queue("dead")
    world.send(dead, *"abcdef")
    task = world.broker.start_move_task(dead, world.queue("orders").arn, 2)
    world.advance(1)
    world = world.restarted(after=0.499)
    found = world.broker.find_move_task(task.task_id)
    assert found is not None
    assert (found.moved, found.to_move, found.status) == (2, 6, "RUNNING")
    assert world.bodies(world.queue("orders")) == ["a", "b"]
    world.advance(0.001)
    assert world.bodies(world.queue("orders")) == ["a", "b", "c"]
    world.advance(10)
    world = world.restarted()
    assert [(t.moved, t.status) for t in world.broker.move_tasks(dead)] == [(6, "COMPLETED")]
    assert world.bodies(world.queue("orders")) == list("abcdef")


def test_ended_and_cancelled_tasks_stay_in_the_list(world) -> None:
    orders, dead = world.queue("orders"), world.queue("dead")
    for number in range(12):
        world.send(dead, str(number))
        task = world.broker.start_move_task(dead, orders.arn, 1)
        world.advance(number % 2)
        world.broker.cancel_move_task(task)
        world.advance(60)
    before = [task.record() for task in world.broker.move_tasks(dead)]
    world = world.restarted()
    after = world.broker.move_tasks(world.queue("dead"))
    assert [task.record() for task in after] == before
    assert len(before) == 10
    world.broker.delete_queue(world.queue("dead"))
    world = world.restarted()
    assert world.broker.find_move_task(before[0].task_id) is None


def test_tasks_of_one_instant_stay_in_the_order_in_which_they_were_started(world) -> None:
    orders, dead = world.queue("orders"), world.queue("dead")
    for number in range(6):
        world.send(dead, str(number))
        world.broker.start_move_task(dead, orders.arn, None)
        if number == 3:
            world.send(dead, "waits")
            world.broker.cancel_move_task(world.broker.start_move_task(dead, orders.arn, 1))
    before = [task.record() for task in world.broker.move_tasks(dead)]
    world = world.restarted()
    assert [task.record() for task in world.broker.move_tasks(dead)] == before


def test_ids_of_a_seed_do_not_repeat_after_a_restart(open_store, make_world) -> None:
    world = make_world(open_store(), seed=7)
    ids = []
    for _ in range(3):
        ids += [receipt.message_id for receipt in world.send(world.queue(), "a", "b")]
        world = world.restarted()
    assert len(set(ids)) == 6


def test_ids_of_a_seed_begin_anew_in_an_erased_store(open_store, make_world) -> None:
    world = make_world(open_store(), seed=7)
    first = world.send(world.queue(), "a")
    world = world.restarted()
    world.store.erase()
    world = make_world(world.store, seed=7)
    assert world.send(world.queue(), "a") == first
    second = world.restarted()
    assert second.send(second.queue(), "b") != first


def test_an_erased_store_is_empty(world) -> None:
    queue = world.queue("orders.fifo")
    world.send(queue, "a", message_deduplication_id="1")
    world.broker.start_move_task(queue, queue.arn, 1)
    world.store.erase()
    assert list(world.store.load()) == []


@contextmanager
def outage(world):
    """While it lasts every change is refused, whatever the store is."""

    def refuse() -> None:
        raise ServiceUnavailable("an outage")

    world.broker.refuse_writes(refuse)
    yield
    world.broker.refuse_writes(None)
    world.broker.catch_up()


def test_an_outage_refuses_changes_and_nothing_else(world, name: str) -> None:
    queue = world.queue(name, visibility_timeout=30, message_retention_period=60)
    world.send(queue, "a", "b")
    [held] = world.receive(queue, 1)
    before = world.picture()
    with outage(world):
        for change in (
            lambda: world.send(queue, "c"),
            lambda: world.receive(queue, 1) if name == "orders" else world.broker.purge(queue),
            lambda: world.delete(queue, held),
            lambda: world.broker.change_visibility(queue, [(held.receipt_handle, 0)]),
            lambda: world.broker.purge(queue),
            lambda: world.set(queue, delay_seconds=1),
            lambda: world.broker.change_tags(queue, lambda tags: {"a": "b"}),
            lambda: world.broker.delete_queue(queue),
            lambda: world.broker.start_move_task(queue, None, 1),
            lambda: world.queue("new"),
        ):
            with pytest.raises(ServiceUnavailable, match="outage"):
                change()
        assert world.picture() == before
        world.advance(60)
        assert world.counts(queue) == (0, 0, 0)
    world.send(queue, "c")
    world = world.restarted()
    assert world.bodies(world.queue(name)) == ["c"]


def test_a_move_refused_by_an_outage_is_made_when_it_is_over(world) -> None:
    dead = world.queue("dead")
    queue = world.dead_lettering("orders", "dead", visibility_timeout=30)
    world.send(queue, "a")
    world.receive(queue)
    with outage(world):
        world.advance(30)
        assert world.counts(queue) == (0, 1, 0)
        with world.broker.entry(queue):
            [message] = queue.log.live_messages()
            why = why_not_deliverable(queue, message)
        assert "its move to the dead-letter queue failed" in why
    assert (world.bodies(queue), world.bodies(dead)) == ([], ["a"])
    world = world.restarted()
    assert world.bodies(world.queue("dead")) == ["a"]


@pytest.mark.parametrize("seed", range(10))
def test_after_any_operations_a_restart_changes_nothing(  # noqa: C901 - a branch for each of them
    open_store, make_world, seed: int
) -> None:
    random = Random(seed)
    world = make_world(open_store(), dead_letter_on=random.choice(["tick", "receive"]))
    names = ["dead", "dead.fifo", "orders", "orders.fifo"]
    held = {name: [] for name in names}

    def operate() -> None:
        name = random.choice(names)
        fifo = name.endswith(".fifo")
        queue = (
            world.queue(name)
            if name[0] == "d"
            else world.dead_lettering(
                name,
                "dead.fifo" if fifo else "dead",
                2,
                visibility_timeout=20,
                message_retention_period=900,
                delay_seconds=random.choice([0, 5]),
            )
        )
        match random.randrange(12):
            case 0 | 1 | 2:
                world.send(
                    queue,
                    *(str(random.random()) for _ in range(random.randint(1, 5))),
                    group=random.choice("abc"),
                )
            case 3:
                world.send(queue, "same", message_deduplication_id=f"{random.randrange(5)}")
            case 4 | 5 | 6:
                held[name] += world.receive(queue, random.randint(1, 5))
            case 7 | 8 if held[name]:
                world.delete(queue, held[name].pop(random.randrange(len(held[name]))))
            case 9 if held[name]:
                handle = random.choice(held[name]).receipt_handle
                world.broker.change_visibility(queue, [(handle, random.choice([0, 5, 100]))])
            case 10:
                world.advance(random.choice([0.5, 5, 20, 300]))
            case 11 if random.random() < 0.3:
                random.choice(
                    [
                        lambda: world.broker.purge(queue),
                        lambda: world.set(queue, delay_seconds=random.choice([0, 10])),
                        lambda: world.broker.change_tags(queue, lambda tags: {"n": str(seed)}),
                        lambda: world.broker.delete_queue(queue),
                    ]
                )()

    for _ in range(6):
        for _ in range(40):
            operate()
        before = world.picture()
        world = world.restarted()
        assert world.picture() == before


def test_a_store_loads_queues_before_their_messages_in_order(open_kept, make_world) -> None:
    world = make_world(open_kept())
    for name in ("b", "a"):
        world.send(world.queue(name), "1", "2", "3")
    records = [r for r in world.store.load() if isinstance(r, PutQueue | PutMessage)]
    assert [r.queue.name for r in records] == ["a"] * 4 + ["b"] * 4
    assert [type(r) for r in records[:4]] == [PutQueue, PutMessage, PutMessage, PutMessage]
    assert [r.message.body for r in records[1:4]] == ["1", "2", "3"]
