"""The control API: what lies at ``/_sqsq/`` and ``/_aws/sqs/messages``.

For people, scripts and tests in other languages.  Loaded with the first request to it.
"""

from __future__ import annotations

from pytest_sqsq.admin.api import ControlApi
from pytest_sqsq.admin.controlled import Controlled, Helpers

__all__ = ["ControlApi", "Controlled", "Helpers"]
