"""The part of the broker that hands messages out: receives, and polls that wait."""

from __future__ import annotations

from collections.abc import Callable

from pytest_sqsq.engine.broker_state import BrokerState
from pytest_sqsq.engine.plans import ReceivePlan
from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.engine.quirks import show_again
from pytest_sqsq.engine.receiving import (
    abandon_receive,
    apply_receive,
    deliveries_of,
    plan_receive,
)
from pytest_sqsq.engine.waiters import Waiter
from pytest_sqsq.errors import QueueDoesNotExist, ServiceUnavailable, SqsError
from pytest_sqsq.models import Delivery, Event, ReceiveRequest


def _always_alive() -> bool:
    return True


class Polling(BrokerState):
    """Receives and parked polls of all queues."""

    def receive(self, queue: Queue, request: ReceiveRequest) -> list[Delivery]:
        """One look for messages, never parked.  O(k log n).

        Raises ``OverLimit`` on a standard queue with too many messages in flight, and
        ``InvalidParameterValue`` for an attempt id that cannot be repeated.
        """
        return self._look(queue, request._replace(wait_time_seconds=0), None).result()

    def poll(
        self,
        queue: Queue,
        request: ReceiveRequest,
        is_alive: Callable[[], bool] = _always_alive,
    ) -> Waiter:
        """Look for messages; where there are none, and the request waits, park.

        The waiter may be resolved already.  A parked poll with the same attempt id is replaced:
        it ends empty.
        """
        return self._look(queue, request, is_alive)

    def _look(
        self, queue: Queue, request: ReceiveRequest, is_alive: Callable[[], bool] | None
    ) -> Waiter:
        while True:
            replaced: Waiter | None = None
            with self.entry(queue) as now_ms:
                deadline_ms = now_ms + request.wait_time_seconds * 1000
                waiter = Waiter(queue, request, deadline_ms, is_alive or _always_alive)
                plan = self._take(queue, request, now_ms)
                if plan.messages or not (plan.used_up or request.wait_time_seconds):
                    waiter.answer(deliveries_of(plan))
                elif not plan.used_up:
                    replaced = self._park(queue, waiter)
            # A used-up message that was found instead moves now; then there is another look.
            self._settle_if_due(queue, now_ms)
            if replaced is not None:
                replaced.wake()
            if waiter.answered:
                waiter.wake()
                return waiter
            if not plan.used_up:
                return waiter

    def _park(self, queue: Queue, waiter: Waiter) -> Waiter | None:
        attempt_id = waiter.request.receive_request_attempt_id
        replaced = None if attempt_id is None else queue.parked.of_attempt(attempt_id)
        if replaced is not None:
            queue.parked.remove(replaced)
            replaced.answer([])
        queue.parked.park(waiter)
        self.due.park(waiter)
        return replaced

    def cancel_poll(self, waiter: Waiter) -> None:
        """End a poll whose real time is over or whose client is gone, if it is still parked."""
        queue = waiter.queue
        try:
            with self.entry(queue):
                ended = self._end_poll(queue, waiter)
        except QueueDoesNotExist:
            return
        if ended:
            waiter.wake()

    def _end_poll(self, queue: Queue, waiter: Waiter) -> bool:
        if waiter.answered:
            return False
        queue.parked.remove(waiter)
        waiter.answer([])
        return True

    def end_polls(self, now_ms: int) -> list[Event]:
        """End the parked polls whose wait is over by ``now_ms``: they are answered empty."""
        events: list[Event] = []
        while (waiter := self.due.next_poll_end()) is not None and waiter.deadline_ms <= now_ms:
            queue = waiter.queue
            # In a pause some of what is due by then may be left, and may be for this poll.
            if any(linked.next_due_ms <= waiter.deadline_ms for linked in queue.linked):
                self._settler.settle_queues(queue.linked, waiter.deadline_ms)
            with queue.lock:
                ended = self._end_poll(queue, waiter)
            if ended:
                events.append(Event(waiter.deadline_ms, "poll_ended", queue.key.name))
                waiter.wake()
        return events

    def postpone_polls(self, instant_ms: int) -> None:
        """Let parked polls outlast an instant, as if whoever waits had polled on.  O(parked)."""
        for queue in self.queues:
            with queue.lock:
                queue.parked.postpone(instant_ms)

    def end_dead_polls(self) -> None:
        """End the parked polls whose clients have gone.  O(parked)."""
        for queue in self.queues:
            with queue.lock:
                dead = queue.parked.take_dead()
                for waiter in dead:
                    waiter.answer([])
            self._wake(dead)

    def close_polls(self, error: SqsError | None = None, *, close_connection: bool = False) -> None:
        """End all parked polls: empty, or with an error."""
        for queue in self.queues:
            with queue.lock:
                waiters = queue.parked.remove_all()
                for waiter in waiters:
                    waiter.close_connection = close_connection
                    waiter.answer([], error)
            self._wake(waiters)

    @property
    def parked_polls(self) -> int:
        """How many polls are parked on all queues."""
        return sum(len(queue.parked) for queue in self.queues)

    def _take(self, queue: Queue, request: ReceiveRequest, now_ms: int) -> ReceivePlan:
        plan = plan_receive(queue, request, now_ms)
        if plan.messages:
            try:
                self._writer.write_plan(plan, queue)
            except ServiceUnavailable:
                abandon_receive(queue, plan)
                raise
        apply_receive(queue, plan)
        if self.quirks is not None or queue.loose is not None:
            show_again(queue, plan, self.quirks)
        return plan

    def _serve(self, queue: Queue, now_ms: int) -> list[Waiter]:
        """Answer parked polls while there is something for them; returns those to wake.

        Under the queue's lock.  A client that has gone takes no message.
        """
        woken: list[Waiter] = []
        while queue.order.has_ready:
            waiter, dead = queue.parked.oldest_alive()
            for gone in dead:
                gone.answer([])
            woken.extend(dead)
            if waiter is None:
                break
            try:
                plan = self._take(queue, waiter.request, now_ms)
            except SqsError as error:
                waiter.answer([], error)
            else:
                if not plan.messages:
                    break
                waiter.answer(deliveries_of(plan))
            queue.parked.remove(waiter)
            woken.append(waiter)
        return woken
