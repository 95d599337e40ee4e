"""Faults that only a server can have that holds the queues."""

from __future__ import annotations

from datetime import timedelta

import pytest
from botocore.exceptions import ClientError

from pytest_sqsq.errors import ServiceUnavailable


def receive(sqs, queue, **parameters):
    return sqs.receive_message(QueueUrl=queue.url, **parameters).get("Messages", [])


def delete(sqs, queue, message):
    sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=message["ReceiptHandle"])


# Duplicate delivery


def test_a_message_is_delivered_twice(faults, sqs, queue):
    fault = faults.duplicate_delivery()
    queue.send("a")
    first, second = receive(sqs, queue) + receive(sqs, queue)
    assert first["MessageId"] == second["MessageId"]
    assert first["ReceiptHandle"] != second["ReceiptHandle"]
    assert receive(sqs, queue) == []
    assert fault.fired == 1
    queue.assert_in_flight(body="a")


def test_each_delivery_of_a_message_is_doubled(server, faults, sqs, queue):
    faults.duplicate_delivery(queue)
    queue.send("a")
    for number in (1, 2):
        assert len(receive(sqs, queue) + receive(sqs, queue) + receive(sqs, queue)) == 2, number
        server.advance(30)


def test_a_message_deleted_by_either_handle_of_its_delivery_is_gone(faults, sqs, queue):
    faults.duplicate_delivery()
    queue.send("a")
    (first,), (_,) = receive(sqs, queue), receive(sqs, queue)
    delete(sqs, queue, first)
    queue.assert_empty()
    queue.assert_deleted(body="a")


def test_a_duplicate_wakes_the_next_parked_poll(server, faults, sqs, queue, beside):
    faults.duplicate_delivery(times=1)
    polls = [beside(receive, sqs, queue, WaitTimeSeconds=20) for _ in range(2)]
    server.wait_for_pollers(2)
    queue.send("a")
    assert [message["Body"] for poll in polls for message in poll.result(10)] == ["a", "a"]


def test_duplicates_can_be_counted_and_left_to_chance(faults, sqs, queue):
    fault = faults.duplicate_delivery(times=2, probability=0.5)
    for number in range(20):
        queue.send(str(number))
    bodies = [receive(sqs, queue)[0]["Body"] for _ in range(22)]
    assert receive(sqs, queue) == []
    assert len(set(bodies)) == 20
    assert fault.fired == 2


def test_other_queues_and_fifo_queues_deliver_once(server, faults, sqs, queue):
    faults.duplicate_delivery("others")
    with faults.duplicate_delivery():
        fifo = server.create_queue("orders.fifo")
        fifo.send("a", MessageGroupId="g", MessageDeduplicationId="1")
        assert len(receive(sqs, fifo)) == 1
        assert receive(sqs, fifo) == []
    queue.send("a")
    assert len(receive(sqs, queue)) == 1
    assert receive(sqs, queue) == []


# Late duplicates and lost deletes


def test_a_deleted_message_comes_back_late(server, faults, sqs, queue):
    fault = faults.late_duplicate(after=timedelta(minutes=5))
    queue.send("a")
    (message,) = receive(sqs, queue)
    delete(sqs, queue, message)
    server.advance(299.999)
    assert receive(sqs, queue) == []
    server.advance(0.001)
    (again,) = receive(sqs, queue, AttributeNames=["All"])
    assert again["MessageId"] == message["MessageId"]
    assert again["Attributes"]["ApproximateReceiveCount"] == "2"
    delete(sqs, queue, again)
    queue.assert_empty()
    assert fault.fired == 1


def test_a_late_duplicate_may_come_from_a_message_that_is_visible_again(server, faults, sqs, queue):
    faults.late_duplicate(after=60)
    queue.send("a")
    (message,) = receive(sqs, queue)
    server.advance(30)
    queue.assert_counts(visible=1)
    delete(sqs, queue, message)
    assert receive(sqs, queue) == []
    server.advance(60)
    assert len(receive(sqs, queue)) == 1
    server.check()


def test_a_consumer_meets_its_late_duplicates_in_a_drain(faults, queue):
    faults.late_duplicate(queue, after=600, times=2)
    for body in "abc":
        queue.send(body)
    handled = []
    report = queue.drain(lambda message: handled.append(message.body))
    assert handled == ["a", "b", "c", "a", "b"]
    assert report.elapsed == timedelta(minutes=10)


def test_a_lost_delete_is_acknowledged_and_the_message_comes_back(server, faults, sqs, queue):
    fault = faults.lost_delete()
    queue.send("a")
    (message,) = receive(sqs, queue, VisibilityTimeout=60)
    delete(sqs, queue, message)
    queue.assert_in_flight(body="a", for_seconds=60)
    delete(sqs, queue, message)
    queue.assert_empty()
    assert fault.fired == 1


def test_a_lost_delete_leaves_a_visible_message_where_it_is(server, faults, sqs, queue):
    faults.lost_delete()
    queue.send("a")
    (message,) = receive(sqs, queue)
    server.advance(30)
    delete(sqs, queue, message)
    queue.assert_counts(visible=1)
    server.check()


