from __future__ import annotations

import sys
from dataclasses import fields

from prometheus_client.parser import text_string_to_metric_families

from pytest_sqsq import QueueStatistics
from pytest_sqsq.admin.metrics import COUNTERS, GAUGES


def samples(answer) -> dict[tuple[str, ...], float]:
    """The values of an answer by name and label values, these by the labels' names."""
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(answer.body.decode())
        for sample in family.samples
    }


def test_every_number_of_a_queue_has_a_metric() -> None:
    assert GAUGES.keys() | COUNTERS.keys() == {each.name for each in fields(QueueStatistics)}


def test_queues_are_measured(server, remote) -> None:
    queue = server.create_queue("orders")
    queue.send("a")
    queue.send("b", DelaySeconds=5)
    queue.send("c")
    queue.delete(queue.receive()[0])
    server.create_queue("jobs.fifo", account_id="111122223333", region="eu-west-1")

    found = samples(remote.get("metrics"))

    orders = ("000000000000", "orders", "us-east-1")
    assert found["sqsq_queue_visible_messages", *orders] == 1
    assert found["sqsq_queue_in_flight_messages", *orders] == 0
    assert found["sqsq_queue_delayed_messages", *orders] == 1
    assert found["sqsq_queue_dead_slots", *orders] == 1
    assert found["sqsq_queue_sent_messages_total", *orders] == 3
    assert found["sqsq_queue_deleted_messages_total", *orders] == 1
    assert found["sqsq_queue_messages", "111122223333", "jobs.fifo", "eu-west-1"] == 0


def test_the_server_is_measured(server, remote) -> None:
    client = server.client()
    client.list_queues()
    client.list_queues()
    server.advance(0.25)

    found = samples(remote.get("metrics"))

    assert found["sqsq_clock_timestamp_seconds",] == 1_893_456_000.25
    assert found["sqsq_store_trouble",] == 0
    assert found["sqsq_logged_requests", "ListQueues", "200"] == 2


def test_without_the_library_the_extra_is_named(remote, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    status, text = remote.get("metrics").error

    assert status == 501
    assert text == (
        "metrics need the package prometheus-client, which is not installed:"
        " pip install 'pytest-sqsq[metrics]'"
    )
