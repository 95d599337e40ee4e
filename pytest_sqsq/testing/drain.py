"""Working a queue off in one call, over as many timeouts and delays as it takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypedDict

from pytest_sqsq.engine.looking import statistics_of
from pytest_sqsq.errors import ClockModeError, WaitTimeout
from pytest_sqsq.limits import MAX_RECEIVE_COUNT
from pytest_sqsq.models import MessageView, QueueKey, shortened
from pytest_sqsq.testing.acting import receive
from pytest_sqsq.testing.awaiting import Caller
from pytest_sqsq.testing.failures import live_listing, plural, told
from pytest_sqsq.testing.lambda_events import (
    LambdaInvocation,
    delete_all,
    invoke,
    require_callable,
)
from pytest_sqsq.testing.looks import Sample, take_look
from pytest_sqsq.testing.world import World
from pytest_sqsq.timeline import MILLISECOND, duration_ms

Until = Literal["empty"] | timedelta | int
Handler = Callable[[MessageView], Any] | Callable[[Any, Any], Any]

DEFAULT_BATCH_SIZE = 10

FAILURES_AT_ONE_INSTANT = MAX_RECEIVE_COUNT.high
"""A message that failed so often without time passing is not even dead-lettered any more."""

COUNT_LIMIT_MS = 14 * 86_400_000
"""No message lives longer, so by then everything has come that is on its way now."""


@dataclass(frozen=True, slots=True)
class DrainReport:
    """What a drain did.

    ``invocations`` counts calls of the handler, ``deleted`` the messages it succeeded with,
    ``failed`` deliveries it failed with (a message may fail several times), ``dead_lettered``
    the messages that left for the dead-letter queue meanwhile.  ``elapsed`` is virtual time.
    ``errors`` holds what the handler raised, in order.
    """

    invocations: int
    deleted: int
    failed: int
    dead_lettered: int
    elapsed: timedelta
    errors: tuple[Exception, ...] = ()


class DrainOptions(TypedDict, total=False):
    """The keyword arguments of ``QueueProbe.drain``."""

    until: Until
    advance: bool
    lambda_events: bool
    batch_size: int | None
    context: object
    raise_errors: bool
    report_batch_item_failures: bool | None


class Drain:
    """One run of a handler over a queue; see ``QueueProbe.drain`` for the arguments."""

    def __init__(
        self,
        world: World,
        key: QueueKey,
        handler: Handler,
        *,
        until: Until,
        advance: bool,
        lambda_events: bool,
        batch_size: int | None,
        context: object,
        raise_errors: bool,
        report_batch_item_failures: bool | None,
    ) -> None:
        require_callable(handler)
        if not lambda_events and (batch_size, context, report_batch_item_failures) != (None,) * 3:
            raise TypeError(
                "batch_size, context and report_batch_item_failures are for lambda_events=True"
            )
        self._world = world
        self._key = key
        self._handler: Callable[..., Any] = handler
        self._advance = advance
        self._lambda_events = lambda_events
        self._batch_size = DEFAULT_BATCH_SIZE if batch_size is None else batch_size
        self._context = context
        self._raise_errors = raise_errors
        self._report = report_batch_item_failures is not False
        self._caller = Caller()
        self._invocations = self._deleted = self._failed = 0
        self._errors: list[Exception] = []
        # Failures of each message at the present instant.
        self._failing: Counter[str] = Counter()
        self._failing_ms = world.clock.now_ms
        self._wanted = _wanted_count(until)
        self._started_ms = world.clock.now_ms
        self._end_ms = (
            self._started_ms + duration_ms(until) if isinstance(until, timedelta) else None
        )
        if advance and world.clock.mode == "system":
            raise ClockModeError(
                "drain: a clock in system mode follows the process clock and cannot be advanced;"
                " use advance=False, or clock='frozen'"
            )

    def run(self) -> DrainReport:
        """Work until done; raises ``WaitTimeout`` if a count was asked for and is out of reach."""
        __tracebackhide__ = True
        dead_lettered = self._dead_lettered()
        with self._caller:
            while not self._is_enough():
                if not self._work_off_what_is_there() and not self._move_on():
                    break
        if self._wanted is not None and self._deleted < self._wanted:
            raise WaitTimeout(self._out_of_reach())
        return DrainReport(
            self._invocations,
            self._deleted,
            self._failed,
            self._dead_lettered() - dead_lettered,
            (self._world.clock.now_ms - self._started_ms) * MILLISECOND,
            tuple(self._errors),
        )

    def _work_off_what_is_there(self) -> bool:
        """Batches until none is left to deliver, or enough was done; whether there was any."""
        __tracebackhide__ = True
        any_work = False
        while not self._is_enough():
            invocation = self._one_batch()
            if invocation is None:
                break
            any_work = True
            self._count(invocation)
        return any_work

    def _one_batch(self) -> LambdaInvocation | None:
        __tracebackhide__ = True
        if self._lambda_events:
            invocation = invoke(
                self._world,
                self._key,
                self._handler,
                batch_size=self._next_batch_size(),
                context=self._context,
                raise_errors=self._raise_errors,
                report_batch_item_failures=self._report,
                caller=self._caller,
            )
            return None if invocation.event is None else invocation
        return self._one_message()

    def _one_message(self) -> LambdaInvocation | None:
        __tracebackhide__ = True
        batch = receive(self._world, self._key, 1)
        if not batch:
            return None
        views = (batch[0].view,)
        try:
            with self._world.clock.hold():
                response = self._caller.call(self._handler, batch[0].view)
        except Exception as error:
            if self._raise_errors:
                raise
            return LambdaInvocation({}, None, (), views, error)
        if delete_all(self._world, self._key, batch):
            return LambdaInvocation({}, response, (), views)
        return LambdaInvocation({}, response, views)

    def _next_batch_size(self) -> int:
        if self._wanted is None:
            return self._batch_size
        return min(self._batch_size, self._wanted - self._deleted)

    def _count(self, invocation: LambdaInvocation) -> None:
        self._invocations += 1
        self._deleted += len(invocation.deleted)
        self._failed += len(invocation.failed)
        if invocation.error is not None:
            self._errors.append(invocation.error)
        self._check_progress(invocation.failed)

    def _check_progress(self, failed: Sequence[MessageView]) -> None:
        now_ms = self._world.clock.now_ms
        if now_ms != self._failing_ms:
            self._failing.clear()
            self._failing_ms = now_ms
        self._failing.update(view.message_id for view in failed)
        for view in failed:
            if self._failing[view.message_id] > FAILURES_AT_ONE_INSTANT:
                raise RuntimeError(
                    f"drain of {self._key.name!r}: the handler failed"
                    f" {FAILURES_AT_ONE_INSTANT} times on {view.body!r} while the clock stood"
                    " still; a visibility timeout of 0 brings a message back at once"
                )

    def _is_enough(self) -> bool:
        if self._wanted is not None:
            return self._deleted >= self._wanted
        return self._end_ms is not None and self._world.clock.now_ms > self._end_ms

    def _move_on(self) -> bool:
        """Advance to the next thing that happens; false if nothing more can come of it."""
        clock = self._world.clock
        if not self._advance:
            return False
        if self._end_ms is None and self._wanted is None:
            return self._live_count() > 0 and clock.advance_to_next_event() is not None
        upcoming = clock.next_event
        last_ms = self._started_ms + COUNT_LIMIT_MS if self._end_ms is None else self._end_ms
        if upcoming is not None and upcoming.at_ms <= last_ms:
            clock.advance_to_next_event()
            return True
        if self._end_ms is not None:
            clock.advance(max(0, self._end_ms - clock.now_ms) * MILLISECOND)
        return False

    def _live_count(self) -> int:
        queue = self._world.broker.get_queue(self._key)
        with self._world.broker.entry(queue):
            return queue.log.live_count

    def _dead_lettered(self) -> int:
        queue = self._world.broker.get_queue(self._key)
        with self._world.broker.entry(queue):
            return statistics_of(queue).dead_lettered

    def _out_of_reach(self) -> str:
        look = take_look(self._world, self._key, Sample())
        why = "nothing more can come" if self._advance else "nothing more is deliverable now"
        return told(
            f"drain of {self._key.name!r}: {plural(self._deleted, 'message')} deleted of the"
            f" {self._wanted} asked for, and {why}; {plural(self._failed, 'failure')}",
            look,
            listed=live_listing(look),
            hint=self._last_error(),
        )

    def _last_error(self) -> str | None:
        if not self._errors:
            return None
        return f"the last error of the handler was {shortened(repr(self._errors[-1]), 200)}"


def _wanted_count(until: Until) -> int | None:
    if until == "empty" or isinstance(until, timedelta):
        return None
    if type(until) is not int or until < 1:
        raise ValueError(
            f"until is {until!r}; it is 'empty', a timedelta, or a number of messages to delete"
        )
    return until
