from __future__ import annotations

import pytest

from pytest_sqsq.models import Event

DAY = 86_400


def kinds(events: list[Event]) -> list[tuple[str, str, str | None]]:
    return [(event.kind, event.queue, event.body) for event in events]


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_a_message_comes_back_at_the_end_of_its_timeout_and_not_a_millisecond_before(
    world, name: str
) -> None:
    queue = world.queue(name, visibility_timeout=30)
    world.send(queue, "a")
    assert world.bodies(queue) == ["a"]
    world.clock.now_ms += 29_999
    assert world.bodies(queue) == []
    assert world.counts(queue) == (0, 1, 0)
    world.clock.now_ms += 1
    assert world.counts(queue) == (1, 0, 0)
    assert world.bodies(queue) == ["a"]


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_a_delayed_message_appears_at_the_end_of_its_delay_and_not_a_millisecond_before(
    world, name: str
) -> None:
    queue = world.queue(name, delay_seconds=30)
    world.send(queue, "a")
    world.clock.now_ms += 29_999
    assert world.counts(queue) == (0, 0, 1)
    assert world.bodies(queue) == []
    world.clock.now_ms += 1
    assert world.counts(queue) == (1, 0, 0)
    assert world.bodies(queue) == ["a"]


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_a_message_expires_with_its_retention_in_whatever_state(world, name: str) -> None:
    queue = world.queue(name, message_retention_period=60, visibility_timeout=DAY)
    world.send(queue, "in flight")
    assert world.bodies(queue) == ["in flight"]
    world.send(queue, "visible", group="other")
    world.set(queue, delay_seconds=900)
    world.send(queue, "delayed", group="third")
    world.clock.now_ms += 59_999
    assert world.counts(queue) == (1, 1, 1)
    world.clock.now_ms += 1
    assert world.counts(queue) == (0, 0, 0)
    assert [e[2] for e in world.events(queue, "expired")] == ["in flight", "visible", "delayed"]
    world.broker.check()


def test_receiving_never_prolongs_retention(world) -> None:
    queue = world.queue(message_retention_period=60, visibility_timeout=10)
    world.send(queue, "a")
    for _ in range(5):
        assert world.bodies(queue) == ["a"]
        world.advance(10)
    assert world.bodies(queue) == ["a"]
    world.advance(10)
    assert world.events(queue, "expired") == [(60.0, "expired", "a")]


def test_every_due_instant_is_visited_in_order(world) -> None:
    queue = world.queue(message_retention_period=100, visibility_timeout=40)
    other = world.queue("other")
    world.send(queue, "received")
    world.receive(queue)
    world.send(queue, "late", delay=70)
    world.send(queue, "early", delay=10)
    world.send(other, "elsewhere", delay=25)
    events = world.advance(100)
    assert [(e.at_ms - world.clock.now_ms, e.kind, e.body) for e in events] == [
        (-90_000, "visible", "early"),
        (-75_000, "visible", "elsewhere"),
        (-60_000, "visible", "received"),
        (-30_000, "visible", "late"),
        (0, "expired", "received"),
        (0, "expired", "late"),
        (0, "expired", "early"),
    ]


def test_one_jump_over_many_instants_gives_each_event_its_own_instant(world) -> None:
    queue = world.queue()
    for seconds in (3, 1, 2):
        world.send(queue, f"after {seconds}", delay=seconds)
    world.clock.now_ms += 10_000
    world.broker.settle(world.clock.now_ms)
    assert world.events(queue, "visible") == [
        (1.0, "visible", "after 1"),
        (2.0, "visible", "after 2"),
        (3.0, "visible", "after 3"),
    ]


