"""One queue: its messages, what is ready, what is due, and every change as plan and apply."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Protocol

from pytest_sqsq.engine.arrears import Arrears
from pytest_sqsq.engine.attempts import Attempt
from pytest_sqsq.engine.chances import Chances
from pytest_sqsq.engine.deadlines import MessageHeap
from pytest_sqsq.engine.deduplication import Accepted, DeduplicationKey
from pytest_sqsq.engine.fifo import FifoOrder
from pytest_sqsq.engine.journal import Journal, Listeners
from pytest_sqsq.engine.message import Message
from pytest_sqsq.engine.message_log import MessageLog
from pytest_sqsq.engine.quirks import LooseOrder
from pytest_sqsq.engine.receipts import make_handle, queue_token
from pytest_sqsq.engine.recent import Recent
from pytest_sqsq.engine.standard import StandardOrder
from pytest_sqsq.engine.waiters import ParkedPolls
from pytest_sqsq.limits import ATTEMPT_ID_WINDOW_MS, DEDUPLICATION_WINDOW_MS
from pytest_sqsq.models import QueueKey, QueueSettings
from pytest_sqsq.store.records import QueueRecord

NEVER_MS = 1 << 62
"""Later than every instant."""

UNLIMITED = sys.maxsize
"""More messages than any queue has."""

FIRST_SEQUENCE_NUMBER = 18_846_560_000_000_000_000
SEQUENCE_STEP = 256
"""Amazon's sequence numbers have 20 digits and rise by steps of this order."""


class Surroundings(Protocol):
    """What a queue needs of the broker it lives in."""

    in_flight_limit: int
    journal_size: int
    listeners: Listeners
    loose: Chances | None

    def new_message_id(self, key: QueueKey) -> str: ...

    def target_exists(self, arn: str) -> bool: ...


def _timeout_key(message: Message) -> int | None:
    return message.visible_at_ms if message.state == "in_flight" else None


def _delay_key(message: Message) -> int | None:
    if message.state != "delayed":
        return None
    # A FIFO delay follows the queue's present setting, so only its start is fixed.
    return message.sent_ms if message.visible_at_ms is None else message.visible_at_ms


def _start_key(message: Message) -> int | None:
    return None if message.state == "gone" else message.retention_start_ms


