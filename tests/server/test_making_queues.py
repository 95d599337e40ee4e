from __future__ import annotations

import json

import pytest

from pytest_sqsq import QueueNotFound
from pytest_sqsq.errors import InvalidParameterValue, QueueNameExists


def policy(queue) -> dict[str, object]:
    return json.loads(queue.attributes["RedrivePolicy"])


def test_a_queue_is_made_with_attributes_and_tags(server) -> None:
    queue = server.create_queue(
        "orders",
        attributes={
            "VisibilityTimeout": 5,
            "DelaySeconds": "1",
            "RedriveAllowPolicy": {"redrivePermission": "denyAll"},
        },
        tags={"team": "books"},
    )

    assert queue.attributes["VisibilityTimeout"] == "5"
    assert queue.attributes["DelaySeconds"] == "1"
    assert json.loads(queue.attributes["RedriveAllowPolicy"]) == {"redrivePermission": "denyAll"}
    assert queue.tags == {"team": "books"}
    assert server.queues[0].name == "orders"


def test_a_name_in_fifo_makes_a_fifo_queue(server) -> None:
    queue = server.create_queue("orders.fifo", attributes={"ContentBasedDeduplication": True})

    assert queue.attributes["FifoQueue"] == "true"
    assert queue.attributes["ContentBasedDeduplication"] == "true"


@pytest.mark.parametrize("suffix", ["", ".fifo"])
def test_a_missing_dead_letter_queue_is_made_of_the_right_kind(server, suffix) -> None:
    queue = server.create_queue(f"orders{suffix}", dead_letter_queue=f"dead{suffix}")
    dead = server.queue(f"dead{suffix}")

    assert policy(queue) == {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 10}
    assert ("FifoQueue" in dead.attributes) == bool(suffix)


@pytest.mark.parametrize("by", ["name", "url", "arn", "probe"])
def test_a_dead_letter_queue_is_named_in_any_way(server, by) -> None:
    dead = server.create_queue("dead", attributes={"VisibilityTimeout": 7})
    named = dead if by == "probe" else getattr(dead, by)
    queue = server.create_queue("orders", dead_letter_queue=named, max_receive_count=3)

    assert policy(queue) == {"deadLetterTargetArn": dead.arn, "maxReceiveCount": 3}
    assert dead.attributes["VisibilityTimeout"] == "7"


@pytest.mark.parametrize(("name", "dead"), [("orders.fifo", "dead"), ("orders", "dead.fifo")])
def test_a_dead_letter_queue_of_the_wrong_kind_is_refused(server, name, dead) -> None:
    with pytest.raises(ValueError, match="both are FIFO queues"):
        server.create_queue(name, dead_letter_queue=dead)

    assert server.queues == ()


def test_a_missing_queue_cannot_be_its_own_dead_letter_queue(server) -> None:
    with pytest.raises(ValueError, match=r"^'orders' cannot be its own dead-letter queue before"):
        server.create_queue("orders", dead_letter_queue="orders")
    assert server.queues == ()


def test_a_receive_count_without_a_dead_letter_queue_is_refused(server) -> None:
    with pytest.raises(ValueError, match="max_receive_count needs a dead_letter_queue"):
        server.create_queue("orders", max_receive_count=3)


def test_a_dead_letter_queue_is_named_once(server) -> None:
    with pytest.raises(ValueError, match=r"^give dead_letter_queue or the attribute RedrivePolicy"):
        server.create_queue("orders", dead_letter_queue="dead", attributes={"RedrivePolicy": {}})

    assert server.queues == ()


def test_a_receive_count_of_zero_is_not_taken_for_none(server) -> None:
    with pytest.raises(InvalidParameterValue, match="maxReceiveCount"):
        server.create_queue("orders", dead_letter_queue="dead", max_receive_count=0)


@pytest.mark.parametrize(
    ("home", "error"),
    [
        ({"account_id": "12"}, "account_id is '12'; an account has 12 digits"),
        ({"account_id": ""}, "account_id is ''; an account has 12 digits"),
        ({"region": ""}, "region is ''; a region has a name, such as 'eu-west-1'"),
    ],
)
def test_a_queue_needs_an_account_and_a_region(server, home, error) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        server.create_queue("orders", **home)

    assert str(caught.value) == error


def test_what_the_api_refuses_is_refused(server) -> None:
    server.create_queue("orders")
    with pytest.raises(QueueNameExists):
        server.create_queue("orders", attributes={"VisibilityTimeout": 5})


def test_accounts_and_regions_are_separate_worlds(server) -> None:
    here = server.create_queue("orders")
    there = server.create_queue("orders", account_id="111122223333", region="eu-west-1")
    there.send("hello")

    here.assert_empty()
    assert server.queue("orders", account_id="111122223333", region="eu-west-1").arn == there.arn
    assert server.queue(there.arn).arn == there.arn
    assert len(server.queues) == 2


def test_a_queue_is_found_by_name_url_and_arn(server) -> None:
    queue = server.create_queue("orders")

    for name in (queue.name, queue.url, queue.arn):
        assert server.queue(name).key == queue.key


def test_an_unknown_queue_is_reported_with_close_matches(server) -> None:
    server.create_queue("orders")
    with pytest.raises(QueueNotFound) as caught:
        server.queue("order")

    assert str(caught.value) == (
        "no queue 'order' in account 000000000000, region us-east-1; did you mean 'orders'?"
    )


def test_an_unknown_queue_is_reported_with_where_it_exists(server) -> None:
    server.create_queue("orders", region="eu-west-1")
    with pytest.raises(QueueNotFound, match="it exists in account 000000000000 eu-west-1"):
        server.queue("orders")


def test_an_unknown_queue_of_an_empty_server_is_reported(server) -> None:
    with pytest.raises(QueueNotFound, match="there are no queues"):
        server.queue("orders")


def test_an_unknown_queue_is_reported_with_what_there_is(server) -> None:
    for number in range(11):
        server.create_queue(f"orders-{number:02}", region="eu-west-1")
    server.create_queue("x")
    with pytest.raises(QueueNotFound) as caught:
        server.queue("letters")

    text = str(caught.value)
    assert text.startswith(
        "no queue 'letters' in account 000000000000, region us-east-1; there are"
        " 'orders-00 (000000000000 eu-west-1)', 'orders-01 (000000000000 eu-west-1)', "
    )
    assert text.endswith(", 'orders-09 (000000000000 eu-west-1)' and 2 more")


def test_a_queue_that_is_not_named_by_a_text_is_refused(server) -> None:
    with pytest.raises(TypeError, match=r"^a queue goes by its name, URL or ARN, not by None$"):
        server.queue(None)


def test_an_arn_of_something_else_is_refused(server) -> None:
    with pytest.raises(ValueError, match="is no ARN of an SQS queue"):
        server.queue("arn:aws:sns:us-east-1:000000000000:orders")
