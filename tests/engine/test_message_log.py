from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import pytest_sqsq
from pytest_sqsq.engine import Message, MessageLog
from pytest_sqsq.engine.message_log import COMPACTION_STEP_SLOTS, WHOLE_COMPACTION_SLOTS


def message(number: int) -> Message:
    made = Message(f"id-{number}", f"body {number}", number)
    made.arrival = number
    return made


def filled(count: int) -> MessageLog:
    log = MessageLog()
    for number in range(count):
        log.append_message(message(number))
    return log


def bodies(log: MessageLog) -> list[str]:
    return [live.body for live in log.live_messages()]


def test_appending_returns_the_slot_and_indexes_the_message() -> None:
    log = MessageLog()
    assert [log.append_message(message(number)) for number in range(3)] == [0, 1, 2]
    assert log.index_of_uuid("id-1") == 1
    assert log.index_of_uuid("unknown") is None
    assert (log.live_count, log.dead_count, log.slot_count, len(log)) == (3, 0, 3, 3)
    assert log.message_at(2).body == "body 2"
    log.check()


def test_removing_from_the_middle_leaves_a_tombstone_and_moves_nothing() -> None:
    log = filled(5)
    log.mark_in_flight(3, "handle-3")
    log.remove_index(2)
    assert log.dead_count == 1
    assert log.live_count == 4
    assert log.slot_count == 5
    assert [log.is_dead(slot) for slot in range(5)] == [False, False, True, False, False]
    assert [log.index_of_uuid(f"id-{n}") for n in range(5)] == [0, 1, None, 3, 4]
    assert log.index_of_receipt("handle-3") == 3
    assert bodies(log) == ["body 0", "body 1", "body 3", "body 4"]
    log.check()


def test_a_removed_message_drops_body_and_attributes_whoever_still_holds_it() -> None:
    log = filled(2)
    held = log.message_at(0)
    held.attributes = {}
    assert log.remove_index(0) is held
    assert (held.body, held.attributes, held.slot) == ("", None, -1)


def test_the_messages_after_an_arrival_are_found_wherever_tombstones_lie() -> None:
    chances = random.Random(1)
    for _ in range(50):
        log = filled(40)
        for slot in chances.sample(range(40), chances.randrange(41)):
            log.remove_index(slot)
        if chances.random() < 0.3:
            log.compact()
        left = [live.arrival for live in log.live_messages()]
        for arrival in range(-1, 41):
            found = [live.arrival for live in log.live_after(arrival)]
            assert found == [each for each in left if each > arrival]


def test_a_removed_message_leaves_both_indexes() -> None:
    log = filled(2)
    log.mark_in_flight(0, "handle")
    log.remove_index(0)
    assert log.index_of_receipt("handle") is None
    assert log.find_receipt("handle") is None
    assert log.index_of_uuid("id-0") is None
    assert log.find_uuid("id-0") is None
    assert (log.receipt_index_size, log.uuid_index_size) == (0, 1)
    log.check()


@pytest.mark.parametrize("slot", [0, 3, 99])
def test_no_message_can_be_removed_where_there_is_none(slot: int) -> None:
    log = filled(3)
    log.remove_index(0)
    with pytest.raises(IndexError, match=f"slot {slot} holds no message: the log has 3 slots"):
        log.remove_index(slot)
    assert log.dead_count == 1


def test_the_receipt_index_knows_only_the_current_handle() -> None:
    log = filled(1)
    log.mark_in_flight(0, "first")
    log.mark_in_flight(0, "second")
    assert log.index_of_receipt("first") is None
    assert log.index_of_receipt("second") == 0
    assert log.receipt_index_size == 1
    log.clear_in_flight(0)
    assert log.index_of_receipt("second") is None
    assert log.message_at(0).receipt_handle is None
    log.clear_in_flight(0)
    log.check()