def test_some_deletes_of_a_batch_get_lost(faults, sqs, queue):
    faults.lost_delete(times=2)
    for body in "abc":
        queue.send(body)
    messages = receive(sqs, queue, MaxNumberOfMessages=10)
    answer = sqs.delete_message_batch(
        QueueUrl=queue.url,
        Entries=[
            {"Id": message["Body"], "ReceiptHandle": message["ReceiptHandle"]}
            for message in messages
        ],
    )
    assert [entry["Id"] for entry in answer["Successful"]] == ["a", "b", "c"]
    assert [view.body for view in queue.messages()] == ["a", "b"]


def test_a_fifo_queue_may_lose_a_delete_and_stays_in_order(server, faults, sqs):
    fifo = server.create_queue("orders.fifo")
    faults.lost_delete("orders.fifo")
    for body in "ab":
        fifo.send(body, MessageGroupId="g", MessageDeduplicationId=body)
    (message,) = receive(sqs, fifo)
    delete(sqs, fifo, message)
    assert receive(sqs, fifo) == []
    server.advance(30)
    assert [each["Body"] for each in receive(sqs, fifo, MaxNumberOfMessages=2)] == ["a", "b"]
    server.check()


def test_the_history_tells_of_the_lost_delete(server, faults, sqs, queue):
    faults.late_duplicate(after=60)
    queue.send("a")
    delete(sqs, queue, receive(sqs, queue)[0])
    event = queue.history(body="a")[-1]
    assert (event.kind, event.detail) == (
        "delete_lost",
        {"visible_at_ms": server.clock.now_ms + 60_000},
    )
    with pytest.raises(AssertionError) as caught:
        queue.assert_deleted(body="a")
    assert "+0 s deleted in vain, in flight until +60 s" in str(caught.value)


# Counts


def counts(sqs, queue):
    names = [
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
    ]
    answer = sqs.get_queue_attributes(QueueUrl=queue.url, AttributeNames=names)
    return tuple(int(answer["Attributes"][name]) for name in names)


def test_counts_stay_as_they_were(server, faults, sqs, queue):
    queue.send("a")
    with faults.stale_counts() as fault:
        queue.send("b")
        queue.send("c", DelaySeconds=60)
        receive(sqs, queue)
        later = server.create_queue("later")
        later.send("d")
        assert counts(sqs, queue) == (1, 0, 0)
        assert counts(sqs, later) == (0, 0, 0)
        queue.assert_counts(visible=1, in_flight=1, delayed=1)
    assert fault.fired == 2
    assert counts(sqs, queue) == (1, 1, 1)


def test_other_attributes_and_queues_are_never_stale(server, faults, sqs, queue):
    faults.stale_counts("others")
    queue.send("a")
    assert counts(sqs, queue) == (1, 0, 0)
    with faults.stale_counts(queue):
        answer = sqs.get_queue_attributes(QueueUrl=queue.url, AttributeNames=["QueueArn"])
        assert answer["Attributes"] == {"QueueArn": queue.arn}
        sqs.set_queue_attributes(QueueUrl=queue.url, Attributes={"DelaySeconds": "9"})
        names = ["DelaySeconds", "ApproximateNumberOfMessages"]
        answer = sqs.get_queue_attributes(QueueUrl=queue.url, AttributeNames=names)
        assert answer["Attributes"] == {"DelaySeconds": "9", "ApproximateNumberOfMessages": "1"}


# The store


def test_while_the_store_is_down_nothing_can_be_changed(server, faults, sqs, queue):
    queue.send("a")
    (held,) = queue.receive()
    queue.send("b")
    with faults.store_down() as fault:
        requests = [
            lambda: sqs.send_message(QueueUrl=queue.url, MessageBody="c"),
            lambda: sqs.receive_message(QueueUrl=queue.url),
            lambda: sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=held.receipt_handle),
            lambda: sqs.purge_queue(QueueUrl=queue.url),
            lambda: sqs.create_queue(QueueName="another"),
            lambda: sqs.delete_queue(QueueUrl=queue.url),
        ]
        for request in requests:
            with pytest.raises(ClientError) as caught:
                request()
            response = caught.value.response
            assert response["ResponseMetadata"]["HTTPStatusCode"] == 503
            assert response["Error"]["Code"] == "ServiceUnavailable"
            assert response["Error"]["Message"] == "Planned by the test: the store is down"
        with pytest.raises(ServiceUnavailable):
            queue.send("c")
        assert counts(sqs, queue) == (1, 1, 0)
        assert len(server.queues) == 1
    assert fault.fired == 7
    assert [message["Body"] for message in receive(sqs, queue)] == ["b"]
    server.check()


def test_a_move_that_the_store_refused_is_made_up_for(server, faults, sqs):
    queue = server.create_queue("orders", dead_letter_queue="dead", max_receive_count=1)
    queue.send("a")
    receive(sqs, queue)
    with faults.store_down():
        server.advance(30)
        assert queue.message(body="a").state == "in_flight"
    server.advance(1)
    queue.assert_dead_lettered(body="a")
    server.check()


def test_the_store_is_down_until_the_last_such_fault_is_removed(faults, sqs, send):
    first, second = faults.store_down(), faults.store_down()
    first.remove()
    with pytest.raises(ClientError):
        send()
    second.remove()
    send()
    assert (first.fired, second.fired) == (0, 1)
