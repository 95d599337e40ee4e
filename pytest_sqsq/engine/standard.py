"""What is ready in a standard queue, and in which order: by arrival."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_sqsq.engine.deadlines import MessageHeap
from pytest_sqsq.engine.message import Message


def _ready_key(message: Message) -> int | None:
    return message.arrival if message.state == "visible" and not message.moving else None


class StandardOrder:
    """The visible messages of a standard queue, oldest arrival first.

    A message that becomes visible again stands where it stood before.  Guarded by the queue's
    lock.
    """

    group_count = 0

    def __init__(self) -> None:
        self._ready = MessageHeap(_ready_key)

    def enter(self, message: Message) -> None:
        """A message has entered the queue, visible or delayed.  O(log n)."""
        if message.state == "visible":
            self._ready.push(message.arrival, message)

    def shown(self, message: Message) -> None:
        """A message has become visible.  O(log n)."""
        self._ready.push(message.arrival, message)

    def hidden(self, message: Message) -> None:
        """A visible message has been hidden without being taken."""
        self._ready.mark_stale()

    def left(self, message: Message, *, was_ready: bool) -> None:
        """A message has left the queue."""
        if was_ready:
            self._ready.mark_stale()

    @property
    def has_ready(self) -> bool:
        return self._ready.first() is not None

    def peek(self) -> Message | None:
        """The message the next receive takes first.  O(1) amortised."""
        return self._ready.first()

    def take(
        self, count: int, is_used_up: Callable[[Message], bool] | None
    ) -> tuple[list[Message], list[Message]]:
        """Take up to ``count`` ready messages out; beside them those found used up.

        ``is_used_up`` tells which may not be delivered any more.  What is taken must be given
        to :meth:`delivered` or :meth:`put_back`.  O(count log n).
        """
        taken: list[Message] = []
        used_up: list[Message] = []
        while len(taken) < count:
            message = self._ready.pop()
            if message is None:
                break
            if is_used_up is not None and is_used_up(message):
                used_up.append(message)
            else:
                taken.append(message)
        return taken, used_up

    def put_back(self, messages: Sequence[Message]) -> None:
        """Undo a :meth:`take`."""
        for message in messages:
            self._ready.push(message.arrival, message)

    def delivered(self, messages: Sequence[Message]) -> None:
        """The taken messages are in flight now."""

    def blocker_of(self, message: Message) -> Message | None:
        """The message that keeps a visible one from being delivered: there is none."""
        return None

    def clear(self) -> None:
        self._ready.clear()

    def check(self, live: Sequence[Message]) -> None:
        """Verify that each visible message is in the heap; ``AssertionError`` names the break."""
        known = {id(message) for message in self._ready.messages()}
        for message in live:
            assert _ready_key(message) is None or id(message) in known, (
                f"{message!r} is visible and not among the ready messages"
            )
