from __future__ import annotations

from random import Random

import pytest

from pytest_sqsq.engine.looking import statistics_of, why_not_deliverable


@pytest.fixture(params=["tick", "receive"])
def either(request, make_world):
    """A world of either mode."""
    return make_world(dead_letter_on=request.param)


@pytest.fixture
def lazy(make_world):
    """A world that moves at the next receive, as AWS does."""
    return make_world(dead_letter_on="receive")


def use_up(world, queue, times: int = 1) -> None:
    for _ in range(times):
        assert world.receive(queue)
        world.advance(queue.settings.visibility_timeout)


def test_a_message_moves_as_its_last_timeout_ends(world) -> None:
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead, max_receive_count=2, visibility_timeout=30)
    world.send(queue, "a")
    use_up(world, queue)
    assert world.bodies(queue) == ["a"]
    world.advance(29.999)
    assert (world.counts(queue), world.live(dead)) == ((0, 1, 0), [])
    world.advance(0.001)
    assert (world.counts(queue), world.live(dead)) == ((0, 0, 0), ["a"])
    assert world.events(queue, "dead_lettered") == [(60.0, "dead_lettered", "a")]
    assert statistics_of(queue).dead_lettered == 1


def test_in_the_way_of_aws_a_message_moves_at_the_next_receive_and_is_not_returned(lazy) -> None:
    dead = lazy.queue("dead")
    queue = lazy.queue(dead_letters=dead, max_receive_count=2, visibility_timeout=30)
    lazy.send(queue, "a", "b")
    for _ in range(2):
        assert lazy.bodies(queue, 1) == ["a"]
        lazy.advance(30)
    lazy.advance(1000)
    assert (lazy.live(queue), lazy.live(dead)) == (["a", "b"], [])
    assert lazy.bodies(queue) == ["b"]
    assert (lazy.live(queue), lazy.live(dead)) == (["b"], ["a"])


def test_a_receive_that_finds_only_used_up_messages_returns_nothing(lazy) -> None:
    dead = lazy.queue("dead")
    queue = lazy.queue(dead_letters=dead)
    lazy.send(queue, "a", "b")
    lazy.receive(queue, 10, timeout=0)
    assert lazy.receive(queue, 10) == []
    assert lazy.live(dead) == ["a", "b"]


def test_a_long_poll_that_finds_only_used_up_messages_waits_for_others(lazy) -> None:
    queue = lazy.queue(dead_letters=lazy.queue("dead"))
    lazy.send(queue, "a")
    lazy.receive(queue, timeout=0)
    poll = lazy.poll(queue)
    assert not poll.answered
    assert queue.dead_lettered == 1
    lazy.send(queue, "b")
    assert [d.body for d in poll.result()] == ["b"]


def test_a_parked_poll_is_not_given_a_message_that_used_up_its_receives(lazy) -> None:
    dead = lazy.queue("dead")
    queue = lazy.queue(dead_letters=dead)
    lazy.send(queue, "a")
    lazy.receive(queue, timeout=10)
    poll = lazy.poll(queue)
    lazy.advance(10)
    assert not poll.answered
    assert lazy.live(dead) == ["a"]
    lazy.broker.check()


def test_content_counts_and_times_stay_and_the_source_is_noted(either) -> None:
    world = either
    dead = world.queue("dead", delay_seconds=300)
    queue = world.queue(dead_letters=dead, visibility_timeout=30)
    (receipt,) = world.send(queue, "a", group="tenant")
    world.advance(5)
    (first,) = world.receive(queue)
    world.advance(30)
    assert world.receive(queue) == []
    (moved,) = world.receive(dead)
    assert moved.message_id == first.message_id == receipt.message_id
    assert (moved.body, moved.sent_ms) == ("a", first.sent_ms)
    assert moved.first_received_ms == first.first_received_ms
    assert (first.receive_count, moved.receive_count) == (1, 2)
    assert (first.dead_letter_source_arn, moved.dead_letter_source_arn) == (None, queue.arn)
    assert moved.message_group_id == "tenant"
    assert moved.receipt_handle != first.receipt_handle


def test_the_old_handle_acts_no_more_on_a_message_that_moved(either) -> None:
    world = either
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead)
    world.send(queue, "a")
    (old,) = world.receive(queue, timeout=0)
    world.receive(queue)
    assert world.live(dead) == ["a"]
    assert world.delete(queue, old) == [None]
    assert "Message does not exist" in world.change(queue, old, 10)
    assert "is not valid for this queue" in world.delete(dead, old)[0]
    assert world.live(dead) == ["a"]


def test_messages_used_up_at_one_instant_move_in_order_of_arrival(either) -> None:
    world = either
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead, visibility_timeout=30)
    world.send(queue, "a", "b", "c")
    for delivery in reversed(world.receive(queue, 3)):
        world.change(queue, delivery, 20)
    world.advance(20)
    world.receive(queue, 10)
    assert world.live(dead) == ["a", "b", "c"]


