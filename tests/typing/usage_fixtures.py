"""The fixtures, as a user annotates them.  Checked by mypy, never run."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import assert_type

import pytest
from types_boto3_sqs import SQSClient, SQSServiceResource

from pytest_sqsq import (
    AwsBlocked,
    ClockModeError,
    Endpoint,
    LeftoverConsumerWarning,
    MakeServer,
    QueueNotFound,
    QueueProbe,
    RequestLog,
    RequestRecord,
    ServerOptions,
    ServerStartError,
    SqsServer,
    StoreInUse,
    UnusedFaultWarning,
)


def test_clients(
    sqs_server: SqsServer, sqs_client: SQSClient, sqs_resource: SQSServiceResource
) -> None:
    assert_type(sqs_server.client(), SQSClient)
    assert_type(sqs_server.client(transport="direct", region_name="eu-west-1"), SQSClient)
    assert_type(sqs_server.resource(), SQSServiceResource)
    assert_type(sqs_client.create_queue(QueueName="orders")["QueueUrl"], str)
    sqs_client.send_message(QueueUrl=sqs_resource.Queue("orders").url, MessageBody="hello")

    sqs_server.client(transport="carrier pigeon")  # type: ignore[arg-type]


def test_servers(make_sqs_server: MakeServer, sqs_server_factory: MakeServer) -> None:
    assert_type(make_sqs_server(), SqsServer)
    assert_type(make_sqs_server(clock="frozen", start=dt.datetime.now(dt.UTC)), SqsServer)
    assert_type(sqs_server_factory(seed=1), SqsServer)
    options: ServerOptions = {"clock": "frozen", "in_flight_limit": 5}
    assert_type(make_sqs_server(**options), SqsServer)

    make_sqs_server(clock="stopped")  # type: ignore[arg-type]
    make_sqs_server(colour="red")  # type: ignore[call-arg]


def test_endpoint(sqs_endpoint: Endpoint) -> None:
    assert_type(sqs_endpoint.url, str)
    assert_type(sqs_endpoint.port, int)
    assert_type(sqs_endpoint.environment, Mapping[str, str])


def test_life(sqs_server: SqsServer) -> None:
    assert_type(SqsServer().start(), SqsServer)
    assert_type(sqs_server.is_running, bool)
    assert_type(sqs_server.options, ServerOptions)
    assert_type(sqs_server.environment, dict[str, str])
    sqs_server.reset()
    sqs_server.configure(clock="live")
    sqs_server.restart()
    with sqs_server.outage():
        pass
    sqs_server.check()
    sqs_server.assert_all_settled()
    assert_type(sqs_server.report(), str)
    sqs_server.stop()


def test_requests(sqs_server: SqsServer, sqs_queue: QueueProbe) -> None:
    assert_type(sqs_server.requests, RequestLog)
    assert_type(len(sqs_server.requests), int)
    for record in sqs_server.requests:
        assert_type(record, RequestRecord)
        assert_type(record.action, str | None)
        assert_type(record.stale, bool)
    assert_type(sqs_server.requests.calls(queue=sqs_queue.url), tuple[RequestRecord, ...])
    assert_type(
        sqs_server.requests.assert_called("SendMessage", times=1), tuple[RequestRecord, ...]
    )
    sqs_server.requests.assert_not_called("PurgeQueue", queue=sqs_queue)
    sqs_server.requests.clear()


def test_errors(sqs_server: SqsServer) -> None:
    with pytest.raises(QueueNotFound):
        sqs_server.queue("nowhere")
    with pytest.raises((AwsBlocked, ClockModeError, ServerStartError, StoreInUse)):
        sqs_server.advance(1)
    with pytest.warns((LeftoverConsumerWarning, UnusedFaultWarning)):
        sqs_server.reset()
