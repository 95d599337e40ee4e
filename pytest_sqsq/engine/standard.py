"""What is ready in a standard queue, and in which order: by arrival, fair between groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_sqsq.engine.deadlines import MessageHeap
from pytest_sqsq.engine.fair import Tenants, ready_key
from pytest_sqsq.engine.message import Message


class StandardOrder:
    """The visible messages of a standard queue.

    Oldest arrival first; a message that becomes visible again stands where it stood before.
    Messages with a group id belong to a tenant, and those of quiet tenants go first; a message
    without one is a quiet tenant of its own.  Guarded by the queue's lock.
    """

    def __init__(self) -> None:
        self._ready = MessageHeap(ready_key)
        self._tenants = Tenants()
        self._in_flight = 0

    @property
    def group_count(self) -> int:
        """How many groups have live messages; those without a group id are not counted.  O(1)."""
        return len(self._tenants)

    def enter(self, message: Message) -> None:
        """A message has entered the queue, visible or delayed.  O(log n)."""
        group_id = message.message_group_id
        if group_id is not None:
            self._tenants.enter(group_id, message)
        elif message.state == "visible":
            self._ready.push(message.arrival, message)

    def shown(self, message: Message) -> None:
        """A message has become visible.  O(log n)."""
        if message.message_group_id is None:
            self._ready.push(message.arrival, message)
        else:
            self._tenants.shown(message.message_group_id, message)

    def hidden(self, message: Message) -> None:
        """A ready message has been hidden without being taken."""
        if message.message_group_id is None:
            self._ready.mark_stale()
        else:
            self._tenants.hidden(message.message_group_id)

    def count_in_flight(self, message: Message, change: int) -> None:
        """A message has gone in flight (1), or is in flight no more (-1)."""
        self._in_flight += change
        if message.message_group_id is not None:
            self._tenants.count_in_flight(message.message_group_id, change)

    def left(self, message: Message, *, was_ready: bool) -> None:
        """A message has left the queue."""
        if message.message_group_id is not None:
            self._tenants.left(message.message_group_id, was_ready=was_ready)
        elif was_ready:
            self._ready.mark_stale()

    @property
    def has_ready(self) -> bool:
        """Whether a receive would find anything.  O(1) amortised."""
        return self._ready.first() is not None or self._tenants.has_ready

    def peek(self) -> Message | None:
        """The visible message that arrived first.  O(1) amortised; O(noisy groups) with groups."""
        alone = self._ready.first()
        if not len(self._tenants):
            return alone
        grouped = self._tenants.oldest()
        if alone is None or grouped is None:
            return alone or grouped
        return min(alone, grouped, key=lambda message: message.arrival)

    def take(
        self, count: int, now_ms: int, is_used_up: Callable[[Message], bool] | None
    ) -> tuple[list[Message], list[Message]]:
        """Take up to ``count`` ready messages out; beside them those found used up.

        ``is_used_up`` tells which may not be delivered any more.  What is taken must be given
        to :meth:`delivered` or :meth:`put_back`.  O(count log n).
        """
        taken: list[Message] = []
        used_up: list[Message] = []
        while len(taken) < count:
            message = self._pop(now_ms) if len(self._tenants) else self._ready.pop()
            if message is None:
                break
            if is_used_up is not None and is_used_up(message):
                used_up.append(message)
            else:
                taken.append(message)
        return taken, used_up

    def _pop(self, now_ms: int) -> Message | None:
        alone = self._ready.first_key()
        grouped = self._tenants.first_arrival(self._in_flight, now_ms)
        if grouped is not None and (alone is None or grouped < alone):
            return self._tenants.pop_quiet()
        return self._tenants.pop_noisy() if alone is None else self._ready.pop()

    def put_back(self, messages: Sequence[Message]) -> None:
        """Undo a :meth:`take`: its messages are still visible, and are ready again."""
        for message in messages:
            self.shown(message)

    def delivered(self, messages: Sequence[Message]) -> None:
        """The taken messages are in flight now; that changes no order here."""

    def blocker_of(self, message: Message) -> Message | None:
        """The message that keeps a visible one from being delivered: there is none."""
        return None

    def clear(self) -> None:
        """Forget all messages, as a purge does."""
        self._ready.clear()
        self._tenants.clear()
        self._in_flight = 0

    def check(self, live: Sequence[Message]) -> None:
        """Verify that each visible message is in a heap; ``AssertionError`` names the break."""
        known = {id(m) for m in [*self._ready.messages(), *self._tenants.ready_messages()]}
        for message in live:
            assert ready_key(message) is None or id(message) in known, (
                f"{message!r} is visible and not among the ready messages"
            )
        self._tenants.check(list(live))
