"""Which queues there are, and which of them dead-letter into which."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock

from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.engine.recent import Recent
from pytest_sqsq.errors import QueueDeletedRecently
from pytest_sqsq.limits import COOLDOWN_MS
from pytest_sqsq.models import QueueKey


class Registry:
    """The map of queues and the dead-letter links between them.

    The lock is a leaf: it is held for map accesses only, never while a queue's lock is taken or
    anything is written.  Links are kept by ARN, so that they hold for a target that is deleted
    and made again.  A change costs as much as there is of queues linked with the changed one.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: dict[QueueKey, Queue] = {}
        self._targets: dict[QueueKey, str] = {}
        # The same links the other way: by target, the queues that dead-letter into it.
        self._sources: dict[str, dict[QueueKey, Queue]] = {}
        self._deleted_ms: Recent[QueueKey, int] = Recent(COOLDOWN_MS)

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
            deleted_ms = self._deleted_ms.known(queue.key)
            if deleted_ms is not None and queue.created_ms < deleted_ms + cooldown_ms:
                raise QueueDeletedRecently
            self._queues[queue.key] = queue
            self._link(queue)
            return queue

    def remove(self, queue: Queue) -> None:
        """Take a queue out if it is still the one under its key."""
        with self._lock:
            if self._queues.get(queue.key) is queue:
                neighbours = [one for one in self._neighbours_of(queue) if one is not queue]
                del self._queues[queue.key]
                self._set_target(queue, None)
                self._recompute_links(neighbours)

    def note_deletion(self, key: QueueKey, now_ms: int) -> None:
        """Remember when a queue was deleted; to be called before it can be seen to be gone."""
        with self._lock:
            self._deleted_ms.remember(key, now_ms, now_ms)

    def deleted_ms(self, key: QueueKey) -> int | None:
        """When a queue of this key was last deleted, remembered as long as AWS cares."""
        with self._lock:
            return self._deleted_ms.known(key)

    def relink(self, queue: Queue) -> None:
        """Take notice of a queue's changed redrive policy; under the queue's lock."""
        with self._lock:
            if self._queues.get(queue.key) is queue:
                self._link(queue)

    def sources_of(self, queue: Queue) -> list[Queue]:
        """The queues whose redrive policy names this one, by name."""
        with self._lock:
            return sorted(self._sources_of(queue), key=lambda source: source.key)

    def _link(self, queue: Queue) -> None:
        policy = queue.settings.redrive_policy
        before = self._target_of(queue)
        self._set_target(queue, None if policy is None else policy.dead_letter_target_arn)
        self._recompute_links([queue, *before])

    def _set_target(self, source: Queue, arn: str | None) -> None:
        before = self._targets.pop(source.key, None)
        if before is not None:
            del self._sources[before][source.key]
            if not self._sources[before]:
                del self._sources[before]
        if arn is not None:
            self._targets[source.key] = arn
            self._sources.setdefault(arn, {})[source.key] = source

    def _target_of(self, queue: Queue) -> list[Queue]:
        arn = self._targets.get(queue.key)
        target = None if arn is None else self.find_arn(arn)
        return [] if target is None else [target]

    def _sources_of(self, queue: Queue) -> Iterable[Queue]:
        return self._sources.get(queue.arn, {}).values()

    def _neighbours_of(self, queue: Queue) -> list[Queue]:
        return [*self._target_of(queue), *self._sources_of(queue)]

    def _recompute_links(self, changed: Iterable[Queue]) -> None:
        """Tell the queues concerned who is upstream and linked, where a queue's links changed."""
        for start in changed:
            # Only who lies in the way of its dead letters can have gained or lost a source.
            for queue in _reached(start, self._target_of):
                queue.upstream = _reached(queue, self._sources_of)
            together = tuple(sorted(_reached(start, self._neighbours_of), key=lambda one: one.key))
            for queue in together:
                queue.linked = together


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
