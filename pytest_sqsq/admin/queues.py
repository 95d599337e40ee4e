"""Looking at queues and their messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pytest_sqsq.actions.attributes import reported_attributes
from pytest_sqsq.admin.routing import Asked
from pytest_sqsq.admin.values import message_document
from pytest_sqsq.clock import monotonic
from pytest_sqsq.engine.looking import statistics_of
from pytest_sqsq.errors import QueueDoesNotExist
from pytest_sqsq.models import MessageState, QueueKey
from pytest_sqsq.protocol import HttpResponse
from pytest_sqsq.protocol.plain import json_answer

if TYPE_CHECKING:
    from pytest_sqsq.admin.controlled import Controlled
    from pytest_sqsq.engine import Broker, Message, Queue

Made = TypeVar("Made")

PAGE = 1000

# Real seconds for which a look keeps others out of a queue: about what an operation on it takes.
LOCKED_SECONDS = 0.0005


def show_all(asked: Asked) -> HttpResponse:
    """``GET queues``."""
    account_id, region = asked.query.text("account_id"), asked.query.text("region")
    prefix = asked.query.text("prefix") or ""
    documents = []
    for queue in asked.server.broker.queues:
        key = queue.key
        if (
            account_id in {None, key.account_id}
            and region in {None, key.region}
            and key.name.startswith(prefix)
        ):
            try:
                documents.append(_document(asked.server, queue))
            except QueueDoesNotExist:
                continue
    return json_answer({"queues": documents})


def show(asked: Asked) -> HttpResponse:
    """``GET queues/{account}/{region}/{name}``."""
    return json_answer(_document(asked.server, _queue(asked)))


def show_messages(asked: Asked) -> HttpResponse:
    """``GET queues/{account}/{region}/{name}/messages``: a page of them, in order of arrival."""
    limit = asked.query.integer("limit", 1, PAGE) or PAGE
    after = asked.query.integer("after", 0)
    state = asked.query.choice("state", get_args(MessageState))
    queue = _queue(asked)
    view = asked.helpers.view

    def take(message: Message) -> tuple[int, Any] | None:
        if state not in {None, message.state}:
            return None
        return message.arrival, view(queue, message)

    found = list(
        islice(walk(asked.server.broker, queue, take, -1 if after is None else after), limit + 1)
    )
    shown = found[:limit]
    return json_answer(
        {
            "messages": [{**message_document(each), "arrival": n} for n, each in shown],
            "next": shown[-1][0] if len(found) > limit else None,
        }
    )


def walk(
    broker: Broker, queue: Queue, take: Callable[[Message], Made | None], after: int = -1
) -> Iterator[Made]:
    """What ``take`` makes of each live message that arrived after ``after``, in that order.

    ``take`` is called inside ``broker.entry``, where the queue is let go every half a millisecond,
    so that this is no view of one instant.  Raises ``QueueDoesNotExist``.
    """
    goes_on = True
    while goes_on:
        made = []
        goes_on = False
        with broker.entry(queue):
            end = monotonic() + LOCKED_SECONDS
            for message in queue.log.live_after(after):
                if goes_on := monotonic() > end:
                    break
                after = message.arrival
                taken = take(message)
                if taken is not None:
                    made.append(taken)
        yield from made


def _queue(asked: Asked) -> Queue:
    captured = asked.captured
    key = QueueKey(captured["account"], captured["region"], captured["name"])
    return asked.server.broker.get_queue(key)


def _document(server: Controlled, queue: Queue) -> dict[str, Any]:
    broker, key = server.broker, queue.key
    attributes = reported_attributes(broker, queue)
    with broker.entry(queue):
        statistics = statistics_of(queue)
    return {
        "name": key.name,
        "account_id": key.account_id,
        "region": key.region,
        "url": server.queue_url(key),
        "arn": key.arn,
        "fifo": queue.settings.fifo,
        "attributes": attributes,
        "statistics": asdict(statistics),
    }
