"""One queue: its messages, what is ready, what is due, and every change as plan and apply."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Protocol

from pytest_sqsq.engine.attempts import Attempt, AttemptMemory
from pytest_sqsq.engine.deadlines import MessageHeap
from pytest_sqsq.engine.deduplication import Accepted, DeduplicationKey, DeduplicationMemory
from pytest_sqsq.engine.fifo import FifoOrder
from pytest_sqsq.engine.journal import Journal, Listeners
from pytest_sqsq.engine.message import Message
from pytest_sqsq.engine.message_log import MessageLog
from pytest_sqsq.engine.plans import (
    PurgePlan,
    ReceivePlan,
    RemovalPlan,
    SendPlan,
    VisibilityPlan,
)
from pytest_sqsq.engine.receipts import make_handle, queue_token, read_handle
from pytest_sqsq.engine.standard import StandardOrder
from pytest_sqsq.engine.waiters import ParkedPolls
from pytest_sqsq.errors import InvalidParameterValue, OverLimit, ReceiptHandleIsInvalid, SqsError
from pytest_sqsq.limits import TOTAL_VISIBILITY_MS
from pytest_sqsq.models import (
    OutgoingMessage,
    QueueKey,
    QueueSettings,
    QueueStatistics,
    ReceiveRequest,
    SendReceipt,
    instant_text,
)

NEVER_MS = 1 << 62
"""Later than every instant."""

FIRST_SEQUENCE_NUMBER = 18_846_560_000_000_000_000
SEQUENCE_STEP = 256
"""Amazon's sequence numbers have 20 digits and rise by steps of this order."""