def test_at_one_instant_retention_comes_first_then_timeouts_then_delays_then_move_tasks(
    world,
) -> None:
    origin = world.queue("origin")
    dead = world.queue("dead", message_retention_period=60)
    world.set_dead_letters(origin, dead, 9)
    timed = world.queue("a-timed")
    delayed = world.queue("b-delayed")
    moves = world.queue("c-moves")
    moving = world.queue("d-moving", dead_letters=moves, max_receive_count=1)
    expiring = world.queue("z-expiring", message_retention_period=60)
    world.send(dead, "task")
    world.send(delayed, "delayed", delay=60)
    world.send(timed, "timed")
    world.receive(timed, timeout=60)
    world.send(moving, "moving")
    world.receive(moving, timeout=60)
    world.send(expiring, "expiring")
    world.advance(59)
    world.set(dead, message_retention_period=600)
    world.broker.start_move_task(dead, origin.arn, 1)
    assert world.now == 59
    events = world.advance(1)
    assert kinds(events) == [
        ("expired", "z-expiring", "expiring"),
        ("visible", "a-timed", "timed"),
        ("dead_lettered", "d-moving", "moving"),
        ("moved", "c-moves", "moving"),
        ("visible", "b-delayed", "delayed"),
        ("moved", "dead", "task"),
        ("moved", "origin", "task"),
    ]


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_at_one_instant_messages_of_one_kind_go_by_arrival(world, name: str) -> None:
    queue = world.queue(name, delay_seconds=5, message_retention_period=60)
    for body, group in (("a", "1"), ("b", "2"), ("c", "3")):
        world.send(queue, body, group=group)
    assert [e.body for e in world.advance(5)] == ["a", "b", "c"]
    handles = world.receive(queue, 10, timeout=40)
    for delivery, seconds in zip(handles, (30, 20, 25), strict=True):
        world.change(queue, delivery, seconds)
    for delivery in reversed(handles):
        world.change(queue, delivery, 15)
    assert [e.body for e in world.advance(15)] == ["a", "b", "c"]
    assert [e.body for e in world.advance(40)] == ["a", "b", "c"]
    assert queue.expired == 3


def test_a_message_that_expires_as_its_timeout_ends_is_not_seen_again(world) -> None:
    queue = world.queue(message_retention_period=60)
    world.send(queue, "a")
    world.receive(queue, timeout=60)
    poll = world.poll(queue, seconds=20)
    assert kinds(world.advance(60))[-1] == ("expired", "orders", "a")
    assert poll.result() == []


def test_a_used_up_message_that_expires_as_its_timeout_ends_is_not_dead_lettered(world) -> None:
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead, message_retention_period=60)
    world.send(queue, "a")
    world.receive(queue, timeout=60)
    world.advance(60)
    assert (queue.expired, queue.dead_lettered) == (1, 0)
    assert world.live(dead) == []


def test_settled_time_never_falls_even_if_the_clock_does(world) -> None:
    queue = world.queue()
    world.send(queue, "a", delay=10)
    world.advance(10)
    settled = queue.settled_ms
    world.clock.now_ms -= 5_000
    with world.broker.entry(queue) as now_ms:
        assert now_ms == settled
    world.broker.settle(world.clock.now_ms)
    assert queue.settled_ms == settled
    (delivery,) = world.receive(queue, timeout=3)
    assert delivery.first_received_ms == settled
    world.broker.check()


def test_a_move_into_a_queue_that_was_seen_later_is_told_by_each_in_its_own_time(world) -> None:
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead)
    world.clock.now_ms += 10_000
    assert world.live(dead) == []
    world.clock.now_ms -= 5_000
    world.send(queue, "a")
    world.receive(queue, timeout=0)
    world.send(queue, "b")
    assert [event[:2] for event in world.events(queue)] == [
        (5.0, "sent"),
        (5.0, "received"),
        (5.0, "dead_lettered"),
        (5.0, "sent"),
    ]
    assert world.events(dead) == [(10.0, "moved", "a")]
    world.broker.check()


def test_the_check_notices_a_settled_time_that_fell(world) -> None:
    queue = world.queue()
    world.advance(10)
    world.send(queue, "a")
    world.broker.check()
    queue.settled_ms -= 1
    with pytest.raises(AssertionError, match="settled_ms fell"):
        world.broker.check()


