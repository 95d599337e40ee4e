"""The clock, autojump, faults, and the helpers for event loops.  Checked by mypy, never run."""

from __future__ import annotations

import datetime as dt
import re
from typing import assert_type

from pytest_sqsq import (
    Aio,
    Clock,
    DrainReport,
    Event,
    Fault,
    Faults,
    MessageView,
    QueueProbe,
    SqsServer,
)


def in_a_clock(clock: Clock) -> None:
    assert_type(clock.now, dt.datetime)
    assert_type(clock.travel_to("2031-01-01T00:00:00Z"), tuple[Event, ...])
    assert_type(clock.advance_to_next_event(), Event | None)
    call = clock.call_at(clock.now, list)
    call.cancel()
    clock.call_every(60, list).cancel()
    with clock.hold():
        clock.resume()
    with clock.autojump(skip_empty_polls=True):
        assert_type(clock.jumps, int)
        assert_type(clock.busy_jumps, int)
    if clock.mode == "stopped":  # type: ignore[comparison-overlap]
        raise AssertionError


def in_a_server(sqs_server: SqsServer) -> None:
    assert_type(sqs_server.tick(), tuple[Event, ...])
    assert_type(sqs_server.run_for(dt.timedelta(days=4)), tuple[Event, ...])
    assert_type(
        sqs_server.run_until(lambda: True, limit=60, skip_empty_polls=True), tuple[Event, ...]
    )
    sqs_server.wait_until(lambda: [1])
    sqs_server.wait_idle(timeout=1.5)
    sqs_server.wait_for_pollers(1, queue="orders")


def with_faults(sqs_server: SqsServer, sqs_queue: QueueProbe) -> None:
    faults = sqs_server.faults
    assert_type(faults, Faults)
    fault = faults.add(action="SendMessage", queue=sqs_queue, times=2, error="RequestThrottled")
    assert_type(fault, Fault)
    assert_type(fault.fired, int)
    fault.remove()
    with faults.add(body=re.compile("h"), latency=dt.timedelta(seconds=2), clock="virtual"):
        pass
    assert_type(faults.throttle(10), Fault)
    assert_type(faults.duplicate_delivery(probability=0.5), Fault)
    assert_type(faults.late_duplicate(after=dt.timedelta(minutes=1)), Fault)
    assert_type(faults.lost_delete(queue="orders"), Fault)
    assert_type(faults.stale_counts(), Fault)
    assert_type(faults.store_down(), Fault)
    assert_type(faults.unused(), tuple[Fault, ...])

    faults.add(drop_connection="sideways")  # type: ignore[arg-type]


async def on_a_loop(sqs_server: SqsServer, sqs_queue: QueueProbe) -> None:
    aio = sqs_server.aio
    assert_type(aio, Aio)

    async def is_done() -> bool:
        return True

    async def handle(message: MessageView) -> None:
        message.body.upper()

    assert_type(await aio.advance(30), tuple[Event, ...])
    assert_type(await aio.run_for(30, skip_empty_polls=True), tuple[Event, ...])
    assert_type(await aio.run_until(is_done, limit=60), tuple[Event, ...])
    await aio.wait_until(is_done)
    await aio.wait_idle()
    await aio.wait_for_pollers(1, sqs_queue)
    assert_type(await aio.wait_for("orders", "hello", count=2), tuple[MessageView, ...])
    await aio.wait_until_empty(sqs_queue, timeout=1)
    assert_type(await aio.drain(sqs_queue, handle, until=3, advance=False), DrainReport)

    await aio.drain(sqs_queue, handle, batch=3)  # type: ignore[call-arg]
    aio.wait_idle()  # type: ignore[unused-coroutine]
