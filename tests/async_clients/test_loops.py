"""The same story on each kind of loop that anyio runs tests on."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import anyio
import pytest
from aiobotocore.session import get_session

# Real seconds; a passing test never waits this long.
LONG = 30.0

BACKENDS = [
    pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
    pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", BACKENDS)
@pytest.mark.sqsq(clock="frozen")
async def test_a_consumer_in_a_task_group_is_driven_by_the_test(
    anyio_backend: Any, sqs_server: Any, sqs_queue: Any
) -> None:
    handled = []

    async def consume() -> None:
        async with get_session().create_client("sqs") as client:
            while True:
                answer = await client.receive_message(QueueUrl=sqs_queue.url, WaitTimeSeconds=20)
                for message in answer.get("Messages", []):
                    handled.append(message["Body"])
                    if len(handled) > 1:
                        await client.delete_message(
                            QueueUrl=sqs_queue.url, ReceiptHandle=message["ReceiptHandle"]
                        )

    async with anyio.create_task_group() as group:
        group.start_soon(consume)
        await sqs_server.aio.wait_for_pollers(1, timeout=LONG)
        sqs_queue.send("a")
        await sqs_server.aio.wait_until(lambda: handled == ["a"], timeout=LONG)
        await sqs_server.aio.run_until(lambda: len(handled) == 2)
        await sqs_server.aio.wait_until_empty(sqs_queue, timeout=LONG)
        group.cancel_scope.cancel()
    assert handled == ["a", "a"]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", BACKENDS)
@pytest.mark.parametrize("helper", ["wait_until", "run_until"])
async def test_a_cancelled_scope_ends_what_is_awaited(
    anyio_backend: Any, sqs_server: Any, helper: str
) -> None:
    asked = asyncio.Event()

    async def never() -> bool:
        asked.set()
        await anyio.sleep_forever()
        return True

    async with anyio.create_task_group() as group:
        group.start_soon(getattr(sqs_server.aio, helper), never)
        await asked.wait()
        group.cancel_scope.cancel()
    assert group.cancel_scope.cancelled_caught


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_on_trio_the_blocking_helpers_run_in_a_thread(
    anyio_backend: Any, sqs_server: Any, sqs_queue: Any
) -> None:
    with pytest.raises(RuntimeError, match="need a running asyncio event loop"):
        await sqs_server.aio.wait_idle()

    async def send() -> None:
        sqs_queue.send("a")

    async with anyio.create_task_group() as group:
        group.start_soon(send)
        (found,) = await anyio.to_thread.run_sync(partial(sqs_queue.wait_for, "a", timeout=LONG))
    assert found.body == "a"
