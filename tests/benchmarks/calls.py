"""Single boto3 calls and batches, over both transports, against the two references."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .measure import Effort, Row, by_turns, ratio
from .references import contenders

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

BODY = "x" * 200
HOURS_12 = 43_200

Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A boto3 method, and what makes the arguments of the next so many calls of it."""

    what: str
    action: str
    method: str
    prepare: Callable[[SQSClient, str, int], Sequence[Arguments]]


def _filled(client: SQSClient, url: str, count: int) -> None:
    for _ in range(0, count, 10):
        client.send_message_batch(QueueUrl=url, Entries=_entries("MessageBody", [BODY] * 10))


def _handles(client: SQSClient, url: str, count: int) -> list[str]:
    _filled(client, url, count)
    handles: list[str] = []
    while len(handles) < count:
        answer = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        handles += [message["ReceiptHandle"] for message in answer["Messages"]]
    return handles[:count]


def _entries(member: str, values: Iterable[str], **more: Any) -> Any:
    return [{"Id": str(n), member: value, **more} for n, value in enumerate(values)]


def _send(client: SQSClient, url: str, count: int) -> Sequence[Arguments]:
    return [{"QueueUrl": url, "MessageBody": BODY}] * count


def _receive(client: SQSClient, url: str, count: int) -> Sequence[Arguments]:
    _filled(client, url, count)
    return [{"QueueUrl": url}] * count


def _nothing(client: SQSClient, url: str, count: int) -> Sequence[Arguments]:
    return [{"QueueUrl": url}] * count


def _delete(client: SQSClient, url: str, count: int) -> Sequence[Arguments]:
    return [{"QueueUrl": url, "ReceiptHandle": each} for each in _handles(client, url, count)]


def _change(client: SQSClient, url: str, count: int) -> Sequence[Arguments]:
    return [
        {"QueueUrl": url, "ReceiptHandle": each, "VisibilityTimeout": 60}
        for each in _handles(client, url, count)
    ]


def _attributes(client: SQSClient, url: str, count: int) -> Sequence[Arguments]:
    return [{"QueueUrl": url, "AttributeNames": ["All"]}] * count


def _send_ten(client: SQSClient, url: str, count: int) -> Sequence[Arguments]:
    return [{"QueueUrl": url, "Entries": _entries("MessageBody", [BODY] * 10)}] * count


def _receive_ten(client: SQSClient, url: str, count: int) -> Sequence[Arguments]:
    _filled(client, url, 10 * count)
    return [{"QueueUrl": url, "MaxNumberOfMessages": 10}] * count


def _delete_ten(client: SQSClient, url: str, count: int) -> Sequence[Arguments]:
    return [
        {"QueueUrl": url, "Entries": _entries("ReceiptHandle", _handles(client, url, 10))}
        for _ in range(count)
    ]


def _change_ten(client: SQSClient, url: str, count: int) -> Sequence[Arguments]:
    return [
        {
            "QueueUrl": url,
            "Entries": _entries("ReceiptHandle", _handles(client, url, 10), VisibilityTimeout=60),
        }
        for _ in range(count)
    ]


SINGLE = (
    Call("send", "SendMessage", "send_message", _send),
    Call("receive 1", "ReceiveMessage", "receive_message", _receive),
    Call("receive nothing", "ReceiveMessage", "receive_message", _nothing),
    Call("delete", "DeleteMessage", "delete_message", _delete),
    Call("change visibility", "ChangeMessageVisibility", "change_message_visibility", _change),
    Call("get attributes", "GetQueueAttributes", "get_queue_attributes", _attributes),
)
BATCHES = (
    Call("send 10", "SendMessageBatch", "send_message_batch", _send_ten),
    Call("receive 10", "ReceiveMessage", "receive_message", _receive_ten),
    Call("delete 10", "DeleteMessageBatch", "delete_message_batch", _delete_ten),
    Call(
        "change visibility of 10",
        "ChangeMessageVisibilityBatch",
        "change_message_visibility_batch",
        _change_ten,
    ),
)


def single_calls(effort: Effort) -> Iterator[Row]:
    """Each call on one message, or on none."""
    yield from _rows(SINGLE, {"direct": 1.3, "HTTP": 1.1}, effort)


def batches(effort: Effort) -> Iterator[Row]:
    """Each call on ten messages."""
    yield from _rows(BATCHES, {"direct": 1.7, "HTTP": 1.2}, effort)


def _rows(calls: Iterable[Call], goals: dict[str, float], effort: Effort) -> Iterator[Row]:
    with contenders() as bench:
        for call in calls:
            (first,) = call.prepare(bench.direct, new_queue(bench.direct, call.method), 1)
            bench.learn(call.action, call.method, first)
            times = by_turns(
                effort.rounds,
                {
                    name: timing(client, call, effort.calls, bench.direct)
                    for name, client in bench.clients.items()
                },
            )
            for transport, (ours, reference) in bench.TRANSPORTS.items():
                what = f"{call.what}, {transport}, against `{reference}`"
                yield ratio(what, times[ours], times[reference], at_most=goals[transport])


def new_queue(client: SQSClient, name: str) -> str:
    """The URL of a new queue, in which received messages stay in flight."""
    attributes: Any = {"VisibilityTimeout": str(HOURS_12)}
    return client.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]


def timing(client: SQSClient, call: Call, count: int, preparing: SQSClient) -> Callable[[], float]:
    """Measures ``count`` calls by ``client``, each time on a new queue that another one fills."""
    method = getattr(client, call.method)
    numbers = itertools.count()

    def seconds() -> float:
        url = new_queue(preparing, f"{call.method}-{id(method)}-{next(numbers)}")
        arguments = call.prepare(preparing, url, count)
        started = perf_counter()
        for each in arguments:
            method(**each)
        spent = perf_counter() - started
        preparing.delete_queue(QueueUrl=url)
        return spent

    return seconds
