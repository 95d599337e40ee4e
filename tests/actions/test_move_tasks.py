from __future__ import annotations

import json
from base64 import b64decode, b64encode

import pytest

START_MS = 1_893_456_000_000
ARN = "arn:aws:sqs:us-east-1:123456789012:"


@pytest.fixture
def orders(sqs):
    """A queue ``orders`` that dead-letters into ``dlq`` after one receive."""
    sqs.create("dlq")
    connect(sqs, "orders")
    return sqs


def connect(sqs, source, dlq="dlq"):
    policy = {"deadLetterTargetArn": f"{ARN}{dlq}", "maxReceiveCount": 1}
    sqs.create(source, RedrivePolicy=json.dumps(policy))


def fail(sqs, source, *bodies):
    """Sends messages that are received once too often."""
    for body in bodies:
        sqs.send(source, body)
        sqs.receive(source, VisibilityTimeout=0)


def start(sqs, source="dlq", destination=None, rate=None):
    arn = None if destination is None else f"{ARN}{destination}"
    return sqs(
        "StartMessageMoveTask",
        SourceArn=f"{ARN}{source}",
        DestinationArn=arn,
        MaxNumberOfMessagesPerSecond=rate,
    )["TaskHandle"]


def tasks(sqs, source="dlq", **parameters):
    return sqs("ListMessageMoveTasks", SourceArn=f"{ARN}{source}", **parameters).get("Results")


def bodies(sqs, queue):
    return [message["Body"] for message in sqs.receive(queue, MaxNumberOfMessages=10)]


def test_a_task_with_a_destination_moves_everything_there(orders):
    orders.create("archive")
    fail(orders, "orders", "a", "b")

    start(orders, destination="archive")

    assert tasks(orders) == [
        {
            "SourceArn": f"{ARN}dlq",
            "DestinationArn": f"{ARN}archive",
            "Status": "COMPLETED",
            "StartedTimestamp": START_MS,
            "ApproximateNumberOfMessagesMoved": 2,
            "ApproximateNumberOfMessagesToMove": 2,
        }
    ]
    assert bodies(orders, "archive") == ["a", "b"]
    assert bodies(orders, "dlq") == []


def test_without_a_destination_each_message_returns_to_its_own_source(orders):
    connect(orders, "others")
    fail(orders, "orders", "a", "b")
    fail(orders, "others", "c", "d")

    start(orders)

    (task,) = tasks(orders)
    assert "DestinationArn" not in task
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 4)
    assert bodies(orders, "orders") == ["a", "b"]
    assert bodies(orders, "others") == ["c", "d"]


def test_a_message_sent_straight_to_the_dead_letter_queue_has_nowhere_to_return_to(orders):
    orders.send("dlq", "stray")

    start(orders)

    (task,) = tasks(orders)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "CouldNotDetermineMessageSource")
    assert bodies(orders, "dlq") == ["stray"]


def test_a_rate_moves_one_message_after_the_other(orders):
    fail(orders, "orders", "a", "b", "c")
    handle = start(orders, rate=1)

    def running(moved):
        return {
            "SourceArn": f"{ARN}dlq",
            "Status": "RUNNING",
            "TaskHandle": handle,
            "MaxNumberOfMessagesPerSecond": 1,
            "StartedTimestamp": START_MS,
            "ApproximateNumberOfMessagesMoved": moved,
            "ApproximateNumberOfMessagesToMove": 3,
        }

    assert tasks(orders) == [running(0)]
    orders.clock.advance(0.999)
    assert tasks(orders) == [running(0)]
    orders.clock.advance(0.001)
    assert tasks(orders) == [running(1)]
    assert orders.attributes("dlq")["ApproximateNumberOfMessages"] == "2"
    orders.clock.advance(2)
    (task,) = tasks(orders)
    assert (task["Status"], "TaskHandle" in task) == ("COMPLETED", False)


def test_a_handle_is_the_task_and_its_source_in_base64(orders):
    fail(orders, "orders", "a")

    members = json.loads(b64decode(start(orders, rate=1)))

    assert members.keys() == {"taskId", "sourceArn"}
    assert members["sourceArn"] == f"{ARN}dlq"


def test_only_one_task_runs_for_a_source(orders):
    fail(orders, "orders", "a", "b")
    start(orders, rate=1)

    error = orders.error("StartMessageMoveTask", SourceArn=f"{ARN}dlq")

    assert (error.query_code, error.message) == (
        "InvalidParameterValue",
        (
            "There is already a task running. Only one active task is allowed for a source queue"
            " arn at a given time."
        ),
    )
    orders.clock.advance(2)
    assert start(orders)


