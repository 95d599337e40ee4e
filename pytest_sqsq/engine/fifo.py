"""What is ready in a FIFO queue, and in which order.

All of FIFO locking is one rule: a group delivers its messages in order, up to its first one in
flight.  A group is therefore ready when its head is visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush

from pytest_sqsq.engine.deadlines import STALE_MINIMUM
from pytest_sqsq.engine.message import Message


class Group:
    """The live messages of one message group, in flight included, as a doubly linked list.

    The links are fields of the messages: one is in one group at most.  All methods are O(1) but
    for iteration, which goes from head to tail, and :meth:`first_hidden`.
    ``rank`` orders the groups: given when the group is made and anew each time a receive takes
    from it, so that a group just served goes to the back.
    """

    __slots__ = ("_first_hidden", "_is_first_hidden_known", "group_id", "head", "rank", "tail")

    def __init__(self, group_id: str, rank: int) -> None:
        self.group_id = group_id
        self.rank = rank
        self.head: Message | None = None
        self.tail: Message | None = None
        self._first_hidden: Message | None = None
        self._is_first_hidden_known = True

    def append(self, message: Message) -> None:
        """Put a message behind all others; it arrived after them."""
        message.group = self
        message.previous_in_group = self.tail
        if self.tail is None:
            self.head = message
        else:
            self.tail.next_in_group = message
        self.tail = message

    def unlink(self, message: Message) -> None:
        """Take a message out, wherever it stands."""
        before, after = message.previous_in_group, message.next_in_group
        if before is None:
            self.head = after
        else:
            before.next_in_group = after
        if after is None:
            self.tail = before
        else:
            after.previous_in_group = before
        message.group = message.previous_in_group = message.next_in_group = None
        self.note_visible(message)

    def note_hidden(self, message: Message) -> None:
        """One of its messages is delayed or in flight now."""
        first = self._first_hidden
        if first is None or message.arrival < first.arrival:
            self._first_hidden = message

    def note_visible(self, message: Message) -> None:
        """One of its messages is visible now, or gone."""
        if message is self._first_hidden:
            self._first_hidden, self._is_first_hidden_known = None, False

    def first_hidden(self) -> Message | None:
        """The earliest message that is delayed or in flight.

        O(messages before it) once after it has changed, so that all messages of a long group
        can be looked at.
        """
        if not self._is_first_hidden_known:
            hidden = (message for message in self if message.state != "visible")
            self._first_hidden, self._is_first_hidden_known = next(hidden, None), True
        return self._first_hidden

    @property
    def is_ready(self) -> bool:
        """Whether a receive may take from it: its head is visible and not about to move."""
        head = self.head
        return head is not None and head.state == "visible" and not head.moving

    def __iter__(self) -> Iterator[Message]:
        message = self.head
        while message is not None:
            yield message
            message = message.next_in_group


class FifoOrder:
    """The groups of a FIFO queue and the heap of those that are ready, by rank.

    An entry of the heap counts while its group still has that rank and is ready; a group may
    have several entries, of which the first one served settles it.  Guarded by the queue's lock.
    """

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._ready: list[tuple[int, Group]] = []
        self._next_rank = 0

    @property
    def group_count(self) -> int:
        """How many groups have live messages.  O(1)."""
        return len(self._groups)

    def enter(self, message: Message) -> None:
        """A message has entered the queue, visible or delayed.  O(log groups)."""
        group_id = message.message_group_id or ""
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = Group(group_id, self._new_rank())
        group.append(message)
        if message.state != "visible":
            group.note_hidden(message)
        if group.head is message:
            self._offer(group)

    def shown(self, message: Message) -> None:
        """A message has become visible.  O(log groups)."""
        group = message.group
        if group is None:
            return
        group.note_visible(message)
        if group.head is message:
            self._offer(group)

    def hidden(self, message: Message) -> None:
        """A visible message has been hidden without being taken: its group's head shows it."""

    def count_in_flight(self, message: Message, change: int) -> None:
        """A message has gone in flight (1), or is in flight no more (-1).  O(1)."""
        if change > 0 and message.group is not None:
            message.group.note_hidden(message)

    def left(self, message: Message, *, was_ready: bool) -> None:
        """A message has left the queue; the next of its group may be ready.  O(log groups)."""
        group = message.group
        if group is None:
            return
        was_head = group.head is message
        group.unlink(message)
        if group.head is None:
            del self._groups[group.group_id]
        elif was_head:
            self._offer(group)

    @property
    def has_ready(self) -> bool:
        """Whether a receive would find anything.  O(1) amortised."""
        return self._first_ready() is not None

    def peek(self) -> Message | None:
        """The message the next receive takes first.  O(1) amortised."""
        group = self._first_ready()
        return None if group is None else group.head

    def take(
        self, count: int, now_ms: int, is_used_up: Callable[[Message], bool] | None
    ) -> tuple[list[Message], list[Message]]:
        """Take up to ``count`` deliverable messages; beside them the used-up heads found.

        As many as possible from one group, then from the next.  A used-up message at the head
        of a group keeps the group back until it has moved.  What is taken must be given to
        :meth:`delivered` or :meth:`put_back`.  O(count + groups taken * log groups).
        """
        taken: list[Message] = []
        used_up: list[Message] = []
        while len(taken) < count:
            group = self._first_ready()
            if group is None:
                break
            self._drop_entries_of(group)
            for message in group:
                if message.state != "visible" or message.moving or len(taken) == count:
                    break
                if is_used_up is not None and is_used_up(message):
                    if message is group.head:
                        used_up.append(message)
                    break
                taken.append(message)
        return taken, used_up

    def put_back(self, messages: Sequence[Message]) -> None:
        """Undo a :meth:`take`: its messages are still visible, and are ready again."""
        for message in messages:
            self.shown(message)

    def delivered(self, messages: Sequence[Message]) -> None:
        """The taken messages, group by group, are in flight now: their groups go to the back."""
        served: Group | None = None
        for message in messages:
            if message.group is not None and message.group is not served:
                served = message.group
                served.rank = self._new_rank()

    def blocker_of(self, message: Message) -> Message | None:
        """The earliest message of its group that keeps a visible one from being delivered."""
        first = None if message.group is None else message.group.first_hidden()
        return first if first is not None and first.arrival < message.arrival else None

    def clear(self) -> None:
        """Forget all groups, as a purge does."""
        self._groups.clear()
        self._ready.clear()

    def check(self, live: Sequence[Message]) -> None:
        """Verify groups and heap; ``AssertionError`` names the broken invariant.  O(n)."""
        members: dict[str, list[Message]] = {}
        for message in live:
            members.setdefault(message.message_group_id or "", []).append(message)
        assert members.keys() == self._groups.keys(), "groups differ from the live messages'"
        entries = {(rank, id(group)) for rank, group in self._ready}
        for group_id, expected in members.items():
            group = self._groups[group_id]
            assert list(group) == expected, f"group {group_id!r} is not in arrival order"
            assert group.tail is expected[-1], f"group {group_id!r} has a wrong tail"
            hidden = (message for message in expected if message.state != "visible")
            assert group.first_hidden() is next(hidden, None), (
                f"group {group_id!r} knows a wrong first hidden message"
            )
            assert not group.is_ready or (group.rank, id(group)) in entries, (
                f"group {group_id!r} is ready and not in the heap"
            )

    def _new_rank(self) -> int:
        self._next_rank += 1
        return self._next_rank

    def _offer(self, group: Group) -> None:
        if group.is_ready:
            heappush(self._ready, (group.rank, group))
            if len(self._ready) > 2 * len(self._groups) + STALE_MINIMUM:
                self._rebuild()

    def _drop_entries_of(self, group: Group) -> None:
        # It is still ready until what is taken is in flight: no other entry may count meanwhile.
        while self._ready and self._ready[0][1] is group:
            heappop(self._ready)

    def _first_ready(self) -> Group | None:
        ready = self._ready
        while ready:
            rank, group = ready[0]
            if group.rank == rank and group.is_ready:
                return group
            heappop(ready)
        return None

    def _rebuild(self) -> None:
        self._ready = [(group.rank, group) for group in self._groups.values() if group.is_ready]
        heapify(self._ready)