class Queue:
    """A queue of either kind.

    ``lock`` guards everything but ``key``, ``arn`` and ``created_ms``; ``next_due_ms`` and
    ``deleted`` may be read without it.  ``settled_ms`` never falls: everything due by then has
    happened.  ``upstream`` is this queue and all that dead-letter into it, directly or not;
    ``linked`` is all that dead letters connect with it either way, whose instants go in one order.
    Sequence numbers below ``sequence_limit`` are reserved in the store; ``arrears`` is what it
    still has to be told, ``None`` where nothing is kept.  ``loose`` is the order of a standard
    queue that keeps none, as ``delivery="realistic"`` has it.

    This is the state and its transitions; ``sending``, ``receiving`` and ``handling`` hold the
    operations, each a ``plan_…`` that changes nothing anybody can see and an ``apply_…``;
    ``looking`` tells how things stand, ``invariants`` what must be true of them.
    """

    def __init__(
        self,
        key: QueueKey,
        settings: QueueSettings,
        tags: Mapping[str, str],
        now_ms: int,
        surroundings: Surroundings,
    ) -> None:
        self.key = key
        self.arn = key.arn
        self.settings = settings
        self.tags = dict(tags)
        self.created_ms = self.last_modified_ms = self.settled_ms = now_ms
        self.purged_ms: int | None = None
        self.deleted = False
        self.lock = Lock()
        self.upstream: tuple[Queue, ...] = (self,)
        self.linked: tuple[Queue, ...] = (self,)
        self.next_due_ms = NEVER_MS
        self.log = MessageLog()
        self.journal = Journal(key.name, surroundings.journal_size, surroundings.listeners)
        self.parked = ParkedPolls()
        self.deduplication: Recent[DeduplicationKey, Accepted] = Recent(DEDUPLICATION_WINDOW_MS)
        self.attempts: Recent[str, Attempt] = Recent(ATTEMPT_ID_WINDOW_MS)
        # Amazon keeps the behaviour of the scope a queue was created with.
        self.deduplication_scope = settings.deduplication_scope
        self.order: FifoOrder | StandardOrder = FifoOrder() if settings.fifo else StandardOrder()
        self.loose: LooseOrder | None = None
        if surroundings.loose is not None and not settings.fifo:
            self.order = self.loose = LooseOrder(surroundings.loose, key)
        self.used_up: deque[Message] = deque()
        self.visible_count = self.in_flight_count = self.delayed_count = 0
        self.sent = self.received = self.removed = self.expired = self.dead_lettered = 0
        self._surroundings = surroundings
        self.token = queue_token(key)
        self.timeouts = MessageHeap(_timeout_key)
        self.delays = MessageHeap(_delay_key)
        self._early_starts = MessageHeap(_start_key)
        self._failed_moves: dict[Message, None] = {}
        self._latest_start_ms = 0
        self.checked_ms = now_ms
        self.next_arrival = 0
        self.next_sequence = self.sequence_limit = FIRST_SEQUENCE_NUMBER
        self.arrears: Arrears | None = None

    def __repr__(self) -> str:
        return (
            f"<Queue {self.key} visible={self.visible_count} in_flight={self.in_flight_count}"
            f" delayed={self.delayed_count}>"
        )

    def new_message_id(self) -> str:
        """The id of the next message sent here."""
        return self._surroundings.new_message_id(self.key)

    def handle_for(self, message: Message, number: int) -> str:
        """The handle of a message's ``number``-th receive."""
        return make_handle(self.token, message.message_id, number)

    @property
    def in_flight_limit(self) -> int:
        """How many messages may be in flight."""
        return self._surroundings.in_flight_limit

    @property
    def room_in_flight(self) -> int:
        """How many more messages may be in flight."""
        return self.in_flight_limit - self.in_flight_count

    @property
    def receive_limit(self) -> int | None:
        """After so many receives here no message is delivered any more; ``None`` for no limit.

        The redrive policy sets one only while it names a queue that is there to move to.
        """
        policy = self.settings.redrive_policy
        if policy is None or not self._surroundings.target_exists(policy.dead_letter_target_arn):
            return None
        return policy.max_receive_count

    def used_up_test(self) -> Callable[[Message], bool] | None:
        """Tells which messages may not be delivered any more; ``None`` where all may."""
        limit = self.receive_limit
        return None if limit is None else lambda message: message.receives_here >= limit

    def is_used_up(self, message: Message) -> bool:
        """Whether a message may not be delivered any more."""
        if not message.receives_here:
            return False
        test = self.used_up_test()
        return test is not None and test(message)

    # Transitions

    def enter(self, message: Message) -> None:
        """Put a new message, visible or delayed, behind all others.  O(log n)."""
        message.arrival = self.next_arrival
        self.next_arrival += 1
        if message.sequence_number is not None:
            self.next_sequence = message.sequence_number + SEQUENCE_STEP
        self.log.append_message(message)
        start_ms = message.retention_start_ms
        if start_ms < self._latest_start_ms:
            self._early_starts.push(start_ms, message)
        else:
            self._latest_start_ms = start_ms
        if message.state == "delayed":
            self.delayed_count += 1
            self.delays.push(_delay_key(message) or 0, message)
        else:
            self.visible_count += 1
        self.order.enter(message)

    def record(self) -> QueueRecord:
        """The queue without its messages, as a store keeps it."""
        return QueueRecord(
            self.settings,
            self.tags,
            self.created_ms,
            self.last_modified_ms,
            self.purged_ms,
            self.sequence_limit,
            self.deduplication_scope,
        )

    def note_arrears(self, arrears: Arrears | None) -> None:
        """Note in ``arrears`` what time removes: there is a store that must be told."""
        self.arrears = arrears
        if arrears is not None:
            self.deduplication.on_forgotten = arrears.owe_deduplication

    def next_sequence_number(self) -> int | None:
        """The number the next message gets; ``None`` on a standard queue."""
        return self.next_sequence if self.settings.fifo else None

    def hide(self, message: Message, handle: str, visible_at_ms: int) -> None:
        """Put a message in flight, or keep it there, under a handle until an instant.  O(log n).

        A visible one must have been taken out of what is ready; :meth:`hide_untaken` is for others.
        """
        if message.state == "in_flight":
            self.timeouts.mark_stale()
        else:
            message.state = "in_flight"
            self.visible_count -= 1
            self.in_flight_count += 1
            self.order.count_in_flight(message, 1)
        message.visible_at_ms = visible_at_ms
        if message.receipt_handle != handle:
            self.log.mark_in_flight(message.slot, handle)
        self.timeouts.push(visible_at_ms, message)

    def hide_untaken(self, message: Message, handle: str, visible_at_ms: int) -> None:
        """Hide a message that no receive has taken, in flight already or ready."""
        was_ready = message.state == "visible" and not message.moving
        message.moving = False
        self.hide(message, handle, visible_at_ms)
        if was_ready:
            # Told after it is hidden, so that the next one is found in its place.
            self.order.hidden(message)

    def show(self, message: Message, at_ms: int) -> None:
        """Make a message visible whose timeout or delay is over, or whose move was called off.

        O(log n).
        """
        if message.state == "in_flight":
            self.log.clear_in_flight(message.slot)
            self.in_flight_count -= 1
            self.visible_count += 1
            self.order.count_in_flight(message, -1)
        elif message.state == "delayed":
            self.delayed_count -= 1
            self.visible_count += 1
        message.state = "visible"
        message.visible_at_ms = None
        message.moving = message.move_failed = False
        self.order.shown(message)
        self.journal.record(at_ms, "visible", message)

    def leave(self, message: Message) -> None:
        """Take a message out; journal it before, its body is dropped here.

        O(1) amortised, O(log n) where others become ready.
        """
        state = message.state
        was_ready = state == "visible" and not message.moving
        message.state = "gone"
        if state == "visible":
            self.visible_count -= 1
        elif state == "in_flight":
            self.in_flight_count -= 1
            self.timeouts.mark_stale()
            self.order.count_in_flight(message, -1)
        elif state == "delayed":
            self.delayed_count -= 1
            self.delays.mark_stale()
        if len(self._early_starts) and not message.carries_delay:
            # Only moved messages can be there; to count too many only rebuilds a little early.
            self._early_starts.mark_stale()
        self.order.left(message, was_ready=was_ready)
        self.log.remove_index(message.slot)

    def drop_all(self) -> None:
        """Forget messages of every state, the deduplication memory and the attempts.  O(n)."""
        for message in self.log.live_messages():
            message.state = "gone"
        self.log.reset()
        for heap in (self.timeouts, self.delays, self._early_starts):
            heap.clear()
        self.order.clear()
        self.used_up.clear()
        self.deduplication.clear()
        self.attempts.clear()
        self.visible_count = self.in_flight_count = self.delayed_count = 0

    # What is due

    def visible_at_ms(self, message: Message) -> int | None:
        """When an in-flight or delayed message becomes visible by itself, else ``None``."""
        if message.state == "delayed" and self.settings.fifo:
            return message.sent_ms + self.settings.delay_seconds * 1000
        return message.visible_at_ms

    def expires_at_ms(self, message: Message) -> int:
        """When retention removes the message, in whatever state it is."""
        return message.retention_start_ms + self.settings.message_retention_period * 1000

    def next_expiring(self) -> Message | None:
        """The message retention removes first.  O(1) amortised."""
        oldest = self.log.first_live()
        early = self._early_starts.first()
        if early is None or oldest is None:
            return oldest
        return early if early.retention_start_ms < oldest.retention_start_ms else oldest

    def next_timeout(self) -> Message | None:
        """The message in flight whose visibility ends first.  O(1) amortised."""
        return self.timeouts.first()

    def next_delay(self) -> Message | None:
        """The message whose delay ends first.  O(1) amortised."""
        return self.delays.first()

    def find_next_due_ms(self) -> int:
        """When the next thing happens here by itself; ``NEVER_MS`` for never."""
        due_ms = self.settled_ms if self.used_up else NEVER_MS
        expiring = self.next_expiring()
        if expiring is not None:
            due_ms = min(due_ms, self.expires_at_ms(expiring))
            if self.in_flight_count:
                timeout = self.timeouts.first_key()
                if timeout is not None and timeout < due_ms:
                    due_ms = timeout
            if self.delayed_count:
                delayed = self.next_delay()
                if delayed is not None:
                    due_ms = min(due_ms, self.visible_at_ms(delayed) or due_ms)
        return due_ms

    def expire_due(self, now_ms: int, at_most: int = UNLIMITED) -> bool:
        """Remove what retention ends by ``now_ms``; whether that was all.  O(removed)."""
        for _ in range(at_most):
            message = self.next_expiring()
            if message is None or self.expires_at_ms(message) > now_ms:
                return True
            self.journal.record(
                now_ms, "expired", message, {"sent_ms": message.sent_ms, "state": message.state}
            )
            self.leave(message)
            self.expired += 1
            if self.arrears is not None:
                self.arrears.owe_messages((message.message_id,))
        return False

    def end_delays(self, now_ms: int, at_most: int = UNLIMITED) -> bool:
        """Make visible what was delayed until ``now_ms``; whether that was all.  O(shown log n)."""
        for _ in range(at_most):
            message = self.next_delay()
            if message is None or (self.visible_at_ms(message) or 0) > now_ms:
                return True
            self.show(message, now_ms)
        return False

    def postpone_move(self, message: Message, until_ms: int) -> None:
        """Keep a message that could not be moved in flight, to be tried again at an instant."""
        handle = message.receipt_handle or self.handle_for(message, message.receive_count)
        message.moving = False
        self.hide(message, handle, until_ms)
        message.move_failed = True
        self._failed_moves[message] = None

    def retry_moves(self) -> bool:
        """Make due now the moves that the store refused; whether there are any.  O(moves)."""
        failed, self._failed_moves = self._failed_moves, {}
        for message in failed:
            if message.move_failed and message.receipt_handle is not None:
                self.hide(message, message.receipt_handle, self.settled_ms)
        return bool(failed)
