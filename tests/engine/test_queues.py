"""The registry of queues: names, tenants, settings, ids, and what a queue tells of itself."""

from __future__ import annotations

import re

import pytest

from pytest_sqsq.engine.looking import statistics_of
from pytest_sqsq.errors import InvalidAttributeValue, QueueDoesNotExist
from pytest_sqsq.models import MessageAttribute, OutgoingMessage, QueueSettings

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def story(world) -> list[object]:
    """Everything that clients see of a short story."""
    queue, fifo = world.queue(), world.queue("orders.fifo")
    seen: list[object] = []
    for number in range(3):
        seen += world.send(queue, f"a{number}", f"b{number}")
        seen += world.send(fifo, f"c{number}")
        seen += world.receive(queue, 2, timeout=number)
        seen += world.receive(fifo, 2)
        world.advance(1)
    return seen


def test_a_seed_repeats_every_id_and_handle(make_world) -> None:
    assert story(make_world(seed=7)) == story(make_world(seed=7))


def test_another_seed_or_none_gives_other_ids(make_world) -> None:
    options = ({"seed": 7}, {"seed": 8}, {}, {})
    ids = [{item.message_id for item in story(make_world(**each))} for each in options]
    assert len(set.union(*ids)) == sum(map(len, ids))


def test_ids_of_one_queue_do_not_depend_on_the_traffic_of_another(make_world) -> None:
    quiet, busy = make_world(seed=1), make_world(seed=1)
    other = busy.queue("other")
    queues = [quiet.queue(), busy.queue()]
    busy.send(other, *"abc")
    assert quiet.send(queues[0], "a", "b") == busy.send(queues[1], "a", "b")


def test_a_queue_made_again_gives_new_ids(make_world) -> None:
    world = make_world(seed=1)
    ids = set()
    for _ in range(3):
        queue = world.queue()
        ids.add(world.send(queue, "a")[0].message_id)
        world.broker.delete_queue(queue)
    assert len(ids) == 3


@pytest.mark.parametrize("seed", [None, 3])
def test_message_ids_are_version_4_uuids(make_world, seed) -> None:
    world = make_world(seed=seed)
    queue = world.queue()
    receipts = world.send(queue, *(str(n) for n in range(50)))
    assert all(UUID4.fullmatch(receipt.message_id) for receipt in receipts)
    assert len({receipt.message_id for receipt in receipts}) == 50


@pytest.mark.parametrize(
    "second", [{"account_id": "111111111111"}, {"region": "eu-west-1"}], ids=["account", "region"]
)
def test_one_name_in_two_worlds_is_two_queues(world, second: dict[str, str]) -> None:
    one, other = world.queue("orders"), world.queue("orders", **second)
    assert one.arn != other.arn
    world.send(one, "mine")
    world.send(other, "theirs")
    (mine,) = world.receive(one, 10)
    assert mine.body == "mine"
    assert world.delete(other, mine)[0] is not None
    assert (world.live(one), world.live(other)) == (["mine"], ["theirs"])
    world.broker.purge(other)
    world.broker.delete_queue(other)
    assert world.live(one) == ["mine"]
    assert world.broker.find_arn(one.arn) is one
    assert world.broker.find_arn(other.arn) is None


def test_queues_are_listed_by_name_within_their_account_and_region(world) -> None:
    for name in ("b", "a", "c"):
        world.queue(name)
    world.queue("x", account_id="111111111111")
    world.queue("y", region="eu-west-1")
    names = [queue.key.name for queue in world.broker.list_queues("000000000000", "us-east-1")]
    assert names == ["a", "b", "c"]
    assert [queue.key.name for queue in world.broker.queues] == ["y", "a", "b", "c", "x"]


def test_creating_a_queue_that_exists_gives_the_one_there_untouched(world) -> None:
    queue = world.queue(visibility_timeout=7)
    again, created = world.broker.create_queue(queue.key, QueueSettings(), {"new": "tag"})
    assert (again, created) == (queue, False)
    assert (queue.settings.visibility_timeout, queue.tags) == (7, {})


