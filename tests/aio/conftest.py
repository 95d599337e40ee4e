from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest
import pytest_asyncio

from pytest_sqsq import QueueProbe, SqsServer


@pytest.fixture(scope="session", autouse=True)
def no_stray_loop() -> None:
    # pytest-asyncio asks for the present loop, to put it back; without one, Python would make one
    # that nobody closes.
    asyncio.set_event_loop(None)


@pytest.fixture
def server() -> Iterator[SqsServer]:
    with SqsServer(clock="frozen") as server:
        yield server


@pytest.fixture
def queue(server: SqsServer) -> QueueProbe:
    return server.create_queue("orders")


class Consumer:
    """Polls a queue from the event loop, by a client that knows only HTTP."""

    def __init__(self, queue: QueueProbe, handle: Callable[[str], object]) -> None:
        self._queue = queue
        self._handle = handle
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def run(self) -> None:
        host, port = self._queue.url.split("/")[2].split(":")
        self.reader, self.writer = await asyncio.open_connection(host, int(port))
        try:
            while True:
                for message in await self.call("ReceiveMessage", WaitTimeSeconds=20):
                    if self._handle(message["Body"]) is not False:
                        await self.call("DeleteMessage", ReceiptHandle=message["ReceiptHandle"])
        finally:
            self.writer.close()

    async def call(self, action: str, **parameters: object) -> list[Any]:
        body = json.dumps({"QueueUrl": self._queue.url, **parameters}).encode()
        head = (
            f"POST / HTTP/1.1\r\nHost: sqs\r\nX-Amz-Target: AmazonSQS.{action}\r\n"
            f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        headers = dict(
            line.lower().split(": ", 1) for line in answer.decode().split("\r\n")[1:] if line
        )
        content = await self.reader.readexactly(int(headers["content-length"]))
        return json.loads(content).get("Messages", []) if content else []


@pytest_asyncio.fixture
async def consume(
    queue: QueueProbe,
) -> AsyncIterator[Callable[[Callable[[str], object]], Coroutine[Any, Any, None]]]:
    """Starts a consumer on the loop."""
    tasks: list[asyncio.Task[None]] = []

    async def start(handle: Callable[[str], object]) -> None:
        tasks.append(asyncio.create_task(Consumer(queue, handle).run()))

    yield start
    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        assert isinstance(outcome, asyncio.CancelledError)