class Surroundings(Protocol):
    """What a queue needs of the broker it lives in."""

    in_flight_limit: int
    journal_size: int
    listeners: Listeners

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
    happened.  ``upstream`` is this queue and all that dead-letter into it, directly or not.

    Methods named ``plan_…`` change nothing that can be seen; the ``apply_…`` of the same name
    must follow, or ``abandon_receive`` for a receive that could not be written.
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
        self.next_due_ms = NEVER_MS
        self.log = MessageLog()
        self.journal = Journal(key.name, surroundings.journal_size, surroundings.listeners)
        self.parked = ParkedPolls()
        self.deduplication = DeduplicationMemory()
        self.attempts = AttemptMemory()
        # Amazon keeps the behaviour of the scope a queue was created with.
        self.deduplication_scope = settings.deduplication_scope
        self.order: FifoOrder | StandardOrder = FifoOrder() if settings.fifo else StandardOrder()
        self.used_up: deque[Message] = deque()
        self.visible_count = self.in_flight_count = self.delayed_count = 0
        self.sent = self.received = self.removed = self.expired = self.dead_lettered = 0
        self._surroundings = surroundings
        self._token = queue_token(key)
        self._timeouts = MessageHeap(_timeout_key)
        self._delays = MessageHeap(_delay_key)
        self._early_starts = MessageHeap(_start_key)
        self._latest_start_ms = 0
        self.next_arrival = 0
        self._next_sequence = FIRST_SEQUENCE_NUMBER

    def __repr__(self) -> str:
        return (
            f"<Queue {self.key} visible={self.visible_count} in_flight={self.in_flight_count}"
            f" delayed={self.delayed_count}>"
        )

    # Send

    def plan_send(self, messages: Sequence[OutgoingMessage], now_ms: int) -> SendPlan:
        """Work out ids, sequence numbers and duplicates.  O(1) for each message."""
        plan = SendPlan(now_ms)
        fifo = self.settings.fifo
        for outgoing in messages:
            key = self._deduplication_key(outgoing) if fifo else None
            if key is not None:
                first = plan.accepted.get(key) or self.deduplication.find(key, now_ms)
                if first is not None:
                    plan.duplicates.append((first.message_id, outgoing.body))
                    plan.receipts.append(
                        SendReceipt(first.message_id, first.sequence_number, duplicate=True)
                    )
                    continue
            message = self._new_message(outgoing, now_ms, len(plan.messages))
            plan.messages.append(message)
            plan.receipts.append(SendReceipt(message.message_id, message.sequence_number))
            if key is not None and message.sequence_number is not None:
                plan.accepted[key] = Accepted(message.message_id, message.sequence_number, now_ms)
        return plan

    def apply_send(self, plan: SendPlan) -> None:
        now_ms = plan.now_ms
        for message in plan.messages:
            self._enter(message)
            delayed = message.state == "delayed"
            self.journal.record(
                now_ms,
                "sent",
                message,
                {"delayed_until_ms": self.visible_at_ms(message)} if delayed else None,
            )
        self.sent += len(plan.messages)
        for key, first in plan.accepted.items():
            self.deduplication.remember(key, first)
        for message_id, _body in plan.duplicates:
            self.journal.record(now_ms, "deduplicated", None, {"original_message_id": message_id})

    def _deduplication_key(self, outgoing: OutgoingMessage) -> DeduplicationKey | None:
        if outgoing.message_deduplication_id is None:
            return None
        scoped = self.deduplication_scope == "messageGroup"
        group = outgoing.message_group_id if scoped else None
        return group, outgoing.message_deduplication_id

    def _new_message(self, outgoing: OutgoingMessage, now_ms: int, index: int) -> Message:
        message = Message(
            self._surroundings.new_message_id(self.key),
            outgoing.body,
            now_ms,
            attributes=outgoing.attributes,
            message_group_id=outgoing.message_group_id,
            message_deduplication_id=outgoing.message_deduplication_id,
            trace_header=outgoing.trace_header,
        )
        message.arrival = self.next_arrival + index
        settings = self.settings
        if settings.fifo:
            message.sequence_number = self._next_sequence + index * SEQUENCE_STEP
            delay_seconds = settings.delay_seconds
        else:
            asked = outgoing.delay_seconds
            delay_seconds = settings.delay_seconds if asked is None else asked
        if delay_seconds:
            message.state = "delayed"
            if not settings.fifo:
                message.visible_at_ms = now_ms + delay_seconds * 1000
        return message

    # Receive

    def plan_receive(self, request: ReceiveRequest, now_ms: int) -> ReceivePlan:
        """Take what a receive would hand out.  O(k log n).

        Raises ``OverLimit`` for a short poll on a standard queue with too many in flight, and
        ``InvalidParameterValue`` for an attempt that cannot be repeated any more.
        """
        asked = request.visible_seconds(self.settings.visibility_timeout)
        visible_at_ms = now_ms + asked * 1000
        attempt_id = request.receive_request_attempt_id
        if attempt_id is not None:
            attempt = self._attempt_to_replay(attempt_id, now_ms)
            if attempt is not None:
                return ReceivePlan(
                    now_ms,
                    visible_at_ms,
                    list(attempt.messages),
                    list(attempt.handles),
                    attempt_id=attempt_id,
                    replay=attempt,
                )
        room = self._surroundings.in_flight_limit - self.in_flight_count
        if room <= 0:
            if not self.settings.fifo and not request.wait_time_seconds:
                raise OverLimit("Too many messages in flight.")
            return ReceivePlan(now_ms, visible_at_ms, [], [])
        count = min(request.max_number_of_messages, room)
        taken, used_up = self.order.take(count, self._used_up_test())
        token = self._token
        handles = [make_handle(token, m.message_id, m.receive_count + 1) for m in taken]
        return ReceivePlan(now_ms, visible_at_ms, taken, handles, used_up, attempt_id)

    def abandon_receive(self, plan: ReceivePlan) -> None:
        """Undo :meth:`plan_receive`: the store could not be written."""
        if plan.replay is None:
            self.order.put_back([*plan.messages, *plan.used_up])

    def apply_receive(self, plan: ReceivePlan) -> None:
        now_ms, visible_at_ms = plan.now_ms, plan.visible_at_ms
        for message in plan.used_up:
            message.moving = True
            self.used_up.append(message)
        for message, handle in zip(plan.messages, plan.handles, strict=True):
            if plan.replay is None:
                message.receive_count += 1
                message.receives_here += 1
                if message.first_received_ms is None:
                    message.first_received_ms = now_ms
            message.received_ms = now_ms
            self._hide(message, handle, visible_at_ms)
            self.journal.record(
                now_ms,
                "received",
                message,
                {
                    "receive_count": message.receive_count,
                    "visible_at_ms": visible_at_ms,
                    "receipt_handle": handle,
                },
            )
        if plan.messages:
            self.received += len(plan.messages)
            if plan.replay is None:
                self.order.delivered(plan.messages)
            if plan.attempt_id is not None:
                self.attempts.remember(
                    plan.attempt_id,
                    Attempt(tuple(plan.messages), tuple(plan.handles), visible_at_ms, now_ms),
                )

    def _attempt_to_replay(self, attempt_id: str, now_ms: int) -> Attempt | None:
        attempt = self.attempts.find(attempt_id, now_ms)
        if attempt is None or attempt.has_run_out(now_ms):
            return None
        if not attempt.is_retryable:
            raise InvalidParameterValue.attempt_not_retryable(attempt_id)
        return attempt

    def _used_up_test(self) -> Callable[[Message], bool] | None:
        policy = self.settings.redrive_policy
        if policy is None or not self._surroundings.target_exists(policy.dead_letter_target_arn):
            return None
        limit = policy.max_receive_count
        return lambda message: message.receives_here >= limit

    def is_used_up(self, message: Message) -> bool:
        """Whether the redrive policy forbids another delivery, and names a queue to move to."""
        test = self._used_up_test()
        return test is not None and test(message)

    # Delete, change visibility, purge

    def find_by_handle(self, handle: str) -> Message | None:
        """The message a handle of this queue was given for, or ``None`` where it is gone.

        Raises ``ReceiptHandleIsInvalid`` for garbage and for another queue's handle.
        """
        message = self.log.find_receipt(handle)
        if message is not None:
            return message
        receipt = read_handle(handle)
        if receipt is None:
            raise ReceiptHandleIsInvalid.not_a_handle(handle)
        if receipt.queue_token != self._token:
            raise ReceiptHandleIsInvalid.of_another_queue(handle)
        message = self.log.find_uuid(receipt.message_id)
        if message is not None and self.settings.fifo:
            raise InvalidParameterValue.handle_expired(handle)
        return message

    def plan_delete(self, handles: Sequence[str], now_ms: int) -> RemovalPlan:
        """Find the messages to remove; a message that is gone already is no error."""
        plan = RemovalPlan(now_ms, [])
        for handle in handles:
            try:
                message = self.find_by_handle(handle)
            except SqsError as error:
                plan.outcomes.append(error)
                continue
            plan.outcomes.append(None)
            if message is not None and message not in plan.messages:
                plan.messages.append(message)
        return plan

    def apply_delete(self, plan: RemovalPlan) -> None:
        for message in plan.messages:
            self.journal.record(plan.now_ms, "deleted", message)
            self.leave(message)
        self.removed += len(plan.messages)

    def plan_visibility(self, changes: Sequence[tuple[str, int]], now_ms: int) -> VisibilityPlan:
        """Work out new deadlines, seconds from now; 12 hours after the receive is the limit."""
        plan = VisibilityPlan(now_ms)
        for handle, seconds in changes:
            try:
                message = self._message_to_change(handle, seconds, now_ms)
            except SqsError as error:
                plan.outcomes.append(error)
                continue
            plan.outcomes.append(None)
            if message.state == "in_flight" or seconds:
                current = message.receipt_handle or handle
                plan.changes.append((message, current, now_ms + seconds * 1000))
        return plan

    def _message_to_change(self, handle: str, seconds: int, now_ms: int) -> Message:
        message = self.find_by_handle(handle)
        if message is None:
            raise InvalidParameterValue.message_unavailable(handle)
        received_ms = message.received_ms if message.received_ms is not None else now_ms
        # Sub-second lag between a receive and the change that follows it is not held against it.
        elapsed_ms = (now_ms - received_ms) // 1000 * 1000
        if elapsed_ms + seconds * 1000 > TOTAL_VISIBILITY_MS:
            raise InvalidParameterValue.beyond_total_visibility(seconds)
        return message

    def apply_visibility(self, plan: VisibilityPlan) -> None:
        for message, handle, visible_at_ms in plan.changes:
            if message.state == "visible":
                message.moving = False
                self.order.hidden(message)
            self._hide(message, handle, visible_at_ms)
            self.journal.record(
                plan.now_ms,
                "returned" if visible_at_ms <= plan.now_ms else "visibility_changed",
                message,
                {"visible_at_ms": visible_at_ms},
            )

    def plan_purge(self, now_ms: int) -> PurgePlan:
        return PurgePlan(now_ms)

    def apply_purge(self, plan: PurgePlan) -> None:
        """Forget messages of every state, the deduplication memory and the attempts.  O(n)."""
        self.journal.record(plan.now_ms, "purged", None, {"count": self.log.live_count})
        for message in self.log.live_messages():
            message.state = "gone"
        self.log.reset()
        for heap in (self._timeouts, self._delays, self._early_starts):
            heap.clear()
        self.order.clear()
        self.used_up.clear()
        self.deduplication.clear()
        self.attempts.clear()
        self.visible_count = self.in_flight_count = self.delayed_count = 0
        self.purged_ms = plan.now_ms

    # Transitions

    def _enter(self, message: Message) -> None:
        message.arrival = self.next_arrival
        self.next_arrival += 1
        if message.sequence_number is not None:
            self._next_sequence = message.sequence_number + SEQUENCE_STEP
        self.log.append_message(message)
        start_ms = message.retention_start_ms
        if start_ms < self._latest_start_ms:
            self._early_starts.push(start_ms, message)
        else:
            self._latest_start_ms = start_ms
        if message.state == "delayed":
            self.delayed_count += 1
            self._delays.push(_delay_key(message) or 0, message)
        else:
            self.visible_count += 1
        self.order.enter(message)

    def enter_moved(self, message: Message) -> None:
        """Take in a message that comes from another queue, or anew from this one."""
        message.carries_delay = False
        self._enter(message)

    def next_sequence_number(self) -> int | None:
        """The number the next message gets; ``None`` on a standard queue."""
        return self._next_sequence if self.settings.fifo else None

    def _hide(self, message: Message, handle: str, visible_at_ms: int) -> None:
        if message.state == "in_flight":
            self._timeouts.mark_stale()
        else:
            message.state = "in_flight"
            self.visible_count -= 1
            self.in_flight_count += 1
        message.visible_at_ms = visible_at_ms
        if message.receipt_handle != handle:
            self.log.mark_in_flight(message.slot, handle)
        self._timeouts.push(visible_at_ms, message)

    def show(self, message: Message, at_ms: int) -> None:
        """Make a message visible whose timeout or delay is over, or whose move was called off."""
        if message.state == "in_flight":
            self.log.clear_in_flight(message.slot)
            self.in_flight_count -= 1
            self.visible_count += 1
        elif message.state == "delayed":
            self.delayed_count -= 1
            self.visible_count += 1
        message.state = "visible"
        message.visible_at_ms = None
        message.moving = message.move_failed = False
        self.order.shown(message)
        self.journal.record(at_ms, "visible", message)

    def leave(self, message: Message) -> None:
        """Take a message out; journal it before, its body is dropped here.  O(1) amortised."""
        state = message.state
        was_ready = state == "visible" and not message.moving
        message.state = "gone"
        if state == "visible":
            self.visible_count -= 1
        elif state == "in_flight":
            self.in_flight_count -= 1
            self._timeouts.mark_stale()
        elif state == "delayed":
            self.delayed_count -= 1
            self._delays.mark_stale()
        self.order.left(message, was_ready=was_ready)
        self.log.remove_index(message.slot)

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
        return self._timeouts.first()

    def next_delay(self) -> Message | None:
        """The message whose delay ends first.  O(1) amortised."""
        return self._delays.first()

    def find_next_due_ms(self) -> int:
        """When the next thing happens here by itself; ``NEVER_MS`` for never."""
        due_ms = self.settled_ms if self.used_up else NEVER_MS
        expiring = self.next_expiring()
        if expiring is not None:
            due_ms = min(due_ms, self.expires_at_ms(expiring))
            if self.in_flight_count:
                timeout = self._timeouts.first_key()
                if timeout is not None and timeout < due_ms:
                    due_ms = timeout
            if self.delayed_count:
                delayed = self.next_delay()
                if delayed is not None:
                    due_ms = min(due_ms, self.visible_at_ms(delayed) or due_ms)
        return due_ms

    def expire_due(self, now_ms: int) -> list[str]:
        """Remove what retention ends by ``now_ms``; returns the message ids.  O(due)."""
        removed: list[str] = []
        while True:
            message = self.next_expiring()
            if message is None or self.expires_at_ms(message) > now_ms:
                return removed
            self.journal.record(
                now_ms, "expired", message, {"sent_ms": message.sent_ms, "state": message.state}
            )
            self.leave(message)
            self.expired += 1
            removed.append(message.message_id)

    def end_delays(self, now_ms: int) -> None:
        """Make visible what was delayed until ``now_ms`` or before.  O(due log n)."""
        while True:
            message = self.next_delay()
            if message is None or (self.visible_at_ms(message) or 0) > now_ms:
                return
            self.show(message, now_ms)

    def postpone_move(self, message: Message, until_ms: int) -> None:
        """Keep a message that could not be moved in flight, to be tried again at an instant."""
        handle = message.receipt_handle or make_handle(
            self._token, message.message_id, message.receive_count
        )
        message.moving = False
        self._hide(message, handle, until_ms)
        message.move_failed = True

    # Looking

    def statistics(self) -> QueueStatistics:
        """Gauges and totals; to be called inside ``broker.entry``.  O(1)."""
        log = self.log
        return QueueStatistics(
            visible=self.visible_count,
            in_flight=self.in_flight_count,
            delayed=self.delayed_count,
            live_count=log.live_count,
            dead_count=log.dead_count,
            slot_count=log.slot_count,
            compactions=log.compactions,
            receipt_index_size=log.receipt_index_size,
            uuid_index_size=log.uuid_index_size,
            groups=self.order.group_count,
            parked_polls=len(self.parked),
            sent=self.sent,
            received=self.received,
            deleted=self.removed,
            expired=self.expired,
            dead_lettered=self.dead_lettered,
        )

    def why_not_deliverable(self, message: Message) -> str | None:
        """Why the next receive cannot take a message; ``None`` if it can."""
        visible_at_ms = self.visible_at_ms(message)
        if visible_at_ms is not None:
            until = f"until {instant_text(visible_at_ms)}"
            if message.move_failed:
                return f"its move to the dead-letter queue failed; it waits {until} to try again"
            if message.state == "in_flight":
                return f"in flight {until} (receive {message.receive_count})"
            return f"delayed {until}"
        if self.is_used_up(message):
            return (
                "its receive count is used up: the next receive moves it to the dead-letter queue"
            )
        blocker = self.order.blocker_of(message)
        if blocker is not None:
            return (
                f"message group {message.message_group_id!r} waits for"
                f" {blocker.body!r}, {self.why_not_deliverable(blocker)}"
            )
        if self.in_flight_count >= self._surroundings.in_flight_limit:
            return f"the in-flight limit of {self._surroundings.in_flight_limit} is reached"
        return None

    def check(self) -> None:
        """Verify every invariant; ``AssertionError`` names the broken one.  O(n)."""
        self.log.check()
        live = list(self.log.live_messages())
        self.order.check(live)
        for state, count in (
            ("visible", self.visible_count),
            ("in_flight", self.in_flight_count),
            ("delayed", self.delayed_count),
        ):
            actual = sum(message.state == state for message in live)
            assert actual == count, f"{self.key}: {state} count is {count}, {actual} are"
        for message in live:
            in_flight = message.state == "in_flight"
            assert in_flight == (message.receipt_handle is not None), (
                f"{self.key}: {message!r} has receipt handle {message.receipt_handle}"
            )
            assert not message.moving or message in self.used_up, (
                f"{self.key}: {message!r} is marked as moving and nobody will move it"
            )
        assert self.deleted or self.next_due_ms <= self.find_next_due_ms(), (
            f"{self.key}: next_due_ms is {self.next_due_ms}, {self.find_next_due_ms()} is due"
        )
