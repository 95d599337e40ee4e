from __future__ import annotations

import pytest

LONG_ID = "-_" + "x" * 78


@pytest.fixture
def orders(sqs):
    sqs.create("orders")
    return sqs


def batch(sqs, action, entries, queue="orders"):
    return sqs(action, QueueUrl=queue, Entries=entries)


def entry(entry_id, body="b", **members):
    return {"Id": entry_id, "MessageBody": body, **members}


def failed(entry_id, message, code="InvalidParameterValue"):
    return {"Id": entry_id, "SenderFault": True, "Code": code, "Message": message}


def bodies(sqs, queue="orders"):
    return [message["Body"] for message in sqs.receive(queue, MaxNumberOfMessages=10)]


def test_each_entry_is_answered_as_a_message_of_its_own(orders):
    attributes = {"k": {"DataType": "String", "StringValue": "x"}}
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}}

    answer = batch(
        orders,
        "SendMessageBatch",
        [
            entry("z", "test"),
            entry("a", "hello", MessageAttributes=attributes),
            entry(LONG_ID, "message", MessageSystemAttributes=trace),
        ],
    )

    assert answer.keys() == {"Successful"}
    first, second, third = answer["Successful"]
    assert first == {
        "Id": "z",
        "MessageId": first["MessageId"],
        "MD5OfMessageBody": "098f6bcd4621d373cade4e832627b4f6",
    }
    assert second["Id"] == "a"
    assert second["MD5OfMessageAttributes"] == "a45daa70926828a2f0a1db3418e6feb4"
    assert third["Id"] == LONG_ID
    assert third.keys() - first.keys() == {"MD5OfMessageSystemAttributes"}
    assert bodies(orders) == ["test", "hello", "message"]


def test_wrong_entries_fail_alone_and_in_order(orders):
    attribute = {"k": {"DataType": "String", "StringValue": ""}}
    answer = batch(
        orders,
        "SendMessageBatch",
        [
            entry("characters", "\x00"),
            entry("good"),
            entry("delay", DelaySeconds=901),
            entry("attribute", MessageAttributes=attribute),
            entry("duplicate", MessageDeduplicationId="d"),
            entry("group", MessageGroupId="a b"),
            entry("fine"),
        ],
    )

    assert [success["Id"] for success in answer["Successful"]] == ["good", "fine"]
    assert answer["Failed"] == [
        failed(
            "characters",
            "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD |"
            " #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF",
            "InvalidMessageContents",
        ),
        failed(
            "delay",
            "Value 901 for parameter DelaySeconds is invalid."
            " Reason: DelaySeconds must be >= 0 and <= 900.",
        ),
        failed(
            "attribute",
            "Message (user) attribute 'k' must contain a non-empty value of type 'String'.",
        ),
        failed(
            "duplicate",
            "The request include parameter that is not valid for this queue type",
        ),
        failed(
            "group",
            "MessageGroupId can only include alphanumeric and punctuation characters."
            " 1 to 128 in length",
        ),
    ]
    assert bodies(orders) == ["b", "b"]


def test_where_every_entry_fails_there_are_no_successful_ones(orders):
    answer = batch(orders, "SendMessageBatch", [entry("a", "\x00")])

    assert answer.keys() == {"Failed"}


def test_an_entry_above_the_queues_limit_fails_in_words_of_its_own(sqs):
    sqs.create("small", MaximumMessageSize="1024")

    answer = batch(
        sqs, "SendMessageBatch", [entry("long", "a" * 1025), entry("good", "a" * 1024)], "small"
    )

    assert answer["Failed"] == [
        failed(
            "long",
            "One or more parameters cannot be validated."
            " Reason: Message must be shorter than 1024 bytes.",
        )
    ]
    assert answer["Successful"][0]["MD5OfMessageBody"] == "c9a34cfc85d982698c6ac89f76071abd"


def test_entries_may_exceed_the_queues_limit_together(sqs):
    sqs.create("small", MaximumMessageSize="1024")

    answer = batch(
        sqs, "SendMessageBatch", [entry("a", "a" * 1024), entry("b", "b" * 1024)], "small"
    )

    assert len(answer["Successful"]) == 2


def test_a_batch_of_exactly_a_mebibyte_is_sent(orders):
    attributes = {"k": {"DataType": "String", "StringValue": "x"}}
    entries = [
        entry("a", "a" * 1_000_000, MessageAttributes=attributes),
        entry("b", "b" * (48_576 - 8)),
    ]

    assert len(batch(orders, "SendMessageBatch", entries)["Successful"]) == 2