def test_a_policy_attached_later_counts_the_receives_before_it(either) -> None:
    world = either
    dead = world.queue("dead")
    queue = world.queue()
    world.send(queue, "a")
    for _ in range(3):
        world.receive(queue, timeout=0)
    world.set_dead_letters(queue, dead, 3)
    assert world.live(queue) == ["a"], "only a receive finds out"
    assert world.receive(queue) == []
    assert world.live(dead) == ["a"]


def test_a_lowered_count_holds_for_messages_that_are_there(either) -> None:
    world = either
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead, max_receive_count=5)
    world.send(queue, "a", "b")
    assert world.bodies(queue, 1, timeout=0) == ["a"]
    assert world.bodies(queue, 1, timeout=0) == ["a"]
    world.set_dead_letters(queue, dead, 2)
    assert world.bodies(queue) == ["b"]
    assert world.live(dead) == ["a"]


def test_a_raised_count_lets_a_message_be_delivered_again(either) -> None:
    world = either
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead)
    world.send(queue, "a")
    world.receive(queue, timeout=10)
    world.set_dead_letters(queue, dead, 2)
    world.advance(10)
    assert world.bodies(queue, timeout=10) == ["a"]
    world.advance(10)
    assert world.bodies(queue) == []
    assert world.live(dead) == ["a"]


def test_a_policy_taken_away_while_in_flight_keeps_the_message(either) -> None:
    world = either
    queue = world.queue(dead_letters=world.queue("dead"))
    world.send(queue, "a")
    world.receive(queue, timeout=10)
    world.set_dead_letters(queue, None)
    world.advance(10)
    assert world.bodies(queue) == ["a"]


def test_a_message_stays_while_its_dead_letter_queue_is_gone_and_moves_once_it_is_back(
    either,
) -> None:
    world = either
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead, visibility_timeout=10)
    world.send(queue, "a")
    world.broker.delete_queue(dead)
    for _ in range(3):
        use_up(world, queue)
    assert world.live(queue) == ["a"]
    again = world.queue("dead")
    assert world.receive(queue) == []
    assert world.live(again) == ["a"]
    assert [d.receive_count for d in world.receive(again)] == [4]
    world.broker.check()


def test_a_dead_letter_queue_exchanged_in_the_middle_of_a_move_is_not_missed(
    world, monkeypatch
) -> None:
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead, visibility_timeout=10)
    world.send(queue, "a")
    world.receive(queue)
    registry = world.broker._registry
    find, made = registry.find_arn, []

    def find_and_exchange(arn: str):
        found = find(arn)
        # The lock is free where the target of a move is looked up, before both are taken.
        if not dead.deleted and not queue.lock.locked():
            dead.deleted = True
            registry.remove(dead)
            made.append(world.queue("dead"))
        return found

    monkeypatch.setattr(registry, "find_arn", find_and_exchange)
    world.clock.now_ms += 10_000
    assert world.live(queue) == []
    assert list(dead.log.live_messages()) == []
    assert world.live(made[0]) == ["a"]


def test_a_policy_may_name_a_queue_that_is_made_later(either) -> None:
    world = either
    queue = world.queue(
        dead_letters="arn:aws:sqs:us-east-1:000000000000:dead", visibility_timeout=10
    )
    world.send(queue, "a")
    use_up(world, queue)
    dead = world.queue("dead")
    assert world.broker.sources_of(dead) == [queue]
    world.receive(queue)
    assert world.live(dead) == ["a"]


@pytest.mark.parametrize("service", ["aws:sns", "aws-cn:sqs"])
def test_an_arn_that_names_no_queue_is_no_place_to_move_to(either, service: str) -> None:
    world = either
    world.queue("dead")
    queue = world.queue(dead_letters=f"arn:{service}:us-east-1:000000000000:dead")
    world.send(queue, "a")
    for _ in range(3):
        assert world.bodies(queue, timeout=0) == ["a"]


def test_a_queue_that_is_its_own_dead_letter_queue_sends_messages_to_its_back(either) -> None:
    world = either
    queue = world.queue(dead_letters="arn:aws:sqs:us-east-1:000000000000:orders")
    world.send(queue, "a", "b")
    (first,) = world.receive(queue, timeout=10)
    world.advance(10)
    bodies = [world.receive(queue, timeout=100)[0] for _ in range(2)]
    assert [d.body for d in bodies] == ["b", "a"]
    assert bodies[1].message_id == first.message_id
    assert bodies[1].receive_count == 2, "the total counts on; the limit counts anew"
    assert bodies[1].dead_letter_source_arn == queue.arn
    assert world.live(queue) == ["b", "a"]
    assert queue.dead_lettered == 1
    world.broker.check()


