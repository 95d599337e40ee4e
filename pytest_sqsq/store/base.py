"""The contract of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pytest_sqsq.store.records import Record


class Store(Protocol):
    """Keeps a broker's state where it outlives the broker.

    The engine writes before it changes anything: an operation whose write raises
    :class:`~pytest_sqsq.errors.StoreError` has changed nothing and is answered with
    ServiceUnavailable.  ``keeps`` tells whether records are wanted at all; where it is false the
    engine does not even make them.
    """

    keeps: bool

    def write(self, records: Sequence[Record]) -> None:
        """Write all of the records or none of them; raises ``StoreError`` when it cannot."""

    def close(self) -> None:
        """Let go of connections; the store is not used afterwards."""