def test_nothing_to_come_is_told_as_none(world) -> None:
    queue = world.queue()
    assert world.broker.next_due_ms() is None
    assert world.broker.next_event() is None
    world.send(queue, "a")
    world.delete(queue, *world.receive(queue))
    assert world.broker.next_due_ms() is None
    assert world.broker.next_event() is None


def test_the_next_event_is_told_before_it_happens(world) -> None:
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead, message_retention_period=120)
    world.send(queue, "delayed", delay=5)
    world.send(queue, "received")
    world.receive(queue, timeout=10)
    world.poll(dead, seconds=7)
    told = []
    while (event := world.broker.next_event()) is not None:
        due_ms = world.broker.next_due_ms()
        assert event.at_ms == due_ms
        told.append((event.kind, event.queue, event.body))
        happened = world.advance((due_ms - world.clock.now_ms) / 1000)
        assert told[-1] in kinds(happened)
        if event.kind == "expired" and event.queue == "dead":
            break
    assert told == [
        ("visible", "orders", "delayed"),
        ("poll_ended", "dead", None),
        ("dead_lettered", "orders", "received"),
        ("expired", "orders", "delayed"),
        ("expired", "dead", "received"),
    ]


def test_of_two_queues_the_next_event_is_the_one_that_happens_first(world) -> None:
    first = world.queue("a-delays")
    second = world.queue("b-times-out")
    third = world.queue("c-expires", message_retention_period=60)
    world.send(first, "delayed", delay=60)
    world.send(second, "timed")
    world.receive(second, timeout=60)
    world.send(third, "expiring")
    event = world.broker.next_event()
    assert (event.kind, event.queue) == ("expired", "c-expires")
    assert kinds(world.advance(60))[0] == ("expired", "c-expires", "expiring")


def test_without_early_moves_the_next_event_of_a_used_up_message_is_its_return(make_world) -> None:
    world = make_world(dead_letter_on="receive")
    queue = world.queue(dead_letters=world.queue("dead"))
    world.send(queue, "a")
    world.receive(queue, timeout=10)
    assert world.broker.next_event().kind == "visible"
    assert kinds(world.advance(10)) == [("visible", "orders", "a")]


def test_a_move_task_is_told_as_the_next_event(world) -> None:
    origin = world.queue("origin")
    dead = world.queue("dead")
    world.send(dead, "a", "b")
    task = world.broker.start_move_task(dead, origin.arn, 4)
    event = world.broker.next_event()
    assert (event.kind, event.queue, event.detail["task_id"]) == ("moved", "dead", task.task_id)
    assert event.at_ms == world.clock.now_ms + 250


def test_a_deleted_message_has_no_future(world) -> None:
    queue = world.queue(message_retention_period=60)
    world.send(queue, "a", "b")
    a, b = world.receive(queue, 2, timeout=10)
    assert world.broker.next_due_ms() == world.clock.now_ms + 10_000
    world.delete(queue, a, b)
    assert world.broker.next_due_ms() is None


def test_a_deleted_queue_has_no_future(world) -> None:
    queue = world.queue()
    origin = world.queue("origin")
    world.send(queue, "a", "b", "c")
    world.receive(queue, timeout=10)
    world.poll(origin, seconds=5)
    world.broker.start_move_task(queue, origin.arn, 1)
    world.broker.delete_queue(queue)
    assert world.broker.next_due_ms() == world.clock.now_ms + 5_000
    world.advance(5)
    assert world.broker.next_due_ms() is None
    assert world.broker.next_event() is None


def test_a_fifo_delay_follows_the_present_setting_of_its_queue(world) -> None:
    queue = world.queue("orders.fifo", delay_seconds=60)
    world.send(queue, "a")
    world.advance(10)
    world.send(queue, "b")
    world.set(queue, delay_seconds=20)
    assert world.counts(queue) == (0, 0, 2)
    world.advance(9.999)
    assert world.counts(queue) == (0, 0, 2)
    world.advance(0.001)
    assert world.counts(queue) == (1, 0, 1)
    world.set(queue, delay_seconds=100)
    world.advance(89.999)
    assert world.counts(queue) == (1, 0, 1)
    world.advance(0.001)
    assert world.counts(queue) == (2, 0, 0)


