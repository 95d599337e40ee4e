from __future__ import annotations

import json

import pytest

from pytest_sqsq.actions.messages import system_attributes

STANDARD = {
    "ApproximateFirstReceiveTimestamp": "1893456000000",
    "ApproximateReceiveCount": "1",
    "SenderId": "AIDASSYFHUBOBT7F4XT75",
    "SentTimestamp": "1893456000000",
}


def text(value):
    return {"DataType": "String", "StringValue": value}


@pytest.fixture
def orders(sqs):
    sqs.create("orders")
    return sqs


def test_a_received_message_has_four_members_unless_more_are_asked_for(orders):
    sent = orders.send("orders", "test", MessageAttributes={"k": text("x")})

    received = orders.receive_one("orders")

    assert received == {
        "MessageId": sent["MessageId"],
        "ReceiptHandle": received["ReceiptHandle"],
        "MD5OfBody": "098f6bcd4621d373cade4e832627b4f6",
        "Body": "test",
    }


def test_a_receive_that_finds_nothing_is_empty(orders):
    assert orders("ReceiveMessage", QueueUrl="orders") == {}


@pytest.mark.parametrize(("asked", "received"), [(None, 1), (1, 1), (10, 10)])
def test_one_message_is_received_unless_more_are_asked_for(orders, asked, received):
    for number in range(12):
        orders.send("orders", str(number))

    assert len(orders.receive("orders", MaxNumberOfMessages=asked)) == received


@pytest.mark.parametrize("parameter", ["AttributeNames", "MessageSystemAttributeNames"])
@pytest.mark.parametrize(
    ("names", "given"),
    [
        (["All"], STANDARD),
        (["All", "SenderId"], STANDARD),
        (["ALL"], STANDARD),
        (["SenderId"], {"SenderId": "AIDASSYFHUBOBT7F4XT75"}),
        (["SenderId", "SequenceNumber"], {"SenderId": "AIDASSYFHUBOBT7F4XT75"}),
        (["SequenceNumber"], None),
        (["Policy", "CreatedTimestamp"], None),
        ([], None),
    ],
)
def test_system_attributes_are_given_by_name_where_there_are_any(orders, parameter, names, given):
    orders.send("orders", "msg")

    received = orders.receive_one("orders", **{parameter: names})

    assert received.get("Attributes") == given


def test_both_lists_of_names_together_are_their_union(orders):
    orders.send("orders", "msg")

    received = orders.receive_one(
        "orders", AttributeNames=["SenderId"], MessageSystemAttributeNames=["SentTimestamp"]
    )

    assert received["Attributes"].keys() == {"SenderId", "SentTimestamp"}


def test_the_count_of_receives_rises_and_the_first_stays(orders):
    orders.send("orders", "msg")
    orders.receive("orders", VisibilityTimeout=2)
    orders.clock.advance(2)

    received = orders.receive_one("orders", AttributeNames=["All"])

    assert received["Attributes"] == STANDARD | {"ApproximateReceiveCount": "2"}


def test_a_message_nobody_received_has_no_time_of_its_first_receive(orders, broker):
    orders.send("orders", "msg")
    (queue,) = broker.queues

    with broker.entry(queue):
        (message,) = queue.log.live_messages()
        attributes = system_attributes(message)

    assert attributes == {
        "SenderId": "AIDASSYFHUBOBT7F4XT75",
        "SentTimestamp": "1893456000000",
        "ApproximateReceiveCount": "0",
    }


SENT = {"Hello": text("There"), "General": text("Kenobi"), "Help.Me": text("Me")}
ALL_DIGEST = "4c360f3fdafd970e05fae2f149d997f5"


@pytest.mark.parametrize(
    ("patterns", "names", "digest"),
    [
        (["All"], SENT, ALL_DIGEST),
        ([".*"], SENT, ALL_DIGEST),
        (["*"], SENT, ALL_DIGEST),
        (["Hel.*"], ["Hello", "Help.Me"], "83fee93c1bcd8b9a5a923ffacdc636c7"),
        (["Hello", "Help.Me"], ["Hello", "Help.Me"], "83fee93c1bcd8b9a5a923ffacdc636c7"),
        (["Hello"], ["Hello"], "a311262e065454b75da111d535b8dacd"),
        (["Hello", "Gen.*"], ["Hello", "General"], "fca026605781cb4126a1e9044df24232"),
        (["Hello", "Foo"], ["Hello"], "a311262e065454b75da111d535b8dacd"),
    ],
)
def test_attributes_are_chosen_by_name_and_prefix_and_digested_as_chosen(
    orders, patterns, names, digest
):
    orders.send("orders", "b", MessageAttributes=SENT)

    received = orders.receive_one("orders", MessageAttributeNames=patterns)

    assert received["MessageAttributes"] == {name: SENT[name] for name in names}
    assert received["MD5OfMessageAttributes"] == digest


