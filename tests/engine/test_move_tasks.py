from __future__ import annotations

import pytest

from pytest_sqsq.errors import (
    InvalidParameterValue,
    OutcomeUnknown,
    QueueDoesNotExist,
    ServiceUnavailable,
)


class Story:
    """A dead-letter queue with messages of one origin."""

    def __init__(self, world, suffix: str = "", **options) -> None:
        self.world = world
        self.dead = world.queue(f"dead{suffix}")
        self.origin = world.queue(f"origin{suffix}", dead_letters=self.dead, visibility_timeout=1)
        self.other = world.queue(f"other{suffix}")

    def fill(self, *bodies: str) -> None:
        self.world.send(self.origin, *bodies)
        for body in bodies:
            assert self.world.bodies(self.origin, 1, timeout=1) == [body]
            self.world.advance(1)
        assert self.world.live(self.dead) == list(bodies)

    def start(self, destination=None, rate: int | None = None):
        arn = None if destination is None else destination.arn
        return self.world.broker.start_move_task(self.dead, arn, rate)


@pytest.fixture(params=["", ".fifo"], ids=["standard", "fifo"])
def story(request, world):
    return Story(world, request.param)


def test_without_a_rate_all_is_moved_before_the_answer(story, world) -> None:
    story.fill(*"abc")
    task = story.start()
    assert (task.status, task.moved, task.to_move) == ("COMPLETED", 3, 3)
    assert task.failure_reason is None
    assert (world.live(story.dead), world.live(story.origin)) == ([], ["a", "b", "c"])
    assert world.broker.next_event().kind == "expired"
    world.broker.check()


def test_a_destination_may_be_named(story, world) -> None:
    story.fill("a", "b")
    story.start(story.other)
    assert world.live(story.other) == ["a", "b"]
    assert world.live(story.origin) == []


def test_a_moved_message_is_a_new_message_of_the_same_content(story, world) -> None:
    story.fill("a")
    (old,) = world.receive(story.dead, timeout=0)
    world.advance(5)
    story.start()
    (new,) = world.receive(story.origin)
    assert (new.body, new.message_group_id) == (old.body, old.message_group_id)
    assert new.message_id != old.message_id
    assert new.sent_ms == new.first_received_ms == world.clock.now_ms
    assert new.receive_count == 1
    assert new.dead_letter_source_arn is None
    assert world.delete(story.dead, old) == [None]
    assert world.live(story.origin) == ["a"]


def test_a_moved_message_starts_its_retention_anew_and_carries_no_delay(story, world) -> None:
    story.fill("a")
    world.set(story.origin, delay_seconds=100, message_retention_period=60)
    world.advance(1000)
    story.start()
    assert world.counts(story.origin) == (1, 0, 0)
    world.advance(59.999)
    assert world.live(story.origin) == ["a"]
    world.advance(0.001)
    assert world.live(story.origin) == []


def test_the_redrive_policy_of_the_destination_applies_to_what_is_moved(story, world) -> None:
    story.fill("a")
    story.start()
    assert world.bodies(story.origin) == ["a"]
    world.advance(1)
    assert world.live(story.dead) == ["a"]


def test_a_moved_message_is_not_taken_for_a_duplicate(world) -> None:
    story = Story(world, ".fifo")
    world.send(story.origin, "a", deduplication_id="x")
    world.receive(story.origin, timeout=0)
    assert world.live(story.dead) == ["a"]
    story.start()
    assert world.live(story.origin) == ["a"]
    (receipt,) = world.send(story.origin, "b", deduplication_id="x")
    assert receipt.duplicate


def test_a_moved_fifo_message_gets_a_new_sequence_number(world) -> None:
    story = Story(world, ".fifo")
    story.fill("a")
    (before,) = world.send(story.origin, "b", group="other")
    story.start()
    a = next(d for d in world.receive(story.origin, 10) if d.body == "a")
    assert a.sequence_number > before.sequence_number


