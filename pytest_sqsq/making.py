"""What fixtures make: further servers, and names of queues."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import sha256
from typing import TYPE_CHECKING, Unpack

from pytest_sqsq import limits
from pytest_sqsq.server import SqsServer
from pytest_sqsq.shared import in_namespace, of_server
from pytest_sqsq.strict import look_back

if TYPE_CHECKING:
    from pytest_sqsq.options import PluginOptions, ServerOptions
    from pytest_sqsq.server import MakeServer
    from pytest_sqsq.whole_run import Run

DIGEST_LENGTH = 8


def queue_name(test: str, suffix: str = "") -> str:
    """The name of a test as that of a queue; cut off and told apart by a digest if too long."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", test).strip("-") or "test"
    length = limits.QUEUE_NAME_LENGTH - len(suffix)
    if len(name) > length:
        digest = sha256(test.encode()).hexdigest()[:DIGEST_LENGTH]
        name = f"{name[: length - DIGEST_LENGTH - 1]}-{digest}"
    return name + suffix


def look_for_failures(server: SqsServer, options: PluginOptions) -> None:
    """Raise what went wrong inside a server; with the option ``check``, verify its queues."""
    __tracebackhide__ = True
    if options["check"]:
        server.check()
    else:
        server.raise_failures()


def _empty(server: SqsServer) -> None:
    if server.is_running:
        server.reset()
    elif server.options["store"] != "memory":
        # A test has stopped it, and it has let go of its store.  It begins empty.
        server.start().stop()


def server_maker(
    run: Run, options: PluginOptions, servers: list[SqsServer]
) -> Iterator[MakeServer]:
    """Yields what makes servers with ``options``, noting them in ``servers``, and ends them."""
    __tracebackhide__ = True
    failures = run.failures
    with ExitStack() as stack:
        stack.callback(servers.clear)  # nodes outlive their tests

        def make(**arguments: Unpack[ServerOptions]) -> SqsServer:
            given = {**of_server(options), **arguments}
            run.made += 1
            server = SqsServer(**in_namespace(given, f"{run.made}:"))
            server.creator, server.begins_empty = "plugin", given["store_prefix"] is None
            stack.enter_context(server)
            if server.begins_empty:
                stack.callback(_empty, server)
            server.timeout_factor = options["timeout_factor"]
            stack.callback(lambda: look_back(server, options, failed=run.failures > failures))
            stack.callback(look_for_failures, server, options)
            servers.append(server)
            return server

        yield make
