from __future__ import annotations

from threading import Thread

import pytest

from pytest_sqsq.engine.looking import statistics_of
from pytest_sqsq.errors import QueueDoesNotExist, ServiceUnavailable
from pytest_sqsq.models import ReceiveRequest


def bodies(waiter) -> list[str]:
    assert waiter.resolved
    return [delivery.body for delivery in waiter.result()]


def test_a_poll_that_finds_something_is_answered_at_once(world) -> None:
    queue = world.queue()
    world.send(queue, "a", "b")
    poll = world.poll(queue, count=10)
    assert bodies(poll) == ["a", "b"]
    assert world.broker.parked_polls == 0


def test_a_poll_that_does_not_wait_is_answered_at_once_with_nothing(world) -> None:
    assert bodies(world.poll(world.queue(), seconds=0)) == []


def test_a_poll_that_finds_nothing_parks_and_says_how_long_it_may_wait(world) -> None:
    queue = world.queue()
    poll = world.poll(queue, seconds=7)
    assert not poll.resolved
    assert not poll.wait(0)
    assert poll.deadline_ms == world.clock.now_ms + 7_000
    assert poll.real_seconds == 7.0
    assert world.broker.parked_polls == statistics_of(queue).parked_polls == 1


def test_polls_are_served_oldest_first_and_one_message_wakes_one(world) -> None:
    queue = world.queue()
    first, second, third = (world.poll(queue) for _ in range(3))
    world.send(queue, "a")
    assert bodies(first) == ["a"]
    assert not second.resolved
    world.send(queue, "b", "c")
    assert (bodies(second), bodies(third)) == (["b"], ["c"])


def test_a_poll_is_served_after_the_last_entry_of_a_batch_up_to_what_it_asked_for(world) -> None:
    queue = world.queue()
    first, second = world.poll(queue, count=2), world.poll(queue, count=10)
    world.send(queue, *"abcde")
    assert (bodies(first), bodies(second)) == (["a", "b"], ["c", "d", "e"])


def test_a_delay_that_ends_serves_a_poll_at_that_millisecond(world) -> None:
    queue = world.queue()
    world.send(queue, "a", delay=5)
    poll = world.poll(queue)
    world.advance(4.999)
    assert not poll.resolved
    world.advance(0.001)
    (delivery,) = poll.result()
    assert delivery.first_received_ms == world.clock.now_ms == delivery.sent_ms + 5_000


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_a_timeout_that_ends_serves_a_poll_at_that_millisecond(world, name: str) -> None:
    queue = world.queue(name)
    world.send(queue, "a")
    world.receive(queue, timeout=10)
    poll = world.poll(queue, timeout=100)
    world.advance(15)
    assert bodies(poll) == ["a"]
    assert [e for e in world.events(queue, "received") if e[0]] == [(10.0, "received", "a")]
    assert world.counts(queue) == (0, 1, 0)


@pytest.mark.parametrize("name", ["orders", "orders.fifo"])
def test_a_message_shown_at_once_serves_a_poll(world, name: str) -> None:
    queue = world.queue(name)
    world.send(queue, "a")
    (delivery,) = world.receive(queue)
    poll = world.poll(queue)
    world.change(queue, delivery, 0)
    assert bodies(poll) == ["a"]


def test_a_poll_that_hides_for_no_time_leaves_the_message_to_the_next_poll(world) -> None:
    queue = world.queue()
    polls = [world.poll(queue, timeout=0) for _ in range(3)]
    world.send(queue, "a")
    assert [bodies(poll) for poll in polls] == [["a"]] * 3
    assert [poll.result()[0].receive_count for poll in polls] == [1, 2, 3]
    assert world.counts(queue) == (1, 0, 0)


def test_a_delete_that_frees_a_group_serves_a_poll(world) -> None:
    queue = world.queue("orders.fifo")
    world.send(queue, "a", "b")
    (delivery,) = world.receive(queue)
    poll = world.poll(queue)
    world.send(queue, "c")
    assert not poll.resolved
    world.delete(queue, delivery)
    assert bodies(poll) == ["b"]


