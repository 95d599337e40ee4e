from __future__ import annotations

import pytest

from pytest_sqsq.models import OutgoingMessage

TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
HEADER = "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1"
SYSTEM = {"AWSTraceHeader": {"DataType": "String", "StringValue": TRACE}}


@pytest.fixture
def orders(sqs):
    sqs.create("orders")
    return sqs


def text(value, data_type="String"):
    return {"DataType": data_type, "StringValue": value}


def binary(value, data_type="Binary"):
    return {"DataType": data_type, "BinaryValue": value}


def test_a_plain_message_is_answered_with_its_id_and_digest(orders):
    sent = orders.send("orders", "message")

    assert sent == {
        "MessageId": orders.receive_one("orders")["MessageId"],
        "MD5OfMessageBody": "78e731027d8fd50ed642340b7c9a63b3",
    }


def test_each_kind_of_attributes_has_its_own_digest(orders):
    sent = orders.send(
        "orders",
        "test",
        MessageAttributes={"timestamp": text("1493147359900", "Number")},
        MessageSystemAttributes=SYSTEM,
    )

    assert sent["MD5OfMessageAttributes"] == "235c5c510d26fb653d073faed50ae77c"
    assert sent["MD5OfMessageSystemAttributes"] == "5ae4d5d7636402d80f4eb6d213245a88"


@pytest.mark.parametrize("absent", [None, {}])
def test_attributes_that_are_not_there_have_no_digest(orders, absent):
    sent = orders.send("orders", "test", MessageAttributes=absent, MessageSystemAttributes=absent)

    assert sent.keys() == {"MessageId", "MD5OfMessageBody"}


@pytest.mark.parametrize(
    "body",
    [
        " leading and trailing \t\r\n",
        "one\r\ntwo",
        "🥒 日本 é",
        "<a>&amp;</a>",
        '{"a": [1, null]}',
        "\t\n\r\x20\x7f\x85\ud7ff\ue000\ufffd\U00010000\U0010ffff",
        "x",
    ],
)
def test_a_body_arrives_as_it_was_sent(orders, body):
    orders.send("orders", body)

    assert orders.receive_one("orders")["Body"] == body


def test_a_message_of_exactly_the_maximum_is_sent(sqs):
    sqs.create("small", MaximumMessageSize="1024")
    sqs.send("small", "é" * 512)
    sqs.send("small", "a" * 1016, MessageAttributes={"k": text("x")})
    sqs.send("small", "a" * 1015, MessageAttributes={"k": binary(b"\x00\xff")})

    too_long = [
        sqs.error("SendMessage", QueueUrl="small", MessageBody=body, MessageAttributes=attributes)
        for body, attributes in (
            ("é" * 512 + "a", None),
            ("a" * 1017, {"k": text("x")}),
            ("a" * 1016, {"k": binary(b"\x00\xff")}),
        )
    ]

    assert {error.message for error in too_long} == {
        "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
    }


def test_ids_and_system_attributes_do_not_count_in_the_size(sqs):
    sqs.create("small.fifo", MaximumMessageSize="1024")

    assert sqs.send(
        "small.fifo",
        "a" * 1024,
        MessageGroupId="g" * 128,
        MessageDeduplicationId="d" * 128,
        MessageSystemAttributes=SYSTEM,
    )


def test_a_mebibyte_is_sent(orders):
    orders.send("orders", "a" * 1_048_576)

    assert len(orders.receive_one("orders")["Body"]) == 1_048_576


ATTRIBUTES = {
    "attr.1øßä": text("x"),
    "under_score-hyphen.dot": text("x"),
    "AWSome": text("x"),
    "amazonian": text("x"),
    "n" * 256: text("x"),
    "json": text('{"a":1}', "String.json"),
    "gif": binary(b"\x00\xff", "Binary.gif"),
    "long": text("x", "String." + "x" * 249),
    "zeros": text("001.500", "Number"),
    "digits": text("1" * 38, "Number.big"),
}


def test_attributes_arrive_as_they_were_sent(orders):
    orders.send("orders", "b", MessageAttributes=ATTRIBUTES)

    received = orders.receive_one("orders", MessageAttributeNames=["All"])

    assert received["MessageAttributes"] == ATTRIBUTES


