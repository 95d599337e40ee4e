"""Many threads on one broker: nothing is lost, doubled, out of order or stuck."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from threading import Barrier, Lock, Thread

import pytest

from pytest_sqsq.errors import PurgeQueueInProgress, QueueDeletedRecently, QueueDoesNotExist
from pytest_sqsq.models import QueueSettings

THREADS = 8


@pytest.fixture(autouse=True)
def _switching_often():
    """Threads take turns every 20 µs, so that races show in short runs."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(2e-5)
    yield
    sys.setswitchinterval(interval)


def run_together(*functions: Callable[[], object]) -> None:
    """Run each in a thread of its own, begun together; raises what any of them raised."""
    barrier = Barrier(len(functions))
    errors: list[BaseException] = []

    def run(function: Callable[[], object]) -> None:
        try:
            barrier.wait(30)
            function()
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            errors.append(error)

    threads = [Thread(target=run, args=(function,), daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads), "a thread is stuck"


def test_a_queue_deleted_as_its_dead_letters_fall_due_holds_nobody_up(world) -> None:
    dead = world.queue("dead")
    first = world.queue("a", message_retention_period=60)
    queue = world.queue("b", dead_letters=dead, visibility_timeout=60)
    world.send(first, "old")
    world.send(queue, "used up")
    world.receive(queue)

    def delete_queue(event) -> None:
        # Both queues are known to be due by now, and nothing has been done in the second one.
        if event.kind == "expired":
            world.broker.delete_queue(queue)

    world.broker.add_listener(delete_queue)
    run_together(lambda: world.broker.settle(world.clock.now_ms + 60_000))
    assert queue.deleted
    assert all_live(world, dead) == []


def all_live(world, *queues) -> list[str]:
    return sorted(body for queue in queues for body in world.live(queue))


@pytest.mark.parametrize("mode", ["tick", "receive"])
@pytest.mark.parametrize("suffix", ["", ".fifo"])
def test_queues_that_dead_letter_into_each_other_lose_and_double_nothing(
    make_world, mode: str, suffix: str
) -> None:
    world = make_world(dead_letter_on=mode)
    one = world.queue(f"one{suffix}")
    two = world.queue(f"two{suffix}", dead_letters=one)
    three = world.queue(f"three{suffix}", dead_letters=two, max_receive_count=2)
    world.set_dead_letters(one, three)
    queues = (one, two, three)
    deleted: list[str] = []

    def consume(number: int) -> None:
        for step in range(300):
            queue = queues[(number + step) % 3]
            if step % 3 == 0:
                world.send(queue, f"{number}-{step}", group=str(number % 3))
            received = world.receive(queue, 3, timeout=step % 3)
            if received and step % 4 == 0:
                before = queue.removed
                world.delete(queue, received[0])
                deleted.append(received[0].body)
                assert queue.removed >= before
            for delivery in received[1:]:
                world.change(queue, delivery, 0)

    def move_time() -> None:
        for _ in range(300):
            world.clock.now_ms += 250
            world.broker.settle(world.clock.now_ms)
            world.broker.check()

    run_together(*(lambda n=n: consume(n) for n in range(THREADS - 1)), move_time)
    sent = sorted(f"{n}-{step}" for n in range(THREADS - 1) for step in range(0, 300, 3))
    live = all_live(world, *queues)
    assert Counter(live).most_common(1)[0][1] == 1, "a message is in two places"
    removed = sum(queue.removed for queue in queues)
    assert len(live) + removed == len(sent)
    assert set(sent) - set(live) <= set(deleted)
    world.broker.check()


def test_whoever_looks_at_the_dead_letter_queue_first_finds_what_is_due_there(world) -> None:
    last = world.queue("last")
    dead = world.queue("dead", dead_letters=last, visibility_timeout=1)
    queue = world.queue(dead_letters=dead, visibility_timeout=1)
    for round_number in range(40):
        world.send(queue, f"{round_number}")
        world.receive(queue, 10)
        world.clock.now_ms += 1_000
        found: list[list[str]] = []
        looks = [lambda found=found: found.append(world.live(dead))] * 4
        others = [lambda: world.receive(queue), lambda: world.live(queue)] * 2
        run_together(*looks, *others)
        assert found == [[f"{round_number}"]] * 4
        world.receive(dead, 10)
        world.clock.now_ms += 1_000
        assert len(world.live(last)) == round_number + 1


def test_each_message_goes_to_one_receiver_of_a_standard_queue(world) -> None:
    queue = world.queue()
    received: list[str] = []

    def produce(number: int) -> None:
        for step in range(100):
            world.send(queue, f"{number}-{step}")

    def consume() -> None:
        for _ in range(150):
            received.extend(d.body for d in world.receive(queue, 3))

    run_together(*(lambda n=n: produce(n) for n in range(4)), *[consume] * 4)
    while bodies := world.bodies(queue):
        received += bodies
    assert sorted(received) == sorted(f"{n}-{step}" for n in range(4) for step in range(100))
    world.broker.check()


def test_the_messages_of_a_group_reach_competing_receivers_in_order(world) -> None:
    queue = world.queue("orders.fifo")
    seen: dict[str, list[int]] = {"a": [], "b": [], "c": []}

    def produce(group: str) -> None:
        for number in range(200):
            world.send(queue, str(number), group=group)

    def consume() -> None:
        for _ in range(500):
            received = world.receive(queue, 3)
            for delivery in received:
                # Only one receiver has messages of a group at a time, so no lock is needed.
                seen[delivery.message_group_id].append(int(delivery.body))
            assert world.delete(queue, *received) == [None] * len(received)

    run_together(*(lambda g=g: produce(g) for g in "abc"), *[consume] * 5)
    consume()
    assert seen == {group: list(range(200)) for group in "abc"}
    world.broker.check()


def test_parked_polls_of_many_threads_get_each_message_once(world) -> None:
    queue = world.queue()
    received: list[str] = []

    def consume() -> None:
        while True:
            poll = world.poll(queue, count=2)
            assert poll.wait(30)
            bodies = [delivery.body for delivery in poll.result()]
            received.extend(body for body in bodies if body != "stop")
            if "stop" in bodies:
                # It may have been served with a message, or two of them at once.
                world.send(queue, *["stop"] * (bodies.count("stop") - 1))
                return

    def produce(number: int) -> None:
        for step in range(60):
            world.send(queue, f"{number}-{step}")

    def produce_all() -> None:
        run_together(*(lambda n=n: produce(n) for n in range(3)))
        for _ in range(5):
            world.send(queue, "stop")

    run_together(*[consume] * 5, produce_all)
    assert sorted(received) == sorted(f"{n}-{step}" for n in range(3) for step in range(60))
    assert world.broker.parked_polls == 0
    world.broker.check()


def test_a_poll_is_resolved_once_by_whoever_comes_first(world) -> None:
    queue = world.queue()
    served = 0
    for _ in range(100):
        poll = world.poll(queue, seconds=1)
        calls: list[int] = []
        poll.on_resolved = lambda calls=calls: calls.append(1)
        world.clock.now_ms += 1_000
        run_together(
            lambda poll=poll: world.broker.cancel_poll(poll),
            lambda: world.broker.end_polls(world.clock.now_ms),
            lambda: world.send(queue, "a"),
            lambda: world.broker.close_polls(None),
        )
        assert poll.resolved
        assert calls == [1]
        served += len(poll.result())
        rest = world.receive(queue)
        assert len(rest) + len(poll.result()) == 1
        world.delete(queue, *rest, *poll.result())
    assert world.broker.parked_polls == 0


def test_nobody_sees_an_older_now_than_the_queue_has_settled(world) -> None:
    queue = world.queue()
    lock, latest = Lock(), [0]

    def look() -> None:
        for _ in range(400):
            with world.broker.entry(queue) as now_ms:
                with lock:
                    assert now_ms >= latest[0]
                    latest[0] = now_ms
                assert queue.settled_ms == now_ms

    def wobble() -> None:
        for step in range(2000):
            world.clock.now_ms += 3 if step % 3 else -4

    run_together(*[look] * (THREADS - 1), wobble)
    world.broker.check()


def test_the_events_of_each_queue_are_told_in_order_of_their_instants(world) -> None:
    dead = world.queue("dead", visibility_timeout=1)
    queues = [world.queue(f"q{n}", dead_letters=dead, max_receive_count=2) for n in range(3)]
    world.set_dead_letters(dead, queues[0])

    def work(number: int) -> None:
        queue = queues[number % 3]
        for step in range(200):
            world.send(queue, "x", delay=step % 3)
            world.receive(queue, 2, timeout=step % 2)
            world.receive(dead)
            world.clock.now_ms += 100

    run_together(*(lambda n=n: work(n) for n in range(6)), *[world.broker.check] * 2)
    for queue in (dead, *queues):
        instants = [event.at_ms for event in queue.journal.events]
        assert instants == sorted(instants)
    world.broker.check()


def test_of_many_that_create_one_queue_one_has_made_it(world) -> None:
    key = world.queue("pattern").key
    for number in range(50):
        results: list[tuple[object, bool]] = []

        def create(number=number, results=results) -> None:
            name = key._replace(name=f"q{number}")
            results.append(world.broker.create_queue(name, QueueSettings(), {}))

        run_together(*[create] * THREADS)
        assert len({id(queue) for queue, _ in results}) == 1
        assert sum(created for _, created in results) == 1


def test_a_queue_deleted_under_its_users_tells_them_so(world) -> None:
    key = world.queue("warm-up").key._replace(name="orders")
    for _ in range(30):
        queue, _ = world.broker.create_queue(key, QueueSettings(), {})
        poll = world.poll(queue)
        outcomes: list[str] = []

        def use(queue=queue, outcomes=outcomes) -> None:
            try:
                for _ in range(20):
                    world.send(queue, "a")
                    world.receive(queue)
            except QueueDoesNotExist:
                outcomes.append("gone")
            else:
                outcomes.append("done")

        run_together(*[use] * 4, lambda queue=queue: world.broker.delete_queue(queue))
        assert len(outcomes) == 4
        assert poll.resolved
        assert world.broker.find_queue(key) is None


def test_no_message_is_moved_into_a_dead_letter_queue_that_was_deleted(world) -> None:
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead)
    key, made, at_deletion = dead.key, [dead], []

    def consume(number: int) -> None:
        for step in range(100):
            world.send(queue, f"{number}-{step}")
            world.receive(queue, 3, timeout=0)

    def replace() -> None:
        for _ in range(60):
            world.broker.delete_queue(made[-1])
            at_deletion.append(made[-1].log.live_count)
            again, created = world.broker.create_queue(key, QueueSettings(), {})
            assert created
            made.append(again)

    run_together(*(lambda n=n: consume(n) for n in range(5)), replace)
    assert [gone.log.live_count for gone in made[:-1]] == at_deletion
    total = sum(one.log.live_count for one in (*made, queue))
    assert total == 500
    world.broker.check()