def test_a_single_receive_moves_a_message_once_even_into_its_own_queue(either) -> None:
    world = either
    queue = world.queue(dead_letters="arn:aws:sqs:us-east-1:000000000000:orders")
    world.send(queue, *"abc")
    for _ in range(2):
        world.receive(queue, 10, timeout=0)
        world.broker.check()
    moves = [event[2] for event in world.events(queue, "dead_lettered")]
    assert len(moves) == {"tick": 6, "receive": 3}[world.broker.dead_letter_on]
    assert world.live(queue) == ["a", "b", "c"]


def test_two_queues_that_dead_letter_into_each_other_pass_a_message_to_and_fro(either) -> None:
    world = either
    one = world.queue("one", visibility_timeout=10)
    two = world.queue("two", dead_letters=one, visibility_timeout=10)
    world.set_dead_letters(one, two)
    world.send(one, "a")
    seen = []
    for _ in range(6):
        here = [q for q in (one, two) for d in world.receive(q) if d.body == "a"]
        seen += [q.key.name for q in here]
        assert len(world.live(one)) + len(world.live(two)) == 1
        world.advance(10)
        world.broker.check()
    assert seen[:2] == ["one", "two"]
    assert set(seen) == {"one", "two"}


def test_a_chain_of_three_is_walked_instant_by_instant(world) -> None:
    last = world.queue("last")
    middle = world.queue("middle", dead_letters=last, visibility_timeout=5)
    first = world.queue("first", dead_letters=middle, max_receive_count=2, visibility_timeout=10)
    world.send(first, "a")
    use_up(world, first, 2)
    use_up(world, middle)
    assert world.live(last) == ["a"]
    (delivery,) = world.receive(last)
    assert delivery.receive_count == 4
    assert delivery.dead_letter_source_arn == middle.arn


def test_counts_of_an_earlier_queue_do_not_count_against_the_limit_of_the_next(world) -> None:
    last = world.queue("last")
    middle = world.queue("middle", dead_letters=last, max_receive_count=3, visibility_timeout=5)
    first = world.queue("first", dead_letters=middle, max_receive_count=5, visibility_timeout=5)
    world.send(first, "a")
    use_up(world, first, 5)
    assert [world.receive(middle, timeout=0)[0].receive_count for _ in range(3)] == [6, 7, 8]
    assert world.live(last) == ["a"]


def test_a_long_poll_on_the_dead_letter_queue_gets_what_is_moved_there(either) -> None:
    world = either
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead, visibility_timeout=10)
    world.send(queue, "a")
    poll = world.poll(dead)
    world.receive(queue)
    world.advance(10)
    if world.broker.dead_letter_on == "receive":
        assert not poll.answered
        world.receive(queue)
    assert [d.body for d in poll.result()] == ["a"]


def test_retention_counts_on_in_a_standard_dead_letter_queue(world) -> None:
    dead = world.queue("dead", message_retention_period=100)
    queue = world.queue(dead_letters=dead, visibility_timeout=30)
    world.send(queue, "a")
    use_up(world, queue)
    world.advance(69.999)
    assert world.live(dead) == ["a"]
    world.advance(0.001)
    assert world.live(dead) == []


def test_retention_begins_anew_in_a_fifo_dead_letter_queue(world) -> None:
    dead = world.queue("dead.fifo", message_retention_period=100)
    queue = world.queue("orders.fifo", dead_letters=dead, visibility_timeout=30)
    world.send(queue, "a")
    use_up(world, queue)
    world.advance(99.999)
    assert world.live(dead) == ["a"]
    world.advance(0.001)
    assert world.live(dead) == []


def test_a_fifo_message_gets_a_new_sequence_number_and_its_id_as_deduplication_id(either) -> None:
    world = either
    dead = world.queue("dead.fifo", delay_seconds=300)
    world.send(dead, "earlier", group="other")
    queue = world.queue("orders.fifo", dead_letters=dead)
    world.send(queue, "a", deduplication_id="original")
    (before,) = world.receive(queue, timeout=0)
    world.receive(queue)
    (after,) = world.receive(dead)
    assert after.message_deduplication_id == before.message_id
    assert after.message_group_id == before.message_group_id == "g"
    with world.broker.entry(dead):
        earlier, moved = dead.log.live_messages()
    assert after.sequence_number == moved.sequence_number > earlier.sequence_number
    (receipt,) = world.send(dead, "later")
    assert receipt.sequence_number > after.sequence_number


def test_a_moved_message_is_never_taken_for_a_duplicate(either) -> None:
    world = either
    dead = world.queue("dead.fifo")
    queue = world.queue("orders.fifo", dead_letters=dead)
    world.send(queue, "a", deduplication_id="same")
    world.send(dead, "b", deduplication_id="same", group="other")
    world.receive(queue, timeout=0)
    world.receive(queue)
    assert world.live(dead) == ["b", "a"]


