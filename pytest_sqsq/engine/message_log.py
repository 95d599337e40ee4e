"""The messages of one queue in arrival order: tombstones, indexes, amortised compaction.

A queue must delete from the middle all the time, since messages finish in any order.  Closing
the gap would move every later element, so a removal only leaves a tombstone: slots stay valid,
order is kept, and the cost is constant.  Tombstones are swept out when there are more of them
than live messages, so each removal pays for a constant share of one sweep.

Nothing outside this module touches the array.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_sqsq.engine.message import Message

COMPACTION_MINIMUM = 1024
"""So many tombstones are never worth a sweep; up to here they stay, and tests can count them."""

WHOLE_COMPACTION_SLOTS = 100_000
"""Up to this length a sweep is done at once; a longer one would stall its queue noticeably."""

COMPACTION_STEP_SLOTS = 10_000
"""How many slots one step of a long sweep looks at."""


class MessageLog:
    """An append-only array of messages with tombstones, and two indexes into it.

    The receipt index holds the current handles of messages in flight, the uuid index all live
    messages.  Both map to the message, which knows its slot, so that a renumbering leaves them
    alone.  A log made from messages builds them on first use.

    Not thread-safe: the queue's lock guards it.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._slots: list[Message | None] = list(messages)
        self._by_uuid: dict[str, Message] | None = None if self._slots else {}
        self._by_receipt: dict[str, Message] | None = None if self._slots else {}
        for slot, message in enumerate(self._slots):
            if message is not None:
                message.slot = slot
        self.dead_count = 0
        self.compactions = 0
        self._first = 0
        self._sweep_read: int | None = None
        self._sweep_write = 0

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def live_count(self) -> int:
        """How many messages are there.  O(1)."""
        return len(self._slots) - self.dead_count

    @property
    def slot_count(self) -> int:
        """How many slots there are, live and dead.  O(1)."""
        return len(self._slots)

    @property
    def receipt_index_size(self) -> int:
        return len(self._receipts())

    @property
    def uuid_index_size(self) -> int:
        return len(self._uuids())

    def append_message(self, message: Message) -> int:
        """Put a message behind all others and index it; returns its slot.  O(1)."""
        slot = len(self._slots)
        message.slot = slot
        self._slots.append(message)
        if self._by_uuid is not None:
            self._by_uuid[message.message_id] = message
        if self._by_receipt is not None and message.receipt_handle is not None:
            self._by_receipt[message.receipt_handle] = message
        return slot

    def remove_index(self, i: int) -> Message:
        """Leave a tombstone at slot ``i`` and return the message, emptied.  O(1) amortised.

        Body and attributes are dropped at once, whoever else still holds the message.  Raises
        ``IndexError`` where the slot is dead already.
        """
        message = self._live(i)
        # Both indexes are built by now, with the message in: built later they would keep it.
        self._uuids().pop(message.message_id, None)
        if message.receipt_handle is not None:
            self.clear_in_flight(i)
        self._slots[i] = None
        self.dead_count += 1
        message.slot = -1
        message.body = ""
        message.attributes = None
        if self.dead_count > COMPACTION_MINIMUM:
            self.compact_if_due()
        return message

    def index_of_receipt(self, handle: str) -> int | None:
        """The slot of the message in flight under this current handle, else ``None``.  O(1)."""
        message = self._receipts().get(handle)
        return None if message is None else message.slot

    def index_of_uuid(self, message_id: str) -> int | None:
        """The slot of the live message with this id, else ``None``.  O(1)."""
        message = self._uuids().get(message_id)
        return None if message is None else message.slot

    def mark_in_flight(self, i: int, handle: str) -> None:
        """Make ``handle`` the current one of the message at slot ``i``.  O(1)."""
        message = self._live(i)
        receipts = self._receipts()
        if message.receipt_handle is not None:
            receipts.pop(message.receipt_handle, None)
        message.receipt_handle = handle
        receipts[handle] = message

    def clear_in_flight(self, i: int) -> None:
        """Take the message at slot ``i`` out of the receipt index.  O(1)."""
        message = self._live(i)
        if message.receipt_handle is not None:
            self._receipts().pop(message.receipt_handle, None)
            message.receipt_handle = None

    def is_dead(self, i: int) -> bool:
        """Whether slot ``i`` is a tombstone.  O(1)."""
        return self._slots[i] is None

    def message_at(self, i: int) -> Message:
        """The live message at slot ``i``; ``IndexError`` where there is none.  O(1)."""
        return self._live(i)

    def find_uuid(self, message_id: str) -> Message | None:
        """The live message with this id.  O(1)."""
        return self._uuids().get(message_id)

    def find_receipt(self, handle: str) -> Message | None:
        """The message in flight under this current handle.  O(1)."""
        return self._receipts().get(handle)

    def in_flight_indexes(self) -> list[int]:
        """The slots of all messages in flight, in arrival order.  O(in flight)."""
        return sorted(message.slot for message in self._receipts().values())

    def live_messages(self) -> Iterator[Message]:
        """All live messages in arrival order.  O(n)."""
        return (message for message in self._slots if message is not None)

    def live_after(self, arrival: int) -> Iterator[Message]:
        """The live messages with a later arrival number, in order.

        O(log n) to find the first, and the tombstones that are passed on the way; not to be gone
        on with once the log has changed.
        """
        slots = self._slots
        low, high = self._first, len(slots)
        while low < high:
            middle = (low + high) // 2
            probe = middle
            while probe < high and slots[probe] is None:
                probe += 1
            message = slots[probe] if probe < high else None
            if message is not None and message.arrival <= arrival:
                low = probe + 1
            else:
                high = middle
        later = (slots[slot] for slot in range(low, len(slots)))
        return (message for message in later if message is not None)

    def first_live(self) -> Message | None:
        """The oldest live message.  O(1) amortised: a cursor remembers the dead prefix."""
        slots = self._slots
        first, end = self._first, len(slots)
        while first < end and slots[first] is None:
            first += 1
        self._first = first
        return slots[first] if first < end else None

    def compact_if_due(self) -> bool:
        """Sweep, or go on sweeping, if tombstones outnumber the living; whether there was work.

        At once up to ``WHOLE_COMPACTION_SLOTS`` slots, else one step.
        """
        if self._sweep_read is not None:
            self._sweep_step()
            return True
        if self.dead_count <= COMPACTION_MINIMUM or self.dead_count <= self.live_count:
            return False
        if len(self._slots) <= WHOLE_COMPACTION_SLOTS:
            self.compact()
        else:
            # The dead prefix needs no look, and its slots are given back like all others.
            self._sweep_read, self._sweep_write = self._first, 0
            self._sweep_step()
        return True

    def compact(self) -> None:
        """Drop all tombstones and renumber; order is kept.  O(n)."""
        live = list(self.live_messages())
        for slot, message in enumerate(live):
            message.slot = slot
        self._slots = list(live)
        self.dead_count = 0
        self._first = 0
        self._sweep_read = None
        self.compactions += 1

    def _sweep_step(self) -> None:
        """Slide the next slots down over the tombstones before them.

        Between two steps everything from the write position to the read position is dead, and
        every message knows its slot, so the log can be used as ever.
        """
        slots = self._slots
        assert self._sweep_read is not None
        read, write = self._sweep_read, self._sweep_write
        end = min(read + COMPACTION_STEP_SLOTS, len(slots))
        for position in range(read, end):
            message = slots[position]
            if message is None:
                continue
            if position != write:
                slots[write] = message
                slots[position] = None
                message.slot = write
            write += 1
        if write != self._sweep_write:
            self._first = min(self._first, self._sweep_write)
        self._sweep_read, self._sweep_write = end, write
        if end == len(slots):
            self.dead_count -= len(slots) - write
            del slots[write:]
            self._sweep_read = None
            self.compactions += 1

    def reset(self) -> None:
        """Forget every message, as a purge does.  O(n)."""
        for message in self.live_messages():
            message.slot = -1
            message.receipt_handle = None
            message.body = ""
            message.attributes = None
        self._slots = []
        self._by_uuid = {}
        self._by_receipt = {}
        self.dead_count = 0
        self._first = 0
        self._sweep_read = None

    def rebuild_indexes(self) -> None:
        """Make both indexes anew from the array, as after loading.  O(n)."""
        self._by_uuid = {message.message_id: message for message in self.live_messages()}
        self._by_receipt = {
            message.receipt_handle: message
            for message in self.live_messages()
            if message.receipt_handle is not None
        }

    def check(self) -> None:
        """Verify every invariant; ``AssertionError`` names the broken one.  O(n)."""
        live = list(self.live_messages())
        dead = len(self._slots) - len(live)
        assert dead == self.dead_count, f"dead_count is {self.dead_count}, {dead} slots are dead"
        for slot, message in enumerate(self._slots):
            assert message is None or message.slot == slot, (
                f"{message!r} stands at slot {slot} and believes to be elsewhere"
            )
        assert all(message is None for message in self._slots[: self._first]), (
            f"a live message stands before the first-live cursor {self._first}"
        )
        if self._sweep_read is not None:
            assert all(m is None for m in self._slots[self._sweep_write : self._sweep_read]), (
                "a live message stands between the two positions of the sweep"
            )
        arrivals = [message.arrival for message in live]
        assert arrivals == sorted(arrivals), "messages are not in arrival order"
        uuids = {message.message_id: message for message in live}
        assert len(uuids) == len(live), "two live messages share a message id"
        assert self._by_uuid is None or self._by_uuid == uuids, (
            "the uuid index differs from the live messages"
        )
        receipts = {m.receipt_handle: m for m in live if m.receipt_handle is not None}
        assert self._by_receipt is None or self._by_receipt == receipts, (
            "the receipt index differs from the messages in flight"
        )

    def _live(self, i: int) -> Message:
        message = self._slots[i] if 0 <= i < len(self._slots) else None
        if message is None:
            raise IndexError(f"slot {i} holds no message: the log has {len(self._slots)} slots")
        return message

    def _uuids(self) -> dict[str, Message]:
        if self._by_uuid is None:
            self.rebuild_indexes()
        assert self._by_uuid is not None
        return self._by_uuid

    def _receipts(self) -> dict[str, Message]:
        if self._by_receipt is None:
            self.rebuild_indexes()
        assert self._by_receipt is not None
        return self._by_receipt
