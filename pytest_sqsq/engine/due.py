"""One heap of instants for the whole broker: which queue has something to do next, and when."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from threading import Lock

from pytest_sqsq.engine.queue import NEVER_MS, Queue
from pytest_sqsq.engine.waiters import Waiter

STALE_ALLOWANCE = 1024
"""Once in so many additions, a heap longer than this is freed of its outdated entries."""


class DueHeap:
    """Queues by the instant at which something is due in them, and parked polls by their end.

    A queue publishes its ``next_due_ms``; an entry counts while it still says the same.
    ``on_earlier`` is called, outside the lock, with an instant that may be earlier than all
    before.  The lock is a leaf.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: list[tuple[int, int, Queue]] = []
        self._polls: list[tuple[int, int, Waiter]] = []
        self._count = 0
        self.on_earlier: Callable[[int], None] | None = None

    def publish(self, queue: Queue) -> None:
        """Work out what is next in a queue and tell it; under the queue's lock.  O(log queues)."""
        due_ms = NEVER_MS if queue.deleted else queue.find_next_due_ms()
        if due_ms != queue.next_due_ms:
            self._tell(queue, due_ms)

    def _tell(self, queue: Queue, due_ms: int) -> None:
        # Set once, since others read it without a lock: never later than what is due.
        queue.next_due_ms = due_ms
        if due_ms == NEVER_MS:
            return
        with self._lock:
            self._count += 1
            heappush(self._queues, (due_ms, self._count, queue))
            earliest = self._queues[0][2] is queue
            if len(self._queues) > STALE_ALLOWANCE and self._count % STALE_ALLOWANCE == 0:
                self._drop_stale()
        if earliest and self.on_earlier is not None:
            self.on_earlier(due_ms)

    def park(self, waiter: Waiter) -> None:
        """Note the end of a poll.  O(log polls)."""
        with self._lock:
            self._count += 1
            heappush(self._polls, (waiter.deadline_ms, self._count, waiter))
            if len(self._polls) > STALE_ALLOWANCE and self._count % STALE_ALLOWANCE == 0:
                self._polls = [entry for entry in self._polls if not entry[2].answered]
                heapify(self._polls)
            earliest = self._polls[0][2] is waiter
        if earliest and self.on_earlier is not None:
            self.on_earlier(waiter.deadline_ms)

    def next_message_ms(self) -> int | None:
        """The earliest instant at which something is due in a queue.  O(1) amortised."""
        with self._lock:
            entry = self._first()
            return None if entry is None else entry[0]

    def queues_due_at(self, instant_ms: int) -> list[Queue]:
        """The queues with something due by an instant, by key.

        Their entries are taken out: each has to be put back by :meth:`keep`.
        """
        due: dict[int, Queue] = {}
        with self._lock:
            while True:
                entry = self._first()
                if entry is None or entry[0] > instant_ms:
                    break
                heappop(self._queues)
                due[id(entry[2])] = entry[2]
        return sorted(due.values(), key=lambda queue: queue.key)

    def keep(self, queue: Queue) -> None:
        """Put a queue's entry back, whether or not its instant changed; under its lock."""
        self._tell(queue, NEVER_MS if queue.deleted else queue.find_next_due_ms())

    def next_poll_end(self) -> Waiter | None:
        """The parked poll that ends first.  O(1) amortised."""
        with self._lock:
            while self._polls:
                noted_ms, number, waiter = self._polls[0]
                if waiter.answered:
                    heappop(self._polls)
                elif waiter.deadline_ms != noted_ms:  # postponed
                    heapreplace(self._polls, (waiter.deadline_ms, number, waiter))
                else:
                    return waiter
            return None

    def _first(self) -> tuple[int, int, Queue] | None:
        while self._queues:
            entry = self._queues[0]
            if entry[2].next_due_ms == entry[0]:
                return entry
            heappop(self._queues)
        return None

    def _drop_stale(self) -> None:
        current = {
            id(queue): entry
            for entry in self._queues
            if (queue := entry[2]).next_due_ms == entry[0]
        }
        self._queues = list(current.values())
        heapify(self._queues)