def test_the_size_of_a_batch_is_judged_before_its_entries(orders):
    entries = [
        entry("a", "\x00" * 1_048_576, MessageAttributes={"\ud800": {"StringValue": "\udfff"}})
    ]

    error = orders.error("SendMessageBatch", QueueUrl="orders", Entries=entries)

    assert error.message == (
        "Batch requests cannot be longer than 1048576 bytes. You have sent 1048582 bytes."
    )


def test_wrong_fifo_entries_do_not_hold_up_the_others(sqs):
    sqs.create("q.fifo", ContentBasedDeduplication="true")
    good = {"MessageGroupId": "g"}

    answer = batch(
        sqs,
        "SendMessageBatch",
        [
            entry("a", "a", **good),
            entry("delay", DelaySeconds=2, **good),
            entry("group", MessageGroupId=""),
            entry("duplicate", MessageDeduplicationId="d d", **good),
            entry("b", "b", DelaySeconds=0, **good),
        ],
        "q.fifo",
    )

    assert [failure["Message"] for failure in answer["Failed"]] == [
        (
            "Value 2 for parameter DelaySeconds is invalid. Reason: The request include parameter"
            " that is not valid for this queue type."
        ),
        (
            "MessageGroupId can only include alphanumeric and punctuation characters."
            " 1 to 128 in length"
        ),
        (
            "MessageDeduplicationId can only include alphanumeric and punctuation characters."
            " 1 to 128 in length"
        ),
    ]
    assert bodies(sqs, "q.fifo") == ["a", "b"]


def received_handles(sqs, *sent):
    for body in sent:
        sqs.send("orders", body)
    return [message["ReceiptHandle"] for message in sqs.receive("orders", MaxNumberOfMessages=10)]


def test_messages_are_deleted_together(orders):
    one, two = received_handles(orders, "one", "two")

    answer = batch(
        orders,
        "DeleteMessageBatch",
        [
            {"Id": "1", "ReceiptHandle": one},
            {"Id": "bad", "ReceiptHandle": "X"},
            {"Id": "2", "ReceiptHandle": two},
            {"Id": "again", "ReceiptHandle": one},
            {"Id": "empty", "ReceiptHandle": ""},
        ],
    )

    assert answer == {
        "Successful": [{"Id": "1"}, {"Id": "2"}, {"Id": "again"}],
        "Failed": [
            failed(
                "bad",
                'The input receipt handle "X" is not a valid receipt handle.',
                "ReceiptHandleIsInvalid",
            ),
            failed(
                "empty",
                'The input receipt handle "" is not a valid receipt handle.',
                "ReceiptHandleIsInvalid",
            ),
        ],
    }
    orders.clock.advance(30)
    assert bodies(orders) == []


def test_visibilities_are_changed_together(orders):
    one, two = received_handles(orders, "one", "two")

    answer = batch(
        orders,
        "ChangeMessageVisibilityBatch",
        [
            {"Id": "missing", "ReceiptHandle": one},
            {"Id": "1", "ReceiptHandle": one, "VisibilityTimeout": 0},
            {"Id": "range", "ReceiptHandle": one, "VisibilityTimeout": -85},
            {"Id": "bad", "ReceiptHandle": "X", "VisibilityTimeout": 1},
            {"Id": "2", "ReceiptHandle": two, "VisibilityTimeout": 43_200},
        ],
    )

    assert answer == {
        "Successful": [{"Id": "1"}, {"Id": "2"}],
        "Failed": [
            failed(
                "missing",
                "The request must contain the parameter"
                " ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout.",
                "MissingParameter",
            ),
            failed(
                "range",
                "Value -85 for parameter VisibilityTimeout is invalid."
                " Reason: VisibilityTimeout must be an integer between 0 and 43200.",
            ),
            failed(
                "bad",
                'The input receipt handle "X" is not a valid receipt handle.',
                "ReceiptHandleIsInvalid",
            ),
        ],
    }
    assert bodies(orders) == ["one"]
    orders.clock.advance(30)
    assert bodies(orders) == ["one"]


def test_ten_entries_are_the_most(orders):
    entries = [entry(str(number), str(number)) for number in range(10)]

    assert len(batch(orders, "SendMessageBatch", entries)["Successful"]) == 10
    assert bodies(orders) == [str(number) for number in range(10)]


@pytest.mark.parametrize(
    "action", ["SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"]
)
def test_a_batch_without_entries_is_an_empty_one(orders, action):
    assert orders.error(action, QueueUrl="orders").shape == "EmptyBatchRequest"


def test_a_refused_batch_sends_nothing(orders):
    entries = [entry("a"), entry("a")]

    orders.error("SendMessageBatch", QueueUrl="orders", Entries=entries)

    assert bodies(orders) == []
