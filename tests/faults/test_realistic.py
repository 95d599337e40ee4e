"""Standard queues that deliver as AWS may."""

from __future__ import annotations

from collections import Counter

import pytest

COUNT = 300


@pytest.fixture
def deliveries(make_server):
    """The bodies of a queue's deliveries, answer by answer, until it is empty."""

    def deliveries(seed: int = 7, groups: int = 0, **options) -> list[list[str]]:
        server = make_server(seed=seed, **{"delivery": "realistic", **options})
        queue = server.create_queue("orders")
        sqs = server.client(transport="direct")
        for number in range(COUNT):
            group = {"MessageGroupId": str(number % groups)} if groups else {}
            queue.send(str(number), **group)
        found = []
        held: list = []  # deleted one receive later, which may find a message once more
        while queue.statistics.live_count:
            answer = sqs.receive_message(QueueUrl=queue.url, MaxNumberOfMessages=10)
            for message in held:
                sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=message["ReceiptHandle"])
            held = answer.get("Messages", [])
            if held:
                found.append([message["Body"] for message in held])
        server.check()
        return found

    return deliveries


def flat(answers: list[list[str]]) -> list[str]:
    return [body for answer in answers for body in answer]


@pytest.mark.parametrize("groups", [0, 3])
def test_nothing_gets_lost_in_any_order(deliveries, groups):
    bodies = flat(deliveries(groups=groups))
    assert set(bodies) == {str(number) for number in range(COUNT)}
    assert bodies != sorted(bodies, key=int)


def test_nothing_is_overtaken_by_more_than_a_window(deliveries):
    answers = deliveries()
    first = [int(body) for body in answers[0]]
    assert max(first) < 20
    assert first != sorted(first)


def test_short_polls_find_fewer_at_times_and_never_nothing(deliveries):
    sizes = Counter(map(len, deliveries()))
    assert sizes[10] > sum(sizes.values()) / 2
    assert min(sizes) >= 1
    assert len(sizes) > 2


def test_duplicates_are_rare(deliveries):
    bodies = flat(deliveries())
    assert 0 < len(bodies) - COUNT < COUNT / 10


def test_the_same_seed_has_the_same_luck(deliveries):
    assert deliveries(seed=1) == deliveries(seed=1)
    assert deliveries(seed=1) != deliveries(seed=2)


def test_ordered_queues_are_the_default(deliveries):
    bodies = flat(deliveries(delivery="ordered"))
    assert bodies == [str(number) for number in range(COUNT)]


def test_long_polls_find_what_there_is(make_server):
    server = make_server(delivery="realistic")
    queue = server.create_queue("orders")
    sqs = server.client(transport="direct")
    for _ in range(40):
        for number in range(5):
            queue.send(str(number))
        answer = sqs.receive_message(QueueUrl=queue.url, MaxNumberOfMessages=10, WaitTimeSeconds=20)
        assert len(answer["Messages"]) == 5
        queue.purge()


def test_fifo_queues_keep_their_promise(make_server):
    server = make_server(delivery="realistic")
    queue = server.create_queue("orders.fifo")
    for number in range(100):
        queue.send(str(number), MessageGroupId="g", MessageDeduplicationId=str(number))
    bodies = []
    while batch := queue.receive(10):
        bodies += [message.body for message in batch]
        for message in batch:
            queue.delete(message)
    assert bodies == [str(number) for number in range(100)]


def test_used_up_messages_still_end_in_the_dead_letter_queue(make_server):
    server = make_server(delivery="realistic", dead_letter_on="receive")
    queue = server.create_queue("orders", dead_letter_queue="dead", max_receive_count=2)
    for number in range(30):
        queue.send(str(number))
    report = queue.drain(fail)
    assert report.dead_lettered == 30
    server.queue("dead").assert_counts(visible=30)
    server.check()


def fail(message):
    raise ValueError(message.body)


def test_a_made_up_seed_stands_in_the_report(make_server):
    server = make_server(seed=None, delivery="realistic")
    queue = server.create_queue("orders")
    queue.send("a")
    assert "seed" not in server.report()
    queue.receive()
    assert "\nseed: " in server.report()
