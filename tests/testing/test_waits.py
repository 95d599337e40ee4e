from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_sqsq import SqsServer
from pytest_sqsq.errors import WaitTimeout
from pytest_sqsq.gateway.gate import RequestGate
from pytest_sqsq.models import ReceiveRequest
from pytest_sqsq.testing import waits


class WakingGate(RequestGate):
    """A gate whose observers must be woken: a wait that only times out is an error."""

    def wait_for_change(self, since: int, timeout: float | None) -> int:
        changes = super().wait_for_change(since, timeout)
        short = timeout is not None and timeout <= waits.ASK_AGAIN_SECONDS
        assert short or changes != since, "nothing has woken the wait"
        return changes


@pytest.fixture
def world(make_world: Callable[..., Any]) -> Any:
    """A frozen world with a client that might do something at any time."""
    world = make_world()
    world.traffic = WakingGate()
    world.connected_clients = 1
    return world


@pytest.fixture
def queue(world: Any) -> Any:
    return world.queue("orders")


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[threading.Event]:
    """Have another thread do ``work`` once the event is set; what it raises is raised here."""
    start = threading.Event()

    def run() -> None:
        start.wait(30)
        work()

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(run)
        try:
            yield start
        finally:
            start.set()
            done.result()


def test_a_wait_ends_at_once_if_there_is_nothing_to_wait_for(queue: Any) -> None:
    sent = queue.send("a")
    assert queue.wait_for("a", timeout=0) == (sent,)
    assert queue.wait_for("b", count=0, timeout=0) == ()
    queue.purge()
    queue.wait_until_empty(timeout=0)


def test_a_wait_wakes_when_a_message_comes(queue: Any) -> None:
    with meanwhile(lambda: queue.send("b")) as start:
        queue.send("a")

        def is_b(body: str) -> bool:
            start.set()
            return body == "b"

        (found,) = queue.wait_for(is_b, timeout=30)
    assert found.body == "b"


def test_a_wait_for_several_returns_all_that_are_there(queue: Any) -> None:
    with meanwhile(lambda: [queue.send(body) for body in "abc"]) as start:
        start.set()
        found = queue.wait_for(count=3, timeout=30)
    assert [view.body for view in found] == ["a", "b", "c"]


def test_a_wait_for_a_state_wakes_when_the_state_changes(queue: Any) -> None:
    queue.send("a")
    with meanwhile(queue.receive) as start:
        start.set()
        (found,) = queue.wait_for(state="in_flight", timeout=30)
    assert found.body == "a"
    with meanwhile(lambda: queue.delete(found)) as start:
        start.set()
        queue.wait_for(count=0, state="in_flight", timeout=30)


def test_a_wait_until_empty_wakes_when_the_last_message_is_deleted(queue: Any) -> None:
    queue.send("a")
    (view,) = queue.receive()
    with meanwhile(lambda: queue.delete(view)) as start:
        start.set()
        queue.wait_until_empty(timeout=30)


def test_a_wait_wakes_when_another_thread_moves_the_clock(world: Any, queue: Any) -> None:
    queue.send("a", DelaySeconds=60)
    with meanwhile(lambda: world.clock.advance(60)) as start:
        start.set()
        queue.wait_for("a", state="visible", timeout=30)


def test_a_predicate_is_asked_after_each_change(world: Any, queue: Any) -> None:
    with meanwhile(lambda: queue.send("a")) as start:

        def something_was_sent() -> bool:
            start.set()
            return bool(queue.statistics.sent)

        waits.wait_until(world, something_was_sent, timeout=30)


def test_a_predicate_may_make_requests(world: Any, queue: Any) -> None:
    asked = []

    def third_time() -> bool:
        asked.append(None)
        with world.traffic.request("ask"):
            return len(asked) == 3

    waits.wait_until(world, third_time, timeout=30)