def test_a_fifo_delay_set_to_nothing_shows_all_at_once_and_serves_a_waiting_poll(world) -> None:
    queue = world.queue("orders.fifo", delay_seconds=60)
    world.send(queue, "a", "b")
    poll = world.poll(queue, count=10)
    world.set(queue, delay_seconds=0)
    assert [delivery.body for delivery in poll.result()] == ["a", "b"]


def test_a_standard_delay_stays_what_it_was_at_the_send(world) -> None:
    queue = world.queue(delay_seconds=60)
    world.send(queue, "old")
    world.set(queue, delay_seconds=0)
    world.send(queue, "new")
    world.send(queue, "own", delay=5)
    assert world.bodies(queue) == ["new"]
    world.advance(5)
    assert world.bodies(queue) == ["own"]
    world.advance(54.999)
    assert world.counts(queue)[2] == 1
    world.advance(0.001)
    assert "old" in world.bodies(queue)


def test_a_message_without_delay_on_a_delaying_standard_queue_is_there_at_once(world) -> None:
    queue = world.queue(delay_seconds=60)
    world.send(queue, "now", delay=0)
    assert world.bodies(queue) == ["now"]


def test_an_explicit_delay_of_nothing_does_not_override_a_fifo_queue(world) -> None:
    queue = world.queue("orders.fifo", delay_seconds=60)
    world.send(queue, "a", delay=0)
    assert world.counts(queue) == (0, 0, 1)


def test_a_shortened_retention_deletes_what_is_too_old_at_once(world) -> None:
    queue = world.queue(message_retention_period=1000)
    world.send(queue, "old")
    world.advance(100)
    world.send(queue, "new")
    world.set(queue, message_retention_period=100)
    assert world.live(queue) == ["new"]
    assert world.events(queue, "expired") == [(100.0, "expired", "old")]


def test_a_prolonged_retention_keeps_what_is_there(world) -> None:
    queue = world.queue(message_retention_period=60)
    world.send(queue, "a")
    world.advance(59)
    world.set(queue, message_retention_period=100)
    world.advance(40.999)
    assert world.live(queue) == ["a"]
    world.advance(0.001)
    assert world.live(queue) == []


def test_a_dead_letter_with_an_older_start_expires_before_what_came_earlier(world) -> None:
    dead = world.queue("dead", message_retention_period=100)
    queue = world.queue(dead_letters=dead, visibility_timeout=20)
    world.send(queue, "moved")
    world.receive(queue)
    world.advance(10)
    world.send(dead, "direct")
    world.advance(10)
    assert world.live(dead) == ["direct", "moved"]
    world.advance(80)
    assert world.live(dead) == ["direct"]
    world.advance(10)
    assert world.live(dead) == []
    assert world.events(dead, "expired") == [
        (100.0, "expired", "moved"),
        (110.0, "expired", "direct"),
    ]


def test_a_dead_letter_too_old_for_its_new_queue_expires_as_it_arrives(world) -> None:
    dead = world.queue("dead", message_retention_period=60)
    queue = world.queue(dead_letters=dead, visibility_timeout=70)
    world.send(queue, "a")
    world.receive(queue)
    world.advance(60)
    poll = world.poll(dead, seconds=20)
    world.advance(10)
    assert world.events(dead) == [(70.0, "moved", "a"), (70.0, "expired", "a")]
    assert not poll.answered
    world.broker.check()


def test_looking_at_a_queue_late_shows_what_happened_at_the_right_instants(world) -> None:
    last = world.queue("last")
    dead = world.queue("dead", dead_letters=last, visibility_timeout=10)
    queue = world.queue(dead_letters=dead, visibility_timeout=10)
    world.send(queue, "a")
    world.receive(queue)
    world.clock.now_ms += 10_000
    assert world.bodies(dead) == ["a"]
    world.clock.now_ms += 3_600_000
    assert world.bodies(last) == ["a"]
    assert world.events(last, "moved") == [(20.0, "moved", "a")]


