"""What the type checker of a user sees.  Checked by mypy, never run."""

from __future__ import annotations

import datetime as dt
from typing import assert_type

import pytest

from pytest_sqsq import Clock, Event, MessageView, QueueProbe, QueueStatistics, SqsServer


@pytest.mark.sqsq(clock="frozen")
def test_with_fixtures(sqs_server: SqsServer, sqs_queue: QueueProbe) -> None:
    assert_type(sqs_server.url, str)
    assert_type(sqs_server.port, int)
    assert_type(sqs_server.clock, Clock)
    assert_type(sqs_server.now, dt.datetime)
    assert_type(sqs_server.advance(30), tuple[Event, ...])
    assert_type(sqs_server.advance(dt.timedelta(days=4)), tuple[Event, ...])
    assert_type(sqs_server.queues, tuple[QueueProbe, ...])
    assert_type(sqs_server.queue("orders"), QueueProbe)
    assert_type(
        sqs_server.create_queue(
            "orders",
            dead_letter_queue="dead-orders",
            max_receive_count=3,
            attributes={"VisibilityTimeout": "5"},
            tags={"team": "books"},
        ),
        QueueProbe,
    )

    assert_type(sqs_queue.statistics, QueueStatistics)
    assert_type(sqs_queue.statistics.visible, int)
    assert_type(sqs_queue.send("hello", DelaySeconds=5), MessageView)
    assert_type(sqs_queue.receive(max_messages=10), tuple[MessageView, ...])
    assert_type(sqs_queue.messages("visible"), tuple[MessageView, ...])
    assert_type(sqs_queue.message(body="hello"), MessageView)
    assert_type(sqs_queue.history(body="hello"), tuple[Event, ...])
    sqs_queue.assert_counts(visible=0, in_flight=0, delayed=1)
    sqs_queue.assert_empty()

    sqs_queue.messages("lost")  # type: ignore[arg-type]
    sqs_server.advance("30")  # type: ignore[arg-type]


def test_without_pytest() -> None:
    with SqsServer(clock="frozen", start="2030-01-01T00:00:00Z", in_flight_limit=5) as server:
        assert_type(server, SqsServer)
        client = server.client()
        client.send_message(QueueUrl=server.queue("orders").url, MessageBody="hello")

    SqsServer(clock="stopped")  # type: ignore[arg-type]
    SqsServer(colour="red")  # type: ignore[call-arg]


def in_a_clock(clock: Clock) -> None:
    assert_type(clock.now_ms, int)
    assert_type(clock.next_event, Event | None)
    for events in clock.steps(60):
        assert_type(events, tuple[Event, ...])
    with clock.freeze():
        clock.travel_to(dt.datetime(2031, 1, 1, tzinfo=dt.UTC))
