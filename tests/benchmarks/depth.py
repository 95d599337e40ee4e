"""Every call on a queue of a million messages, against the same call on a shallow queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .measure import Effort, Row, Times, in_turning_order, ratio

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

    from pytest_sqsq import SqsServer

BODY = "x" * 200
SHALLOW = 10
DEEP = 1_000_000
IN_FLIGHT = 100_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of queue; ``groups`` is ``None`` for a standard one.

    ``in_flight`` is how many messages can be in flight beside those that a cycle receives: a
    group with one in flight gives no more, so that with few groups it is but a few.
    """

    what: str
    groups: int | None
    in_flight: int


KINDS = (
    Kind("standard", None, IN_FLIGHT),
    Kind("FIFO with 1 group", 1, 0),
    Kind("FIFO with 100 groups", 100, 900),
    Kind("FIFO with 10,000 groups", 10_000, 99_000),
)


def depth(effort: Effort) -> Iterator[Row]:
    """Whole boto3 calls, ``transport="direct"``."""
    from pytest_sqsq import SqsServer

    for kind in KINDS:
        with SqsServer() as server:
            client = server.client(transport="direct")
            deep = _Line(server, client, "deep", kind)
            shallow = _Line(server, client, "shallow", kind)
            count = effort.scaled(DEEP)
            deep.fill(count, effort.scaled(kind.in_flight) if kind.in_flight else 0)
            shallow.fill(SHALLOW, 0 if kind.groups == 1 else 1)
            times = _by_turns(effort, {"deep": deep, "shallow": shallow})
            server.check()
        for call in times["deep"]:
            what = f"{call}, {kind.what}, {count:,} messages ({deep.in_flight:,} in flight)"
            yield ratio(what, times["deep"][call], times["shallow"][call], at_most=1.25)


def _by_turns(effort: Effort, lines: dict[str, _Line]) -> dict[str, dict[str, Times]]:
    times: dict[str, dict[str, Times]] = {name: defaultdict(list) for name in lines}
    for turn in range(effort.rounds):
        for name in in_turning_order(list(lines), turn):
            lines[name].spent.clear()
            for _ in range(effort.calls):
                lines[name].cycle()
            for call, seconds in lines[name].spent.items():
                times[name][call].append(seconds)
    return times


class _Line:
    """A queue, and a cycle of all calls that leaves it as full as it was."""

    def __init__(self, server: SqsServer, client: SQSClient, name: str, kind: Kind) -> None:
        self.in_flight = 0
        self.spent: dict[str, float] = defaultdict(float)
        self._server = server
        self._client = client
        self._kind = kind
        self._random = Random(1)
        self._handles: list[str] = []
        self._sent = 0
        self._groups = [f"group-{n}" for n in range(kind.groups or 0)]
        attributes = {"VisibilityTimeout": "43200"}
        if kind.groups is not None:
            name += ".fifo"
            attributes |= {"ContentBasedDeduplication": "true"}
        self._probe = server.create_queue(name, attributes=attributes)

    def fill(self, count: int, in_flight: int) -> None:
        """So many messages, some of them in flight."""
        from pytest_sqsq.actions import perform

        context = self._server.context("000000000000", "us-east-1")
        url = {"QueueUrl": self._probe.url}
        for _ in range(0, count, 10):
            perform(context, "SendMessageBatch", {**url, "Entries": self._entries(10)})
        blocked = set()
        while self.in_flight < in_flight:
            ask = {
                **url,
                "MaxNumberOfMessages": min(10, in_flight - self.in_flight),
                "AttributeNames": ["MessageGroupId"],
            }
            answer = perform(context, "ReceiveMessage", ask) or {}
            self.in_flight += self._took(answer)
            for message in answer["Messages"]:
                blocked.add(message.get("Attributes", {}).get("MessageGroupId"))
        # What is sent from now on must come to be received, and not pile up behind those.
        self._groups = [group for group in self._groups if group not in blocked]

    def cycle(self) -> None:
        """Send and take one message and then ten, with handles from anywhere in the queue."""
        client, spent = self._client, self.spent

        def timed(what: str, method: Callable[..., Any], **arguments: Any) -> Any:
            started = perf_counter()
            answer = method(QueueUrl=self._probe.url, **arguments)
            spent[what] += perf_counter() - started
            return answer

        timed("send", client.send_message, **self._message())
        self._took(timed("receive 1", client.receive_message))
        timed(
            "change visibility",
            client.change_message_visibility,
            ReceiptHandle=self._random.choice(self._handles),
            VisibilityTimeout=43_000,
        )
        timed("get attributes", client.get_queue_attributes, AttributeNames=["All"])
        timed("delete", client.delete_message, ReceiptHandle=self._any_handle())
        timed("send 10", client.send_message_batch, Entries=self._entries(10))
        taken = self._took(timed("receive 10", client.receive_message, MaxNumberOfMessages=10))
        handles = [self._any_handle() for _ in range(taken)]
        entries = [{"Id": str(n), "ReceiptHandle": each} for n, each in enumerate(handles)]
        timed("delete 10", client.delete_message_batch, Entries=entries)

    def _took(self, answer: dict[str, Any]) -> int:
        messages = answer["Messages"]
        self._handles += [message["ReceiptHandle"] for message in messages]
        return len(messages)

    def _any_handle(self) -> str:
        """A handle in flight; on FIFO the latest, so that its group gives messages again."""
        handles = self._handles
        if self._kind.groups is None:
            place = self._random.randrange(len(handles))
            handles[place], handles[-1] = handles[-1], handles[place]
        return handles.pop()

    def _entries(self, count: int) -> list[dict[str, Any]]:
        return [{"Id": str(n), **self._message()} for n in range(count)]

    def _message(self) -> dict[str, Any]:
        self._sent += 1
        message = {"MessageBody": f"{self._sent:<200}"}
        if self._groups:
            message["MessageGroupId"] = self._groups[self._sent % len(self._groups)]
        return message
