"""What the parts of the broker share."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_sqsq.engine.chances import Chances
from pytest_sqsq.engine.due import DueHeap
from pytest_sqsq.engine.entry import Entry, TimeSource
from pytest_sqsq.engine.identifiers import Identifiers
from pytest_sqsq.engine.journal import Listeners
from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.engine.quirks import Quirks
from pytest_sqsq.engine.registry import Registry
from pytest_sqsq.engine.settling import Settler
from pytest_sqsq.engine.waiters import Waiter
from pytest_sqsq.engine.writing import Writer
from pytest_sqsq.errors import QueueDoesNotExist
from pytest_sqsq.models import DeadLetterOn, QueueKey
from pytest_sqsq.store import Store


class BrokerState:
    """The clock, the queues and what settles them; made by the broker, used by all its parts."""

    clock: TimeSource
    due: DueHeap
    quirks: Quirks | None
    loose: Chances | None
    listeners: Listeners
    dead_letter_on: DeadLetterOn
    in_flight_limit: int
    journal_size: int
    _identifiers: Identifiers
    _registry: Registry
    _settler: Settler
    _store: Store
    _writer: Writer

    def new_message_id(self, key: QueueKey) -> str:
        """The id of the next message that enters a queue; a seed repeats them."""
        return self._identifiers.new("message", key)

    def find_queue(self, key: QueueKey) -> Queue | None:
        """The queue, or ``None`` where there is none, or none any more.  O(1), no lock."""
        queue = self._registry.find(key)
        return None if queue is None or queue.deleted else queue

    def get_queue(self, key: QueueKey) -> Queue:
        """The queue; raises ``QueueDoesNotExist``."""
        queue = self._registry.find(key)
        if queue is None or queue.deleted:
            raise QueueDoesNotExist
        return queue

    def find_arn(self, arn: str) -> Queue | None:
        """The queue of exactly this ARN, or ``None`` as in :meth:`find_queue`.  O(1), no lock."""
        queue = self._registry.find_arn(arn)
        return None if queue is None or queue.deleted else queue

    def target_exists(self, arn: str) -> bool:
        """Whether messages can be moved to this queue now."""
        return self.find_arn(arn) is not None

    @property
    def queues(self) -> tuple[Queue, ...]:
        """All queues of all accounts and regions, by key.  O(queues log queues)."""
        return tuple(queue for queue in self._registry.all() if not queue.deleted)

    def entry(self, queue: Queue) -> Entry:
        """``with broker.entry(queue) as now_ms:`` the queue's lock, everything due has happened.

        Raises ``QueueDoesNotExist`` if it was deleted.  What a queue dead-letters from has been
        settled too, so that no message is between two queues.
        """
        return Entry(queue, self.clock, self._settler, self.due)

    def _finish(self, queue: Queue, now_ms: int, woken: Sequence[Waiter]) -> None:
        self._wake(woken)
        self._settle_if_due(queue, now_ms)

    def _settle_if_due(self, queue: Queue, now_ms: int) -> None:
        if queue.next_due_ms <= now_ms:
            self._settler.settle_queues(queue.linked, now_ms)

    def _wake(self, waiters: Sequence[Waiter]) -> None:
        for waiter in waiters:
            waiter.wake()
