"""The blocking helpers as awaitables, for tests that run on an asyncio event loop."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import closing, suppress
from contextvars import copy_context
from functools import wraps
from inspect import isawaitable
from threading import Lock, get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from pytest_sqsq.running import LIMIT
from pytest_sqsq.testing import waits
from pytest_sqsq.testing.probe import QueueProbe
from pytest_sqsq.testing.threads import OWN_THREADS
from pytest_sqsq.timeline import MILLISECOND

if TYPE_CHECKING:
    from pytest_sqsq.models import Event, MessageState, MessageView
    from pytest_sqsq.server import SqsServer
    from pytest_sqsq.testing.drain import DrainOptions, DrainReport, Handler
    from pytest_sqsq.testing.matching import BodyMatcher
    from pytest_sqsq.testing.waits import Pause, Steps
    from pytest_sqsq.timeline import ScheduledCall

T = TypeVar("T")


class Aio:
    """The helpers of a server that block, as coroutine functions of the same names.

    The loop goes on meanwhile, so that clients and consumers that run on it do as well.
    Predicates and handlers run on the loop, and may be coroutine functions.  A helper that is
    cancelled has stopped when the cancellation comes through.  Arguments, results and errors are
    those of the methods of :class:`SqsServer` and :class:`QueueProbe`; ``queue`` is a probe, name,
    URL or ARN.  Raises ``RuntimeError`` where no asyncio loop runs.
    """

    def __init__(self, server: SqsServer) -> None:
        self._server = server

    # Time

    async def advance(self, duration: float | dt.timedelta) -> tuple[Event, ...]:
        """Let seconds or a timedelta pass; functions of ``call_at`` run beside the loop."""
        return await self._beside(lambda _: self._server.advance(duration))

    async def run_for(
        self, duration: float | dt.timedelta, *, skip_empty_polls: bool | None = None
    ) -> tuple[Event, ...]:
        """Let time pass, and wait at each instant until the consumers have done their part."""
        return await self._beside(
            lambda _: self._server.run_for(duration, skip_empty_polls=skip_empty_polls)
        )

    async def run_until(
        self,
        predicate: Callable[[], object],
        limit: float | dt.timedelta = LIMIT,
        *,
        skip_empty_polls: bool | None = None,
    ) -> tuple[Event, ...]:
        """Let time pass as ``run_for`` does, until ``predicate()`` is true."""
        return await self._beside(
            lambda bridge: self._server.run_until(
                bridge.wrap(predicate), limit, skip_empty_polls=skip_empty_polls
            )
        )

    async def drain(
        self, queue: str | QueueProbe, handler: Handler, **options: Unpack[DrainOptions]
    ) -> DrainReport:
        """Work a queue off, advancing the clock over timeouts and delays."""
        probe = self._probe(queue)
        return await self._beside(lambda bridge: probe.drain(bridge.wrap(handler), **options))

    # Waiting

    async def wait_until(
        self, predicate: Callable[[], object], timeout: float = waits.DEFAULT_TIMEOUT
    ) -> None:
        """Wait until ``predicate()`` is true."""
        __tracebackhide__ = True
        await self._drive(waits.until_true(self._server, predicate, timeout))

    async def wait_idle(self, timeout: float = waits.DEFAULT_TIMEOUT) -> None:
        """Wait until the consumers have nothing left to do."""
        __tracebackhide__ = True
        await self._drive(waits.until_idle(self._server, timeout))

    async def wait_for_pollers(
        self,
        n: int,
        queue: str | QueueProbe | None = None,
        timeout: float = waits.DEFAULT_TIMEOUT,
    ) -> None:
        """Wait until ``n`` polls are parked, on ``queue`` or on all queues together."""
        __tracebackhide__ = True
        key = None if queue is None else self._probe(queue).key
        await self._drive(waits.until_parked(self._server, n, key, timeout))

    async def wait_for(
        self,
        queue: str | QueueProbe,
        body: BodyMatcher | None = None,
        *,
        json: Any = None,
        exact: bool = False,
        count: int = 1,
        state: MessageState | None = None,
        timeout: float = waits.DEFAULT_TIMEOUT,
    ) -> tuple[MessageView, ...]:
        """Wait until at least ``count`` matching messages are there, 0 for none; returns them."""
        __tracebackhide__ = True
        return await self._drive(
            waits.until_there(
                self._server,
                self._probe(queue).key,
                body=body,
                json=json,
                exact=exact,
                count=count,
                state=state,
                timeout=timeout,
            )
        )

    async def wait_until_empty(
        self, queue: str | QueueProbe, timeout: float = waits.DEFAULT_TIMEOUT
    ) -> None:
        """Wait until there is no message in any state."""
        __tracebackhide__ = True
        await self._drive(waits.until_empty(self._server, self._probe(queue).key, timeout))

    def _probe(self, queue: str | QueueProbe) -> QueueProbe:
        return self._server.queue(queue) if isinstance(queue, str) else queue

    # How it is done

    async def _drive(self, steps: Steps[T]) -> T:
        __tracebackhide__ = True
        _running_loop()
        with closing(steps), _Watcher(self._server) as watcher:
            answer: object = None
            try:
                while True:
                    step = steps.send(answer)
                    if isinstance(step, waits.Pause):
                        answer = None
                        await watcher.rest(step)
                    else:
                        answer = await step
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    async def _beside(self, function: Callable[[_Bridge], T]) -> T:
        """What a blocking function returns, in a thread of its own."""
        __tracebackhide__ = True
        loop = _running_loop()
        bridge = _Bridge(self._server, loop)
        # Not the loop's own threads: consumers may have taken them all.
        with ThreadPoolExecutor(1, f"{OWN_THREADS}aio") as thread, bridge:
            future = loop.run_in_executor(thread, copy_context().run, bridge.run, function)
            try:
                return await asyncio.shield(future)
            except asyncio.CancelledError:
                bridge.end()
                while not future.done():
                    # anyio cancels again and again until it comes through.
                    with suppress(asyncio.CancelledError):
                        await asyncio.wait([future])
                if not future.cancelled():
                    future.exception()  # it has been seen
                raise


class _Watcher:
    """Waits for changes, in a thread that is there once it has to wait."""

    def __init__(self, server: SqsServer) -> None:
        self._traffic = server.traffic
        self._thread: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._traffic.note_change()  # lets go of a wait that was cancelled
            self._thread.shutdown()

    async def rest(self, pause: Pause) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, f"{OWN_THREADS}aio")
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._traffic.wait_for_change, *pause)


class _Stopped(BaseException):
    """Ends what runs beside a loop, whatever it does with the errors of a handler."""


class _Bridge:
    """From a blocking function in a thread back to the loop that waits for it.

    A context; leaving it, or ``end``, makes the function stop.  ``_lock`` guards the fields.
    """

    def __init__(self, server: SqsServer, loop: asyncio.AbstractEventLoop) -> None:
        self._clock = server.clock
        self._loop = loop
        self._lock = Lock()
        self._ident: int | None = None
        self._pending: Future[Any] | None = None
        self._stop: ScheduledCall | None = None
        self._is_ending = self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def run(self, function: Callable[[_Bridge], T]) -> T:
        """What the function returns; called in its thread."""
        self._ident = get_ident()
        try:
            return function(self)
        finally:
            with self._lock:
                self._is_over = True
                if self._stop is not None:
                    self._stop.cancel()

    def wrap(self, function: Callable[..., object]) -> Callable[..., object]:
        """The function, to be called by the thread, and carried out on the loop."""

        @wraps(function)
        def call(*arguments: Any) -> object:
            with self._lock:
                self._check()
                pending = asyncio.run_coroutine_threadsafe(_call(function, *arguments), self._loop)
                self._pending = pending
            try:
                return pending.result()
            except CancelledError:
                self._check()
                raise

        return call

    def end(self) -> None:
        """Make the function stop where it calls back, or where time moves."""
        with self._lock:
            if self._is_over or self._is_ending:
                return
            self._is_ending = True
            if self._pending is not None:
                self._pending.cancel()
            self._stop = self._clock.call_every(MILLISECOND, self._stop_here)

    def _stop_here(self) -> None:
        # A scheduler calls it too, where time passes by itself.
        if get_ident() == self._ident:
            raise _Stopped

    def _check(self) -> None:
        if self._is_ending:
            raise _Stopped


async def _call(function: Callable[..., object], *arguments: Any) -> object:
    result = function(*arguments)
    return await result if isawaitable(result) else result


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "the helpers in aio need a running asyncio event loop; on another kind of loop, call"
            " the blocking helper of the same name in a thread"
        ) from None
