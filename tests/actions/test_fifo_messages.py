from __future__ import annotations

import re

import pytest

SHA_256_OF_SAME = "0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5"


@pytest.fixture
def fifo(sqs):
    sqs.create("q.fifo")
    return sqs


@pytest.fixture
def content(sqs):
    sqs.create("q.fifo", ContentBasedDeduplication="true")
    return sqs


def send(sqs, body, group="g", duplicate=None, **parameters):
    return sqs.send(
        "q.fifo", body, MessageGroupId=group, MessageDeduplicationId=duplicate, **parameters
    )


def bodies(sqs):
    return [message["Body"] for message in sqs.receive("q.fifo", MaxNumberOfMessages=10)]


def test_a_fifo_message_shows_seven_system_attributes(fifo):
    sent = send(fifo, "message-body-1", "group-1", "dedup-1")

    received = fifo.receive_one("q.fifo", AttributeNames=["All"])

    assert sent["MD5OfMessageBody"] == "19c9e282d65f9733bc6b35d50062c7ee"
    assert received["Attributes"] == {
        "ApproximateFirstReceiveTimestamp": "1893456000000",
        "ApproximateReceiveCount": "1",
        "MessageDeduplicationId": "dedup-1",
        "MessageGroupId": "group-1",
        "SenderId": "AIDASSYFHUBOBT7F4XT75",
        "SentTimestamp": "1893456000000",
        "SequenceNumber": sent["SequenceNumber"],
    }


def test_sequence_numbers_have_twenty_digits_and_rise(fifo):
    numbers = [send(fifo, "b", duplicate=str(n))["SequenceNumber"] for n in range(3)]

    assert all(re.fullmatch("[0-9]{20}", number) for number in numbers)
    assert numbers == sorted(set(numbers))


def test_a_duplicate_is_answered_with_the_originals_ids_and_its_own_digest(fifo):
    original = send(fifo, "one", duplicate="d")

    duplicate = send(fifo, "two", duplicate="d")

    assert duplicate["MessageId"] == original["MessageId"]
    assert duplicate["SequenceNumber"] == original["SequenceNumber"]
    assert duplicate["MD5OfMessageBody"] == "b8a9f715dbb64fd5c56e7783c6820a61"
    assert bodies(fifo) == ["one"]


def test_content_decides_duplicates_by_the_body_alone(content):
    send(content, "same", MessageAttributes={"k": {"DataType": "String", "StringValue": "x"}})
    send(content, "same")
    send(content, "same", "another-group")
    send(content, "other")

    received = content.receive("q.fifo", MaxNumberOfMessages=10, AttributeNames=["All"])

    assert [message["Body"] for message in received] == ["same", "other"]
    assert received[0]["Attributes"]["MessageDeduplicationId"] == SHA_256_OF_SAME


def test_an_explicit_id_wins_over_the_content(content):
    send(content, "same", duplicate="one")
    send(content, "same", duplicate="two")

    assert bodies(content) == ["same", "same"]


def test_an_explicit_id_may_collide_with_a_body(content):
    send(content, "same")

    send(content, "other", duplicate=SHA_256_OF_SAME)

    assert bodies(content) == ["same"]


def test_an_id_is_a_duplicate_in_every_group_of_the_queue(fifo):
    send(fifo, "one", "g1", "d")
    send(fifo, "two", "g2", "d")

    assert bodies(fifo) == ["one"]


def test_with_the_scope_of_message_groups_each_group_has_its_own_ids(sqs):
    sqs.create("q.fifo", DeduplicationScope="messageGroup")
    send(sqs, "one", "g1", "d")
    send(sqs, "two", "g2", "d")
    send(sqs, "three", "g1", "d")

    assert bodies(sqs) == ["one", "two"]


@pytest.mark.parametrize(
    ("before", "after", "delivered"),
    [("queue", "messageGroup", ["one"]), ("messageGroup", "queue", ["one", "two"])],
)
def test_a_later_change_of_scope_shows_and_changes_nothing(sqs, before, after, delivered):
    sqs.create("q.fifo", DeduplicationScope=before)
    sqs("SetQueueAttributes", QueueUrl="q.fifo", Attributes={"DeduplicationScope": after})

    send(sqs, "one", "g1", "d")
    send(sqs, "two", "g2", "d")

    assert sqs.attributes("q.fifo", "DeduplicationScope") == {"DeduplicationScope": after}
    assert bodies(sqs) == delivered


def test_a_message_that_was_deleted_still_has_duplicates(fifo):
    send(fifo, "one", duplicate="d")
    handle = fifo.receive_one("q.fifo")["ReceiptHandle"]
    fifo("DeleteMessage", QueueUrl="q.fifo", ReceiptHandle=handle)

    send(fifo, "two", duplicate="d")

    assert bodies(fifo) == []


