"""Planned faults that are no matter of single requests: what queues and their store do wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pytest_sqsq.engine.message import Message
from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.errors import ServiceUnavailable
from pytest_sqsq.gateway.fault_conditions import QueueChoice
from pytest_sqsq.gateway.fault_turns import Fault, Turns

if TYPE_CHECKING:
    from pytest_sqsq.engine import Broker


class QueueFault(Fault):
    """A planned fault of queues.  ``after_ms`` is when a message whose delete was lost is back."""

    def __init__(
        self,
        text: str,
        remove: Callable[[Fault], None],
        queue: QueueChoice | None,
        turns: Turns,
        after_ms: int | None = None,
    ) -> None:
        super().__init__(f"{text}{queue or ''}{turns}", remove)
        self.turns = turns
        self.after_ms = after_ms
        self._queue = queue

    def covers(self, queue: Queue) -> bool:
        return self._queue is None or self._queue.covers(queue.key)


class QueueFaults:
    """The quirks of a broker's queues, as far as they were planned.

    ``fires`` gives a fault one more turn.  The broker asks nothing while there are none.
    ``doubling`` and ``losing`` are replaced, never changed; ``_doubled`` is guarded by the locks
    of the queues that its messages are in.
    """

    def __init__(self, broker: Broker, fires: Callable[[Fault, Turns], bool]) -> None:
        self.doubling: tuple[QueueFault, ...] = ()
        self.losing: tuple[QueueFault, ...] = ()
        self.refusing: tuple[QueueFault, ...] = ()
        self._broker = broker
        self._fires = fires
        # Ids of the messages whose second delivery has not come yet: that one is not doubled.
        self._doubled: set[str] = set()

    def double(self, fault: QueueFault) -> None:
        self.doubling = (*self.doubling, fault)
        self._tell_broker()

    def lose(self, fault: QueueFault) -> None:
        self.losing = (*self.losing, fault)
        self._tell_broker()

    def refuse(self, fault: QueueFault) -> None:
        self.refusing = (*self.refusing, fault)
        self._tell_broker()

    def remove(self, fault: Fault) -> None:
        self.doubling = tuple(each for each in self.doubling if each is not fault)
        self.losing = tuple(each for each in self.losing if each is not fault)
        self.refusing = tuple(each for each in self.refusing if each is not fault)
        self._tell_broker()

    def move_to(self, broker: Broker) -> None:
        """Go on with another broker, which has taken the place of the one before."""
        self._broker = broker
        self._tell_broker()

    def _tell_broker(self) -> None:
        self._broker.quirks = self if self.doubling or self.losing else None
        self._broker.refuse_writes(self._refuse_write if self.refusing else None)

    def _refuse_write(self) -> None:
        for fault in self.refusing:
            if self._fires(fault, fault.turns):
                raise ServiceUnavailable(f"Planned by the test: {fault.text}")

    # What queues ask

    def delivers_again(self, queue: Queue, message: Message) -> bool:
        """Whether a message that is being delivered stays visible."""
        if queue.settings.fifo:
            return False
        if message.message_id in self._doubled:
            self._doubled.discard(message.message_id)
            return False
        for fault in self.doubling:
            if fault.covers(queue) and self._fires(fault, fault.turns):
                self._doubled.add(message.message_id)
                return True
        return False

    def keeps_until_ms(self, queue: Queue, message: Message, now_ms: int) -> int | None:
        """Until when a message that is being deleted stays in flight; ``None`` if it goes."""
        for fault in self.losing:
            if fault.covers(queue) and self._fires(fault, fault.turns):
                if fault.after_ms is not None:
                    return now_ms + fault.after_ms
                return message.visible_at_ms or now_ms
        return None