@pytest.mark.parametrize(
    "number",
    [
        "0",
        "-1",
        "+1.5",
        ".5",
        "5.",
        "1e126",
        "-1e-128",
        "1E+5",
        "0e999",
        "1" * 38 + "000",
        "0" * 50,
    ],
)
def test_a_number_may_have_38_digits_and_a_wide_range(orders, number):
    orders.send("orders", "b", MessageAttributes={"n": text(number, "Number")})

    received = orders.receive_one("orders", MessageAttributeNames=["n"])
    assert received["MessageAttributes"]["n"]["StringValue"] == number


def test_empty_lists_in_an_attribute_are_nothing(orders):
    attribute = {**text("x"), "StringListValues": [], "BinaryListValues": []}

    sent = orders.send("orders", "b", MessageAttributes={"k": attribute})

    assert sent["MD5OfMessageAttributes"] == "a45daa70926828a2f0a1db3418e6feb4"


def trace_header(sqs):
    received = sqs.receive_one("orders", MessageSystemAttributeNames=["AWSTraceHeader"])
    return received["Attributes"]["AWSTraceHeader"]


def test_a_trace_header_comes_with_the_request_or_with_the_message(orders):
    orders.context.trace_header = HEADER

    sent = orders.send("orders", "by the request")
    assert "MD5OfMessageSystemAttributes" not in sent
    assert trace_header(orders) == HEADER

    orders.send("orders", "by the message", MessageSystemAttributes=SYSTEM)
    assert trace_header(orders) == TRACE


def test_a_trace_header_of_the_request_reaches_every_entry_of_a_batch(orders):
    orders.context.trace_header = HEADER
    entries = [
        {"Id": "a", "MessageBody": "a"},
        {"Id": "b", "MessageBody": "b", "MessageSystemAttributes": SYSTEM},
    ]

    orders("SendMessageBatch", QueueUrl="orders", Entries=entries)

    assert [trace_header(orders), trace_header(orders)] == [HEADER, TRACE]


def test_a_message_may_be_delayed_and_may_undo_the_delay_of_its_queue(sqs):
    sqs.create("orders", DelaySeconds="5")
    sqs.send("orders", "queue's delay")
    sqs.send("orders", "own delay", DelaySeconds=900)
    sqs.send("orders", "no delay", DelaySeconds=0)

    assert sqs.receive_one("orders")["Body"] == "no delay"
    sqs.clock.advance(5)
    assert sqs.receive_one("orders")["Body"] == "queue's delay"
    sqs.clock.advance(895)
    assert "own delay" in [
        message["Body"] for message in sqs.receive("orders", MaxNumberOfMessages=10)
    ]


def test_a_standard_queue_takes_message_groups_and_shows_them(orders):
    sent = orders.send("orders", "message", MessageGroupId="test")

    assert "SequenceNumber" not in sent
    assert orders.receive_one("orders", AttributeNames=["All"])["Attributes"] == {
        "ApproximateFirstReceiveTimestamp": "1893456000000",
        "ApproximateReceiveCount": "1",
        "MessageGroupId": "test",
        "SenderId": "AIDASSYFHUBOBT7F4XT75",
        "SentTimestamp": "1893456000000",
    }


PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def test_ids_may_hold_letters_digits_and_all_of_ascii_punctuation(sqs):
    sqs.create("orders.fifo")
    known = ("azAZ09" + PUNCTUATION) * 3
    group, duplicate = known[:128], known[::-1][:128]

    sqs.send("orders.fifo", "b", MessageGroupId=group, MessageDeduplicationId=duplicate)

    attributes = sqs.receive_one("orders.fifo", AttributeNames=["All"])["Attributes"]
    assert attributes["MessageGroupId"] == group
    assert attributes["MessageDeduplicationId"] == duplicate


def test_a_plain_message_reaches_the_engine_without_optional_parts(orders):
    taken = []
    real_send = orders.broker.send

    class Watching:
        def __getattr__(self, name):
            return getattr(orders.broker, name)

        def send(self, queue, messages):
            taken.extend(messages)
            return real_send(queue, messages)

    caller = orders.other()
    caller.context.broker = Watching()

    caller.send("orders", "b")

    assert taken == [OutgoingMessage("b")]


def test_lone_surrogates_which_only_json_can_write_are_invalid_characters(sqs):
    sqs.create("q")

    for surrogate in "\ud800\udfff":
        error = sqs.error("SendMessage", QueueUrl="q", MessageBody=f"a{surrogate}b")

        assert error.query_code == "InvalidMessageContents"
