"""The faults that a test plans: requests that fail, and queues that misbehave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

from pytest_sqsq.actions import ActionContext
from pytest_sqsq.actions.attributes import READ_ONLY
from pytest_sqsq.errors import QueueDoesNotExist, RequestThrottled
from pytest_sqsq.gateway.delays import Delays
from pytest_sqsq.gateway.fault_conditions import Body, Candidate, Condition, chosen_queue
from pytest_sqsq.gateway.fault_effects import (
    COUNTS,
    Attempt,
    Effect,
    Refusal,
    Result,
    StaleCounts,
    checked_entry_ids,
    make_effect,
)
from pytest_sqsq.gateway.fault_turns import (
    Fault,
    PlannedTurns,
    RateTurns,
    Turns,
    checked_span,
    span_text,
)
from pytest_sqsq.gateway.queue_faults import QueueFault, QueueFaults
from pytest_sqsq.models import QueueKey

if TYPE_CHECKING:
    from pytest_sqsq.clock import Clock
    from pytest_sqsq.engine import Broker
    from pytest_sqsq.engine.chances import Chances
    from pytest_sqsq.gateway.gate import RequestGate


class RequestFault(Fault):
    """A planned fault of requests."""

    def __init__(
        self, condition: Condition, effect: Effect, turns: Turns, remove: Callable[[Fault], None]
    ) -> None:
        super().__init__(f"{effect}{condition}{turns}", remove)
        self.condition = condition
        self.effect = effect
        self.turns = turns


class Faults:
    """What is planned to go wrong on a server.

    Each method that plans something returns a handle, whose ``fired`` counts how often it came
    to pass, and whose ``remove()`` (or end as a context) takes it back.  Faults last until they
    are removed or used up, or the server is reset.  The first one that comes to pass for a
    request wins, in the order in which they were added; one that lets a request pass leaves it
    to those after it.  Methods raise ``ValueError`` for arguments that make no sense.

    Chances depend on the seed, the number of the fault, and how often it was drawn for.  Safe to
    use from any thread; ``_lock`` guards everything but what is exchanged as a whole.
    """

    def __init__(self, broker: Broker, clock: Clock, gate: RequestGate, chances: Chances) -> None:
        self.active: tuple[RequestFault, ...] = ()
        self._broker = broker
        self._clock = clock
        self._gate = gate
        self._chances = chances
        self._lock = Lock()
        self._delays = Delays(clock, gate)
        self._planned: list[Fault] = []
        self._draws: dict[Fault, tuple[int, int]] = {}
        self._queue_faults = QueueFaults(broker, self._fires)

    # Planning

    def add(
        self,
        *,
        action: str | None = None,
        queue: object = None,
        body: Body | None = None,
        times: int | None = None,
        after: int | timedelta = 0,
        sequence: Sequence[Literal["fail", "pass"]] | None = None,
        for_seconds: float | timedelta | None = None,
        probability: float = 1.0,
        error: str | None = None,
        status: int | None = None,
        latency: float | timedelta | None = None,
        clock: Literal["real", "virtual"] = "real",
        drop_connection: Literal["before", "after"] | None = None,
        truncate: bool = False,
        fail_entries: Sequence[str] | None = None,
    ) -> Fault:
        """Let requests fail.

        Which: those of ``action``, about ``queue`` (a probe, name, URL or ARN), about a message
        with ``body`` (a text, a compiled pattern, or a function of the body).  Bodies of received
        messages are known only when they are handed out, so such a fault comes with the answer.

        When: at most ``times``; not for the first requests that ``after`` counts, nor before
        that much time has passed; as the words of ``sequence`` say, one for each request, until
        they are used up; for so many seconds of the server's clock; with ``probability``.

        How, one of: ``error``, by its name; ``status``, an HTTP status with an error in the shape
        of the protocol; ``latency`` in real seconds, or by the server's ``clock``; the connection
        dropped before or after the request is carried out; an answer broken off; a batch whose
        entries with these ids fail.
        """
        effect = make_effect(
            self._delays,
            error=error,
            status=status,
            latency=latency,
            clock=clock,
            drop_connection=drop_connection,
            truncate=truncate,
            fail_entries=fail_entries,
        )
        entry_ids = None if fail_entries is None else checked_entry_ids(fail_entries)
        condition = Condition(action, queue, body, entry_ids)
        if body is not None and action == "ReceiveMessage" and drop_connection == "before":
            raise ValueError(
                "what a receive will hand out is not known before; use drop_connection='after'"
            )
        turns = PlannedTurns(
            self._clock.now_ms,
            times=times,
            after=after,
            sequence=sequence,
            for_seconds=for_seconds,
            probability=probability,
        )
        return self._plan(condition, effect, turns)

    def throttle(self, rate: float, action: str | None = None, queue: object = None) -> Fault:
        """Answer RequestThrottled beyond ``rate`` requests a second, by the server's clock."""
        turns = RateTurns(self._clock.now_ms, rate)
        effect = Refusal(RequestThrottled, "RequestThrottled")
        return self._plan(Condition(action, queue), effect, turns)

    def stale_counts(self, queue: object = None) -> Fault:
        """Let GetQueueAttributes show the numbers of messages as they are now."""
        condition = Condition("GetQueueAttributes", queue)
        return self._plan(condition, StaleCounts(self._counts()), PlannedTurns(0))

    def duplicate_delivery(
        self, queue: object = None, probability: float = 1.0, times: int | None = None
    ) -> Fault:
        """Deliver messages of standard queues twice: they stay visible when they are received."""
        choice = chosen_queue(queue)
        if choice is not None and choice.name.endswith(".fifo"):
            raise ValueError(f"a FIFO queue delivers nothing twice at once: {choice.name!r}")
        turns = PlannedTurns(0, times=times, probability=probability)
        fault = QueueFault("duplicate delivery", self._remove, choice, turns)
        return self._plan_for_queues(fault, self._queue_faults.double)

    def late_duplicate(
        self,
        queue: object = None,
        after: float | timedelta = timedelta(minutes=1),
        times: int | None = 1,
    ) -> Fault:
        """Acknowledge a delete, but let the message be visible again ``after`` that time."""
        after_ms = checked_span("after", after)
        text = f"late duplicate {span_text(after_ms)} after the delete"
        turns = PlannedTurns(0, times=times)
        fault = QueueFault(text, self._remove, chosen_queue(queue), turns, after_ms)
        return self._plan_for_queues(fault, self._queue_faults.lose)

    def lost_delete(self, queue: object = None, times: int | None = 1) -> Fault:
        """Acknowledge a delete, and do nothing: the message comes back after its timeout."""
        turns = PlannedTurns(0, times=times)
        fault = QueueFault("lost delete", self._remove, chosen_queue(queue), turns)
        return self._plan_for_queues(fault, self._queue_faults.lose)

    def store_down(self) -> Fault:
        """Let the store refuse every write, of whatever kind it is: ServiceUnavailable."""
        fault = QueueFault("the store is down", self._remove, None, PlannedTurns(0))
        return self._plan_for_queues(fault, self._queue_faults.refuse)

    def move_to(self, broker: Broker) -> None:
        """Go on with another broker, which has taken the place of the one before."""
        self._broker = broker
        self._queue_faults.move_to(broker)

    def clear(self) -> None:
        """Remove all faults, and forget what they did."""
        for fault in self:
            self._remove(fault)
        with self._lock:
            self._planned.clear()
            self._draws.clear()

    # Looking

    def __iter__(self) -> Iterator[Fault]:
        """All faults planned since the last reset, removed ones too, in their order."""
        with self._lock:
            return iter(list(self._planned))

    def __len__(self) -> int:
        return len(self._planned)

    def unused(self) -> tuple[Fault, ...]:
        """The faults that never fired, although nothing was left to chance."""
        return tuple(fault for fault in self if not fault.fired and fault not in self._draws)

    def unused_text(self) -> str | None:
        """Names the faults that never fired; ``None`` if there are none."""
        unused = self.unused()
        if not unused:
            return None
        count = "a planned fault" if len(unused) == 1 else f"{len(unused)} planned faults"
        listing = "; ".join(fault.text for fault in unused)
        return f"{count} never fired: {listing}"

    # What the gateway asks

    def carry_out(self, attempt: Attempt, context: ActionContext) -> Result:
        """Do what a request asks for, or what was planned instead.

        May raise the ``SqsError`` to answer with.  ``attempt.cut`` may be set afterwards.
        """
        candidate = Candidate(attempt.action, attempt.parameters, attempt.key, context)
        at_answer = attempt.action == "ReceiveMessage"
        fault = self._first(
            candidate,
            [each for each in self.active if not (at_answer and each.condition.body is not None)],
        )
        if fault is not None:
            return self._meet(fault, attempt)
        result = attempt.carry_out()
        with_bodies = [each for each in self.active if each.condition.body is not None]
        if at_answer and with_bodies:
            candidate.learn_answer(result)
            fault = self._first(candidate, with_bodies)
            if fault is not None:
                attempt.carry_out = lambda: result
                return self._meet(fault, attempt)
        return result

    @property
    def waiting(self) -> int:
        """How many requests wait for the server's clock."""
        return self._delays.waiting

    def hurry(self) -> None:
        """End the latencies of all requests, and let none begin: the server is stopping."""
        self._delays.hurry()

    def hurried(self) -> AbstractContextManager[None]:
        """A context in which no request waits, for whoever needs all of them answered."""
        return self._delays.hurried()

    # Inside

    def _plan(self, condition: Condition, effect: Effect, turns: Turns) -> Fault:
        fault = RequestFault(condition, effect, turns, self._remove)
        with self._lock:
            self._planned.append(fault)
            self.active = (*self.active, fault)
        return fault

    def _plan_for_queues(self, fault: Fault, enter: Callable[[Any], None]) -> Fault:
        with self._lock:
            self._planned.append(fault)
            enter(fault)
        return fault

    def _remove(self, fault: Fault) -> None:
        with self._lock:
            self._drop(fault)

    def _drop(self, fault: Fault) -> None:
        self.active = tuple(each for each in self.active if each is not fault)
        self._queue_faults.remove(fault)

    def _first(self, candidate: Candidate, faults: Sequence[RequestFault]) -> RequestFault | None:
        for fault in faults:
            if fault.condition.is_met_by(candidate) and self._fires(fault, fault.turns):
                return fault
        return None

    def _meet(self, fault: RequestFault, attempt: Attempt) -> Result:
        attempt.reason = fault.text
        return fault.effect.meet(attempt)

    def _fires(self, fault: Fault, turns: Turns) -> bool:
        """Give a fault one more turn; whether it comes to pass."""
        with self._lock:
            now_ms = self._clock.now_ms
            fires = turns.take(now_ms, lambda: self._draw(fault))
            fault.fired += fires
            if turns.is_over(now_ms):
                self._drop(fault)
        if fires:
            self._gate.note_change()  # somebody may be waiting for just that
        return fires

    def _draw(self, fault: Fault) -> float:
        rule, draws = self._draws.get(fault, (0, 0))
        rule = rule or self._planned.index(fault) + 1
        self._draws[fault] = rule, draws + 1
        return self._chances.draw("fault", rule, draws + 1)

    def _counts(self) -> Mapping[QueueKey, Mapping[str, str]]:
        counts: dict[QueueKey, Mapping[str, str]] = {}
        for queue in self._broker.queues:
            try:
                with self._broker.entry(queue):
                    counts[queue.key] = {name: READ_ONLY[name](queue) for name in COUNTS}
            except QueueDoesNotExist:
                continue
        return counts
