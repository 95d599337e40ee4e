from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_sqsq.actions import ActionContext, perform
from pytest_sqsq.clock import Clock
from pytest_sqsq.engine import Broker, Waiter
from pytest_sqsq.errors import SqsError

ACCOUNT = "123456789012"
BASE_URL = "http://sqs.test:9324"


class Caller:
    """Calls actions as one account in one region, on a broker whose clock stands still.

    A poll that would park is ended at once, unless ``while_parked`` says what happens then.
    """

    def __init__(
        self, broker: Broker, clock: Clock, account_id: str = ACCOUNT, region: str = "us-east-1"
    ) -> None:
        self.broker = broker
        self.clock = clock
        self.parked: list[Waiter] = []
        self.while_parked: Callable[[Waiter], object] = broker.cancel_poll
        self.context = ActionContext(
            broker=broker,
            account_id=account_id,
            region=region,
            base_url=BASE_URL,
            park=self._park,
            is_alive=lambda: True,
        )

    def _park(self, waiter: Waiter) -> None:
        self.parked.append(waiter)
        self.while_parked(waiter)

    def __call__(self, action: str, **parameters: Any) -> dict[str, Any]:
        return perform(self.context, action, parameters) or {}

    def error(self, action: str, **parameters: Any) -> SqsError:
        with pytest.raises(SqsError) as caught:
            perform(self.context, action, parameters)
        return caught.value

    def other(self, account_id: str | None = None, region: str | None = None) -> Caller:
        context = self.context
        return Caller(
            self.broker, self.clock, account_id or context.account_id, region or context.region
        )

    def create(self, name: str, **attributes: str) -> str:
        if name.endswith(".fifo"):
            attributes.setdefault("FifoQueue", "true")
        return str(self("CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"])

    def attributes(self, queue: str, *names: str) -> dict[str, str]:
        asked = list(names or ["All"])
        reply = self("GetQueueAttributes", QueueUrl=queue, AttributeNames=asked)
        return dict(reply.get("Attributes", {}))

    def everything(self) -> dict[str, Any]:
        """All attributes and tags of the caller's queues, by URL."""
        return {
            url: (self.attributes(url), self("ListQueueTags", QueueUrl=url))
            for url in self("ListQueues").get("QueueUrls", [])
        }

    def arn(self, queue: str) -> str:
        return self.attributes(queue, "QueueArn")["QueueArn"]

    def send(self, queue: str, body: str, **parameters: Any) -> dict[str, Any]:
        return self("SendMessage", QueueUrl=queue, MessageBody=body, **parameters)

    def receive(self, queue: str, **parameters: Any) -> list[dict[str, Any]]:
        return list(self("ReceiveMessage", QueueUrl=queue, **parameters).get("Messages", []))

    def receive_one(self, queue: str, **parameters: Any) -> dict[str, Any]:
        (message,) = self.receive(queue, **parameters)
        return dict(message)


@pytest.fixture
def clock() -> Clock:
    return Clock("frozen", start="2030-01-01T00:00:00Z")


@pytest.fixture
def broker(clock: Clock) -> Broker:
    return Broker(clock, seed=1)


@pytest.fixture
def sqs(broker: Broker, clock: Clock) -> Caller:
    return Caller(broker, clock)


@pytest.fixture
def prepared(sqs: Caller) -> Caller:
    """A caller with one queue for each kind of fault; ``taken`` is a label of ``plain``."""
    arn = f"arn:aws:sqs:us-east-1:{ACCOUNT}:"
    target = {"deadLetterTargetArn": f"{arn}dlq", "maxReceiveCount": 3}
    chosen = {"redrivePermission": "byQueue", "sourceQueueArns": [f"{arn}source"]}
    sqs.create("plain")
    sqs.create("small", MaximumMessageSize="1024")
    sqs.create("plain.fifo")
    sqs.create("content.fifo", ContentBasedDeduplication="true")
    sqs.create("dlq")
    sqs.create("dlq.fifo")
    sqs.create("source", RedrivePolicy=json.dumps(target))
    sqs.create("closed", RedriveAllowPolicy='{"redrivePermission": "denyAll"}')
    sqs.create("chosen", RedriveAllowPolicy=json.dumps(chosen))
    sqs.other(region="eu-west-1").create("dlq")
    sqs.other("999999999999").create("dlq")
    sqs(
        "AddPermission",
        QueueUrl="plain",
        Label="taken",
        AWSAccountIds=["111111111111"],
        Actions=["SendMessage"],
    )
    return sqs
