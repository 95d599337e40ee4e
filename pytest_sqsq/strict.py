"""What a test must not leave behind on a server."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from pytest_sqsq.errors import LeftoverConsumerWarning, UnusedFaultWarning
from pytest_sqsq.testing.report import busy_jumps_text

if TYPE_CHECKING:
    from pytest_sqsq.options import PluginOptions
    from pytest_sqsq.server import SqsServer


def look_back(server: SqsServer, options: PluginOptions, *, failed: bool = False) -> None:
    """Warn of what was left behind on a server that is about to be emptied or stopped.

    With ``strict`` it is raised, and what only ``strict`` minds with it; several things as a
    group.  ``failed`` says that the test has failed: what it did not come to do is no news then.
    """
    __tracebackhide__ = True
    strict = options["strict"]
    left: list[Exception] = []
    consumers = None if options["leftover"] == "ignore" else leftover_text(server)
    if consumers is not None:
        leftover = LeftoverConsumerWarning(consumers)
        if strict or options["leftover"] == "error":
            left.append(leftover)
        else:
            warnings.warn(leftover, stacklevel=2)
    if not failed:
        faults = server.faults.unused_text()
        if faults is not None and not strict:
            warnings.warn(UnusedFaultWarning(faults), stacklevel=2)
        elif faults is not None:
            left.append(UnusedFaultWarning(faults))
        if strict:
            left += _minded_by_strict(server)
    if len(left) == 1:
        raise left[0]
    if left:
        _raise_together(left)


def _raise_together(left: Sequence[Exception]) -> NoReturn:
    # Not hidden as the callers are: pytest 8 cannot show a group without any traceback.
    raise ExceptionGroup("the test has left several things behind", left)


def _minded_by_strict(server: SqsServer) -> list[Exception]:
    left: list[Exception] = []
    try:
        server.assert_all_settled()
    except AssertionError as unsettled:
        left.append(unsettled.with_traceback(None))
    astray = server.requests.astray_text()
    if astray is not None:
        left.append(AssertionError(astray))
    if server.clock.busy_jumps:
        jumps = busy_jumps_text(server.clock.busy_jumps)
        left.append(
            AssertionError(f"{jumps}: hold() the clock while it works, or give it a longer grace")
        )
    return left


def leftover_text(server: SqsServer) -> str | None:
    """Who still polls, and on which queues; ``None`` if nobody does."""
    server.broker.end_dead_polls()
    queues = [probe for probe in server.queues if probe.statistics.parked_polls]
    if not queues:
        return None
    names = ", ".join(repr(probe.name) for probe in queues)
    addresses = ", ".join(each.address for each in server.connections if each.busy)
    return (
        f"a consumer is still polling {names} after its test ended"
        f" ({addresses or 'in this process, without a socket'});"
        " stop it before the test ends, or set sqsq_leftover"
    )
