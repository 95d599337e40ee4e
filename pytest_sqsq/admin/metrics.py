"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from pytest_sqsq.admin.fields import Refusal
from pytest_sqsq.admin.routing import Asked
from pytest_sqsq.engine.looking import statistics_of
from pytest_sqsq.errors import QueueDoesNotExist
from pytest_sqsq.models import QueueKey, QueueStatistics
from pytest_sqsq.protocol import HttpResponse

if TYPE_CHECKING:
    from prometheus_client import Metric

    from pytest_sqsq.admin.controlled import Controlled

#: By field of the statistics: the name of the metric, and what it says.
GAUGES = {
    "visible": ("visible_messages", "Messages that are neither in flight nor delayed."),
    "in_flight": ("in_flight_messages", "Messages received and not deleted."),
    "delayed": ("delayed_messages", "Messages that have yet to appear."),
    "live_count": ("messages", "Messages in any state."),
    "dead_count": ("dead_slots", "Slots of the message log that are tombstones."),
    "slot_count": ("slots", "Slots of the message log."),
    "receipt_index_size": ("receipt_index_entries", "Current receipt handles."),
    "uuid_index_size": ("uuid_index_entries", "Message ids that are indexed."),
    "groups": ("message_groups", "Message groups with messages."),
    "parked_polls": ("parked_polls", "Long polls that wait."),
}
COUNTERS = {
    "compactions": ("compactions", "Sweeps of tombstones from the message log."),
    "sent": ("sent_messages", "Messages sent to the queue."),
    "received": ("received_messages", "Messages handed out."),
    "deleted": ("deleted_messages", "Messages deleted."),
    "expired": ("expired_messages", "Messages whose retention period has passed."),
    "dead_lettered": ("dead_lettered_messages", "Messages moved to the dead-letter queue."),
}

_QUEUE_LABELS = ("account_id", "region", "queue")


def show(asked: Asked) -> HttpResponse:
    """``GET metrics``."""
    try:
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
    except ImportError:
        raise Refusal(
            501,
            "metrics need the package prometheus-client, which is not installed:"
            " pip install 'pytest-sqsq[metrics]'",
        ) from None
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(asked.server))
    return HttpResponse(200, [("Content-Type", CONTENT_TYPE_LATEST)], generate_latest(registry))


class _Collector:
    """The metrics of a server, as they are when they are collected."""

    def __init__(self, server: Controlled) -> None:
        self._server = server

    def collect(self) -> Iterator[Metric]:
        yield from self._of_the_server()
        yield from self._of_requests()
        yield from self._of_queues()

    def _of_the_server(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        server = self._server
        yield GaugeMetricFamily(
            "sqsq_clock_timestamp_seconds",
            "The instant of the server's clock, in seconds since the epoch.",
            server.clock.now_ms / 1000,
        )
        yield GaugeMetricFamily(
            "sqsq_store_trouble",
            "1 while the store cannot be written, else 0.",
            float(server.broker.store_trouble is not None),
        )

    def _of_requests(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        logged = GaugeMetricFamily(
            "sqsq_logged_requests",
            "Requests in the request log, which forgets the oldest.",
            labels=("action", "status"),
        )
        counts = Counter((each.action or "", each.status) for each in self._server.requests)
        for (action, status), count in counts.items():
            logged.add_metric((action, str(status)), count)
        yield logged

    def _of_queues(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        statistics = dict(self._statistics())
        tables = ((GAUGES, GaugeMetricFamily), (COUNTERS, CounterMetricFamily))
        for table, family in tables:
            for field, (name, text) in table.items():
                metric = family(f"sqsq_queue_{name}", text, labels=_QUEUE_LABELS)
                read = attrgetter(field)
                for key, numbers in statistics.items():
                    metric.add_metric(key, read(numbers))
                yield metric

    def _statistics(self) -> Iterator[tuple[QueueKey, QueueStatistics]]:
        broker = self._server.broker
        for queue in broker.queues:
            try:
                with broker.entry(queue):
                    statistics = statistics_of(queue)
            except QueueDoesNotExist:
                continue
            yield queue.key, statistics
