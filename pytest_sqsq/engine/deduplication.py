"""What a FIFO queue remembers of the deduplication ids it accepted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from pytest_sqsq.limits import DEDUPLICATION_WINDOW_MS

DeduplicationKey = tuple[str | None, str]
"""Message group (``None`` where the scope is the queue) and deduplication id."""


class Accepted(NamedTuple):
    """The first send under a deduplication id; ``accepted_ms`` begins its five minutes."""

    message_id: str
    sequence_number: int
    accepted_ms: int


class DeduplicationMemory:
    """The ids accepted in the last five minutes, apart from the life of the messages.

    The window counts from the first accepted send; a duplicate does not extend it.  Guarded by
    the queue's lock.  All operations O(1) amortised.
    """

    def __init__(self) -> None:
        self._accepted: dict[DeduplicationKey, Accepted] = {}
        self._by_age: deque[tuple[DeduplicationKey, Accepted]] = deque()
        # Called with each id whose window is over, where a store has to be told.
        self.on_forgotten: Callable[[DeduplicationKey], None] | None = None

    def __len__(self) -> int:
        return len(self._accepted)

    def find(self, key: DeduplicationKey, now_ms: int) -> Accepted | None:
        """The accepted send that makes ``key`` a duplicate at ``now_ms``, if there is one."""
        self._forget(now_ms)
        return self._accepted.get(key)

    def known(self, key: DeduplicationKey) -> Accepted | None:
        """What is remembered of ``key``, its window over or not."""
        return self._accepted.get(key)

    def all(self) -> list[tuple[DeduplicationKey, Accepted]]:
        """Everything remembered, oldest first.  O(n)."""
        return list(self._accepted.items())

    def remember(self, key: DeduplicationKey, accepted: Accepted) -> None:
        """Note a send under an id that :meth:`find` did not know; in order of time."""
        self._accepted[key] = accepted
        self._by_age.append((key, accepted))

    def clear(self) -> None:
        """Forget everything, telling nobody."""
        self._accepted.clear()
        self._by_age.clear()

    def _forget(self, now_ms: int) -> None:
        by_age = self._by_age
        while by_age and by_age[0][1].accepted_ms + DEDUPLICATION_WINDOW_MS <= now_ms:
            key, accepted = by_age.popleft()
            if self._accepted.get(key) is accepted:
                del self._accepted[key]
                if self.on_forgotten is not None:
                    self.on_forgotten(key)