def test_a_group_goes_on_with_the_next_message_after_one_was_moved(either) -> None:
    world = either
    dead = world.queue("dead.fifo")
    queue = world.queue("orders.fifo", dead_letters=dead, max_receive_count=1)
    world.send(queue, "a", "b", "c")
    assert world.bodies(queue, 1, timeout=10) == ["a"]
    poll = world.poll(queue)
    world.advance(10)
    if world.broker.dead_letter_on == "tick":
        assert [d.body for d in poll.result()] == ["b"]
    assert world.live(dead) == ["a"]
    assert [d.body for d in poll.result()] == ["b"]
    world.broker.check()


def test_in_a_fifo_queue_the_rest_of_a_batch_stays_behind_its_first(either) -> None:
    world = either
    dead = world.queue("dead.fifo")
    queue = world.queue("orders.fifo", dead_letters=dead, max_receive_count=2)
    world.send(queue, "a", "b")
    assert world.bodies(queue, 10, timeout=0) == ["a", "b"]
    (a, _b) = world.receive(queue, 10, timeout=10)
    world.change(queue, a, 100)
    world.advance(10)
    assert world.bodies(queue) == []
    if world.broker.dead_letter_on == "tick":
        assert world.live(dead) == ["b"]
    world.advance(90)
    world.receive(queue)
    assert set(world.live(dead)) == {"a", "b"}
    world.broker.check()


def test_a_used_up_message_in_the_middle_of_a_group_ends_the_run_before_it(lazy) -> None:
    dead = lazy.queue("dead.fifo")
    queue = lazy.queue("orders.fifo")
    lazy.send(queue, "a", "b", "c")
    a, b = lazy.receive(queue, 2, timeout=10)
    lazy.change(queue, a, 0)
    lazy.change(queue, b, 0)
    lazy.set_dead_letters(queue, dead, 1)
    with lazy.broker.entry(queue):
        head = next(queue.log.live_messages())
        head.receives_here = 0
    assert lazy.bodies(queue) == ["a"]
    assert lazy.live(dead) == []
    lazy.broker.check()


def test_a_move_wakes_nobody_on_a_queue_it_does_not_touch(world) -> None:
    dead = world.queue("dead")
    queue = world.queue(dead_letters=dead, visibility_timeout=10)
    bystander = world.queue("bystander")
    poll = world.poll(bystander)
    world.send(queue, "a")
    use_up(world, queue)
    assert not poll.answered


def test_the_reason_of_a_used_up_message_is_told(lazy) -> None:
    queue = lazy.queue(dead_letters=lazy.queue("dead"))
    lazy.send(queue, "a")
    with lazy.broker.entry(queue):
        (message,) = queue.log.live_messages()
        assert why_not_deliverable(queue, message) is None
    lazy.receive(queue, timeout=0)
    with lazy.broker.entry(queue):
        assert why_not_deliverable(queue, message) == (
            "its receive count is used up: the next receive moves it to the dead-letter queue"
        )


def test_the_queues_that_dead_letter_into_one_are_listed_by_name(world) -> None:
    dead = world.queue("dead")
    b, a = (world.queue(name, dead_letters=dead) for name in ("b", "a"))
    assert world.broker.sources_of(dead) == [a, b]
    world.set_dead_letters(a, b)
    assert world.broker.sources_of(dead) == [b]
    world.broker.delete_queue(b)
    assert world.broker.sources_of(dead) == []
    assert world.broker.sources_of(world.queue("b")) == [a]


def test_queues_know_who_dead_letters_into_them_however_the_links_change(world) -> None:
    random = Random(1)
    names = [f"q{number}" for number in range(7)]
    arns = [f"arn:aws:sqs:us-east-1:000000000000:{name}" for name in names]
    queues = {}

    def target_of(queue):
        policy = queue.settings.redrive_policy
        return None if policy is None else world.broker.find_arn(policy.dead_letter_target_arn)

    def reached(queue, neighbours):
        found = {queue}
        while more := {other for one in found for other in neighbours(one)} - found:
            found |= more
        return found

    def sources(queue):
        return [one for one in queues.values() if target_of(one) is queue]

    def neighbours(queue):
        return [*sources(queue), *filter(None, [target_of(queue)])]

    for _ in range(500):
        name, target = random.choice(names), random.choice([*arns, None])
        if name not in queues:
            queues[name] = world.queue(name, dead_letters=target)
        elif random.random() < 0.3:
            world.broker.delete_queue(queues.pop(name))
        else:
            world.set_dead_letters(queues[name], target)
        for queue in queues.values():
            assert world.broker.sources_of(queue) == sorted(sources(queue), key=lambda q: q.key)
            assert set(queue.upstream) == reached(queue, sources)
            assert set(queue.linked) == reached(queue, neighbours)
