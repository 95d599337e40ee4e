"""The part of the broker that deals with its store."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pytest_sqsq.engine.broker_state import BrokerState
from pytest_sqsq.engine.loading import Loaded, Loading, contents_of
from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.errors import ServiceUnavailable
from pytest_sqsq.store import Store
from pytest_sqsq.store.records import PutClock, PutMoveTask, Record


class Keeping(BrokerState):
    """Taking over what a store has kept, and telling it what it could not be told."""

    def load(self) -> Loaded:
        """Take over what the store has kept, once and before anything else; tells how much.

        Queues stand then as they stood at the store's ``settled_ms``; what became due since
        happens, in order, with the next look or :meth:`settle`.  O(n log n).
        """
        settled_ms = self._store.settled_ms or self.clock.now_ms
        loading = Loading(self, self._registry, self.due, settled_ms)
        loading.load(self._store.load(), self._writer.new_arrears)
        with self._settler.task_lock:
            for task in loading.tasks:
                self._settler.tasks.add(task)
        self._settler.task_changed()
        for task in loading.tasks:
            if task.is_running and task.rate is None:
                self._settler.run_whole_task(task, self.clock.now_ms)
        return loading.loaded

    @property
    def store_trouble(self) -> str | None:
        """Why the store cannot be written just now; ``None`` when it can.  Asks nobody."""
        return self._store.trouble

    def contents(self) -> Iterator[Record]:
        """Everything there is, as a store would keep it; queue by queue."""
        yield PutClock(self.clock.now_ms)
        for queue in self.queues:
            with queue.lock:
                records = contents_of(queue)
            yield from records
            with self._settler.task_lock:
                tasks = self._settler.tasks.of_source(queue.key)
            yield from (PutMoveTask(task.record()) for task in reversed(tasks))

    def catch_up(self) -> None:
        """Tell the store what it could not be told, and try again the moves that it refused."""
        for queue in self._registry.all():
            with queue.lock:
                if queue.deleted and self._registry.find(queue.key) is not queue:
                    continue
                self._writer.catch_up(queue)
                retries = queue.retry_moves()
                self.due.publish(queue)
                if queue.deleted and not queue.arrears:
                    self._registry.remove(queue)
            if retries:
                self._settle_if_due(queue, queue.settled_ms)

    def refuse_writes(self, refuse: Callable[[], None] | None) -> None:
        """Call ``refuse`` before each write, whatever the store; it raises to refuse it."""
        self._writer.refuse = refuse

    def note_time(self) -> None:
        """Tell the store what time it is; to be called when the clock has been moved."""
        self._writer.note_time()

    def hand_over(self) -> Store:
        """The store of the broker that takes over from this one, which is not used any more.

        Raises what opening a store raises; this broker goes on then.
        """
        self._say_everything()
        return self._store.reopened(self.contents)

    def close(self) -> None:
        """Let go of the store."""
        self._say_everything()
        self._store.close()

    def _say_everything(self) -> None:
        if self._store.keeps:
            self.catch_up()
            self.note_time()

    def _require_certainty(self, queue: Queue) -> None:
        """Before everything of a queue is forgotten.

        A message that perhaps moved here must have been put back into the store where it is.
        """
        if queue.arrears is not None and queue.arrears.wait_for_others:
            self.catch_up()
            if queue.arrears.wait_for_others:
                raise ServiceUnavailable("the store could not be told where some messages are")
