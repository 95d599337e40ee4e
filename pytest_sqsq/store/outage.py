"""A store that a test can take away for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from pytest_sqsq.errors import StoreError
from pytest_sqsq.store.base import Store
from pytest_sqsq.store.records import Record

OUTAGE = "an outage of the store was asked for"


class StoreOutage:
    """Stands before another store, and refuses its writes while an outage lasts.

    Works before a memory store too: nothing can be changed then.  Outages are counted; the last
    one to end ends them all.  ``_lock`` guards the count.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = Lock()
        self._outages = 0

    @property
    def keeps(self) -> bool:
        return self.store.keeps or self._outages > 0

    @property
    def settled_ms(self) -> int | None:
        return self.store.settled_ms

    @property
    def opening(self) -> int:
        return self.store.opening

    @property
    def emptied(self) -> int:
        return self.store.emptied

    @property
    def trouble(self) -> str | None:
        return OUTAGE if self._outages else self.store.trouble

    @property
    def on_back(self) -> Callable[[], None] | None:
        return self.store.on_back

    @on_back.setter
    def on_back(self, called: Callable[[], None] | None) -> None:
        self.store.on_back = called

    def begin(self) -> None:
        """Begin an outage: what is written now is refused, having changed nothing."""
        with self._lock:
            self._outages += 1

    def end(self) -> None:
        """End an outage; what the store missed is written now if it was the last one."""
        with self._lock:
            self._outages -= 1
            is_over = not self._outages
        if is_over and self.on_back is not None:
            self.on_back()

    @contextmanager
    def outage(self) -> Iterator[None]:
        """An outage for as long as the context lasts."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    def load(self) -> Iterable[Record]:
        return self.store.load()

    def write(self, records: Sequence[Record]) -> None:
        if self._outages:
            raise StoreError(OUTAGE)
        self.store.write(records)

    def erase(self) -> None:
        if self._outages:
            raise StoreError(OUTAGE)
        self.store.erase()

    def close(self) -> None:
        self.store.close()

    def reopened(self, contents: Callable[[], Iterable[Record]]) -> StoreOutage:
        return StoreOutage(self.store.reopened(contents))