@pytest.mark.parametrize(
    ("rate", "instants"),
    [
        (1, [1000, 2000, 3000, 4000]),
        (2, [500, 1000, 1500, 2000]),
        (3, [334, 667, 1000, 1334]),
        (7, [143, 286, 429, 572]),
        (300, [4, 7, 10, 14]),
        (500, [2, 4, 6, 8]),
    ],
)
def test_the_kth_message_moves_k_divided_by_rate_after_the_start(
    story, world, rate: int, instants: list[int]
) -> None:
    story.fill(*"abcd")
    start = world.now
    task = story.start(rate=rate)
    assert (task.status, task.moved) == ("RUNNING", 0)
    for moved, at_ms in enumerate(instants):
        world.advance((start * 1000 + at_ms - 1 - world.now * 1000) / 1000)
        assert task.moved == moved
        world.advance(0.001)
        assert task.moved == moved + 1
    assert task.status == "COMPLETED"
    assert [round((e[0] - start) * 1000) for e in world.events(story.origin, "moved")] == instants
    assert world.live(story.origin) == ["a", "b", "c", "d"]
    world.broker.check()


def test_one_jump_over_all_steps_moves_each_at_its_own_instant(story, world) -> None:
    story.fill(*"abc")
    start = world.now
    story.start(rate=2)
    world.clock.now_ms += 60_000
    assert world.live(story.origin) == ["a", "b", "c"]
    assert [e[0] - start for e in world.events(story.origin, "moved")] == [0.5, 1.0, 1.5]


HOURS_36 = 36 * 3600


def test_a_task_has_36_hours(story, world) -> None:
    story.fill(*"abc")
    task = story.start(rate=1)
    start = world.now
    task.to_move, task.moved = 200_000, HOURS_36 - 1  # as if so many had moved already
    world.advance(HOURS_36 - 0.001)
    assert (task.status, world.live(story.origin)) == ("RUNNING", [])
    world.advance(0.001)
    assert (task.status, task.moved, world.live(story.origin)) == ("FAILED", HOURS_36, ["a"])
    assert task.failure_reason == "MaximumDurationExceeded"
    assert world.live(story.dead) == ["b", "c"]
    assert [e[0] - start for e in world.events(story.origin, "moved")] == [HOURS_36]
    assert story.start().status == "COMPLETED"
    assert world.live(story.origin) == ["a", "b", "c"]
    world.broker.check()


def test_a_task_that_is_done_when_its_time_is_up_is_completed(story, world) -> None:
    story.fill("a")
    task = story.start(rate=1)
    task.to_move, task.moved = HOURS_36, HOURS_36 - 1
    world.advance(HOURS_36)
    assert (task.status, task.failure_reason) == ("COMPLETED", None)


def test_a_task_that_the_store_holds_up_ends_when_its_time_is_up(make_world, store) -> None:
    world = make_world(store=store)
    story = Story(world)
    story.fill("a")
    task = story.start(rate=1)
    task.to_move, task.moved = 200_000, HOURS_36 - 2
    store.fails = lambda number: True
    world.advance(HOURS_36 - 0.001)
    assert task.status == "RUNNING"
    world.advance(0.001)
    assert (task.status, task.failure_reason) == ("FAILED", "MaximumDurationExceeded")
    assert (world.live(story.dead), world.live(story.origin)) == (["a"], [])


def test_a_step_moves_the_oldest_message_visible_then(world) -> None:
    story = Story(world)
    story.fill(*"abc")
    (a,) = world.receive(story.dead, timeout=100)
    task = story.start(rate=1)
    assert task.to_move == 2
    world.advance(1)
    assert world.live(story.origin) == ["b"]
    world.change(story.dead, a, 0)
    world.advance(1)
    assert task.status == "COMPLETED"
    assert world.live(story.origin) == ["b", "a"]
    assert world.live(story.dead) == ["c"]


def test_messages_in_flight_are_not_moved(story, world) -> None:
    story.fill("a")
    world.receive(story.dead, timeout=100)
    task = story.start()
    assert (task.status, task.to_move, task.moved) == ("COMPLETED", 0, 0)
    assert world.live(story.dead) == ["a"]


def test_a_task_that_finds_nothing_more_to_move_is_completed(world) -> None:
    story = Story(world)
    story.fill("a", "b")
    task = story.start(rate=1)
    world.advance(1)
    world.broker.purge(story.dead)
    world.advance(1)
    assert (task.status, task.moved, task.to_move) == ("COMPLETED", 1, 2)
    assert world.broker.next_event().kind == "expired"


