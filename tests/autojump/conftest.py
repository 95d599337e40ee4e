"""Servers, and consumers as applications have them: boto3 in threads, polling in a loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Literal

import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from pytest_sqsq import SqsServer

START = "2030-01-01T00:00:00Z"
START_MS = 1_893_456_000_000

# Real seconds that a consumer has before it counts as gone: for ever, in these tests.  A machine
# under load may stop a thread for longer than the half second of the default.
PATIENCE = 60.0


class Consumers:
    """Threads that poll a queue; ``handle`` returns whether a message is to be deleted."""

    def __init__(self, server: SqsServer) -> None:
        self._server = server
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()

    def start(
        self,
        queue_url: str,
        handle: Callable[[str], bool] = lambda body: True,
        count: int = 1,
        *,
        transport: Literal["http", "direct"] = "http",
    ) -> None:
        config = Config(retries={"total_max_attempts": 1})
        for _ in range(count):
            client = self._server.client(transport=transport, config=config)
            thread = threading.Thread(target=self._consume, args=(client, queue_url, handle))
            self._threads.append(thread)
            thread.start()

    def _consume(self, client: Any, queue_url: str, handle: Callable[[str], bool]) -> None:
        while not self._stopping.is_set():
            try:
                self._poll(client, queue_url, handle)
            except BotoCoreError:
                if not self._stopping.is_set():
                    raise

    def _poll(self, client: Any, queue_url: str, handle: Callable[[str], bool]) -> None:
        answer = client.receive_message(QueueUrl=queue_url, WaitTimeSeconds=20)
        for message in answer.get("Messages", []):
            if handle(message["Body"]):
                client.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])

    def stop(self) -> None:
        self._stopping.set()
        self._server.stop()  # which ends their polls
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()


@pytest.fixture
def make_server() -> Iterator[Callable[..., SqsServer]]:
    with ExitStack() as stack:

        def make(**options: Any) -> SqsServer:
            defaults = {"clock": "frozen", "start": START, "autojump_grace": PATIENCE}
            return stack.enter_context(SqsServer(**{**defaults, **options}))

        yield make


@pytest.fixture
def server(make_server) -> SqsServer:
    return make_server()


@pytest.fixture
def make_consumers() -> Iterator[Callable[[SqsServer], Consumers]]:
    with ExitStack() as stack:

        def make(server: SqsServer) -> Consumers:
            consumers = Consumers(server)
            stack.callback(consumers.stop)
            return consumers

        yield make


@pytest.fixture
def consumers(server, make_consumers) -> Consumers:
    return make_consumers(server)


@pytest.fixture
def passed() -> Callable[[SqsServer], float]:
    """Virtual seconds since the start of a server."""
    return lambda server: (server.clock.now_ms - START_MS) / 1000
