from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pytest_sqsq.testing import LambdaContext, LambdaInvocation, MalformedResponse


@pytest.fixture
def queue(world: Any) -> Any:
    return world.queue("orders")


@pytest.fixture
def fifo(world: Any) -> Any:
    return world.queue("orders.fifo")


def ignore(event: Any, context: Any) -> None:
    """A handler that succeeds with everything."""


def bodies(views: Any) -> list[str]:
    return [view.body for view in views]


def failing(*texts: str) -> Callable[[Any, Any], dict[str, Any]]:
    """A handler that reports the messages with these bodies as failed."""

    def handler(event: Any, context: Any) -> dict[str, Any]:
        return {
            "batchItemFailures": [
                {"itemIdentifier": record["messageId"]}
                for record in event["Records"]
                if record["body"] in texts
            ]
        }

    return handler


def test_an_event_is_built_as_aws_builds_it(world: Any, queue: Any) -> None:
    sent = queue.send(
        "a",
        MessageAttributes={
            "text": {"DataType": "String", "StringValue": "t"},
            "bytes": {"DataType": "Binary.gif", "BinaryValue": b"\x00\x01"},
        },
        MessageSystemAttributes={"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}},
    )
    world.clock.advance(1)
    invocation = queue.invoke_lambda(ignore)
    (record,) = invocation.event["Records"]
    assert record.pop("receiptHandle") == invocation.deleted[0].receipt_handle
    assert record == {
        "messageId": sent.message_id,
        "body": "a",
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": "1893456000000",
            "SenderId": "AIDASSYFHUBOBT7F4XT75",
            "ApproximateFirstReceiveTimestamp": "1893456001000",
            "AWSTraceHeader": "Root=1",
        },
        "messageAttributes": {
            "text": {
                "stringValue": "t",
                "stringListValues": [],
                "binaryListValues": [],
                "dataType": "String",
            },
            "bytes": {
                "binaryValue": "AAE=",
                "stringListValues": [],
                "binaryListValues": [],
                "dataType": "Binary.gif",
            },
        },
        "md5OfBody": "0cc175b9c0f1b6a831c399e269772661",
        "md5OfMessageAttributes": record["md5OfMessageAttributes"],
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:orders",
        "awsRegion": "us-east-1",
    }


def test_a_record_without_attributes_has_no_digest_of_them(queue: Any) -> None:
    queue.send("a")
    (record,) = queue.invoke_lambda(ignore).event["Records"]
    assert record["messageAttributes"] == {}
    assert "md5OfMessageAttributes" not in record


def test_a_record_of_a_fifo_queue_tells_group_and_order(fifo: Any) -> None:
    sent = fifo.send("a", MessageGroupId="g", MessageDeduplicationId="d")
    (record,) = fifo.invoke_lambda(ignore).event["Records"]
    assert record["attributes"]["MessageGroupId"] == "g"
    assert record["attributes"]["MessageDeduplicationId"] == "d"
    assert record["attributes"]["SequenceNumber"] == sent.sequence_number


def test_a_dead_lettered_message_tells_where_it_comes_from(world: Any) -> None:
    target = world.queue("dlq")
    queue = world.queue("orders", dead_letter_queue=target)
    queue.send("a")
    queue.receive()
    world.clock.advance(30)
    (record,) = target.invoke_lambda(ignore).event["Records"]
    assert record["attributes"]["DeadLetterQueueSourceArn"] == queue.arn
    assert record["attributes"]["ApproximateReceiveCount"] == "2"


def test_a_handler_that_returns_has_succeeded(queue: Any) -> None:
    for body in "abc":
        queue.send(body)
    invocation = queue.invoke_lambda(ignore, batch_size=2)
    assert bodies(invocation.deleted) == ["a", "b"]
    assert (invocation.response, invocation.failed, invocation.error) == (None, (), None)
    assert bodies(queue.messages()) == ["c"]


def test_with_nothing_to_deliver_the_handler_is_not_called(queue: Any) -> None:
    queue.send("a", DelaySeconds=5)
    called = []
    invocation = queue.invoke_lambda(lambda event, context: called.append(event))
    assert invocation == LambdaInvocation()
    assert invocation.event is None
    assert not called