def test_move_tasks_and_consumers_share_a_queue_without_loss(world) -> None:
    dead = world.queue("dead")
    origin = world.queue("origin", dead_letters=dead)
    for start in range(0, 300, 10):
        world.send(dead, *(str(n) for n in range(start, start + 10)))
    received: list[str] = []

    def consume(queue) -> None:
        for _ in range(60):
            deliveries = world.receive(queue, 2, timeout=1000)
            received.extend(d.body for d in deliveries)
            world.delete(queue, *deliveries)

    def redrive() -> None:
        world.broker.start_move_task(dead, origin.arn, None)

    def move_time() -> None:
        for _ in range(100):
            world.clock.now_ms += 2
            world.broker.settle(world.clock.now_ms)

    run_together(
        redrive, move_time, *(lambda q=q: consume(q) for q in (dead, origin) for _ in range(3))
    )
    rest = all_live(world, dead, origin)
    assert sorted(received + rest) == sorted(str(n) for n in range(300))
    world.broker.check()


def test_of_purges_made_at_once_a_cooldown_lets_one_through(world) -> None:
    for number in range(30):
        queue = world.queue(f"queue-{number}")
        refusals: list[PurgeQueueInProgress] = []

        def purge(queue=queue, refusals=refusals) -> None:
            try:
                world.broker.purge(queue, cooldown_ms=60_000)
            except PurgeQueueInProgress as error:
                refusals.append(error)

        run_together(*[purge] * THREADS)
        assert len(refusals) == THREADS - 1


def test_a_name_is_not_taken_again_while_its_deletion_is_under_way(world) -> None:
    for number in range(100):
        queue = world.queue(f"queue-{number}")

        def make_again(queue=queue) -> None:
            for _ in range(20):
                try:
                    _, created = world.broker.create_queue(
                        queue.key, queue.settings, {}, cooldown_ms=60_000
                    )
                except QueueDeletedRecently:
                    return
                assert not created

        run_together(lambda queue=queue: world.broker.delete_queue(queue), make_again, make_again)
        assert world.broker.find_queue(queue.key) is None