def test_messages_in_flight_are_listed_in_arrival_order() -> None:
    log = filled(6)
    for slot in (4, 1, 3):
        log.mark_in_flight(slot, f"handle-{slot}")
    assert log.in_flight_indexes() == [1, 3, 4]
    log.clear_in_flight(3)
    assert log.in_flight_indexes() == [1, 4]


def test_up_to_1024_tombstones_stay_even_when_nothing_else_is_there() -> None:
    log = filled(1024)
    for slot in range(1024):
        log.remove_index(slot)
    assert (log.dead_count, log.live_count, log.slot_count) == (1024, 0, 1024)
    assert not log.compact_if_due()
    assert log.compactions == 0


def test_one_more_than_1024_tombstones_are_swept_once_they_outnumber_the_living() -> None:
    log = filled(1025 + 1024)
    for slot in range(1024):
        log.remove_index(slot)
    assert log.compactions == 0
    log.remove_index(1024)
    assert log.compactions == 1
    assert (log.dead_count, log.live_count, log.slot_count) == (0, 1024, 1024)
    assert log.message_at(0).body == "body 1025"
    log.check()


def test_tombstones_stay_while_the_living_are_as_many() -> None:
    log = filled(3000)
    for slot in range(1500):
        log.remove_index(slot)
    assert (log.dead_count, log.live_count, log.compactions) == (1500, 1500, 0)
    log.remove_index(1500)
    assert (log.dead_count, log.live_count, log.compactions) == (0, 1499, 1)


def test_compaction_keeps_order_and_handles_and_brings_nothing_back() -> None:
    log = filled(4000)
    for slot in range(1, 4000, 2):
        log.mark_in_flight(slot, f"handle-{slot}")
    for slot in range(0, 4000, 2):
        log.remove_index(slot)
    assert log.compactions == 0
    log.remove_index(1)
    assert log.compactions == 1
    assert bodies(log) == [f"body {number}" for number in range(3, 4000, 2)]
    assert [log.index_of_uuid(f"id-{n}") for n in (3, 5, 3999)] == [0, 1, 1998]
    assert [log.index_of_receipt(f"handle-{n}") for n in (3, 5, 3999)] == [0, 1, 1998]
    assert log.index_of_uuid("id-0") is None
    assert log.index_of_receipt("handle-1") is None
    assert log.in_flight_indexes() == list(range(1999))
    log.check()


def test_compacting_by_hand_sweeps_at_any_size() -> None:
    log = filled(4)
    log.remove_index(1)
    log.compact()
    assert (log.dead_count, log.slot_count, log.compactions) == (0, 3, 1)
    assert bodies(log) == ["body 0", "body 2", "body 3"]
    assert log.append_message(message(4)) == 3
    log.check()


def test_a_log_made_from_messages_builds_its_indexes_on_first_use() -> None:
    first, second = message(1), message(2)
    second.receipt_handle = "held"
    log = MessageLog([first, second])
    assert (log.live_count, log.dead_count) == (2, 0)
    assert log.index_of_receipt("held") == 1
    assert log.index_of_uuid("id-1") == 0
    log.check()


@pytest.mark.parametrize(
    "use",
    [
        lambda log: log.mark_in_flight(0, "new"),
        lambda log: log.clear_in_flight(1),
        lambda log: log.remove_index(1),
        lambda log: log.append_message(message(3)),
        lambda log: log.compact(),
        lambda log: log.reset(),
    ],
    ids=["mark", "clear", "remove", "append", "compact", "reset"],
)
def test_a_log_made_from_messages_works_whatever_is_asked_first(use) -> None:
    first, second = message(1), message(2)
    second.receipt_handle = "held"
    log = MessageLog([first, second])
    use(log)
    log.check()
    assert log.uuid_index_size == log.live_count
    log.check()


