from __future__ import annotations

import asyncio
import contextvars
import datetime as dt
import gc
import threading
from functools import partial
from typing import Any

import pytest

from pytest_sqsq import WaitTimeout

# Real seconds; a passing test never waits this long.
LONG = 30.0

pytestmark = pytest.mark.asyncio


def own_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("sqsq-aio")]


# Waiting


async def test_a_consumer_on_the_loop_goes_on_while_the_test_waits(
    server: Any, queue: Any, consume: Any
) -> None:
    handled: list[str] = []
    await consume(handled.append)
    queue.send("a")

    await server.aio.wait_until(lambda: handled == ["a"], timeout=LONG)
    await server.aio.wait_until_empty(queue, timeout=LONG)
    await server.aio.wait_idle(timeout=LONG)


async def test_pollers_are_waited_for_before_they_connect(
    server: Any, queue: Any, consume: Any
) -> None:
    await consume(print)
    await server.aio.wait_for_pollers(1, timeout=LONG)
    await server.aio.wait_for_pollers(1, "orders", timeout=LONG)
    await server.aio.wait_for_pollers(1, queue, timeout=LONG)


async def test_a_consumer_that_is_about_to_connect_is_waited_for(
    server: Any, queue: Any, consume: Any
) -> None:
    queue.send("a")
    await consume(print)
    await server.aio.wait_until_empty(queue, timeout=LONG)


@pytest.mark.parametrize("name", ["probe", "name", "url", "arn"])
async def test_messages_are_waited_for_on_a_queue_by_any_name(
    server: Any, queue: Any, name: str
) -> None:
    which = {"probe": queue, "name": "orders", "url": queue.url, "arn": queue.arn}[name]
    asyncio.get_running_loop().call_soon(partial(queue.send, "a"))
    asyncio.get_running_loop().call_soon(partial(queue.send, "b"))

    async with asyncio.timeout(LONG):
        # There is a task beside this one, or the wait could see that nothing will come.
        await asyncio.gather(
            server.aio.wait_for(which, "b", state="visible", timeout=LONG),
            server.aio.wait_for(which, count=2, timeout=LONG),
        )


async def test_what_is_there_is_found_without_a_thread(server: Any, queue: Any) -> None:
    sent = queue.send("a")
    assert await server.aio.wait_for(queue, "a", timeout=0) == (sent,)
    with pytest.raises(WaitTimeout, match=r"^waiting for 1 message with exactly the json \{\} "):
        await server.aio.wait_for(queue, json={}, exact=True, timeout=0)
    assert own_threads() == []


async def test_a_predicate_may_be_a_coroutine_function(server: Any, queue: Any) -> None:
    asked = []

    async def third_time() -> bool:
        asked.append(queue.send("another").body)
        return len(asked) == 3

    await server.aio.wait_until(third_time, timeout=LONG)
    assert len(asked) == 3


