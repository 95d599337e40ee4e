"""The thread that keeps a lease alive, and notices when a store that was gone is back."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from pytest_sqsq.store.lease import RENEWAL_SECONDS

TROUBLE_SECONDS = 1.0
"""Real seconds between two attempts to reach a store that is in trouble."""


class Keeper:
    """Calls ``beat`` each few real seconds, and when woken; the less often the better it goes.

    ``beat`` returns whether the store can be written; ``well`` and ``ill`` are the seconds to
    the next beat after one that found that it can, and that it cannot.
    """

    def __init__(
        self,
        beat: Callable[[], bool],
        *,
        well: float = RENEWAL_SECONDS,
        ill: float = TROUBLE_SECONDS,
    ) -> None:
        self._beat = beat
        self._well = well
        self._ill = ill
        self._woken = Event()
        self._stopping = False
        self._thread = Thread(target=self._run, name="sqsq-store", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Have a beat now."""
        self._woken.set()

    def stop(self, timeout: float) -> None:
        """End the thread; waits so many real seconds for a beat that hangs."""
        self._stopping = True
        self._woken.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        is_well = True
        while True:
            self._woken.wait(self._well if is_well else self._ill)
            self._woken.clear()
            if self._stopping:
                return
            is_well = self._beat()
