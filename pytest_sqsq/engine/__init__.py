"""The queue engine: messages, deadlines and locks, without a server, a thread or a wall clock."""

from __future__ import annotations

from pytest_sqsq.engine.broker import Broker
from pytest_sqsq.engine.message import Message
from pytest_sqsq.engine.message_log import MessageLog
from pytest_sqsq.engine.move_tasks import MoveTask
from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.engine.waiters import Waiter

__all__ = ["Broker", "Message", "MessageLog", "MoveTask", "Queue", "Waiter"]
