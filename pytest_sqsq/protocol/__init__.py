"""AWS JSON 1.0 and AWS Query: bytes to calls, results and errors to bytes.

Knows the shapes of the service model and nothing of queues.
"""

from __future__ import annotations

from pytest_sqsq.protocol.dispatch import (
    NoOperation,
    ProtocolFault,
    decode,
    encode_error,
    encode_result,
)
from pytest_sqsq.protocol.wire import Call, HttpRequest, HttpResponse, Protocol

__all__ = [
    "Call",
    "HttpRequest",
    "HttpResponse",
    "NoOperation",
    "Protocol",
    "ProtocolFault",
    "decode",
    "encode_error",
    "encode_result",
]