def test_duplicates_are_told_for_five_minutes_from_the_first_send(fifo):
    send(fifo, "one", duplicate="d")
    fifo.clock.advance(299.999)
    send(fifo, "two", duplicate="d")
    fifo.clock.advance(0.001)
    send(fifo, "three", duplicate="d")

    assert bodies(fifo) == ["one", "three"]


def test_a_delay_of_zero_leaves_the_queues_delay(sqs):
    sqs.create("q.fifo", DelaySeconds="2", ContentBasedDeduplication="true")
    send(sqs, "message-1", DelaySeconds=0)

    assert bodies(sqs) == []
    sqs.clock.advance(2)
    assert bodies(sqs) == ["message-1"]


def test_a_group_is_blocked_by_its_message_in_flight_and_still_counted(content):
    for body in ("a", "b", "c"):
        send(content, body)
    content.receive("q.fifo")

    assert bodies(content) == []
    counts = content.attributes(
        "q.fifo", "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
    )
    assert counts == {
        "ApproximateNumberOfMessages": "2",
        "ApproximateNumberOfMessagesNotVisible": "1",
    }


@pytest.mark.parametrize(("extended", "returned"), [(0, []), (1, ["foo"]), (2, ["foo", "bar"])])
def test_extending_one_message_blocks_those_behind_it(content, extended, returned):
    for body in ("foo", "bar", "baz"):
        send(content, body)
    received = content.receive("q.fifo", MaxNumberOfMessages=10, VisibilityTimeout=2)
    content(
        "ChangeMessageVisibility",
        QueueUrl="q.fifo",
        ReceiptHandle=received[extended]["ReceiptHandle"],
        VisibilityTimeout=30,
    )
    content.clock.advance(2)

    assert bodies(content) == returned


@pytest.mark.parametrize("action", ["DeleteMessage", "ChangeMessageVisibility"])
def test_a_handle_is_worth_nothing_once_its_visibility_has_ended(content, action):
    send(content, "foobar")
    handle = content.receive_one("q.fifo", VisibilityTimeout=1)["ReceiptHandle"]
    content.clock.advance(1)

    error = content.error(action, QueueUrl="q.fifo", ReceiptHandle=handle, VisibilityTimeout=1)

    assert (error.query_code, error.status, error.message) == (
        "InvalidParameterValue",
        400,
        (
            f"Value {handle} for parameter ReceiptHandle is invalid."
            " Reason: The receipt handle has expired."
        ),
    )


def attempt(sqs, attempt_id="attempt", **parameters):
    return sqs.receive("q.fifo", ReceiveRequestAttemptId=attempt_id, **parameters)


def test_an_attempt_can_be_repeated_and_gives_the_same_handles(content):
    send(content, "a")
    send(content, "b")

    first = attempt(content, MaxNumberOfMessages=2, AttributeNames=["ApproximateReceiveCount"])
    again = attempt(content, MaxNumberOfMessages=2, AttributeNames=["ApproximateReceiveCount"])

    assert [message["Body"] for message in first] == ["a", "b"]
    assert again == first
    assert attempt(content, "another") == []


def test_an_attempt_cannot_be_repeated_once_a_message_of_it_is_deleted(content):
    send(content, "a")
    (message,) = attempt(content)
    content("DeleteMessage", QueueUrl="q.fifo", ReceiptHandle=message["ReceiptHandle"])

    error = content.error("ReceiveMessage", QueueUrl="q.fifo", ReceiveRequestAttemptId="attempt")

    assert error.message == (
        "Value attempt for parameter ReceiveRequestAttemptId is invalid. Reason: The"
        " receiveRequestAttemptId is not valid anymore since the receive call is not retryable."
    )


def test_a_batch_enqueues_in_its_order_and_tells_duplicates_within_itself(fifo):
    entries = [
        {"Id": f"id{n}", "MessageBody": body, "MessageGroupId": "g", "MessageDeduplicationId": d}
        for n, (body, d) in enumerate((("a", "1"), ("b", "2"), ("c", "1")))
    ]

    sent = fifo("SendMessageBatch", QueueUrl="q.fifo", Entries=entries)["Successful"]

    assert bodies(fifo) == ["a", "b"]
    assert sent[2]["MessageId"] == sent[0]["MessageId"]
    assert sent[2]["SequenceNumber"] == sent[0]["SequenceNumber"] < sent[1]["SequenceNumber"]
    assert sent[2]["MD5OfMessageBody"] == "4a8a08f09d37b73795649038408b5f33"
