"""Handlers that process their batches with Powertools for AWS Lambda."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    SqsFifoPartialProcessor,
    process_partial_response,
)

from pytest_sqsq import SqsServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord


@pytest.fixture
def server() -> Iterator[SqsServer]:
    with SqsServer(clock="frozen") as server:
        yield server


def charge(record: SQSRecord) -> None:
    order = json.loads(record.body)
    if order["amount"] < 0:
        raise ValueError(f"order {order['id']} has a negative amount")


def handler(event: dict[str, Any], context: Any) -> Any:
    return process_partial_response(
        event=event,
        record_handler=charge,
        processor=BatchProcessor(event_type=EventType.SQS),
        context=context,
    )


def fifo_handler(event: dict[str, Any], context: Any) -> Any:
    return process_partial_response(
        event=event, record_handler=charge, processor=SqsFifoPartialProcessor(), context=context
    )


def order(number: int, amount: int = 1) -> str:
    return json.dumps({"id": number, "amount": amount})


def test_what_the_batch_processor_reports_as_failed_stays_in_the_queue(server: SqsServer) -> None:
    orders = server.create_queue("orders")
    for number, amount in enumerate((5, -1, 7)):
        orders.send(order(number, amount), MessageAttributes={"source": _text("web")})

    invocation = orders.invoke_lambda(handler)

    assert [message.body for message in invocation.deleted] == [order(0, 5), order(2, 7)]
    assert [message.body for message in invocation.failed] == [order(1, -1)]
    orders.assert_in_flight(json={"id": 1}, for_seconds=30)


def test_a_fifo_processor_stops_at_its_first_failure(server: SqsServer) -> None:
    orders = server.create_queue("orders.fifo")
    for number, amount in enumerate((5, -1, 7)):
        orders.send(order(number, amount), MessageGroupId="g", MessageDeduplicationId=str(number))

    invocation = orders.invoke_lambda(fifo_handler)

    assert [message.body for message in invocation.deleted] == [order(0, 5)]
    assert [message.body for message in invocation.failed] == [order(1, -1), order(2, 7)]


def test_a_batch_that_fails_as_a_whole_is_drained_to_the_dead_letter_queue(
    server: SqsServer,
) -> None:
    orders = server.create_queue("orders", dead_letter_queue="dead", max_receive_count=2)
    orders.send(order(1, -1))

    report = orders.drain(handler, lambda_events=True)

    assert (report.invocations, report.deleted, report.dead_lettered) == (2, 0, 1)
    server.queue("dead").assert_contains(json={"id": 1})


def _text(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}
