"""All queues of a server, and every operation on them.

The engine in one object.  It runs without a server, a thread or a wall clock: time is whatever
the clock says, and nothing happens unless somebody calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pytest_sqsq.engine.chances import Chances
from pytest_sqsq.engine.due import DueHeap
from pytest_sqsq.engine.entry import TimeSource
from pytest_sqsq.engine.forecast import forecast, next_change
from pytest_sqsq.engine.handling import (
    apply_delete,
    apply_purge,
    apply_visibility,
    plan_delete,
    plan_visibility,
)
from pytest_sqsq.engine.identifiers import Identifiers
from pytest_sqsq.engine.invariants import check_queue
from pytest_sqsq.engine.journal import Listener, Listeners
from pytest_sqsq.engine.keeping import Keeping
from pytest_sqsq.engine.moving import Moving
from pytest_sqsq.engine.plans import PurgePlan, RemovalPlan
from pytest_sqsq.engine.polling import Polling
from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.engine.quirks import Quirks, apply_lost, take_lost
from pytest_sqsq.engine.registry import Registry
from pytest_sqsq.engine.sending import apply_send, plan_send
from pytest_sqsq.engine.settling import Settler
from pytest_sqsq.engine.waiters import Waiter
from pytest_sqsq.engine.writing import Writer
from pytest_sqsq.errors import (
    PurgeQueueInProgress,
    QueueDoesNotExist,
    ServiceUnavailable,
    SqsError,
)
from pytest_sqsq.limits import IN_FLIGHT_MESSAGES
from pytest_sqsq.models import (
    DeadLetterOn,
    Event,
    OutgoingMessage,
    QueueKey,
    QueueSettings,
    SendReceipt,
)
from pytest_sqsq.store import MemoryStore, Store
from pytest_sqsq.store.records import PutQueue, RemoveMoveTask, RemoveQueue


class Broker(Polling, Moving, Keeping):
    """The queue engine.

    ``dead_letter_on`` says when a message that used up its receives moves: ``"tick"`` at the end
    of its last visibility timeout, ``"receive"`` at the next receive, as AWS does.  Operations
    settle first what is due by now; they raise ``QueueDoesNotExist`` for a deleted queue and
    ``ServiceUnavailable``, having changed nothing, where the store cannot be written.

    ``loose`` has standard queues deliver without order and sometimes twice, as those chances
    decide; ``quirks`` may be set at any time to what goes wrong in queues beside that.
    ``give_way`` is called with no lock held, each time that a piece of much that is due at once
    has happened, to let other threads go on meanwhile.
    """

    def __init__(
        self,
        clock: TimeSource,
        *,
        store: Store | None = None,
        dead_letter_on: DeadLetterOn = "tick",
        in_flight_limit: int = IN_FLIGHT_MESSAGES,
        journal_size: int = 10_000,
        seed: int | None = None,
        loose: Chances | None = None,
        give_way: Callable[[], None] = lambda: None,
    ) -> None:
        self.clock = clock
        self.loose = loose
        self.quirks: Quirks | None = None
        self.dead_letter_on = dead_letter_on
        self.in_flight_limit = in_flight_limit
        self.journal_size = journal_size
        self.listeners = Listeners()
        self.due = DueHeap()
        self._store = store if store is not None else MemoryStore()
        self._registry = Registry()
        self._identifiers = Identifiers(seed, self._store.opening)
        self._writer = Writer(self._store, lambda: clock.now_ms, self)
        self._store.on_back = self.catch_up
        self._settler = Settler(
            self._registry,
            self.due,
            dead_letter_on=dead_letter_on,
            writer=self._writer,
            serve=self._serve,
            new_message_id=self.new_message_id,
            give_way=give_way,
        )

    # Queues

    def create_queue(
        self,
        key: QueueKey,
        settings: QueueSettings,
        tags: Mapping[str, str],
        *,
        cooldown_ms: int = 0,
    ) -> tuple[Queue, bool]:
        """Make a queue; returns it and True, or the one that has the name already and False.

        Raises ``QueueDeletedRecently`` if the last one of this name was deleted less than
        ``cooldown_ms``, at most a minute, before.
        """
        queue = Queue(key, settings, tags, self.clock.now_ms, self)
        queue.note_arrears(self._writer.new_arrears())
        with queue.lock:
            present = self._registry.insert(queue, cooldown_ms)
            while present is not queue:
                with present.lock:
                    if not present.deleted:
                        return present, False
                    self._registry.remove(present)
                present = self._registry.insert(queue, cooldown_ms)
            try:
                self._writer.write([PutQueue(key, queue.record())], queue)
            except ServiceUnavailable:
                queue.deleted = True
                # A queue that the store perhaps has is kept until it certainly has not.
                if not queue.arrears:
                    self._registry.remove(queue)
                raise
        return queue, True

    def list_queues(self, account_id: str, region: str) -> list[Queue]:
        """The queues of one account and region, by name.  O(queues)."""
        return [queue for queue in self.queues if queue.key[:2] == (account_id, region)]

    def sources_of(self, queue: Queue) -> list[Queue]:
        """The queues whose redrive policy targets this one, by key."""
        return self._registry.sources_of(queue)

    def deleted_ms(self, key: QueueKey) -> int | None:
        """When a queue of this name was deleted last, within the minute that matters."""
        return self._registry.deleted_ms(key)

    def delete_queue(self, queue: Queue) -> None:
        """Delete a queue with its messages and move tasks.

        Its parked polls end with ``QueueDoesNotExist``.
        """
        self._require_certainty(queue)
        with self.entry(queue) as now_ms:
            removals = [RemoveMoveTask(queue.key, i) for i in self.move_task_ids(queue.key)]
            self._writer.write([RemoveQueue(queue.key), *removals], queue)
            self._registry.note_deletion(queue.key, now_ms)
            queue.deleted = True
            woken = queue.parked.remove_all()
            for waiter in woken:
                waiter.answer([], QueueDoesNotExist())
            # Still under the lock: a queue made anew under this key has tasks of its own.
            with self._settler.task_lock:
                self._settler.tasks.forget_source(queue.key)
        self._registry.remove(queue)
        self._settler.task_changed()
        self._wake(woken)

    def change_settings(
        self, queue: Queue, change: Callable[[QueueSettings], QueueSettings]
    ) -> None:
        """Replace a queue's settings by what ``change`` makes of them; it may raise."""
        with self.entry(queue) as now_ms:
            before = queue.settings
            settings = change(before)
            record = queue.record()._replace(settings=settings, last_modified_ms=now_ms)
            self._writer.write([PutQueue(queue.key, record)], queue)
            queue.settings = settings
            queue.last_modified_ms = now_ms
            if settings.redrive_policy != before.redrive_policy:
                self._registry.relink(queue)
        self._settle_if_due(queue, now_ms)

    def change_tags(
        self, queue: Queue, change: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> None:
        """Replace a queue's tags by what ``change`` makes of them; it may raise."""
        with self.entry(queue):
            tags = dict(change(queue.tags))
            self._writer.write([PutQueue(queue.key, queue.record()._replace(tags=tags))], queue)
            queue.tags = tags

    # Messages

    def send(self, queue: Queue, messages: Sequence[OutgoingMessage]) -> list[SendReceipt]:
        """Take messages in, all in one write; receipts in order.  O(log n) each."""
        with self.entry(queue) as now_ms:
            plan = plan_send(queue, messages, now_ms)
            self._writer.write_plan(plan, queue)
            apply_send(queue, plan)
            woken = self._serve(queue, now_ms) if len(queue.parked) else ()
        self._finish(queue, now_ms, woken)
        return plan.receipts

    def delete(self, queue: Queue, handles: Sequence[str]) -> list[SqsError | None]:
        """Delete by handle; one outcome for each, in order.  O(log n) each."""
        with self.entry(queue) as now_ms:
            plan = plan_delete(queue, handles, now_ms)
            woken: Sequence[Waiter] = ()
            if self.quirks is not None:
                self._lose_deletes(queue, plan, self.quirks)
            if plan.messages:
                self._writer.write_plan(plan, queue)
                apply_delete(queue, plan)
                woken = self._serve(queue, now_ms) if len(queue.parked) else ()
        self._finish(queue, now_ms, woken)
        return plan.outcomes

    def _lose_deletes(self, queue: Queue, plan: RemovalPlan, quirks: Quirks) -> None:
        lost = take_lost(queue, plan, quirks)
        if lost.changes:
            self._writer.write_plan(lost, queue)
            apply_lost(queue, lost)

    def change_visibility(
        self, queue: Queue, changes: Sequence[tuple[str, int]]
    ) -> list[SqsError | None]:
        """Hide messages for so many seconds from now; one outcome for each.  O(log n) each."""
        with self.entry(queue) as now_ms:
            plan = plan_visibility(queue, changes, now_ms)
            if plan.changes:
                self._writer.write_plan(plan, queue)
                apply_visibility(queue, plan)
        self._settle_if_due(queue, now_ms)
        return plan.outcomes

    def purge(self, queue: Queue, *, cooldown_ms: int = 0) -> None:
        """Drop all messages of every state, and the deduplication memory.  O(n).

        Raises ``PurgeQueueInProgress`` within ``cooldown_ms`` of the purge before.
        """
        self._require_certainty(queue)
        with self.entry(queue) as now_ms:
            if queue.purged_ms is not None and now_ms < queue.purged_ms + cooldown_ms:
                raise PurgeQueueInProgress(queue.key.name)
            plan = PurgePlan(now_ms)
            self._writer.write_plan(plan, queue)
            apply_purge(queue, plan)

    # Time

    def next_due_ms(self) -> int | None:
        """The earliest instant at which something happens by itself, ends of polls included."""
        message_ms = self._settler.next_ms()
        poll = self.due.next_poll_end()
        if poll is None:
            return message_ms
        return poll.deadline_ms if message_ms is None else min(message_ms, poll.deadline_ms)

    def next_change_ms(self) -> int | None:
        """When a message next comes back, appears or is moved by itself.  O(queues).

        Retention is left out: it happens when its time has passed, and nobody waits for it.
        Where it will remove a message that is hidden before its time comes, O(messages).
        """
        return next_change(self)

    def next_event(self) -> Event | None:
        """What will happen next by itself, if nobody calls until then."""
        return forecast(self)

    def settle(self, now_ms: int) -> list[Event]:
        """Let happen everything due by ``now_ms``, in order, and return it.  O(due log n)."""
        events: list[Event] = []
        self.listeners.add(events.append)
        try:
            self._settler.settle_all(now_ms)
        finally:
            self.listeners.remove(events.append)
        return events

    def maintain(self) -> None:
        """Sweep tombstones where they outnumber the living; tell the store what it missed."""
        for queue in self.queues:
            with queue.lock:
                queue.log.compact_if_due()
        if self._store.keeps:
            self.catch_up()

    def add_listener(self, listener: Listener) -> None:
        """Have each event told as it happens; called under a queue's lock, must not block."""
        self.listeners.add(listener)

    def remove_listener(self, listener: Listener) -> None:
        self.listeners.remove(listener)

    def check(self) -> None:
        """Verify every invariant of every queue; ``AssertionError`` names the broken one."""
        for queue in self.queues:
            with queue.lock:
                check_queue(queue)
