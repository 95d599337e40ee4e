"""A memory that forgets."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """What was noted in the last ``window_ms`` milliseconds, by key.

    Notes come in order of time, and one replaces an earlier one under its key.  Guarded by a lock
    of whoever has it.  All operations O(1) amortised.
    """

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._notes: OrderedDict[K, tuple[int, V]] = OrderedDict()
        # Called with each key whose window is over, where somebody has to be told.
        self.on_forgotten: Callable[[K], None] | None = None

    def __len__(self) -> int:
        return len(self._notes)

    def find(self, key: K, now_ms: int) -> V | None:
        """What was noted under a key, unless its window is over at ``now_ms``."""
        self._forget(now_ms)
        return self.known(key)

    def known(self, key: K) -> V | None:
        """What was noted under a key, its window over or not, if it is not yet forgotten."""
        note = self._notes.get(key)
        return None if note is None else note[1]

    def all(self) -> list[tuple[K, V]]:
        """Everything remembered, oldest first.  O(n)."""
        return [(key, value) for key, (_, value) in self._notes.items()]

    def remember(self, key: K, value: V, now_ms: int) -> None:
        """Note something; its window begins at ``now_ms``."""
        self._forget(now_ms)
        self._notes[key] = (now_ms, value)
        self._notes.move_to_end(key)

    def clear(self) -> None:
        """Forget everything, telling nobody."""
        self._notes.clear()

    def _forget(self, now_ms: int) -> None:
        notes = self._notes
        while notes:
            key, (noted_ms, _) = next(iter(notes.items()))
            if noted_ms + self._window_ms > now_ms:
                return
            del notes[key]
            if self.on_forgotten is not None:
                self.on_forgotten(key)
