from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from pytest_sqsq.actions import ActionContext, perform
from pytest_sqsq.clock import Clock
from pytest_sqsq.engine import Broker
from pytest_sqsq.gateway.gate import RequestGate
from pytest_sqsq.models import QueueKey
from pytest_sqsq.testing import QueueProbe

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
START = "2030-01-01T00:00:00Z"
ACCOUNT = "000000000000"
REGION = "us-east-1"


class LittleWorld:
    """A broker and a clock, put together by hand: what a server is to the helpers."""

    def __init__(self, mode: str = "frozen", **broker_options: Any) -> None:
        self.clock = Clock(mode, start=None if mode == "system" else START)
        self.broker = Broker(self.clock, seed=1, **broker_options)
        self.traffic = RequestGate()
        self.connected_clients = 0
        self.bystanders = frozenset(threading.enumerate())
        self.timeout_factor = 1.0
        self.failures: list[Exception] = []
        self.clock.attach(_Driver(self.broker, self.traffic))

    def context(self, account_id: str, region: str) -> ActionContext:
        return ActionContext(
            broker=self.broker,
            account_id=account_id,
            region=region,
            base_url="http://sqs.test",
            park=self.broker.cancel_poll,
            is_alive=lambda: True,
        )

    def queue_url(self, key: QueueKey) -> str:
        return f"http://sqs.test/{key.account_id}/{key.name}"

    def raise_failures(self) -> None:
        if self.failures:
            raise self.failures.pop()

    def perform(self, action: str, **parameters: Any) -> dict[str, Any] | None:
        return perform(self.context(ACCOUNT, REGION), action, parameters)

    def queue(
        self,
        name: str,
        *,
        dead_letter_queue: QueueProbe | None = None,
        max_receive_count: int = 1,
        region: str = REGION,
        **attributes: object,
    ) -> QueueProbe:
        texts = {name: str(value) for name, value in attributes.items()}
        if name.endswith(".fifo"):
            texts |= {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
        if dead_letter_queue is not None:
            texts["RedrivePolicy"] = json.dumps(
                {
                    "deadLetterTargetArn": dead_letter_queue.arn,
                    "maxReceiveCount": max_receive_count,
                }
            )
        context = self.context(ACCOUNT, region)
        perform(context, "CreateQueue", {"QueueName": name, "Attributes": texts})
        return QueueProbe(self, QueueKey(ACCOUNT, region, name))


class _Driver:
    def __init__(self, broker: Broker, gate: RequestGate) -> None:
        self._gate = gate
        self.next_due_ms = broker.next_due_ms
        self.next_event = broker.next_event
        self.settle = broker.settle
        self.end_polls = broker.end_polls

    def exclusive(self) -> AbstractContextManager[None]:
        return self._gate.closed()

    def serialised(self) -> AbstractContextManager[None]:
        return self._gate.serialised()

    def released(self) -> AbstractContextManager[None]:
        return self._gate.reopened()


@pytest.fixture
def make_world() -> Iterator[Callable[..., LittleWorld]]:
    worlds: list[LittleWorld] = []

    def make(mode: str = "frozen", **broker_options: Any) -> LittleWorld:
        worlds.append(LittleWorld(mode, **broker_options))
        return worlds[-1]

    yield make
    for world in worlds:
        world.broker.check()


@pytest.fixture
def world(make_world: Callable[..., LittleWorld]) -> LittleWorld:
    return make_world()


@pytest.fixture
def failure_of() -> Callable[..., str]:
    """The text with which an assertion fails, ids written as ``<id>``."""

    def failure(assertion: Callable[..., object], *arguments: Any, **named: Any) -> str:
        with pytest.raises(AssertionError) as caught:
            assertion(*arguments, **named)
        return UUID.sub("<id>", str(caught.value))

    return failure
