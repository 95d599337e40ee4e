"""pytest-sqsq: a pytest plugin with a real SQS server inside, and a clock to fast-forward.

Everything that a test names comes from here.  Names are looked up on first use: pytest loads the
plugin into every run, and an idle plugin must cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .aio import Aio
    from .clock import Clock
    from .environment import Endpoint
    from .errors import (
        AwsBlocked,
        ClockModeError,
        JournalForgotten,
        LeftoverConsumerWarning,
        QueueNotFound,
        ServerStartError,
        StoreInUse,
        UnusedFaultWarning,
        WaitTimeout,
    )
    from .gateway.fault_turns import Fault
    from .gateway.faults import Faults
    from .gateway.requests import RequestLog, RequestRecord
    from .models import Event, MessageView, QueueStatistics
    from .options import ServerOptions
    from .server import MakeServer, SqsServer
    from .testing import (
        DrainReport,
        LambdaContext,
        LambdaInvocation,
        MalformedResponse,
        QueueProbe,
        Session,
    )

_HOMES = {
    "Aio": "aio",
    "AwsBlocked": "errors",
    "Clock": "clock",
    "ClockModeError": "errors",
    "DrainReport": "testing",
    "Endpoint": "environment",
    "Event": "models",
    "Fault": "gateway.fault_turns",
    "Faults": "gateway.faults",
    "JournalForgotten": "errors",
    "LambdaContext": "testing",
    "LambdaInvocation": "testing",
    "LeftoverConsumerWarning": "errors",
    "MakeServer": "server",
    "MalformedResponse": "testing",
    "MessageView": "models",
    "QueueNotFound": "errors",
    "QueueProbe": "testing",
    "QueueStatistics": "models",
    "RequestLog": "gateway.requests",
    "RequestRecord": "gateway.requests",
    "ServerOptions": "options",
    "ServerStartError": "errors",
    "Session": "testing",
    "SqsServer": "server",
    "StoreInUse": "errors",
    "UnusedFaultWarning": "errors",
    "WaitTimeout": "errors",
}

__all__ = [
    "Aio",
    "AwsBlocked",
    "Clock",
    "ClockModeError",
    "DrainReport",
    "Endpoint",
    "Event",
    "Fault",
    "Faults",
    "JournalForgotten",
    "LambdaContext",
    "LambdaInvocation",
    "LeftoverConsumerWarning",
    "MakeServer",
    "MalformedResponse",
    "MessageView",
    "QueueNotFound",
    "QueueProbe",
    "QueueStatistics",
    "RequestLog",
    "RequestRecord",
    "ServerOptions",
    "ServerStartError",
    "Session",
    "SqsServer",
    "StoreInUse",
    "UnusedFaultWarning",
    "WaitTimeout",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
