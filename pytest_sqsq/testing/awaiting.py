"""Event loops: calling coroutine functions from code that is none, and staying out of their way."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor


class Caller:
    """Calls functions and waits for what they return, where that is an awaitable.

    All awaitables of one caller run on one event loop, so that clients that a handler keeps
    between calls stay usable.  The loop runs in this thread, or in one of its own where this
    thread runs a loop already.  A context; leaving it closes the loop.
    """

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._thread: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._runner is not None:
            self._on_loop_thread(self._runner.close)
        if self._thread is not None:
            self._thread.shutdown()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What ``function`` returns, awaited if need be; raises what it raises."""
        __tracebackhide__ = True
        result = function(*arguments)
        if not inspect.isawaitable(result):
            return result
        if self._runner is None:
            self._start()
        assert self._runner is not None
        return self._on_loop_thread(self._runner.run, _wait_for(result))

    def _start(self) -> None:
        from asyncio import Runner

        if is_loop_running():
            from concurrent.futures import ThreadPoolExecutor

            self._thread = ThreadPoolExecutor(1, "handler")
        self._runner = Runner()

    def _on_loop_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if self._thread is None:
            return function(*arguments)
        return self._thread.submit(function, *arguments).result()


async def _wait_for(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def is_loop_running() -> bool:
    """Whether this thread runs an event loop now."""
    if "asyncio" not in sys.modules:
        return False
    from asyncio import get_running_loop

    try:
        get_running_loop()
    except RuntimeError:
        return False
    return True


def require_no_loop(what: str) -> None:
    """Raise ``RuntimeError`` where a blocking helper would block an event loop."""
    if is_loop_running():
        raise RuntimeError(
            f"{what} would block the event loop that is running in this thread; await the"
            f" server's aio.{what} instead"
        )


def are_other_tasks_running() -> bool:
    """Whether the event loop of this thread, if it runs one, has tasks beside the present one."""
    if not is_loop_running():
        return False
    from asyncio import all_tasks

    return len(all_tasks()) > 1