def test_a_deleted_queue_is_gone_for_every_operation(world) -> None:
    queue = world.queue()
    world.send(queue, "a")
    (delivery,) = world.receive(queue)
    world.broker.delete_queue(queue)
    assert world.broker.queues == ()
    assert (world.broker.find_queue(queue.key), world.broker.find_arn(queue.arn)) == (None, None)
    for operation in (
        lambda: world.broker.get_queue(queue.key),
        lambda: world.send(queue, "b"),
        lambda: world.receive(queue),
        lambda: world.poll(queue),
        lambda: world.delete(queue, delivery),
        lambda: world.change(queue, delivery, 1),
        lambda: world.broker.purge(queue),
        lambda: world.set(queue, delay_seconds=1),
        lambda: world.broker.change_tags(queue, dict),
        lambda: world.broker.delete_queue(queue),
        lambda: world.broker.start_move_task(queue, None, None),
        lambda: world.counts(queue),
    ):
        with pytest.raises(QueueDoesNotExist):
            operation()


def test_a_queue_made_again_is_empty(world) -> None:
    queue = world.queue()
    world.send(queue, "a")
    world.broker.delete_queue(queue)
    again = world.queue()
    assert again is not queue
    assert world.receive(again) == []


def test_when_a_name_was_deleted_is_remembered_for_a_minute(world) -> None:
    queue = world.queue()
    assert world.broker.deleted_ms(queue.key) is None
    world.advance(5)
    world.broker.delete_queue(queue)
    assert world.broker.deleted_ms(queue.key) == world.clock.now_ms
    world.advance(60)
    other = world.queue("other")
    world.broker.delete_queue(other)
    assert world.broker.deleted_ms(queue.key) is None


def test_changed_settings_replace_the_old_and_note_the_instant(world) -> None:
    queue = world.queue()
    world.advance(5)
    world.set(queue, visibility_timeout=7)
    assert queue.settings.visibility_timeout == 7
    assert (queue.created_ms, queue.last_modified_ms) == (
        world.clock.now_ms - 5_000,
        world.clock.now_ms,
    )


def test_a_change_that_is_refused_changes_nothing(world) -> None:
    queue = world.queue()
    before = world.picture(queue)

    def refuse(settings: QueueSettings) -> QueueSettings:
        raise InvalidAttributeValue.for_attribute("VisibilityTimeout")

    with pytest.raises(InvalidAttributeValue):
        world.broker.change_settings(queue, refuse)
    assert world.picture(queue) == before
    world.send(queue, "a")
    assert world.bodies(queue) == ["a"]


def test_changed_tags_are_no_change_of_the_settings(world) -> None:
    queue = world.queue()
    modified_ms = queue.last_modified_ms
    world.advance(5)
    world.broker.change_tags(queue, lambda tags: {**tags, "team": "blue"})
    assert (queue.tags, queue.last_modified_ms) == ({"team": "blue"}, modified_ms)


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_a_purge_drops_messages_of_every_state_and_nothing_comes_back(world, name: str) -> None:
    queue = world.queue(name)
    world.send(queue, "in flight", group="1")
    (held,) = world.receive(queue, timeout=5)
    world.send(queue, "visible", group="2")
    world.set(queue, delay_seconds=5)
    world.send(queue, "delayed", group="3")
    assert world.counts(queue) == (1, 1, 1)
    world.broker.purge(queue)
    assert world.counts(queue) == (0, 0, 0)
    assert queue.purged_ms == world.clock.now_ms
    assert world.broker.next_due_ms() is None
    assert world.advance(1000) == []
    assert world.receive(queue, 10) == []
    assert world.delete(queue, held) == [None]
    world.broker.check()
    world.set(queue, delay_seconds=0)
    world.send(queue, "new", group="1")
    assert world.bodies(queue) == ["new"]
    world.broker.check()


