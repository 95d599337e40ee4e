from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_sqsq.errors import (
    InvalidParameterValue,
    MissingParameter,
    PurgeQueueInProgress,
    ReceiptHandleIsInvalid,
)


@pytest.fixture
def queue(world: Any) -> Any:
    return world.queue("orders")


def test_sending_returns_the_message(queue: Any) -> None:
    view = queue.send("a", DelaySeconds=5)
    assert queue.messages() == (view,)
    assert view.state == "delayed"


def test_sending_is_checked_as_the_api_checks(world: Any, queue: Any) -> None:
    with pytest.raises(InvalidParameterValue, match="DelaySeconds must be >= 0 and <= 900"):
        queue.send("a", DelaySeconds=901)
    with pytest.raises(MissingParameter, match="MessageBody"):
        queue.send("")
    with pytest.raises(MissingParameter, match="MessageGroupId"):
        world.queue("orders.fifo").send("a")
    queue.assert_nothing_sent()


def test_a_parameter_that_send_message_does_not_know_is_refused(queue: Any) -> None:
    with pytest.raises(TypeError) as caught:
        queue.send("a", Delay=3)
    assert str(caught.value) == (
        "unknown parameter Delay: SendMessage takes DelaySeconds, MessageAttributes,"
        " MessageSystemAttributes, MessageDeduplicationId, MessageGroupId"
    )


def test_a_duplicate_gives_the_original_message_even_if_it_is_gone(world: Any) -> None:
    queue = world.queue("orders.fifo")
    sent = queue.send("a", MessageGroupId="g")
    queue.delete(queue.receive()[0])
    again = queue.send("a", MessageGroupId="g")
    assert (again.message_id, again.slot) == (sent.message_id, None)


def test_receiving_gives_views_with_handles(world: Any, queue: Any) -> None:
    for body in "abc":
        queue.send(body)
    first, second = queue.receive(2, visibility_timeout=7)
    assert [first.body, second.body] == ["a", "b"]
    assert first.visible_at_ms == world.clock.now_ms + 7_000
    assert queue.messages("in_flight") == (first, second)
    queue.delete(first)
    queue.delete(second.receipt_handle)
    assert [view.body for view in queue.messages()] == ["c"]


def test_a_message_received_without_a_timeout_has_its_handle_nevertheless(queue: Any) -> None:
    queue.send("a")
    (view,) = queue.receive(visibility_timeout=0)
    assert (view.state, view.receive_count) == ("visible", 1)
    queue.delete(view)
    queue.assert_empty()


def test_receiving_is_checked_as_the_api_checks(queue: Any) -> None:
    assert queue.receive() == ()
    with pytest.raises(InvalidParameterValue, match="Must be between 1 and 10, if provided"):
        queue.receive(11)


def test_receiving_does_not_wait_on_a_queue_that_does(world: Any) -> None:
    queue = world.queue("orders", ReceiveMessageWaitTimeSeconds=20)
    assert queue.receive() == ()


def test_a_view_without_a_handle_cannot_be_deleted_by(queue: Any) -> None:
    view = queue.send("a")
    with pytest.raises(ValueError, match="delete what receive\\(\\) returns"):
        queue.delete(view)
    with pytest.raises(ReceiptHandleIsInvalid):
        queue.delete("garbage")


def test_purging_obeys_the_cool_down(make_world: Callable[..., Any]) -> None:
    world = make_world()
    queue = world.queue("orders")
    ordinary = world.context

    def with_cooldowns(account_id: str, region: str) -> Any:
        context = ordinary(account_id, region)
        context.cooldowns = True
        return context

    world.context = with_cooldowns
    queue.send("a")
    queue.purge()
    queue.assert_empty()
    with pytest.raises(PurgeQueueInProgress):
        queue.purge()
    world.clock.advance(60)
    queue.purge()


def test_a_queue_of_another_region_is_acted_on(world: Any, queue: Any) -> None:
    other = world.queue("orders", region="eu-central-1")
    other.send("a")
    queue.assert_empty()
    assert other.receive()[0].body == "a"


def test_sns_wraps_a_message(world: Any, queue: Any) -> None:
    view = queue.send_sns(
        '{"id": 7}',
        topic_arn="arn:aws:sns:eu-west-1:123456789012:orders",
        subject="New order",
        message_attributes={"type": "order", "n": 3, "raw": b"\x00", "tags": ["a", "b"]},
    )
    notification = json.loads(view.body)
    assert view.body.startswith('{\n  "Type" : "Notification",\n  "MessageId" : "')
    assert list(notification) == [
        "Type",
        "MessageId",
        "TopicArn",
        "Subject",
        "Message",
        "Timestamp",
        "SignatureVersion",
        "Signature",
        "SigningCertURL",
        "UnsubscribeURL",
        "MessageAttributes",
    ]
    assert notification["Message"] == '{"id": 7}'
    assert notification["Timestamp"] == "2030-01-01T00:00:00.000Z"
    assert notification["SigningCertURL"].startswith("https://sns.eu-west-1.amazonaws.com/")
    assert notification["MessageAttributes"] == {
        "type": {"Type": "String", "Value": "order"},
        "n": {"Type": "Number", "Value": "3"},
        "raw": {"Type": "Binary", "Value": "AA=="},
        "tags": {"Type": "String.Array", "Value": '["a", "b"]'},
    }
    assert view.attributes == {}


