from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest
from botocore.config import Config

from pytest_sqsq import SqsServer
from pytest_sqsq.gateway.faults import Faults

ONE_ATTEMPT = Config(retries={"total_max_attempts": 1})


@pytest.fixture
def beside() -> Iterator[Callable[..., Future[Any]]]:
    """Calls a function in a thread of its own, which a server that stops lets go."""
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit


@pytest.fixture
def make_server(beside: Callable[..., Future[Any]]) -> Iterator[Callable[..., SqsServer]]:
    with ExitStack() as stack:

        def make(**options: Any) -> SqsServer:
            return stack.enter_context(SqsServer(**{"clock": "frozen", "seed": 7, **options}))

        yield make


@pytest.fixture
def server(make_server: Callable[..., SqsServer]) -> SqsServer:
    return make_server()


@pytest.fixture
def faults(server: SqsServer) -> Faults:
    return server.faults


@pytest.fixture(params=["http", "direct"])
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def sqs(server: SqsServer, transport: str) -> Iterator[Any]:
    """A client that tries once."""
    with closing(server.client(transport=transport, config=ONE_ATTEMPT)) as client:
        yield client


@pytest.fixture
def queue(server: SqsServer) -> Any:
    return server.create_queue("orders")


@pytest.fixture
def send(sqs: Any, queue: Any) -> Callable[..., Any]:
    def send(body: str = "a") -> Any:
        return sqs.send_message(QueueUrl=queue.url, MessageBody=body)

    return send


@pytest.fixture
def outcomes(send: Callable[..., Any]) -> Callable[[int], str]:
    """Sends some messages; ``.`` for each that was taken, ``x`` for each that was not."""
    from botocore.exceptions import ClientError

    def outcome() -> str:
        try:
            send()
        except ClientError:
            return "x"
        return "."

    return lambda count: "".join(outcome() for _ in range(count))
