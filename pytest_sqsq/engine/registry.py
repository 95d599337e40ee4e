"""Which queues there are, and which of them dead-letter into which."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock

from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.errors import QueueDeletedRecently
from pytest_sqsq.limits import COOLDOWN_MS
from pytest_sqsq.models import QueueKey


class Registry:
    """The map of queues and the dead-letter links between them.

    The lock is a leaf: it is held for map accesses only, never while a queue's lock is taken or
    anything is written.  Links are kept by ARN, so that they hold for a target that is deleted
    and made again.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: dict[QueueKey, Queue] = {}
        self._targets: dict[QueueKey, str] = {}
        self._deleted_ms: dict[QueueKey, int] = {}

    def find(self, key: QueueKey) -> Queue | None:
        """The queue, which may be in the middle of being made or deleted.  O(1), no lock."""
        return self._queues.get(key)

    def find_arn(self, arn: str) -> Queue | None:
        """The queue of exactly this ARN, as :meth:`find` gives it.  O(1), no lock."""
        key = QueueKey.from_arn(arn)
        queue = None if key is None else self._queues.get(key)
        # A key tells nothing of the partition.
        return queue if queue is not None and queue.arn == arn else None

    def all(self) -> tuple[Queue, ...]:
        """All queues, by key, those being made or deleted too.  O(n log n)."""
        with self._lock:
            return tuple(sorted(self._queues.values(), key=lambda queue: queue.key))

    def insert(self, queue: Queue, cooldown_ms: int = 0) -> Queue:
        """Put a queue in unless its key is taken; returns the one that is there then.

        Raises ``QueueDeletedRecently`` if the key is free since less than ``cooldown_ms``.
        """
        with self._lock:
            present = self._queues.get(queue.key)
            if present is not None:
                return present
            deleted_ms = self._deleted_ms.get(queue.key)
            if deleted_ms is not None and queue.created_ms < deleted_ms + cooldown_ms:
                raise QueueDeletedRecently
            self._queues[queue.key] = queue
            self._link(queue)
            return queue

    def remove(self, queue: Queue) -> None:
        """Take a queue out if it is still the one under its key.  O(queues)."""
        with self._lock:
            if self._queues.get(queue.key) is queue:
                del self._queues[queue.key]
                self._targets.pop(queue.key, None)
                self._recompute_links()

    def note_deletion(self, key: QueueKey, now_ms: int) -> None:
        """Remember when a queue was deleted; to be called before it can be seen to be gone."""
        with self._lock:
            self._forget_deletions(now_ms)
            self._deleted_ms[key] = now_ms

    def deleted_ms(self, key: QueueKey) -> int | None:
        """When a queue of this key was last deleted, remembered as long as AWS cares."""
        with self._lock:
            return self._deleted_ms.get(key)

    def relink(self, queue: Queue) -> None:
        """Take notice of a queue's changed redrive policy; under the queue's lock."""
        with self._lock:
            if self._queues.get(queue.key) is queue:
                self._link(queue)

    def sources_of(self, queue: Queue) -> list[Queue]:
        """The queues whose redrive policy names this one, by name."""
        with self._lock:
            sources = [
                self._queues[key] for key, target in self._targets.items() if target == queue.arn
            ]
        return sorted(sources, key=lambda source: source.key)

    def _link(self, queue: Queue) -> None:
        policy = queue.settings.redrive_policy
        before = self._targets.pop(queue.key, None)
        if policy is not None:
            self._targets[queue.key] = policy.dead_letter_target_arn
        if before is not None or self._targets:
            self._recompute_links()

    def _recompute_links(self) -> None:
        sources: dict[str, list[Queue]] = {}
        neighbours: dict[QueueKey, list[Queue]] = {}
        for key, target_arn in self._targets.items():
            source, target = self._queues[key], self.find_arn(target_arn)
            sources.setdefault(target_arn, []).append(source)
            if target is not None:
                neighbours.setdefault(key, []).append(target)
                neighbours.setdefault(target.key, []).append(source)
        linked: dict[QueueKey, tuple[Queue, ...]] = {}
        for key, queue in self._queues.items():
            queue.upstream = _reached(queue, lambda one: sources.get(one.arn, ()))
            if key not in linked:
                together = _reached(queue, lambda one: neighbours.get(one.key, ()))
                linked.update((one.key, together) for one in together)
            queue.linked = linked[key]

    def _forget_deletions(self, now_ms: int) -> None:
        old = [key for key, at_ms in self._deleted_ms.items() if at_ms + COOLDOWN_MS <= now_ms]
        for key in old:
            del self._deleted_ms[key]


def _reached(start: Queue, next_of: Callable[[Queue], Iterable[Queue]]) -> tuple[Queue, ...]:
    """A queue and all that can be reached from it."""
    found = {start.key: start}
    pending = [start]
    while pending:
        for queue in next_of(pending.pop()):
            if queue.key not in found:
                found[queue.key] = queue
                pending.append(queue)
    return tuple(found.values())
