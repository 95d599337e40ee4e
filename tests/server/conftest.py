from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from pytest_sqsq import SqsServer


@pytest.fixture
def make_server() -> Iterator[Callable[..., SqsServer]]:
    with ExitStack() as stack:

        def make(**options: Any) -> SqsServer:
            return stack.enter_context(SqsServer(**{"clock": "frozen", **options}))

        yield make


@pytest.fixture
def server(make_server: Callable[..., SqsServer]) -> SqsServer:
    return make_server()


@pytest.fixture
def beside() -> Iterator[Callable[..., Future[Any]]]:
    """Calls a function in a thread of its own."""
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit
