from __future__ import annotations


def seconds_ahead(world) -> float | None:
    instant_ms = world.broker.next_change_ms()
    return None if instant_ms is None else (instant_ms - world.clock.now_ms) / 1000


def test_nothing_changes_in_an_empty_world(world) -> None:
    world.queue()
    assert seconds_ahead(world) is None


def test_retention_is_no_change_to_wait_for(world) -> None:
    world.send(world.queue(), "a")
    assert world.broker.next_due_ms() is not None
    assert seconds_ahead(world) is None


def test_the_end_of_a_poll_is_not_a_change_of_a_message(world) -> None:
    world.poll(world.queue(), seconds=20)
    assert seconds_ahead(world) is None


def test_the_earliest_end_of_a_delay_or_of_a_visibility_timeout_counts(world) -> None:
    orders, mails = world.queue("orders"), world.queue("mails")
    world.send(orders, "a", delay=50)
    assert seconds_ahead(world) == 50
    world.send(mails, "b")
    world.receive(mails, timeout=30)
    assert seconds_ahead(world) == 30
    world.advance(30)
    assert seconds_ahead(world) == 20


def test_a_message_that_is_gone_before_it_comes_back_is_no_change_to_wait_for(world) -> None:
    queue = world.queue("orders", message_retention_period=60)
    world.send(queue, "a")
    world.receive(queue, timeout=60)
    assert seconds_ahead(world) is None

    world.advance(10)
    world.send(queue, "b")
    world.receive(queue, timeout=55)
    assert seconds_ahead(world) == 55
    world.advance(54)
    assert seconds_ahead(world) == 1


def test_the_delay_of_a_fifo_queue_counts(world) -> None:
    queue = world.queue("a.fifo", delay_seconds=7)
    world.send(queue, "a", group="g", deduplication_id="1")
    assert seconds_ahead(world) == 7


def test_the_next_step_of_a_move_task_counts(world) -> None:
    source, target = world.queue("source"), world.queue("target")
    world.send(source, "a", "b")
    world.broker.start_move_task(source, target.arn, 2)
    assert seconds_ahead(world) == 0.5
    world.advance(0.5)
    assert seconds_ahead(world) == 0.5
