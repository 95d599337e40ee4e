"""A server in a process of its own, and eight clients that note what they are told."""

from __future__ import annotations

import json
import os
import signal
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Condition, Event, Thread
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore import UNSIGNED, exceptions
from botocore.config import Config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# A long run: SQSQ_ROUNDS=50 pytest tests/store/accounting
SEEDS = range(int(os.environ.get("SQSQ_ROUNDS", "5")))
DRIVER = Path(__file__).with_name("driver.py")
THREADS = 8
ORDERS = ("orders", "orders.fifo")
MAX_RECEIVE_COUNT = 2
DELAYED = " delayed"
DELAY_SECONDS = 1
FOR_GOOD = "43000"
"""A visibility timeout that does not end before the test does."""


class Ledger:
    """What clients asked for and what they were told; its methods are for any thread.

    Messages are known by their bodies, of which no two are alike.  What was asked and is not done
    may have happened or not.  ``held`` has the queue and the handle of each message's last
    delivery, ``counts`` the receives by queue and body, ``groups`` the bodies in the order in
    which they were accepted.
    """

    def __init__(self) -> None:
        self.asked: dict[str, set[str]] = defaultdict(set)
        self.done: dict[str, set[str]] = defaultdict(set)
        self.held: dict[str, tuple[str, str]] = {}
        self.counts: dict[tuple[str, str], int] = {}
        self.groups: dict[str, list[str]] = defaultdict(list)
        self.last_sequence_number = 0
        self.refused = self.unanswered = 0
        self._steps = 0
        self._dead_letters: set[str] = set()
        self._delivered: dict[str, int] = {}
        self._changed = Condition()

    def ask(self, what: str, bodies: Sequence[str]) -> None:
        with self._changed:
            self.asked[what].update(bodies)

    def note(self, what: str, bodies: Sequence[str]) -> None:
        with self._changed:
            self.done[what].update(bodies)
            self._steps += 1
            self._changed.notify_all()

    def note_group(self, group: str, bodies: Sequence[str], sequence_numbers: list[str]) -> None:
        with self._changed:
            self.groups[group] += bodies
            newest = max(map(int, sequence_numbers))
            self.last_sequence_number = max(self.last_sequence_number, newest)

    def note_delivery(self, queue: str, message: dict[str, Any]) -> None:
        """Verifies what can be said of a message without knowing what became of the others."""
        shown, body = message["Attributes"], message["Body"]
        count = int(shown["ApproximateReceiveCount"])
        with self._changed:
            assert body in self.asked["send"]
            assert body not in self.done["delete"], f"{body} was deleted, and came back"
            assert count > self.counts.get((queue, body), 0), f"{body}: {count} receives again"
            assert count <= MAX_RECEIVE_COUNT or queue not in ORDERS
            if queue == "orders" and DELAYED in body:
                waited_ms = int(shown["ApproximateFirstReceiveTimestamp"]) - int(
                    shown["SentTimestamp"]
                )
                assert waited_ms >= DELAY_SECONDS * 1000
            if queue == "orders.fifo" and count == 1:
                group, number = shown["MessageGroupId"], int(shown["SequenceNumber"])
                assert number > self._delivered.get(group, 0), f"{body} was overtaken"
                self._delivered[group] = number
            if queue not in ORDERS:
                self._dead_letters.add(queue)
            self.counts[queue, body] = count
            self.held[body] = (queue, message["ReceiptHandle"])

    def note_refusal(self) -> None:
        with self._changed:
            self.refused += 1

    def note_silence(self) -> None:
        with self._changed:
            self.unanswered += 1

    def wait_for_more(self, steps: int) -> None:
        """Until so many more things were done."""
        with self._changed:
            goal = self._steps + steps
            assert self._changed.wait_for(lambda: self._steps >= goal, 120)

    def wait_for_dead_letters(self) -> None:
        """Until some have come from each kind of queue."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self._dead_letters) == len(ORDERS), 120)


class Client:
    """Sends, receives and deletes until it is told to stop; see :class:`Load`."""

    def __init__(self, load: Load, number: int) -> None:
        self._load = load
        self._ledger = load.ledger
        self._sqs = new_client(load.url)
        self._number = number
        self._random = Random(f"{load.seed} {number}")
        self._count = 0

    def run(self) -> None:
        try:
            while not self._load.stopping:
                self._count += 1
                fifo = self._random.choice(["", ".fifo"])
                if fifo:
                    self._send_to_group()
                else:
                    self._attempt(self._send, "orders", self._new_bodies())
                self._attempt(self._consume, f"orders{fifo}")
                self._attempt(self._consume, f"dead{fifo}")
        finally:
            self._sqs.close()

    def _new_bodies(self) -> list[str]:
        wish = self._random.choice(["", "", "", DELAYED])
        first = f"{self._number}-{self._count}"
        return [f"{first}.{n}{wish}" for n in range(self._random.randint(1, 3))]

    def _attempt(self, step: Callable[..., None], *arguments: Any) -> bool:
        """Whether it went well.  An answer is ServiceUnavailable or right."""
        try:
            step(*arguments)
        except exceptions.ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] != 503:
                raise
            self._ledger.note_refusal()
        except (exceptions.ConnectionError, exceptions.HTTPClientError):
            self._ledger.note_silence()
        else:
            return True
        self._load.is_there.wait(60)
        return False

    def _send(self, name: str, bodies: list[str]) -> None:
        delays = [{"DelaySeconds": DELAY_SECONDS} if DELAYED in body else {} for body in bodies]
        self._send_batch(name, bodies, delays)

    def _send_to_group(self) -> None:
        """Under their deduplication ids they are sent until somebody says that they are in."""
        # Only this client sends to this group: the order is known.
        group = f"{self._number}-{self._count // 10}"
        bodies = self._new_bodies()

        def send() -> None:
            fields = [
                {"MessageGroupId": group, "MessageDeduplicationId": body.replace(" ", "_")}
                for body in bodies
            ]
            answers = self._send_batch("orders.fifo", bodies, fields)
            self._ledger.note_group(group, bodies, [a["SequenceNumber"] for a in answers])

        while not self._attempt(send) and not self._load.stopping:
            pass

    def _send_batch(
        self, name: str, bodies: Sequence[str], fields: Sequence[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        entries = [
            {"Id": body.split()[0].replace(".", "-"), "MessageBody": body, **more}
            for body, more in zip(bodies, fields, strict=True)
        ]
        self._ledger.ask("send", bodies)
        answer = self._sqs.send_message_batch(QueueUrl=self._load.queues[name], Entries=entries)
        assert "Failed" not in answer
        self._ledger.note("send", bodies)
        answers: list[dict[str, Any]] = answer["Successful"]
        return answers

    def _consume(self, name: str) -> None:
        url = self._load.queues[name]
        answer = self._sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=self._random.randint(1, 4),
            WaitTimeSeconds=int(self._random.random() < 0.05),
            AttributeNames=["All"],
        )
        messages = answer.get("Messages", [])
        for message in messages:
            self._ledger.note_delivery(name, message)
        for message in messages:
            body, handle = message["Body"], {"ReceiptHandle": message["ReceiptHandle"]}
            fate = Random(f"{self._load.seed} {body}").random()
            if fate < 0.2 and name in ORDERS:
                self._sqs.change_message_visibility(QueueUrl=url, **handle, VisibilityTimeout=0)
            elif 0.1 < fate < 0.9:
                self._ledger.ask("delete", [body])
                self._sqs.delete_message(QueueUrl=url, **handle)
                self._ledger.note("delete", [body])


class Load:
    """Eight clients that use two queues and their dead-letter queues, all the while.

    Some messages they delete, some they hold, and some they give back until those are dead letters.
    While ``is_there`` is not set, who gets no answer waits for it.
    """

    def __init__(self, url: str, seed: int) -> None:
        self.url = url
        self.seed = seed
        self.ledger = Ledger()
        self.queues = create_queues(url)
        self.stopping = False
        self.is_there = Event()
        self.is_there.set()
        self._failures: list[BaseException] = []
        self._threads = [Thread(target=self._run, args=(Client(self, n),)) for n in range(THREADS)]
        for thread in self._threads:
            thread.start()

    @contextmanager
    def away(self) -> Iterator[None]:
        """While the server is away, nobody tries it again and again."""
        self.is_there.clear()
        yield
        self.is_there.set()

    def stop(self) -> None:
        """End it; raises what a client found to be wrong."""
        self.stopping = True
        self.is_there.set()
        for thread in self._threads:
            thread.join(120)
        failures, self._failures = self._failures, []
        if failures:
            raise failures[0]

    def _run(self, client: Client) -> None:
        try:
            client.run()
        except BaseException as failure:  # noqa: BLE001 - raised again by stop
            self._failures.append(failure)


def create_queues(url: str) -> dict[str, str]:
    """The queues and their URLs, by name."""
    client, urls = new_client(url), {}
    for fifo in ("", ".fifo"):
        dead = f"dead{fifo}"
        arn = f"arn:aws:sqs:us-east-1:000000000000:{dead}"
        redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": MAX_RECEIVE_COUNT})
        attributes = {"VisibilityTimeout": FOR_GOOD, **({"FifoQueue": "true"} if fifo else {})}
        for name, more in ((dead, {}), (f"orders{fifo}", {"RedrivePolicy": redrive})):
            made = client.create_queue(QueueName=name, Attributes={**attributes, **more})
            urls[name] = made["QueueUrl"]
    client.close()
    return urls


def new_client(url: str) -> Any:
    """A boto3 client that makes each request once."""
    return boto3.client(
        "sqs",
        endpoint_url=url,
        region_name="us-east-1",
        config=Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1}),
    )


class ServerProcess:
    """A server in a process of its own, on the same port each time it is started."""

    def __init__(self, start_python: Callable[..., Any], store: str) -> None:
        self._start_python = start_python
        self._store = store
        self._port = "0"
        self.start()

    def start(self) -> None:
        """Returns when it answers."""
        self._process = self._start_python(str(DRIVER), self._store, self._port)
        self.url = self._process.stdout.readline().strip()
        assert self.url, "the server did not start"
        self._port = self.url.rpartition(":")[2]

    def bodies(self) -> dict[str, list[str]]:
        """What its queues hold, in order of arrival."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        held: dict[str, list[str]] = json.loads(self._process.stdout.readline())
        return held

    def kill(self) -> None:
        """SIGKILL: no time to say goodbye."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(30)


@pytest.fixture
def redis(start_redis: Callable[..., Any]) -> Any:
    return start_redis("--appendonly", "yes", "--save", "")


@pytest.fixture
def server(start_python: Callable[..., Any], redis: Any) -> ServerProcess:
    return ServerProcess(start_python, redis.url)


@pytest.fixture(params=SEEDS)
def load(request: pytest.FixtureRequest, server: ServerProcess) -> Iterator[Load]:
    load = Load(server.url, request.param)
    yield load
    load.stop()