def test_a_look_settles_sources_before_it_answers_even_if_nobody_settles_all(world) -> None:
    dead = world.queue("dead")
    sources = [
        world.queue(f"source-{n}", dead_letters=dead, visibility_timeout=n) for n in (3, 1, 2)
    ]
    for queue in sources:
        world.send(queue, queue.key.name)
        world.receive(queue)
    world.clock.now_ms += 10_000
    assert world.live(dead) == ["source-1", "source-2", "source-3"]
    assert [e[0] for e in world.events(dead, "moved")] == [1.0, 2.0, 3.0]


def test_what_is_moved_arrives_after_what_happened_in_its_new_queue_before(world) -> None:
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead)
    world.send(dead, "received", "delayed")
    world.receive(dead, timeout=2)
    world.send(queue, "moved")
    world.receive(queue, timeout=3)
    poll = world.poll(dead, count=10)
    assert [d.body for d in poll.result()] == ["delayed"]
    poll = world.poll(dead, count=10)
    world.clock.now_ms += 10_000
    assert world.live(queue) == []
    assert [d.body for d in poll.result()] == ["received"]
    assert world.events(dead)[-3:] == [
        (2.0, "visible", "received"),
        (2.0, "received", "received"),
        (3.0, "moved", "moved"),
    ]


def test_time_of_one_queue_does_not_wait_for_another(world) -> None:
    one, other = world.queue("one"), world.queue("other")
    world.send(other, "a", delay=5)
    world.clock.now_ms += 10_000
    world.send(one, "b")
    assert world.events(other, "visible") == []
    assert world.bodies(other) == ["a"]
    assert world.events(other, "visible") == [(5.0, "visible", "a")]


def test_a_message_received_for_no_time_stays_visible_and_counts(world) -> None:
    queue = world.queue()
    world.send(queue, "a")
    assert [world.receive(queue, timeout=0)[0].receive_count for _ in range(3)] == [1, 2, 3]
    assert world.counts(queue) == (1, 0, 0)


def test_a_changed_visibility_counts_from_now_and_only_for_this_receive(world) -> None:
    queue = world.queue(visibility_timeout=30)
    world.send(queue, "a")
    (delivery,) = world.receive(queue)
    world.advance(20)
    assert world.change(queue, delivery, 15) is None
    world.advance(14.999)
    assert world.bodies(queue) == []
    world.advance(0.001)
    assert world.bodies(queue) == ["a"]
    world.advance(29.999)
    assert world.bodies(queue) == []
    world.advance(0.001)
    assert world.bodies(queue) == ["a"]


def test_a_changed_queue_timeout_leaves_messages_in_flight_alone(world) -> None:
    queue = world.queue(visibility_timeout=30)
    world.send(queue, "a")
    world.receive(queue)
    world.set(queue, visibility_timeout=5)
    world.advance(29.999)
    assert world.bodies(queue) == []
    world.advance(0.001)
    assert world.bodies(queue) == ["a"]


def test_a_move_step_happens_at_its_own_instant_though_the_look_comes_late(world) -> None:
    origin = world.queue("origin")
    dead = world.queue("dead")
    bystander = world.queue("bystander")
    world.send(dead, "a", "b")
    world.send(bystander, "late", delay=10)
    world.broker.start_move_task(dead, origin.arn, 1)
    world.clock.now_ms += 10_000
    assert world.bodies(bystander) == ["late"]
    assert world.events(origin, "moved") == [(1.0, "moved", "a"), (2.0, "moved", "b")]
    assert [d.sent_ms - world.clock.now_ms for d in world.receive(origin, 2)] == [-9_000, -8_000]


def test_a_million_idle_messages_add_nothing_to_what_is_due(world) -> None:
    queue = world.queue()
    for start in range(0, 2000, 100):
        world.send(queue, *(str(n) for n in range(start, start + 100)))
    world.send(queue, "due", delay=1)
    looked_at = []
    queue.journal.record, record = (
        lambda *arguments: (looked_at.append(arguments[1]), record(*arguments)),
        queue.journal.record,
    )
    world.advance(1)
    assert looked_at == ["visible"]