def test_a_retention_that_frees_a_group_serves_a_poll(world) -> None:
    queue = world.queue("orders.fifo", message_retention_period=60)
    world.send(queue, "a")
    world.receive(queue, timeout=1000)
    world.advance(50)
    world.send(queue, "b")
    poll = world.poll(queue)
    world.advance(10)
    assert bodies(poll) == ["b"]


def test_a_look_at_the_queue_that_settles_it_serves_its_polls(world) -> None:
    queue = world.queue()
    world.send(queue, "a", delay=5)
    poll = world.poll(queue)
    world.clock.now_ms += 6_000
    assert world.counts(queue) == (0, 1, 0)
    assert bodies(poll) == ["a"]
    assert world.events(queue, "received") == [(5.0, "received", "a")]


def test_a_client_that_is_gone_takes_no_message(world) -> None:
    queue = world.queue()
    gone = world.poll(queue, is_alive=lambda: False)
    alive = world.poll(queue)
    world.send(queue, "a")
    assert (bodies(gone), bodies(alive)) == ([], ["a"])
    assert alive.result()[0].receive_count == 1
    assert world.broker.parked_polls == 0


def test_a_message_for_clients_that_are_all_gone_stays(world) -> None:
    queue = world.queue()
    for _ in range(3):
        world.poll(queue, is_alive=lambda: False)
    world.send(queue, "a")
    assert world.broker.parked_polls == 0
    assert world.counts(queue) == (1, 0, 0)
    assert [d.receive_count for d in world.receive(queue)] == [1]


def test_a_client_is_asked_for_life_before_anything_is_written(stored, store) -> None:
    queue = stored.queue()
    stored.send(queue, "a", delay=5)
    writes = store.writes
    stored.poll(queue, is_alive=lambda: False)
    stored.advance(5)
    assert store.writes == writes


def test_a_poll_ends_empty_at_its_deadline_and_not_before(world) -> None:
    poll = world.poll(world.queue(), seconds=10)
    assert world.advance(9.999) == []
    assert not poll.resolved
    (event,) = world.advance(0.001)
    assert (event.kind, event.queue, event.at_ms) == ("poll_ended", "orders", world.clock.now_ms)
    assert bodies(poll) == []
    assert world.broker.next_due_ms() is None


def test_a_poll_that_ends_as_a_message_appears_gets_the_message(world) -> None:
    queue = world.queue()
    world.send(queue, "a", delay=30)
    world.advance(10)
    poll = world.poll(queue, seconds=20)
    world.advance(20)
    assert bodies(poll) == ["a"]


def test_polls_end_in_order_of_their_deadlines_on_all_queues(world) -> None:
    one, other = world.queue("one"), world.queue("other")
    world.poll(one, seconds=3)
    world.poll(other, seconds=1)
    world.poll(one, seconds=2)
    ended = [(event.queue, event.at_ms - world.clock.now_ms) for event in world.advance(5)]
    assert ended == [("other", -4_000), ("one", -3_000), ("one", -2_000)]


def test_a_cancelled_poll_ends_empty_and_is_parked_no_more(world) -> None:
    queue = world.queue()
    poll = world.poll(queue)
    world.broker.cancel_poll(poll)
    assert bodies(poll) == []
    world.send(queue, "a")
    assert world.counts(queue) == (1, 0, 0)
    world.broker.cancel_poll(poll)
    assert world.broker.next_event().kind == "expired"


def test_cancelling_takes_one_last_look(world) -> None:
    queue = world.queue()
    world.send(queue, "a", delay=5)
    poll = world.poll(queue)
    world.clock.now_ms += 5_000
    world.broker.cancel_poll(poll)
    assert bodies(poll) == ["a"]


def test_cancelling_a_poll_that_was_served_takes_nothing_back(world) -> None:
    queue = world.queue()
    poll = world.poll(queue)
    world.send(queue, "a")
    world.broker.cancel_poll(poll)
    assert bodies(poll) == ["a"]


def test_deleting_a_queue_ends_its_polls_with_the_reason(world) -> None:
    queue = world.queue()
    polls = [world.poll(queue), world.poll(queue)]
    other = world.poll(world.queue("other"))
    world.broker.delete_queue(queue)
    for poll in polls:
        assert poll.resolved
        with pytest.raises(QueueDoesNotExist):
            poll.result()
    assert not other.resolved
    world.broker.cancel_poll(polls[0])
    assert world.broker.parked_polls == 1


