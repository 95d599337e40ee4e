"""The contract of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from pytest_sqsq.store.records import Record


class Store(Protocol):
    """Keeps a broker's state where it outlives the broker.

    The engine writes before it changes anything: an operation whose write raises
    :class:`~pytest_sqsq.errors.StoreError` has changed nothing and is answered with
    ServiceUnavailable.  Safe to use from any thread.

    ``keeps`` tells whether records are wanted at all; where it is false the engine does not even
    make them.  ``settled_ms`` is the latest instant that the store had been told of when it was
    opened, ``None`` if there was none.  ``opening`` counts from 1 how often the data was opened
    since there is any.  ``emptied`` rises when the store finds that data it was given is lost,
    and has emptied itself; the engine then writes everything anew.  ``trouble`` says why the
    store cannot be written just now, for people to read; ``None`` when it can.  ``on_back`` is
    called when a store in trouble can be written again: from any thread, at any time, with no
    lock of the store held.
    """

    on_back: Callable[[], None] | None

    @property
    def keeps(self) -> bool: ...

    @property
    def settled_ms(self) -> int | None: ...

    @property
    def opening(self) -> int: ...

    @property
    def emptied(self) -> int: ...

    @property
    def trouble(self) -> str | None: ...

    def load(self) -> Iterable[Record]:
        """Everything that is kept, as records that would make it again.

        A queue comes before what belongs to it, its messages last and in order of arrival.
        Raises ``StoreError``.
        """

    def write(self, records: Sequence[Record]) -> None:
        """Write all of the records, in order, or none of them.

        When this returns, they are where :meth:`load` finds them.  Raises ``StoreError`` when it
        cannot, and ``OutcomeUnknown`` when it cannot tell; within the store's timeout, and at
        once for as long as the store is known to hang.
        """

    def erase(self) -> None:
        """Forget everything that is kept, for a new broker to begin with.

        Raises ``StoreRefused`` for data that was made by somebody else, and ``StoreError``.
        """

    def close(self) -> None:
        """Let go of the data and of connections; the store is not used afterwards."""

    def reopened(self, contents: Callable[[], Iterable[Record]]) -> Store:
        """A store with the same data, for a new broker; this one is closed.

        ``contents`` gives everything the broker before holds, for a store that does not keep it.
        Raises as opening it does; this one is as it was then.
        """