def test_rebuilding_the_indexes_finds_everything_again() -> None:
    log = filled(3)
    log.mark_in_flight(2, "handle")
    log.remove_index(0)
    log.rebuild_indexes()
    assert (log.index_of_uuid("id-1"), log.index_of_receipt("handle")) == (1, 2)
    log.check()


def test_a_reset_forgets_every_message_and_keeps_the_compaction_count() -> None:
    log = filled(3)
    held = log.message_at(1)
    log.mark_in_flight(1, "handle")
    log.compact()
    log.reset()
    assert (log.live_count, log.dead_count, log.slot_count, log.compactions) == (0, 0, 0, 1)
    assert (held.body, held.receipt_handle, held.slot) == ("", None, -1)
    assert log.first_live() is None
    assert log.append_message(message(9)) == 0
    log.check()


def test_the_oldest_live_message_is_found_behind_the_dead() -> None:
    log = filled(5)
    for slot in (0, 1, 3):
        log.remove_index(slot)
    assert log.first_live() is log.message_at(2)
    log.remove_index(2)
    assert log.first_live() is log.message_at(4)
    log.remove_index(4)
    assert log.first_live() is None
    log.append_message(message(5))
    assert log.first_live() is log.message_at(5)


def removed_until_a_sweep_began(log: MessageLog, slots: list[int]) -> list[int]:
    """Remove slots until a long sweep has begun; returns those still to remove."""
    for position, slot in enumerate(slots):
        log.remove_index(slot)
        if log._sweep_read is not None:
            return slots[position + 1 :]
    raise AssertionError("no sweep began")


@pytest.mark.parametrize("where", ["head", "spread"])
def test_a_long_log_is_swept_in_steps_that_keep_every_invariant(where: str) -> None:
    count = WHOLE_COMPACTION_SLOTS + 20_000
    log = filled(count)
    slots = list(range(count)) if where == "head" else [*list(range(1, count)), 0]
    if where == "spread":
        random.Random(1).shuffle(slots)
    rest = removed_until_a_sweep_began(log, slots)
    log.mark_in_flight(rest[-1], "held")
    held = log.message_at(rest[-1])
    expected = bodies(log)
    steps = 1
    while log.compactions == 0:
        log.check()
        assert log.first_live() is next(log.live_messages())
        assert log.index_of_receipt("held") == held.slot
        if steps == 3:
            log.append_message(message(count))
            expected.append(f"body {count}")
        if steps == 4:
            expected.remove(f"body {log.remove_index(held.slot).arrival}")
            held = log.message_at(log.slot_count - 1)
            log.mark_in_flight(held.slot, "held")
        else:
            assert log.compact_if_due()
        steps += 1
    assert steps >= 3
    assert bodies(log) == expected
    assert log.compactions == 1
    assert log.dead_count <= COMPACTION_STEP_SLOTS
    log.check()


def test_a_long_queue_consumed_from_its_head_gives_its_slots_back() -> None:
    count = WHOLE_COMPACTION_SLOTS + 50_000
    log = filled(count)
    slot_of = log.index_of_uuid
    for number in range(count - 10):
        slot = slot_of(f"id-{number}")
        assert slot is not None
        log.first_live()
        log.remove_index(slot)
    assert log.dead_count <= 1024
    assert bodies(log) == [f"body {number}" for number in range(count - 10, count)]
    log.check()


def test_removing_costs_a_constant_share_of_sweeping() -> None:
    log = filled(WHOLE_COMPACTION_SLOTS)
    for number in range(WHOLE_COMPACTION_SLOTS):
        slot = log.index_of_uuid(f"id-{number}")
        assert slot is not None
        log.remove_index(slot)
    assert log.compactions <= 7, "each sweep must at least halve the log"
    assert log.dead_count <= 1024


def break_dead_count(log: MessageLog) -> None:
    log.dead_count += 1


def break_slot(log: MessageLog) -> None:
    log.message_at(1).slot = 2


def break_cursor(log: MessageLog) -> None:
    log._first = 3


