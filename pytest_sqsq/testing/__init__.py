"""Looking into queues, asserting, waiting, and consuming in tests."""

from __future__ import annotations

from pytest_sqsq.testing.drain import DrainReport
from pytest_sqsq.testing.lambda_events import LambdaContext, LambdaInvocation, MalformedResponse
from pytest_sqsq.testing.probe import QueueProbe
from pytest_sqsq.testing.track import Session
from pytest_sqsq.testing.world import Traffic, World

__all__ = [
    "DrainReport",
    "LambdaContext",
    "LambdaInvocation",
    "MalformedResponse",
    "QueueProbe",
    "Session",
    "Traffic",
    "World",
]