@pytest.mark.parametrize(
    "patterns", [None, [], ["Foo"], ["hello"], ["Hel*"], ["Hel"], ["AWS."], ["..foo"], ["hel.*"]]
)
def test_where_no_attribute_is_chosen_nothing_is_said_of_them(orders, patterns):
    orders.send("orders", "b", MessageAttributes=SENT)

    received = orders.receive_one("orders", MessageAttributeNames=patterns)

    assert received.keys() == {"MessageId", "ReceiptHandle", "MD5OfBody", "Body"}


@pytest.mark.parametrize("patterns", [["All"], ["k"], ["k.*"]])
def test_a_message_without_attributes_has_none_to_choose(orders, patterns):
    orders.send("orders", "b")

    received = orders.receive_one("orders", MessageAttributeNames=patterns)

    assert received.keys() == {"MessageId", "ReceiptHandle", "MD5OfBody", "Body"}


def test_binary_attributes_are_received_as_bytes(orders):
    attribute = {"DataType": "Binary", "BinaryValue": b"\x00\xff"}
    orders.send("orders", "b", MessageAttributes={"blob": attribute})

    received = orders.receive_one("orders", MessageAttributeNames=["blob"])

    assert received["MessageAttributes"] == {"blob": attribute}


def test_a_dead_letter_keeps_its_identity_and_tells_where_it_comes_from(sqs):
    sqs.create("dlq")
    policy = {"deadLetterTargetArn": sqs.arn("dlq"), "maxReceiveCount": 1}
    sqs.create("source", RedrivePolicy=json.dumps(policy))
    sqs.context.trace_header = "Root=1-3152b799-8954dae64eda91bc9a23a7e8"
    sent = sqs.send("source", "message-1", MessageAttributes={"MyAttribute": text("foobar")})
    sqs.receive("source", VisibilityTimeout=1)
    sqs.clock.advance(1)

    received = sqs.receive_one("dlq", AttributeNames=["All"], MessageAttributeNames=["All"])

    assert received["MessageId"] == sent["MessageId"]
    assert received["MD5OfBody"] == "3d6b824fd8c1520e9a047d21fee6fb1f"
    assert received["MD5OfMessageAttributes"] == "adb59cd4678ea5a855436b949cd07ab6"
    assert received["Attributes"] == STANDARD | {
        "ApproximateReceiveCount": "2",
        "AWSTraceHeader": "Root=1-3152b799-8954dae64eda91bc9a23a7e8",
        "DeadLetterQueueSourceArn": sqs.arn("source"),
    }


@pytest.mark.parametrize(
    ("queue_wait", "asked", "waited"),
    [("0", None, None), ("5", None, 5), ("5", 0, None), ("0", 20, 20), ("5", 3, 3)],
)
def test_a_receive_waits_as_long_as_it_asks_or_its_queue_says(sqs, queue_wait, asked, waited):
    sqs.create("orders", ReceiveMessageWaitTimeSeconds=queue_wait)

    assert sqs.receive("orders", WaitTimeSeconds=asked) == []

    assert [waiter.real_seconds for waiter in sqs.parked] == ([waited] if waited else [])


def test_a_receive_does_not_wait_for_more_than_the_first_messages(orders):
    orders.send("orders", "a")
    orders.send("orders", "b")

    received = orders.receive("orders", MaxNumberOfMessages=3, WaitTimeSeconds=5)

    assert [message["Body"] for message in received] == ["a", "b"]
    assert orders.parked == []


def test_a_waiting_receive_is_answered_with_what_arrives(orders):
    orders.while_parked = lambda waiter: orders.other().send(
        "orders", "late", MessageAttributes={"k": text("x")}
    )

    received = orders.receive_one(
        "orders", WaitTimeSeconds=20, MessageAttributeNames=["k"], AttributeNames=["SenderId"]
    )

    assert received["Body"] == "late"
    assert received["MessageAttributes"] == {"k": text("x")}
    assert received["Attributes"] == {"SenderId": "AIDASSYFHUBOBT7F4XT75"}


def test_a_waiting_receive_is_told_that_its_queue_is_gone(orders):
    orders.while_parked = lambda waiter: orders.other()("DeleteQueue", QueueUrl="orders")

    error = orders.error("ReceiveMessage", QueueUrl="orders", WaitTimeSeconds=20)

    assert error.shape == "QueueDoesNotExist"


@pytest.mark.parametrize("wait", [0, 5])
def test_too_many_messages_in_flight_fail_a_short_poll_only(sqs, wait):
    sqs.broker.in_flight_limit = 1
    sqs.create("orders")
    sqs.send("orders", "a")
    sqs.send("orders", "b")
    sqs.receive("orders")

    if wait:
        assert sqs.receive("orders", WaitTimeSeconds=wait) == []
    else:
        error = sqs.error("ReceiveMessage", QueueUrl="orders")
        assert (error.query_code, error.status) == ("OverLimit", 403)