def break_sweep(log: MessageLog) -> None:
    log._sweep_write, log._sweep_read = 0, 2


def break_order(log: MessageLog) -> None:
    log.message_at(1).arrival = 99


def break_uniqueness(log: MessageLog) -> None:
    log.message_at(1).message_id = "id-2"


def break_uuid_index(log: MessageLog) -> None:
    log._by_uuid.pop("id-1")


def break_receipt_index(log: MessageLog) -> None:
    log.message_at(1).receipt_handle = "unknown to the index"


@pytest.mark.parametrize(
    ("break_it", "text"),
    [
        (break_dead_count, "dead_count is 1, 0 slots are dead"),
        (break_slot, "stands at slot 1 and believes to be elsewhere"),
        (break_cursor, "a live message stands before the first-live cursor 3"),
        (break_sweep, "a live message stands between the two positions of the sweep"),
        (break_order, "messages are not in arrival order"),
        (break_uniqueness, "two live messages share a message id"),
        (break_uuid_index, "the uuid index differs from the live messages"),
        (break_receipt_index, "the receipt index differs from the messages in flight"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_the_check_names_the_invariant_that_is_broken(break_it, text: str) -> None:
    log = filled(4)
    log.check()
    break_it(log)
    with pytest.raises(AssertionError, match=re.escape(text)):
        log.check()


def test_nothing_outside_its_module_touches_the_array() -> None:
    sources = Path(pytest_sqsq.__file__).parent.rglob("*.py")
    touching = [
        path.name
        for path in sources
        if path.name != "message_log.py" and re.search(r"\._slots\b", path.read_text("utf-8"))
    ]
    assert touching == []


def test_the_story_of_a_message_deleted_from_the_middle(world) -> None:
    queue = world.queue()
    world.send(queue, "a", "b", "c", "d")
    a, b, c, d = world.receive(queue, 10)
    assert world.delete(queue, b) == [None]
    log = queue.log
    assert (log.dead_count, log.live_count) == (1, 3)
    assert log.is_dead(1)
    assert [log.index_of_receipt(x.receipt_handle) for x in (a, b, c, d)] == [0, None, 2, 3]
    assert [log.index_of_uuid(x.message_id) for x in (a, b, c, d)] == [0, None, 2, 3]
    world.advance(30)
    assert log.in_flight_indexes() == []
    assert world.bodies(queue) == ["a", "c", "d"]
    assert log.in_flight_indexes() == [0, 2, 3]


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_a_queue_keeps_its_order_through_compaction_and_nothing_deleted_returns(
    world, name: str
) -> None:
    queue = world.queue(name)
    for start in range(0, 2100, 10):
        world.send(queue, *(str(number) for number in range(start, start + 10)))
    deleted: list[str] = []
    while queue.log.compactions == 0:
        received = world.receive(queue, 10)
        deleted += [delivery.body for delivery in received]
        world.delete(queue, *received)
        world.broker.check()
    assert len(deleted) == 1060, "1,051 of 2,100 outnumber the rest; batches are of ten"
    assert queue.log.dead_count == 9
    rest = []
    while received := world.receive(queue, 10):
        rest += [delivery.body for delivery in received]
        world.delete(queue, *received)
    assert deleted + rest == [str(number) for number in range(2100)]


def test_maintenance_goes_on_with_a_long_sweep(world) -> None:
    queue = world.queue()
    count = WHOLE_COMPACTION_SLOTS + 10_000
    for start in range(0, count, 1000):
        world.send(queue, *(str(number) for number in range(start, start + 1000)))
    log = queue.log
    with world.broker.entry(queue):
        rest = removed_until_a_sweep_began(log, list(range(count)))
    for _ in range(count // COMPACTION_STEP_SLOTS + 1):
        world.broker.maintain()
        log.check()
    assert log.compactions == 1
    assert log.dead_count == 0
    assert log.live_count == len(rest)
