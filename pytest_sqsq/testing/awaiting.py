"""Calling a handler that may be a coroutine function, from code that is none."""

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