def test_statistics_tell_gauges_and_totals(world) -> None:
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead, max_receive_count=2, message_retention_period=60)
    world.send(queue, *"abcdef")
    world.send(queue, "g", delay=100)
    deliveries = world.receive(queue, 4, timeout=0)
    world.delete(queue, deliveries[0])
    world.receive(queue, 1, timeout=10)
    world.receive(queue, 1, timeout=50)
    world.poll(world.queue("other"))
    statistics = statistics_of(queue)
    assert (statistics.visible, statistics.in_flight, statistics.delayed) == (3, 2, 1)
    assert (statistics.live_count, statistics.dead_count, statistics.slot_count) == (6, 1, 7)
    assert (statistics.receipt_index_size, statistics.uuid_index_size) == (2, 6)
    assert (statistics.sent, statistics.received, statistics.deleted) == (7, 6, 1)
    assert (statistics.expired, statistics.dead_lettered) == (0, 0)
    assert (statistics.compactions, statistics.groups, statistics.parked_polls) == (0, 0, 0)
    world.advance(10)
    assert statistics_of(queue).dead_lettered == 1
    world.advance(50)
    statistics = statistics_of(queue)
    assert statistics.live_count == 0
    assert (statistics.deleted, statistics.dead_lettered, statistics.expired) == (1, 2, 4)


def test_content_is_delivered_as_it_was_sent(world) -> None:
    queue = world.queue()
    attributes = {
        "text": MessageAttribute("String.kind", "ü"),
        "bytes": MessageAttribute("Binary", b"\x00\xff"),
    }
    world.broker.send(
        queue, [OutgoingMessage("body", attributes=attributes, trace_header="Root=1-2-3")]
    )
    (delivery,) = world.receive(queue)
    assert (delivery.attributes, delivery.trace_header) == (attributes, "Root=1-2-3")


def test_a_delivery_stays_what_it_was_when_the_message_is_gone(world) -> None:
    queue = world.queue()
    world.send(queue, "a")
    (delivery,) = world.receive(queue)
    world.delete(queue, delivery)
    assert (delivery.body, delivery.receive_count) == ("a", 1)


def test_standard_messages_keep_the_order_of_their_sending_when_they_come_back(world) -> None:
    queue = world.queue()
    world.send(queue, *"abcde")
    held = world.receive(queue, 3)
    world.change(queue, held[2], 0)
    world.change(queue, held[0], 0)
    assert world.bodies(queue) == ["a", "c", "d", "e"]


def test_the_first_receive_is_remembered(world) -> None:
    queue = world.queue()
    world.send(queue, "a")
    (first,) = world.receive(queue, timeout=5)
    world.advance(5)
    (second,) = world.receive(queue)
    assert second.first_received_ms == first.first_received_ms == first.sent_ms


def test_the_check_names_a_wrong_count(world) -> None:
    queue = world.queue()
    world.send(queue, "a")
    queue.visible_count += 1
    with pytest.raises(AssertionError, match="visible count is 2, 1 are"):
        world.broker.check()


def test_the_check_notices_a_message_that_nobody_will_show_again(world) -> None:
    queue = world.queue()
    world.send(queue, "a")
    world.receive(queue)
    queue.timeouts.clear()
    with pytest.raises(AssertionError, match="waits for its time and is in no heap"):
        world.broker.check()


def test_the_check_notices_a_queue_that_will_be_woken_too_late(world) -> None:
    queue = world.queue()
    world.send(queue, "a")
    world.receive(queue)
    queue.next_due_ms += 1_000_000_000
    with pytest.raises(AssertionError, match="next_due_ms is"):
        world.broker.check()


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_the_check_notices_a_visible_message_that_no_receive_would_find(world, name: str) -> None:
    queue = world.queue(name)
    world.send(queue, "a")
    queue.order._ready.clear()
    with pytest.raises(AssertionError, match=r"not in the heap|not among the ready"):
        world.broker.check()
