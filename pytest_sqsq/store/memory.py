"""The default store, which keeps nothing: the engine's own messages are the only copy."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_sqsq.store.records import Record


class MemoryStore:
    """A null store; writing to it costs nothing, since records are never made for it."""

    keeps = False

    def write(self, records: Sequence[Record]) -> None:
        """Keep nothing."""

    def close(self) -> None:
        """Nothing to let go of."""
