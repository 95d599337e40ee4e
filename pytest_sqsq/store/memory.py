"""The default store, which keeps nothing: the engine's own messages are the only copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pytest_sqsq.store.records import PutClock, Record


class MemoryStore:
    """A null store; writing to it costs nothing, since records are never made for it.

    It holds data only between two brokers, of which one takes over from the other.
    """

    keeps = False
    emptied = 0
    trouble: str | None = None

    def __init__(self, contents: Iterable[Record] = (), *, opening: int = 1) -> None:
        self.opening = opening
        self.on_back: Callable[[], None] | None = None
        self._contents = tuple(contents)
        clocks = (record.now_ms for record in self._contents if isinstance(record, PutClock))
        self.settled_ms = max(clocks, default=None)

    def load(self) -> Iterable[Record]:
        contents, self._contents = self._contents, ()
        return contents

    def write(self, records: Sequence[Record]) -> None:
        """Keep nothing."""

    def erase(self) -> None:
        self._contents, self.settled_ms, self.opening = (), None, 1

    def close(self) -> None:
        """Nothing to let go of."""

    def reopened(self, contents: Callable[[], Iterable[Record]]) -> MemoryStore:
        return MemoryStore(contents(), opening=self.opening + 1)
