"""What a FIFO queue remembers of receives that carried a ReceiveRequestAttemptId."""

from __future__ import annotations

from typing import NamedTuple

from pytest_sqsq.engine.message import Message


class Attempt(NamedTuple):
    """What an attempt was answered with: the messages and the handles they were given.

    ``visible_at_ms`` is the deadline they got; a message that now has another one had its
    visibility changed since.
    """

    messages: tuple[Message, ...]
    handles: tuple[str, ...]
    visible_at_ms: int

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