def test_of_a_blocked_group_only_what_is_deliverable_is_moved(world) -> None:
    story = Story(world, ".fifo")
    for body, group in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        world.send(story.dead, body, group=group)
    world.receive(story.dead, 1, timeout=100)
    task = story.start(story.other)
    assert world.live(story.other) == ["b1"]
    assert world.live(story.dead) == ["a1", "a2"]
    assert task.status == "COMPLETED"


def test_messages_of_several_origins_return_each_to_its_own(world) -> None:
    dead = world.queue("dead")
    origins = [world.queue(name, dead_letters=dead) for name in ("one", "two")]
    for body in "abcd":
        world.send(origins["bd".count(body)], body)
        world.receive(origins["bd".count(body)], timeout=0)
    assert world.live(dead) == ["a", "b", "c", "d"]
    task = world.broker.start_move_task(dead, None, None)
    assert [world.live(origin) for origin in origins] == [["a", "c"], ["b", "d"]]
    assert (task.status, task.moved) == ("COMPLETED", 4)


def test_a_message_without_an_origin_ends_the_task(story, world) -> None:
    story.fill("a")
    world.send(story.dead, "direct")
    world.send(story.dead, "behind")
    task = story.start()
    assert (task.status, task.failure_reason) == ("FAILED", "CouldNotDetermineMessageSource")
    assert task.moved == 1
    assert world.live(story.dead) == ["direct", "behind"]


def test_a_destination_deleted_during_the_run_ends_the_task(story, world) -> None:
    story.fill("a", "b", "c")
    task = story.start(story.other, rate=1)
    world.advance(1)
    world.broker.delete_queue(story.other)
    world.advance(1)
    assert (task.status, task.moved) == ("FAILED", 1)
    assert task.failure_reason == "AWS.SimpleQueueService.NonExistentQueue"
    assert world.live(story.dead) == ["b", "c"]
    world.advance(10)
    assert task.moved == 1
    assert story.start(story.origin).status == "COMPLETED"


def test_an_origin_that_is_gone_ends_the_task(story, world) -> None:
    story.fill("a")
    world.broker.delete_queue(story.origin)
    task = story.start()
    assert task.failure_reason == "AWS.SimpleQueueService.NonExistentQueue"
    assert world.live(story.dead) == ["a"]


def test_only_one_task_runs_for_a_source(story, world) -> None:
    story.fill("a", "b")
    task = story.start(rate=1)
    with pytest.raises(InvalidParameterValue, match="Only one active task is allowed"):
        story.start(story.other)
    assert world.broker.move_tasks(story.dead) == [task]
    world.advance(2)
    assert story.start().status == "COMPLETED"


def test_two_sources_may_each_have_a_task(world) -> None:
    one, other = Story(world), Story(world, ".fifo")
    one.fill("a")
    other.fill("b")
    tasks = [one.start(rate=1), other.start(rate=1)]
    assert world.broker.running_move_tasks() == tasks
    world.advance(1)
    assert [task.status for task in tasks] == ["COMPLETED"] * 2


def test_a_cancelled_task_moves_nothing_more_and_takes_nothing_back(story, world) -> None:
    story.fill(*"abc")
    task = story.start(rate=1)
    world.advance(1)
    world.broker.cancel_move_task(task)
    assert (task.status, task.moved, task.to_move) == ("CANCELLED", 1, 3)
    world.advance(10)
    assert (world.live(story.origin), world.live(story.dead)) == (["a"], ["b", "c"])
    assert world.broker.next_event().kind == "expired"


def test_cancelling_an_ended_task_changes_nothing(make_world, store) -> None:
    world = make_world(store=store)
    story = Story(world)
    story.fill("a")
    task = story.start()
    writes = store.writes
    world.broker.cancel_move_task(task)
    assert (task.status, store.writes) == ("COMPLETED", writes)


