from __future__ import annotations

import asyncio
from typing import Any

import pytest

# Real seconds; a passing test never waits this long.
LONG = 30.0


def test_another_kind_of_loop_is_refused(server: Any, queue: Any) -> None:
    for awaitable in (server.aio.wait_idle(), server.aio.drain(queue, print)):
        with pytest.raises(RuntimeError) as caught:
            awaitable.send(None)
        assert str(caught.value) == (
            "the helpers in aio need a running asyncio event loop; on another kind of loop, call"
            " the blocking helper of the same name in a thread"
        )


def test_a_blocking_wait_refuses_a_predicate_that_it_cannot_await(server: Any) -> None:
    async def predicate() -> bool:
        return True

    with pytest.raises(TypeError) as caught:
        server.wait_until(predicate)
    assert str(caught.value) == (
        "the predicate returned an awaitable, which wait_until does not await; await the server's"
        " aio.wait_until instead"
    )


def test_a_loop_that_ends_takes_its_run_along(server: Any, queue: Any) -> None:
    async def leave_it_running() -> asyncio.Task[object]:
        asked = asyncio.Event()

        async def never() -> bool:
            asked.set()
            await asyncio.Event().wait()
            return False

        task = asyncio.create_task(server.aio.run_until(never))
        await asyncio.wait_for(asked.wait(), LONG)
        return task

    task = asyncio.run(leave_it_running())
    assert task.cancelled()
    server.run_for(1)