def test_what_a_predicate_raises_is_raised(world: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        waits.wait_until(world, lambda: 1 / 0)


def test_what_went_wrong_in_the_server_is_raised(world: Any, queue: Any) -> None:
    def go_wrong() -> None:
        world.failures.append(ValueError("inside"))
        world.traffic.note_change()

    with meanwhile(go_wrong) as start:
        start.set()
        with pytest.raises(ValueError, match="inside"):
            queue.wait_for("a", timeout=30)


def test_a_wait_lets_the_clock_of_a_live_world_run(make_world: Callable[..., Any]) -> None:
    world = make_world("live")
    queue = world.queue("orders")
    queue.send("a", DelaySeconds=10)
    world.clock.advance(9.95)
    (found,) = queue.wait_for("a", state="visible", timeout=30)
    assert world.clock.now_ms >= found.sent_ms + 10_000


def test_a_wait_whose_time_is_up_says_what_it_waited_for(
    queue: Any, failure_of: Callable[..., str]
) -> None:
    queue.send("a", DelaySeconds=30)
    assert failure_of(queue.wait_for, "a", count=2, state="visible", timeout=0) == (
        """\
waited 0 s for 2 visible messages with body 'a' on 'orders'; there is none
  clock: 2030-01-01T00:00:00.000Z, 0 s after the test's start
  queue: 0 visible, 0 in flight, 1 delayed
  closest: 'a' delayed until +30 s, never received, id <id>
    it is delayed, not visible
    +0 s sent, delayed until +30 s
  hint: the clock is frozen; next: 'a' visible on 'orders' in 30 s; advance(30)"""
    )


def test_timeouts_can_be_stretched(world: Any, queue: Any) -> None:
    world.timeout_factor = 0.0
    with pytest.raises(WaitTimeout, match=r"^waited 0 s for at least|^waited 0 s for 1 message"):
        queue.wait_for("a", timeout=30)


def test_a_wait_fails_at_once_if_nothing_can_change(world: Any, queue: Any) -> None:
    world.connected_clients = 0
    queue.send("a")
    queue.receive()
    world.clock.advance(18)
    with pytest.raises(WaitTimeout) as caught:
        queue.wait_until_empty(timeout=3600)
    assert str(caught.value) == (
        """\
waiting for 'orders' to be empty: this cannot end
  clock: 2030-01-01T00:00:18.000Z, 18 s after the test's start
  queue: 0 visible, 1 in flight, 0 delayed
  there:
    'a' in flight until +30 s, received once
  hint: the clock is frozen; next: 'a' visible on 'orders' in 12 s; advance(12)"""
    )


def test_a_wait_that_cannot_end_says_so_when_nothing_is_due(world: Any, queue: Any) -> None:
    world.connected_clients = 0

    def the_moon_is_blue() -> bool:
        return False

    with pytest.raises(WaitTimeout) as caught:
        waits.wait_until(world, the_moon_is_blue, timeout=3600)
    assert str(caught.value) == (
        """\
waiting for the_moon_is_blue to hold: this cannot end
  clock: 2030-01-01T00:00:00.000Z, 0 s after the test's start
  hint: the clock is frozen, and nothing will happen by itself"""
    )


def park(world: Any, queue: Any) -> None:
    waiter = world.broker.poll(queue.internals, ReceiveRequest(wait_time_seconds=20))
    assert not waiter.resolved
    world.traffic.note_change()


def test_whoever_may_change_something_keeps_a_wait_from_failing_at_once(
    world: Any, queue: Any, make_world: Callable[..., Any]
) -> None:
    def refusal() -> str:
        with pytest.raises(WaitTimeout) as caught:
            queue.wait_for("a", timeout=0)
        return str(caught.value).partition(" for ")[0]

    assert refusal() == "waited 0 s"
    world.connected_clients = 0
    assert refusal() == "waiting"
    with world.traffic.request("open"):
        assert refusal() == "waited 0 s"
    park(world, queue)
    assert refusal() == "waited 0 s"
    world.broker.end_polls(world.clock.now_ms + 20_000)
    assert refusal() == "waiting"

    live = make_world("live").queue("orders")
    with pytest.raises(WaitTimeout, match=r"^waited 0 s for 1 message with body 'a' on 'orders'"):
        live.wait_for("a", timeout=0)


def test_a_thread_that_has_yet_to_connect_keeps_a_wait_from_failing_at_once(
    world: Any, queue: Any
) -> None:
    world.connected_clients = 0
    with meanwhile(lambda: queue.send("a")) as start:
        with pytest.raises(WaitTimeout, match=r"^waited 0 s for 1 message"):
            queue.wait_for("a", timeout=0)
        start.set()
        queue.wait_for("a", timeout=30)


def test_the_threads_of_a_server_change_nothing_by_themselves() -> None:
    with SqsServer(clock="frozen") as server:
        queue = server.create_queue("orders")
        with pytest.raises(WaitTimeout, match=r": this cannot end\n"):
            queue.wait_for("a", timeout=30)


def hint(wait: Callable[[], object]) -> str:
    with pytest.raises(WaitTimeout) as caught:
        wait()
    return str(caught.value).rpartition("\n  hint: ")[2]


def test_the_hint_is_given_whatever_the_clock_does(make_world: Callable[..., Any]) -> None:
    live = make_world("live").queue("orders")
    assert hint(lambda: live.wait_for("a", timeout=0)) == "nothing will happen by itself"
    live.send("a", DelaySeconds=900)
    left = r"(900|899\.\d+)"
    assert re.fullmatch(
        rf"next: 'a' visible on 'orders' in {left} s; advance\({left}\)",
        hint(lambda: live.wait_for("a", state="visible", timeout=0)),
    )
    system = make_world("system").queue("orders")
    system.send("a", DelaySeconds=900)
    assert re.fullmatch(
        rf"next: 'a' visible on 'orders' in {left} s; move the process clock by {left} s",
        hint(lambda: system.wait_for("a", state="visible", timeout=0)),
    )


def test_nobody_is_told_to_wait_for_the_end_of_retention(queue: Any) -> None:
    queue.send("a" * 100)
    assert hint(lambda: queue.wait_for(count=2, timeout=0)) == (
        f"the clock is frozen; next: '{'a' * 79}…' expires on 'orders' in 345600 s"
    )


def test_too_few_messages_are_listed(queue: Any, failure_of: Callable[..., str]) -> None:
    queue.send('{"n": 1}')
    assert failure_of(queue.wait_for, json={"n": 1}, count=2, timeout=0) == (
        """\
waited 0 s for 2 messages with json {'n': 1} on 'orders'; there is 1
  clock: 2030-01-01T00:00:00.000Z, 0 s after the test's start
  queue: 1 visible, 0 in flight, 0 delayed
  found:
    '{"n": 1}' visible, never received
  hint: the clock is frozen; next: '{"n": 1}' expires on 'orders' in 345600 s"""
    )


def test_what_cannot_be_waited_for_is_refused(world: Any, queue: Any) -> None:
    with pytest.raises(ValueError, match=r"^count is -1; it is a whole number"):
        queue.wait_for(count=-1)
    with pytest.raises(ValueError, match=r"^n is '1'; it is a whole number"):
        waits.wait_for_pollers(world, "1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^time cannot go back: the duration is -1$"):
        queue.wait_until_empty(timeout=-1)
    with pytest.raises(TypeError, match=r"^a duration is seconds or a timedelta, not '1'$"):
        queue.wait_until_empty(timeout="1")


def test_pollers_are_counted_on_one_queue_or_on_all(world: Any, queue: Any) -> None:
    other = world.queue("other")
    park(world, other)
    with meanwhile(lambda: park(world, queue)) as start:
        start.set()
        waits.wait_for_pollers(world, 1, queue.key, timeout=30)
        waits.wait_for_pollers(world, 2, timeout=30)
    with pytest.raises(WaitTimeout, match=r"^waited 0 s for 2 polls to park on 'other'; 1 poll"):
        waits.wait_for_pollers(world, 2, other.key, timeout=0)


def test_pollers_that_have_yet_to_connect_are_waited_for(world: Any, queue: Any) -> None:
    world.connected_clients = 0
    with meanwhile(lambda: park(world, queue)) as start:
        start.set()
        waits.wait_for_pollers(world, 1, timeout=30)


def idleness(world: Any) -> str:
    with pytest.raises(WaitTimeout) as caught:
        waits.wait_idle(world, timeout=0)
    return str(caught.value).splitlines()[0]


def test_consumers_are_idle_when_they_have_nothing_to_do(world: Any, queue: Any) -> None:
    waits.wait_idle(world, timeout=0)
    queue.send("a")
    queue.send("b")
    waits.wait_idle(world, timeout=0)
    (first,) = queue.receive()
    assert idleness(world) == "waited 0 s for the consumers to be idle; 1 in flight on 'orders'"
    queue.delete(first)
    assert idleness(world) == (
        "waited 0 s for the consumers to be idle; 1 message to receive on 'orders'"
    )
    queue.delete(queue.receive()[0])
    waits.wait_idle(world, timeout=0)


def test_consumers_are_not_idle_while_a_request_is_open(world: Any) -> None:
    with world.traffic.request("open"):
        assert idleness(world) == "waited 0 s for the consumers to be idle; 1 request open"
    waits.wait_idle(world, timeout=0)


def test_consumers_become_idle_when_they_finish(world: Any, queue: Any) -> None:
    queue.send("a")
    (view,) = queue.receive()
    with meanwhile(lambda: queue.delete(view)) as start:
        start.set()
        waits.wait_idle(world, timeout=30)


@pytest.mark.parametrize(
    ("wait", "twin"),
    [
        (lambda world, queue: queue.wait_for("a"), "wait_for"),
        (lambda world, queue: queue.wait_until_empty(), "wait_until_empty"),
        (lambda world, queue: waits.wait_until(world, bool), "wait_until"),
        (lambda world, queue: waits.wait_idle(world), "wait_idle"),
        (lambda world, queue: waits.wait_for_pollers(world, 1), "wait_for_pollers"),
    ],
)
def test_a_wait_that_would_block_an_event_loop_names_what_to_await(
    world: Any, queue: Any, wait: Callable[[Any, Any], None], twin: str
) -> None:
    async def test() -> None:
        wait(world, queue)

    with pytest.raises(RuntimeError) as caught:
        asyncio.run(test())
    assert str(caught.value) == (
        f"{twin} would block the event loop that is running in this thread; await the server's"
        f" aio.{twin} instead"
    )


def test_a_wait_leaves_no_listener_behind(world: Any, queue: Any) -> None:
    queue.wait_until_empty()
    with pytest.raises(WaitTimeout):
        queue.wait_for("a", timeout=0)
    changes = world.traffic.changes
    queue.send("a")
    assert world.traffic.changes == changes