def test_sns_leaves_out_what_a_message_has_not(queue: Any) -> None:
    notification = json.loads(queue.send_sns("a").body)
    assert "Subject" not in notification
    assert "MessageAttributes" not in notification
    assert notification["TopicArn"] == "arn:aws:sns:us-east-1:000000000000:topic"


def test_raw_delivery_hands_a_message_on_as_it_is(queue: Any) -> None:
    view = queue.send_sns("a", message_attributes={"n": 3, "raw": b"\x00"}, raw=True)
    assert (view.body, view.attributes) == ("a", {"n": "3", "raw": b"\x00"})
    with pytest.raises(TypeError, match="an attribute is text, bytes, a number or a list"):
        queue.send_sns("a", message_attributes={"n": None}, raw=True)


def test_two_notifications_of_one_text_differ_by_their_ids(queue: Any) -> None:
    first, second = (json.loads(queue.send_sns("a").body) for _ in range(2))
    assert first["MessageId"] != second["MessageId"]


def test_a_topic_with_order_numbers_its_notifications(world: Any) -> None:
    queue = world.queue("orders.fifo")
    topic = "arn:aws:sns:us-east-1:000000000000:orders.fifo"
    first, second = (
        json.loads(queue.send_sns(text, topic_arn=topic, MessageGroupId="g").body) for text in "ab"
    )
    assert first["SequenceNumber"] < second["SequenceNumber"]


def test_s3_tells_of_an_object(queue: Any) -> None:
    view = queue.send_s3_event("bucket", "in/new order é.csv", size=3, version_id="v1")
    (record,) = json.loads(view.body)["Records"]
    assert (record["eventSource"], record["eventName"]) == ("aws:s3", "ObjectCreated:Put")
    assert record["eventTime"] == "2030-01-01T00:00:00.000Z"
    assert record["awsRegion"] == "us-east-1"
    assert record["s3"]["bucket"]["arn"] == "arn:aws:s3:::bucket"
    changed = record["s3"]["object"]
    assert changed["key"] == "in/new+order+%C3%A9.csv"
    assert (changed["size"], changed["versionId"]) == (3, "v1")
    assert len(changed["eTag"]) == 32


def test_s3_tells_of_a_removal_without_size(queue: Any) -> None:
    view = queue.send_s3_event("bucket", "a", event_name="s3:ObjectRemoved:Delete")
    (record,) = json.loads(view.body)["Records"]
    assert record["eventName"] == "ObjectRemoved:Delete"
    assert set(record["s3"]["object"]) == {"key", "sequencer"}


def test_s3_sends_its_test_message(queue: Any) -> None:
    body = json.loads(queue.send_s3_event("bucket", "", event_name="s3:TestEvent").body)
    assert (body["Service"], body["Event"], body["Bucket"]) == (
        "Amazon S3",
        "s3:TestEvent",
        "bucket",
    )


def test_eventbridge_wraps_a_detail(queue: Any) -> None:
    view = queue.send_eventbridge(
        {"id": 7}, source="shop", detail_type="Order Placed", resources=["arn:x"]
    )
    event = json.loads(view.body)
    assert event.pop("id")
    assert event == {
        "version": "0",
        "detail-type": "Order Placed",
        "source": "shop",
        "account": "000000000000",
        "time": "2030-01-01T00:00:00Z",
        "region": "us-east-1",
        "resources": ["arn:x"],
        "detail": {"id": 7},
    }


def test_bodies_are_sent_as_any_message_is(world: Any) -> None:
    queue = world.queue("orders.fifo")
    view = queue.send_s3_event("bucket", "a", MessageGroupId="g")
    assert view.message_group_id == "g"
    with pytest.raises(MissingParameter):
        queue.send_eventbridge({}, source="s", detail_type="t")


@pytest.mark.parametrize(
    ("send", "arguments", "error"),
    [
        (
            "send",
            {"body": {"n": 1}},
            "a message's body is text, not {'n': 1}; json.dumps makes it of objects",
        ),
        ("send_sns", {"message": {"n": 1}}, "a notification's message is text, not {'n': 1}"),
        (
            "send_eventbridge",
            {"detail": "x", "source": "shop", "detail_type": "paid"},
            "the detail of an event is a JSON object, not 'x'",
        ),
        ("delete", {"message": 5}, "delete takes a view or a receipt handle, not 5"),
    ],
)
def test_what_is_no_text_is_refused(
    queue: Any, send: str, arguments: dict[str, Any], error: str
) -> None:
    with pytest.raises(TypeError) as caught:
        getattr(queue, send)(**arguments)
    assert str(caught.value) == error
    queue.assert_nothing_sent()


def test_a_topic_is_named_by_its_arn(queue: Any) -> None:
    with pytest.raises(ValueError, match=r"^'payments' is no ARN of an SNS topic$"):
        queue.send_sns("a", topic_arn="payments")
