from __future__ import annotations

import pytest


@pytest.fixture
def orders(sqs):
    sqs.create("orders")
    return sqs


def handle(sqs, **parameters):
    return sqs.receive_one("orders", **parameters)["ReceiptHandle"]


def change(sqs, receipt_handle, seconds):
    return sqs(
        "ChangeMessageVisibility",
        QueueUrl="orders",
        ReceiptHandle=receipt_handle,
        VisibilityTimeout=seconds,
    )


def delete(sqs, receipt_handle):
    return sqs("DeleteMessage", QueueUrl="orders", ReceiptHandle=receipt_handle)


@pytest.mark.parametrize(("asked", "hidden"), [(None, 7), (3, 3)])
def test_a_message_is_hidden_as_long_as_asked_or_its_queue_says(sqs, asked, hidden):
    sqs.create("orders", VisibilityTimeout="7")
    sqs.send("orders", "b")
    sqs.receive("orders", VisibilityTimeout=asked)

    sqs.clock.advance(hidden - 0.001)
    assert sqs.receive("orders") == []
    sqs.clock.advance(0.001)
    assert sqs.receive_one("orders")


def test_a_visibility_timeout_of_zero_leaves_the_message_visible(orders):
    orders.send("orders", "b")

    first = handle(orders, VisibilityTimeout=0)

    assert handle(orders) != first


def test_visibility_is_changed_from_now_on_and_for_this_receive_only(orders):
    orders.send("orders", "b")
    receipt_handle = handle(orders, VisibilityTimeout=30)
    orders.clock.advance(20)

    assert change(orders, receipt_handle, 15) == {}

    orders.clock.advance(14.999)
    assert orders.receive("orders") == []
    change(orders, receipt_handle, 0)
    assert handle(orders)
    orders.clock.advance(29.999)
    assert orders.receive("orders") == []


def test_a_message_is_hidden_for_twelve_hours_at_most(orders):
    orders.send("orders", "b")
    receipt_handle = handle(orders)
    change(orders, receipt_handle, 43_200)
    orders.clock.advance(1)

    error = orders.error(
        "ChangeMessageVisibility",
        QueueUrl="orders",
        ReceiptHandle=receipt_handle,
        VisibilityTimeout=43_200,
    )

    assert (error.query_code, error.message) == (
        "InvalidParameterValue",
        (
            "Value 43200 for parameter VisibilityTimeout is invalid. Reason: Total"
            " VisibilityTimeout for the message is beyond the limit [43200 seconds]"
        ),
    )
    change(orders, receipt_handle, 43_199)


def test_a_deleted_message_may_be_deleted_again_but_not_changed(orders):
    orders.send("orders", "b")
    receipt_handle = handle(orders)

    assert delete(orders, receipt_handle) == {}
    assert delete(orders, receipt_handle) == {}

    error = orders.error(
        "ChangeMessageVisibility",
        QueueUrl="orders",
        ReceiptHandle=receipt_handle,
        VisibilityTimeout=1,
    )
    assert (error.query_code, error.status, error.message) == (
        "InvalidParameterValue",
        400,
        (
            f"Value {receipt_handle} for parameter ReceiptHandle is invalid. Reason: Message does"
            " not exist or is not available for visibility timeout change."
        ),
    )


def test_a_standard_message_is_deleted_also_after_its_visibility_ended(orders):
    orders.send("orders", "b")
    receipt_handle = handle(orders, VisibilityTimeout=1)
    orders.clock.advance(1)

    delete(orders, receipt_handle)

    assert orders.receive("orders") == []


def test_a_standard_message_is_hidden_again_also_after_its_visibility_ended(orders):
    orders.send("orders", "b")
    receipt_handle = handle(orders, VisibilityTimeout=1)
    orders.clock.advance(1)

    assert change(orders, receipt_handle, 5) == {}

    assert orders.receive("orders") == []


def test_an_older_handle_still_acts_on_a_standard_message(orders):
    orders.send("orders", "b")
    older = handle(orders, VisibilityTimeout=0)
    handle(orders)

    change(orders, older, 60)
    orders.clock.advance(59)
    assert orders.receive("orders") == []
    delete(orders, older)
    orders.clock.advance(1)
    assert orders.receive("orders") == []


def test_an_expired_message_may_be_deleted(sqs):
    sqs.create("orders", MessageRetentionPeriod="60")
    sqs.send("orders", "b")
    receipt_handle = handle(sqs)
    sqs.clock.advance(60)

    assert delete(sqs, receipt_handle) == {}


@pytest.mark.parametrize("action", ["DeleteMessage", "ChangeMessageVisibility"])
def test_the_handle_of_another_queue_is_refused(orders, action):
    orders.create("others")
    orders.send("orders", "b")
    receipt_handle = handle(orders)

    error = orders.error(
        action, QueueUrl="others", ReceiptHandle=receipt_handle, VisibilityTimeout=1
    )

    assert (error.query_code, error.status, error.message) == (
        "ReceiptHandleIsInvalid",
        404,
        f'The receipt handle "{receipt_handle}" is not valid for this queue.',
    )