def test_cancelling_leaves_moved_what_was_moved(orders):
    fail(orders, "orders", "a", "b", "c")
    handle = start(orders, rate=1)
    orders.clock.advance(2)

    assert orders("CancelMessageMoveTask", TaskHandle=handle) == {
        "ApproximateNumberOfMessagesMoved": 2
    }

    orders.clock.advance(10)
    (task,) = tasks(orders)
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("CANCELLED", 2)
    assert (bodies(orders, "orders"), bodies(orders, "dlq")) == (["a", "b"], ["c"])


def test_only_a_running_task_can_be_cancelled(orders):
    fail(orders, "orders", "a")
    handle = start(orders, rate=1)
    orders.clock.advance(1)

    error = orders.error("CancelMessageMoveTask", TaskHandle=handle)

    assert (error.query_code, error.message) == (
        "InvalidParameterValue",
        "Only active tasks can be cancelled.",
    )


def handle_of(task_id, source):
    return b64encode(
        json.dumps({"taskId": task_id, "sourceArn": f"{ARN}{source}"}).encode()
    ).decode()


def test_a_handle_of_no_task_finds_nothing(orders):
    fail(orders, "orders", "a")
    task_id = json.loads(b64decode(start(orders, rate=1)))["taskId"]

    errors = [
        orders.error("CancelMessageMoveTask", TaskHandle=handle)
        for handle in (
            handle_of("10f57157-fc86-4c9c-8e1b-b5e1f4e1b9f1", "dlq"),
            handle_of(task_id, "orders"),
            handle_of(task_id, "gone"),
        )
    ]

    assert {(error.query_code, error.status) for error in errors} == {
        ("ResourceNotFoundException", 404)
    }
    assert [error.message for error in errors] == [
        "Task does not exist.",
        "Task does not exist.",
        "The resource that you specified for the SourceArn parameter doesn't exist.",
    ]


def test_a_task_fails_when_its_destination_is_deleted(orders):
    orders.create("archive")
    fail(orders, "orders", "a", "b")
    start(orders, destination="archive", rate=1)
    orders.clock.advance(1)
    tasks(orders)

    orders("DeleteQueue", QueueUrl="archive")
    orders.clock.advance(1)

    assert tasks(orders) == [
        {
            "SourceArn": f"{ARN}dlq",
            "DestinationArn": f"{ARN}archive",
            "MaxNumberOfMessagesPerSecond": 1,
            "Status": "FAILED",
            "FailureReason": "AWS.SimpleQueueService.NonExistentQueue",
            "StartedTimestamp": START_MS,
            "ApproximateNumberOfMessagesMoved": 1,
            "ApproximateNumberOfMessagesToMove": 2,
        }
    ]
    assert bodies(orders, "dlq") == ["b"]


def test_the_newest_task_is_listed_alone_unless_more_are_asked_for(orders):
    for seconds in (0, 1, 1):
        orders.clock.advance(seconds)
        fail(orders, "orders", "again")
        start(orders)

    assert [task["StartedTimestamp"] - START_MS for task in tasks(orders)] == [2000]
    listed = tasks(orders, MaxResults=10)
    assert [task["StartedTimestamp"] - START_MS for task in listed] == [2000, 1000, 0]
    assert tasks(orders, MaxResults=2) == listed[:2]


def test_a_source_that_never_had_a_task_lists_none(orders):
    assert orders("ListMessageMoveTasks", SourceArn=f"{ARN}dlq") == {}


def test_a_moved_message_is_a_new_one(orders):
    attributes = {"k": {"DataType": "String", "StringValue": "x"}}
    sent = orders.send("orders", "a", MessageAttributes=attributes)
    orders.receive("orders", VisibilityTimeout=0)
    orders.clock.advance(5)

    start(orders)

    received = orders.receive_one("orders", AttributeNames=["All"], MessageAttributeNames=["All"])
    assert received["MessageId"] != sent["MessageId"]
    assert received["MessageAttributes"] == attributes
    assert received["Attributes"] == {
        "SenderId": "AIDASSYFHUBOBT7F4XT75",
        "SentTimestamp": str(START_MS + 5000),
        "ApproximateReceiveCount": "1",
        "ApproximateFirstReceiveTimestamp": str(START_MS + 5000),
    }


def test_an_account_runs_at_most_a_hundred_tasks(sqs):
    for number in range(101):
        sqs.create(f"dlq{number}")
        connect(sqs, f"source{number}", f"dlq{number}")
        sqs.send(f"dlq{number}", "stays")
    for number in range(100):
        start(sqs, f"dlq{number}", "source0", rate=1)

    error = sqs.error(
        "StartMessageMoveTask",
        SourceArn=f"{ARN}dlq100",
        DestinationArn=f"{ARN}source0",
        MaxNumberOfMessagesPerSecond=1,
    )

    assert (error.query_code, error.status) == ("OverLimit", 403)
    sqs.clock.advance(1)
    assert start(sqs, "dlq100", "source0", rate=1)
