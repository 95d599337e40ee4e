"""Looking at queues, acting on them, and asserting.  Checked by mypy, never run."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any, assert_type
from unittest.mock import ANY

from pytest_sqsq import (
    DrainReport,
    Event,
    LambdaContext,
    LambdaInvocation,
    MessageView,
    QueueProbe,
    Session,
    SqsServer,
)


def test_looking(sqs_queue: QueueProbe) -> None:
    assert_type(sqs_queue.name, str)
    assert_type(sqs_queue.url, str)
    assert_type(sqs_queue.arn, str)
    assert_type(sqs_queue.attributes, Mapping[str, str])
    assert_type(sqs_queue.tags, Mapping[str, str])
    assert_type(sqs_queue.sent_messages, tuple[MessageView, ...])
    view = sqs_queue.message(json={"id": ANY}, exact=True)
    assert_type(view.body, str)
    assert_type(view.receive_count, int)
    assert_type(view.visible_at_ms, int | None)
    assert_type(view.why_not_deliverable, str | None)
    if view.state == "lost":  # type: ignore[comparison-overlap]
        raise AssertionError
    assert_type(sqs_queue.history(view), tuple[Event, ...])


def test_acting(sqs_queue: QueueProbe) -> None:
    assert_type(sqs_queue.send_sns("hello", subject="subject"), MessageView)
    assert_type(sqs_queue.send_s3_event("bucket", "key"), MessageView)
    assert_type(
        sqs_queue.send_eventbridge({"id": 1}, source="shop", detail_type="order"), MessageView
    )
    for received in sqs_queue.receive(visibility_timeout=60):
        sqs_queue.delete(received)
    sqs_queue.purge()

    sqs_queue.send("hello", DelaySecond=5)  # type: ignore[call-arg]


def test_asserting(sqs_queue: QueueProbe) -> None:
    assert_type(sqs_queue.assert_contains(body="hello"), MessageView)
    assert_type(sqs_queue.assert_contains(body=re.compile("h"), count=2), tuple[MessageView, ...])
    assert_type(sqs_queue.assert_contains(json={"id": 1}, count=None), tuple[MessageView, ...])
    assert_type(sqs_queue.assert_received(body="hello", times=2), MessageView)
    assert_type(sqs_queue.assert_dead_lettered(body="hello"), MessageView)
    sqs_queue.assert_never_received(body=lambda body: body == "hello")
    sqs_queue.assert_deleted(body="hello")
    sqs_queue.assert_in_flight(body="hello", for_seconds=30)
    sqs_queue.assert_delayed(body="hello", for_seconds=dt.timedelta(seconds=5))
    sqs_queue.assert_visibility_extended(body="hello", times=1)
    sqs_queue.assert_order(["a", "b"])
    sqs_queue.assert_nothing_sent()


def test_consuming(sqs_queue: QueueProbe) -> None:
    def handle(message: MessageView) -> None:
        message.body.upper()

    async def handle_later(message: MessageView) -> None:
        message.body.upper()

    def function(event: dict[str, Any], context: LambdaContext) -> None:
        event[context.function_name] = context

    assert_type(sqs_queue.drain(handle), DrainReport)
    assert_type(sqs_queue.drain(handle_later, until=dt.timedelta(days=1)), DrainReport)
    report = sqs_queue.drain(function, lambda_events=True, batch_size=5)
    assert_type(report.elapsed, dt.timedelta)
    invocation = sqs_queue.invoke_lambda(function)
    assert_type(invocation, LambdaInvocation)
    assert_type(invocation.deleted, tuple[MessageView, ...])
    assert_type(invocation.error, Exception | None)


def test_waiting(sqs_queue: QueueProbe) -> None:
    assert_type(sqs_queue.wait_for("hello", state="visible"), tuple[MessageView, ...])
    assert_type(sqs_queue.wait_for(json={"id": ANY}, exact=True), tuple[MessageView, ...])
    sqs_queue.wait_until_empty(timeout=1)


def test_tracking(sqs_server: SqsServer) -> None:
    with sqs_server.track() as session:
        assert_type(session, Session)
    assert_type(session.events, tuple[Event, ...])
    assert_type(sqs_server.events, tuple[Event, ...])
    for event in session.dead_lettered:
        assert_type(event.at_ms, int)
        assert_type(event.message_id, str | None)
        assert_type(event.detail, Mapping[str, str | int | None])
        if event.kind == "lost":  # type: ignore[comparison-overlap]
            raise AssertionError