def test_all_polls_can_be_closed_empty_or_with_a_reason(world) -> None:
    one, other = world.queue("one"), world.queue("other")
    first, second = world.poll(one), world.poll(other)
    world.broker.close_polls(None, close_connection=True)
    assert (bodies(first), bodies(second)) == ([], [])
    assert first.close_connection
    third = world.poll(one)
    world.broker.close_polls(ServiceUnavailable("down"))
    assert not third.close_connection
    with pytest.raises(ServiceUnavailable, match="down"):
        third.result()
    assert world.broker.parked_polls == 0
    assert world.broker.next_due_ms() is None


def test_whoever_answers_a_poll_calls_back_once_before_the_waiting_thread_goes_on(world) -> None:
    queue = world.queue()
    poll = world.poll(queue)
    calls = []
    poll.on_resolved = lambda: calls.append(poll.resolved)
    world.send(queue, "a")
    assert calls == [False]
    world.broker.cancel_poll(poll)
    world.advance(30)
    assert calls == [False]


def test_a_thread_that_waits_is_woken_by_a_send_from_another(world) -> None:
    queue = world.queue()
    poll = world.poll(queue)
    sender = Thread(target=world.send, args=(queue, "a"))
    sender.start()
    assert poll.wait(10)
    sender.join(10)
    assert bodies(poll) == ["a"]


def test_a_poll_with_the_attempt_id_of_a_parked_one_replaces_it(world) -> None:
    queue = world.queue("orders.fifo")
    old = world.poll(queue, attempt="x")
    other = world.poll(queue, attempt="y")
    new = world.poll(queue, attempt="x")
    assert bodies(old) == []
    assert not new.resolved
    assert world.broker.parked_polls == 2
    world.send(queue, "a", group="1")
    world.send(queue, "b", group="2")
    assert (bodies(other), bodies(new)) == (["a"], ["b"])


def test_polls_without_an_attempt_id_replace_nobody(world) -> None:
    queue = world.queue("orders.fifo")
    polls = [world.poll(queue) for _ in range(3)]
    assert not any(poll.resolved for poll in polls)


def test_a_poll_waits_out_a_full_queue_and_is_served_when_there_is_room(make_world) -> None:
    world = make_world(in_flight_limit=1)
    queue = world.queue()
    world.send(queue, "a", "b")
    (a,) = world.receive(queue)
    poll = world.poll(queue)
    assert not poll.resolved
    world.delete(queue, a)
    assert bodies(poll) == ["b"]


def test_a_purge_leaves_polls_waiting(world) -> None:
    queue = world.queue()
    poll = world.poll(queue)
    world.broker.purge(queue)
    assert not poll.resolved
    world.send(queue, "a")
    assert bodies(poll) == ["a"]


def test_postponed_polls_end_when_they_would_if_they_were_repeated(world) -> None:
    queue = world.queue()
    short, long = world.poll(queue, seconds=3), world.poll(queue, seconds=20)
    world.broker.postpone_polls(world.clock.now_ms + 9_000)

    assert world.broker.next_due_ms() == world.clock.now_ms + 12_000
    world.advance(11.999)
    assert not short.resolved
    world.advance(0.001)
    assert short.resolved
    assert not long.resolved
    world.advance(8)
    assert long.resolved


def test_a_postponed_poll_is_served_where_it_would_have_ended(world) -> None:
    queue = world.queue()
    world.send(queue, "a", delay=5)
    poll = world.poll(queue, seconds=2)
    world.broker.postpone_polls(world.clock.now_ms + 5_000)
    world.advance(5)

    assert bodies(poll) == ["a"]


def test_polls_whose_clients_have_gone_can_be_ended(world) -> None:
    queue, other = world.queue(), world.queue("other")
    stays = world.poll(queue)
    gone = [
        world.broker.poll(each, ReceiveRequest(wait_time_seconds=20), lambda: False)
        for each in (queue, queue, other)
    ]
    assert world.broker.parked_polls == 4
    world.broker.end_dead_polls()

    assert world.broker.parked_polls == 1
    assert not stays.resolved
    assert [poll.resolved and poll.result() for poll in gone] == [[], [], []]
    world.advance(20)
    assert stays.resolved
