"""What goes otherwise than a consumer wishes: deliveries out of order, twice, and lost deletes.

Amazon promises no more for standard queues.  Queues that are to be tidy never come here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from pytest_sqsq.engine.chances import Chances
from pytest_sqsq.engine.message import Message
from pytest_sqsq.engine.plans import ReceivePlan, RemovalPlan, VisibilityPlan
from pytest_sqsq.engine.standard import StandardOrder
from pytest_sqsq.models import QueueKey

if TYPE_CHECKING:
    from pytest_sqsq.engine.queue import Queue

WINDOW = 10
"""So many ready messages more than asked for are shuffled: none is overtaken by all others."""

FEWER_PROBABILITY = 0.25
"""How often a short poll answers with fewer messages than there are."""

DUPLICATE_PROBABILITY = 0.02
"""How often a message stays visible although it was delivered."""


class Quirks(Protocol):
    """Faults that were planned for a broker's queues.  Asked with the queue's lock held."""

    def delivers_again(self, queue: Queue, message: Message) -> bool:
        """Whether a message that is being delivered stays visible."""

    def keeps_until_ms(self, queue: Queue, message: Message, now_ms: int) -> int | None:
        """Until when a message that is being deleted stays in flight; ``None`` if it goes."""


class LooseOrder(StandardOrder):
    """A standard queue as AWS may treat it: no order to rely on, and sometimes a duplicate.

    The n-th receive from a queue has always the same luck under the same seed.
    """

    def __init__(self, chances: Chances, key: QueueKey) -> None:
        super().__init__()
        self._chances = chances
        self._key = key
        self._takes = 0

    def short_poll_count(self, count: int) -> int:
        """How many messages a short poll for ``count`` may find: fewer at times, at least one."""
        luck = self._chances.draw("short poll", self._key, self._takes)
        if luck >= FEWER_PROBABILITY or count < 2:
            return count
        return 1 + int(luck / FEWER_PROBABILITY * (count - 1))

    def take(
        self, count: int, now_ms: int, is_used_up: Callable[[Message], bool] | None
    ) -> tuple[list[Message], list[Message]]:
        """As in a tidy queue, but some of the first messages in any order."""
        self._takes += 1
        found, used_up = super().take(count + WINDOW if count else 0, now_ms, is_used_up)
        shuffled = sorted(
            found,
            key=lambda message: self._chances.draw(
                "order", self._key, self._takes, message.arrival
            ),
        )
        self.put_back(shuffled[count:])
        return shuffled[:count], used_up

    def delivers_again(self, message: Message) -> bool:
        """Whether a message that is being delivered stays visible."""
        luck = self._chances.draw("duplicate", self._key, message.arrival, message.receive_count)
        return luck < DUPLICATE_PROBABILITY


def show_again(queue: Queue, plan: ReceivePlan, quirks: Quirks | None) -> None:
    """Make visible again what an applied plan has delivered and what is to come twice."""
    for message in plan.messages:
        if (quirks is not None and quirks.delivers_again(queue, message)) or (
            queue.loose is not None and queue.loose.delivers_again(message)
        ):
            queue.show(message, plan.now_ms)


def take_lost(queue: Queue, plan: RemovalPlan, quirks: Quirks) -> VisibilityPlan:
    """Take out of a plan the messages whose delete gets lost; how long each is hidden instead."""
    lost = VisibilityPlan(plan.now_ms)
    kept = []
    for message in plan.messages:
        until_ms = quirks.keeps_until_ms(queue, message, plan.now_ms)
        if until_ms is None:
            kept.append(message)
        else:
            handle = message.receipt_handle or queue.handle_for(message, message.receive_count)
            lost.changes.append((message, handle, until_ms))
    plan.messages[:] = kept
    return lost


def apply_lost(queue: Queue, lost: VisibilityPlan) -> None:
    """Hide the messages whose delete was acknowledged and not carried out."""
    for message, handle, until_ms in lost.changes:
        detail = {}
        if until_ms > lost.now_ms:
            queue.hide_untaken(message, handle, until_ms)
            detail = {"visible_at_ms": until_ms}
        queue.journal.record(lost.now_ms, "delete_lost", message, detail)