async def test_what_a_predicate_raises_is_raised(server: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        await server.aio.wait_until(lambda: 1 / 0)


async def test_a_wait_in_vain_says_what_its_blocking_twin_says(server: Any, queue: Any) -> None:
    queue.send("a", DelaySeconds=30)
    with pytest.raises(WaitTimeout) as caught:
        await server.aio.wait_for(queue, "a", state="visible", timeout=LONG)
    text = str(caught.value)
    assert text.startswith(
        "waiting for 1 visible message with body 'a' on 'orders'; there is none: this cannot end"
    )
    assert "next: 'a' visible on 'orders' in 30 s; advance(30)" in text


async def test_a_cancelled_wait_has_ended_when_the_cancellation_comes_through(
    server: Any, queue: Any, consume: Any
) -> None:
    await consume(print)
    await server.aio.wait_for_pollers(1, timeout=LONG)
    asked = asyncio.Event()
    waiting = asyncio.create_task(server.aio.wait_until(asked.set, timeout=3600))
    await asyncio.wait_for(asked.wait(), LONG)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert own_threads() == []
    assert waiting.cancelled()


# Time


async def test_an_advance_leaves_the_loop_to_those_who_run_on_it(
    server: Any, queue: Any, consume: Any
) -> None:
    attempts: list[str] = []

    def fail_twice(body: str) -> bool:
        attempts.append(body)
        return len(attempts) == 3

    await consume(fail_twice)
    queue.send("a")
    for number in (1, 2):
        await server.aio.wait_until(lambda: len(attempts) == number, timeout=LONG)  # noqa: B023
        await server.aio.wait_for_pollers(1, timeout=LONG)
        events = await server.aio.advance(dt.timedelta(seconds=30))
        assert "visible" in [event.kind for event in events]
    await server.aio.wait_until_empty(queue, timeout=LONG)
    assert attempts == ["a", "a", "a"]


async def test_run_until_lets_time_jump_beside_consumers_on_the_loop(
    server: Any, queue: Any, consume: Any
) -> None:
    attempts: list[Any] = []

    def fail_twice(body: str) -> bool:
        attempts.append(server.now)
        return len(attempts) == 3

    await consume(fail_twice)
    queue.send("a")

    async def is_done() -> bool:
        return not queue.messages()

    await server.aio.run_until(is_done)
    assert (attempts[2] - attempts[0]).total_seconds() == 60


async def test_run_for_returns_what_happened(server: Any, queue: Any, consume: Any) -> None:
    await consume(print)
    await server.aio.wait_for_pollers(1, timeout=LONG)
    queue.send("a", DelaySeconds=5)
    events = await server.aio.run_for(60)
    kinds = [event.kind for event in events]
    assert kinds.index("visible") < kinds.index("received") < kinds.index("deleted")


async def test_a_function_planned_for_an_instant_sees_the_context_of_the_test(server: Any) -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    seen: list[str] = []
    server.clock.call_at(server.now, lambda: seen.append(variable.get()))
    await server.aio.advance(1)
    assert seen == ["set"]


async def test_what_an_advance_raises_is_raised(server: Any) -> None:
    server.clock.call_at(server.now, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        await server.aio.advance(1)
    with pytest.raises(ValueError, match="time cannot go back"):
        await server.aio.advance(-1)


async def test_a_cancelled_run_stops_where_it_is(server: Any, queue: Any, consume: Any) -> None:
    reported: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(context))
    await consume(print)
    asked = asyncio.Event()

    async def never() -> bool:
        asked.set()
        await asyncio.Event().wait()
        return False

    running = asyncio.create_task(server.aio.run_until(never))
    await asyncio.wait_for(asked.wait(), LONG)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert own_threads() == []
    # Nothing is left over: another run may begin, and time does not stop.
    before = server.now
    await server.aio.run_for(60)
    assert server.now - before == dt.timedelta(seconds=60)
    # Nor an error that nobody has seen.
    del running
    gc.collect()
    assert reported == []


async def test_a_cancelled_run_stops_between_two_jumps(server: Any) -> None:
    steps = []
    reached = asyncio.Event()
    loop = asyncio.get_running_loop()

    def step() -> None:
        steps.append(server.now)
        if len(steps) == 100:
            loop.call_soon_threadsafe(reached.set)

    server.clock.call_every(1, step)
    running = asyncio.create_task(server.aio.advance(dt.timedelta(days=300)))
    await asyncio.wait_for(reached.wait(), LONG)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(steps) < 300 * 86_400
    assert own_threads() == []


# Draining


async def test_a_handler_runs_on_the_loop_of_the_test(server: Any, queue: Any) -> None:
    here = asyncio.get_running_loop()
    for body in "ab":
        queue.send(body)
    loops = []

    async def handle(message: Any) -> None:
        loops.append((message.body, asyncio.get_running_loop() is here))

    report = await server.aio.drain(queue, handle)
    assert report.deleted == 2
    assert loops == [("a", True), ("b", True)]


async def test_a_plain_handler_runs_on_the_loop_too(server: Any, queue: Any) -> None:
    queue.send("a")
    report = await server.aio.drain("orders", lambda message: asyncio.get_running_loop())
    assert (report.deleted, report.failed) == (1, 0)


async def test_a_drain_takes_the_arguments_of_its_blocking_twin(server: Any, queue: Any) -> None:
    for body in "abc":
        queue.send(body)
    events = []

    async def handle(event: Any, context: object) -> None:
        events.append((len(event["Records"]), context))

    report = await server.aio.drain(
        queue, handle, lambda_events=True, batch_size=2, context="context", until="empty"
    )
    assert report.deleted == 3
    assert events == [(2, "context"), (1, "context")]


async def test_what_a_handler_raises_counts_as_a_failure(server: Any, queue: Any) -> None:
    queue.send("a")
    attempts = []

    async def fail_once(message: Any) -> None:
        attempts.append(message)
        if len(attempts) == 1:
            raise ZeroDivisionError

    report = await server.aio.drain(queue, fail_once)
    assert (report.failed, report.deleted) == (1, 1)
    assert report.elapsed == dt.timedelta(seconds=30)

    queue.send("b")
    attempts.clear()
    with pytest.raises(ZeroDivisionError):
        await server.aio.drain(queue, fail_once, raise_errors=True)


async def test_a_cancelled_drain_cancels_its_handler(server: Any, queue: Any) -> None:
    queue.send("a")
    started = asyncio.Event()
    outcome = []

    async def handle(message: Any) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            outcome.append("cancelled")
            raise

    draining = asyncio.create_task(server.aio.drain(queue, handle))
    await asyncio.wait_for(started.wait(), LONG)
    draining.cancel()
    with pytest.raises(asyncio.CancelledError):
        await draining
    assert outcome == ["cancelled"]
    queue.assert_in_flight(body="a")


# The blocking twins


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("run_for", (1,)),
        ("run_until", (bool,)),
        ("wait_until", (bool,)),
        ("wait_idle", ()),
        ("wait_for_pollers", (1,)),
    ],
)
async def test_a_blocking_helper_of_the_server_names_its_twin(
    server: Any, name: str, arguments: tuple[Any, ...]
) -> None:
    with pytest.raises(RuntimeError) as caught:
        getattr(server, name)(*arguments)
    assert str(caught.value) == (
        f"{name} would block the event loop that is running in this thread; await the server's"
        f" aio.{name} instead"
    )
    assert callable(getattr(server.aio, name))


@pytest.mark.parametrize("name", ["wait_for", "wait_until_empty"])
async def test_a_blocking_helper_of_a_probe_names_its_twin(
    server: Any, queue: Any, name: str
) -> None:
    with pytest.raises(RuntimeError, match=rf"await the server's aio\.{name} instead$"):
        getattr(queue, name)()
    assert callable(getattr(server.aio, name))