def test_messages_reported_as_failed_come_back_after_their_timeout(world: Any, queue: Any) -> None:
    for body in "abc":
        queue.send(body)
    invocation = queue.invoke_lambda(failing("b"))
    assert (bodies(invocation.deleted), bodies(invocation.failed)) == (["a", "c"], ["b"])
    queue.assert_in_flight("b", for_seconds=30)
    assert queue.invoke_lambda(ignore).event is None
    world.clock.advance(30)
    assert bodies(queue.invoke_lambda(ignore).deleted) == ["b"]


def test_failing_leads_to_the_dead_letter_queue(world: Any) -> None:
    target = world.queue("dlq")
    queue = world.queue("orders", dead_letter_queue=target, max_receive_count=2)
    queue.send("a")
    for _ in range(2):
        queue.invoke_lambda(failing("a"))
        world.clock.advance(30)
    target.assert_contains("a")


@pytest.mark.parametrize(
    "response",
    [None, {}, {"batchItemFailures": None}, {"batchItemFailures": []}, {"statusCode": 200}],
)
def test_what_aws_takes_for_success_is_success(queue: Any, response: Any) -> None:
    queue.send("a")
    invocation = queue.invoke_lambda(lambda event, context: response)
    assert bodies(invocation.deleted) == ["a"]
    assert invocation.response == response


@pytest.mark.parametrize(
    ("response", "error"),
    [
        ("ok", "the response is not an object: 'ok'"),
        ([], "the response is not an object: []"),
        (True, "the response is not an object: True"),
        ({1, 2}, "the response is not JSON: Object of type set is not JSON serializable"),
        ({"batchItemFailures": {}}, "batchItemFailures is not a list: {}"),
        ({"batchItemFailures": "x"}, "batchItemFailures is not a list: 'x'"),
        ({"batchItemFailures": ["x"]}, "an item has no itemIdentifier: 'x'"),
        ({"batchItemFailures": [{"id": "x"}]}, "an item has no itemIdentifier: {'id': 'x'}"),
        (
            {"batchItemFailures": [{"itemIdentifier": None}]},
            "an itemIdentifier is null or empty: {'itemIdentifier': None}",
        ),
        (
            {"batchItemFailures": [{"itemIdentifier": ""}]},
            "an itemIdentifier is null or empty: {'itemIdentifier': ''}",
        ),
        (
            {"batchItemFailures": [{"itemIdentifier": 5}]},
            "an itemIdentifier is no text: {'itemIdentifier': 5}",
        ),
        (
            {"batchItemFailures": [{"itemIdentifier": "x"}]},
            "an itemIdentifier is not in the batch: 'x'",
        ),
    ],
)
def test_a_malformed_response_fails_the_whole_batch(queue: Any, response: Any, error: str) -> None:
    queue.send("a")
    queue.send("b")
    invocation = queue.invoke_lambda(lambda event, context: response)
    assert (invocation.deleted, bodies(invocation.failed)) == ((), ["a", "b"])
    assert isinstance(invocation.error, MalformedResponse)
    assert str(invocation.error) == error
    queue.assert_counts(in_flight=2)


def test_without_the_report_a_response_is_ignored(queue: Any) -> None:
    queue.send("a")
    invocation = queue.invoke_lambda(failing("a"), report_batch_item_failures=False)
    assert bodies(invocation.deleted) == ["a"]
    queue.send("b")
    invocation = queue.invoke_lambda(lambda e, c: "ok", report_batch_item_failures=False)
    assert (bodies(invocation.deleted), invocation.response) == (["b"], "ok")


def test_a_handler_that_raises_leaves_its_batch_in_flight(queue: Any) -> None:
    queue.send("a")
    queue.send("b")

    def handler(event: Any, context: Any) -> None:
        raise KeyError(event["Records"][0]["body"])

    with pytest.raises(KeyError, match="'a'"):
        queue.invoke_lambda(handler)
    queue.assert_counts(visible=0, in_flight=2)


