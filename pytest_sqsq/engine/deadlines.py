"""A heap of messages that forgets lazily."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from pytest_sqsq.engine.message import Message

STALE_MINIMUM = 1024
"""Fewer stale entries than this are never worth a rebuild."""


class MessageHeap:
    """Messages by a key that each of them can tell, smallest first, equal keys by arrival.

    Nothing is ever taken out of the middle: an entry whose message now tells another key, or
    ``None``, is stale and is dropped when it comes to the top, or by a rebuild when stale entries
    exceed both ``STALE_MINIMUM`` and the live ones.  Pushing a message twice under one key is
    harmless.
    """

    __slots__ = ("_entries", "_key_of", "_stale")

    def __init__(self, key_of: Callable[[Message], int | None]) -> None:
        self._entries: list[tuple[int, int, Message]] = []
        self._key_of = key_of
        self._stale = 0

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, key: int, message: Message) -> None:
        """Add a message under its present key.  O(log n)."""
        heappush(self._entries, (key, message.arrival, message))

    def first(self) -> Message | None:
        """The message with the smallest key.  O(1) amortised."""
        entries = self._entries
        while entries:
            key, _, message = entries[0]
            if self._key_of(message) == key:
                return message
            heappop(entries)
            if self._stale:
                self._stale -= 1
        return None

    def first_key(self) -> int | None:
        """The smallest key.  O(1) amortised."""
        return None if self.first() is None else self._entries[0][0]

    def pop(self) -> Message | None:
        """Take out and return the message with the smallest key, once.  O(log n) amortised."""
        message = self.first()
        if message is not None:
            entries = self._entries
            heappop(entries)
            # A stale entry counts again when its message gets back the key it had.
            while entries and entries[0][2] is message:
                heappop(entries)
        return message

    def mark_stale(self) -> None:
        """Say that one more entry no longer counts; rebuilds when they are too many."""
        self._stale += 1
        if self._stale > STALE_MINIMUM and self._stale > len(self._entries) - self._stale:
            self._rebuild()

    def messages(self) -> list[Message]:
        """The messages of all entries, stale ones too, in no order."""
        return [message for _, _, message in self._entries]

    def clear(self) -> None:
        self._entries.clear()
        self._stale = 0

    def _rebuild(self) -> None:
        current = {
            arrival: (key, arrival, message)
            for key, arrival, message in self._entries
            if self._key_of(message) == key
        }
        self._entries = list(current.values())
        heapify(self._entries)
        self._stale = 0