def test_a_cancel_settles_the_steps_due_before_it(story, world) -> None:
    story.fill(*"abc")
    task = story.start(rate=1)
    world.clock.now_ms += 2_000
    world.broker.cancel_move_task(task)
    assert (task.status, task.moved) == ("CANCELLED", 2)


def test_tasks_are_listed_newest_first_and_found_by_id(story, world) -> None:
    tasks = [story.start() for _ in range(3)]
    assert world.broker.move_tasks(story.dead) == tasks[::-1]
    assert world.broker.find_move_task(tasks[1].task_id) is tasks[1]
    assert world.broker.find_move_task("unknown") is None
    assert world.broker.move_tasks(story.origin) == []


def test_the_list_keeps_ten_ended_tasks(story, world) -> None:
    tasks = [story.start() for _ in range(25)]
    assert world.broker.move_tasks(story.dead) == tasks[:-11:-1]
    assert world.broker.find_move_task(tasks[0].task_id) is None


def test_a_deleted_source_takes_its_tasks_along(story, world) -> None:
    story.fill("a", "b")
    task = story.start(rate=1)
    world.broker.delete_queue(story.dead)
    assert world.broker.find_move_task(task.task_id) is None
    world.advance(10)
    assert world.live(story.origin) == []
    again = world.queue(story.dead.key.name)
    assert world.broker.move_tasks(again) == []
    with pytest.raises(QueueDoesNotExist):
        world.broker.move_tasks(story.dead)


def test_moved_messages_reach_a_waiting_poll(story, world) -> None:
    story.fill("a", "b")
    poll = world.poll(story.origin)
    story.start(rate=1)
    world.advance(1)
    assert [d.body for d in poll.result()] == ["a"]
    second = world.poll(story.other)
    world.advance(1)
    assert not second.resolved


def test_a_whole_task_serves_polls_of_its_destination(story, world) -> None:
    story.fill("a", "b")
    poll = world.poll(story.other, count=10)
    story.start(story.other)
    assert [d.body for d in poll.result()] == ["a", "b"]


def test_a_step_that_cannot_be_written_loses_nothing(make_world, store) -> None:
    world = make_world(store=store)
    story = Story(world)
    story.fill("a", "b")
    task = story.start(rate=1)
    store.fail_next()
    world.advance(1)
    assert (task.moved, world.live(story.dead), world.live(story.origin)) == (0, ["a", "b"], [])
    world.broker.check()
    world.advance(0.999)
    assert task.moved == 0
    world.advance(0.001)
    assert (task.status, world.live(story.origin)) == ("COMPLETED", ["a", "b"])
    assert world.events(story.origin, "moved")[-1][0] == world.now


def test_a_task_without_a_rate_that_cannot_be_written_says_so_and_can_be_started_anew(
    make_world, store
) -> None:
    world = make_world(store=store)
    story = Story(world)
    story.fill("a", "b")
    # The first write is the task itself, the second its first move.
    store.fails = lambda number, second=store.writes + 3: number == second
    task = story.start()
    assert (task.status, task.moved) == ("FAILED", 1)
    assert (world.live(story.dead), world.live(story.origin)) == (["b"], ["a"])
    assert story.start().status == "COMPLETED"
    assert world.live(story.origin) == ["a", "b"]
    world.broker.check()


def test_a_destination_that_may_not_have_been_made_again_ends_the_task(make_world, store) -> None:
    world = make_world(store=store)
    story = Story(world)
    story.fill("a")
    task = story.start(story.other, rate=1)
    world.broker.delete_queue(story.other)
    store.error = OutcomeUnknown
    store.fail_next()
    with pytest.raises(ServiceUnavailable):
        world.queue("other")
    world.advance(1)
    assert (task.status, task.moved) == ("FAILED", 0)
    assert task.failure_reason == "AWS.SimpleQueueService.NonExistentQueue"
    assert world.live(story.dead) == ["a"]


def test_hundreds_of_messages_are_moved_in_order(story, world) -> None:
    for start in range(0, 350, 10):
        world.send(story.dead, *(str(n) for n in range(start, start + 10)))
    task = story.start(story.other)
    assert (task.moved, task.status) == (350, "COMPLETED")
    assert world.live(story.other) == [str(n) for n in range(350)]
    world.broker.check()