def test_what_a_handler_raised_is_told_if_it_is_not_to_be_raised(queue: Any) -> None:
    queue.send("a")
    mistake = KeyError("x")

    def handler(event: Any, context: Any) -> None:
        raise mistake

    invocation = queue.invoke_lambda(handler, raise_errors=False)
    assert invocation.error is mistake
    assert (bodies(invocation.failed), invocation.response) == (["a"], None)
    queue.assert_in_flight("a")


def test_a_message_behind_a_failed_one_of_its_group_stays(world: Any, fifo: Any) -> None:
    for body, group in (("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b")):
        fifo.send(body, MessageGroupId=group)
    invocation = fifo.invoke_lambda(failing("a2"))
    assert bodies(invocation.deleted) == ["a1", "b1"]
    assert bodies(invocation.failed) == ["a2", "a3"]
    world.clock.advance(30)
    assert bodies(fifo.invoke_lambda(ignore).deleted) == ["a2", "a3"]


def test_a_fifo_message_whose_timeout_ended_in_the_handler_is_not_deleted(
    world: Any, fifo: Any
) -> None:
    fifo.send("a", MessageGroupId="g")
    invocation = fifo.invoke_lambda(lambda event, context: world.clock.advance(30) and None)
    assert (invocation.deleted, bodies(invocation.failed)) == ((), ["a"])
    fifo.assert_counts(visible=1)


@pytest.mark.parametrize(
    ("name", "batch_size", "text"),
    [
        ("orders", 0, "batch_size is 0; Lambda takes 1 to 10000 messages of a standard queue"),
        ("orders", 10_001, "batch_size is 10001; Lambda takes 1 to 10000 messages of a standard"),
        ("orders.fifo", 11, "batch_size is 11; Lambda takes 1 to 10 messages of a FIFO queue"),
    ],
)
def test_a_batch_size_that_aws_refuses_is_refused(
    world: Any, name: str, batch_size: int, text: str
) -> None:
    with pytest.raises(ValueError, match=f"^{text}"):
        world.queue(name).invoke_lambda(ignore, batch_size=batch_size)


def test_a_batch_of_a_standard_queue_may_be_larger_than_a_receive(queue: Any) -> None:
    for number in range(25):
        queue.send(str(number))
    assert len(queue.invoke_lambda(ignore, batch_size=23).deleted) == 23
    queue.assert_counts(visible=2, in_flight=0)


def test_a_context_is_given(queue: Any) -> None:
    contexts = []
    queue.send("a")
    queue.invoke_lambda(lambda event, context: contexts.append(context))
    (context,) = contexts
    assert isinstance(context, LambdaContext)
    assert context.invoked_function_arn == "arn:aws:lambda:us-east-1:000000000000:function:handler"
    assert context.get_remaining_time_in_millis() > 0
    queue.send("b")
    queue.invoke_lambda(lambda event, context: contexts.append(context), context="mine")
    assert contexts[1] == "mine"


def test_an_async_handler_is_awaited(queue: Any) -> None:
    queue.send("a")
    queue.send("b")

    async def handler(event: Any, context: Any) -> Any:
        await asyncio.to_thread(str)  # lets go of the loop
        return failing("b")(event, context)

    invocation = queue.invoke_lambda(handler)
    assert (bodies(invocation.deleted), bodies(invocation.failed)) == (["a"], ["b"])


def test_an_async_handler_that_raises_has_failed(queue: Any) -> None:
    queue.send("a")

    async def handler(event: Any, context: Any) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        queue.invoke_lambda(handler)
    queue.assert_in_flight("a")


def test_an_async_handler_is_awaited_beside_a_running_loop(queue: Any) -> None:
    queue.send("a")
    threads = []

    async def handler(event: Any, context: Any) -> None:
        threads.append(threading.get_ident())

    async def test() -> LambdaInvocation:
        invocation: LambdaInvocation = queue.invoke_lambda(handler)
        return invocation

    assert bodies(asyncio.run(test()).deleted) == ["a"]
    assert threads != [threading.get_ident()]


def test_a_handler_that_cannot_be_called_takes_no_message(queue: Any) -> None:
    queue.send("a")
    for consume in (queue.invoke_lambda, queue.drain):
        with pytest.raises(TypeError, match=r"^a handler is a callable, not 'handler'$"):
            consume("handler")
    queue.assert_never_received()
