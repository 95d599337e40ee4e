"""What a FIFO queue remembers of receives that carried a ReceiveRequestAttemptId."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from pytest_sqsq.engine.message import Message
from pytest_sqsq.limits import ATTEMPT_ID_WINDOW_MS


class Attempt(NamedTuple):
    """What an attempt was answered with: the messages and the handles they were given.

    ``visible_at_ms`` is the deadline they got; a message that now has another one had its
    visibility changed since.
    """

    messages: tuple[Message, ...]
    handles: tuple[str, ...]
    visible_at_ms: int
    at_ms: int

    @property
    def is_retryable(self) -> bool:
        """Whether all its messages are still in flight as this attempt left them.  O(messages)."""
        return all(
            message.state == "in_flight"
            and message.receipt_handle == handle
            and message.visible_at_ms == self.visible_at_ms
            for message, handle in zip(self.messages, self.handles, strict=True)
        )

    def has_run_out(self, now_ms: int) -> bool:
        """Whether the visibility timeout it gave is over: the next receive is an ordinary one."""
        return self.visible_at_ms <= now_ms


class AttemptMemory:
    """The attempts of the last five minutes, by ReceiveRequestAttemptId.

    Guarded by the queue's lock.  All operations O(1) amortised.
    """

    def __init__(self) -> None:
        self._attempts: dict[str, Attempt] = {}
        self._by_age: deque[tuple[str, Attempt]] = deque()

    def find(self, attempt_id: str, now_ms: int) -> Attempt | None:
        """The latest attempt under this id, if it is less than five minutes old."""
        self._forget(now_ms)
        return self._attempts.get(attempt_id)

    def remember(self, attempt_id: str, attempt: Attempt) -> None:
        """Note an attempt in place of an earlier one under its id; in order of time."""
        self._attempts[attempt_id] = attempt
        self._by_age.append((attempt_id, attempt))

    def clear(self) -> None:
        self._attempts.clear()
        self._by_age.clear()

    def _forget(self, now_ms: int) -> None:
        by_age = self._by_age
        while by_age and by_age[0][1].at_ms + ATTEMPT_ID_WINDOW_MS <= now_ms:
            attempt_id, attempt = by_age.popleft()
            if self._attempts.get(attempt_id) is attempt:
                del self._attempts[attempt_id]
