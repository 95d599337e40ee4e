"""What an operation is about to do: worked out first, written to the store, then applied.

A plan holds everything its operation needs, so that applying it cannot fail.  ``records`` makes
what the store keeps, in the state that will hold once the plan is applied; it is asked for only
where the store keeps anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pytest_sqsq.engine.deduplication import Accepted, DeduplicationKey
from pytest_sqsq.engine.message import Message
from pytest_sqsq.errors import SqsError
from pytest_sqsq.models import QueueKey, SendReceipt
from pytest_sqsq.store.records import (
    ClearMessages,
    MoveTaskRecord,
    PutDeduplication,
    PutMessage,
    PutMoveTask,
    Record,
    RemoveMessage,
)

if TYPE_CHECKING:
    from pytest_sqsq.engine.attempts import Attempt


class Plan(Protocol):
    """A change that was worked out and not yet made.

    Made and applied within one hold of the queue's lock: its instants and places are good for
    as long as nothing else happens.
    """

    def records(self, queue: QueueKey) -> list[Record]:
        """What the store has to be told, all in one write.  O(messages concerned)."""


@dataclass(slots=True)
class SendPlan:
    """Messages to append, and the receipts of the whole send in order.

    ``duplicates`` are the original's message id and the body sent, of each entry that is not
    enqueued; ``accepted`` are the deduplication ids to be remembered.
    """

    now_ms: int
    receipts: list[SendReceipt] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    duplicates: list[tuple[str, str]] = field(default_factory=list)
    accepted: dict[DeduplicationKey, Accepted] = field(default_factory=dict)

    def records(self, queue: QueueKey) -> list[Record]:
        records: list[Record] = [PutMessage(queue, m.record()) for m in self.messages]
        records.extend(deduplication_records(queue, self.accepted.items()))
        return records


def deduplication_records(
    queue: QueueKey, accepted: Iterable[tuple[DeduplicationKey, Accepted]]
) -> list[Record]:
    """What a store keeps of accepted deduplication ids."""
    return [
        PutDeduplication(queue, group, deduplication_id, *first)
        for (group, deduplication_id), first in accepted
    ]


@dataclass(slots=True)
class ReceivePlan:
    """Messages taken out of the ready ones, with their new handles.

    ``handles`` belong to ``messages`` one by one.  ``used_up`` are messages that may not be
    delivered any more and are due to move.  ``replay`` is the earlier attempt whose messages are
    handed out again, uncounted.
    """

    now_ms: int
    visible_at_ms: int
    messages: list[Message]
    handles: list[str]
    used_up: Sequence[Message] = ()
    attempt_id: str | None = None
    replay: Attempt | None = None

    def records(self, queue: QueueKey) -> list[Record]:
        step = 0 if self.replay else 1
        return [
            PutMessage(
                queue,
                m.record()._replace(
                    receive_count=m.receive_count + step,
                    receives_here=m.receives_here + step,
                    first_received_ms=m.first_received_ms or self.now_ms,
                    received_ms=self.now_ms,
                    visible_at_ms=self.visible_at_ms,
                    receipt_handle=handle,
                ),
            )
            for m, handle in zip(self.messages, self.handles, strict=True)
        ]


@dataclass(slots=True)
class RemovalPlan:
    """Messages to remove, each once, and one outcome for each entry of the request."""

    now_ms: int
    messages: list[Message]
    outcomes: list[SqsError | None] = field(default_factory=list)

    def records(self, queue: QueueKey) -> list[Record]:
        return [RemoveMessage(queue, m.message_id) for m in self.messages]


@dataclass(slots=True)
class VisibilityPlan:
    """What to hide: messages, each with its handle and the instant (ms) until which.

    ``outcomes`` has one entry for each of the request.
    """

    now_ms: int
    changes: list[tuple[Message, str, int]] = field(default_factory=list)
    outcomes: list[SqsError | None] = field(default_factory=list)

    def records(self, queue: QueueKey) -> list[Record]:
        return [
            PutMessage(
                queue, m.record()._replace(visible_at_ms=visible_at_ms, receipt_handle=handle)
            )
            for m, handle, visible_at_ms in self.changes
        ]


@dataclass(slots=True)
class PurgePlan:
    """Everything to forget.  Nothing else is written, so that a full store can be emptied."""

    now_ms: int

    def records(self, queue: QueueKey) -> list[Record]:
        return [ClearMessages(queue)]


@dataclass(slots=True)
class MovePlan:
    """One message to take out of its queue, and the message it becomes in another.

    ``task`` is the move task, as it stands after the move, where one moves the message.
    """

    now_ms: int
    message: Message
    arriving: Message
    target: QueueKey
    task: MoveTaskRecord | None = None

    def records(self, queue: QueueKey) -> list[Record]:
        records: list[Record] = [PutMessage(self.target, self.arriving.record())]
        if self.target != queue or self.arriving.message_id != self.message.message_id:
            records.append(RemoveMessage(queue, self.message.message_id))
        if self.task is not None:
            records.append(PutMoveTask(self.task))
        return records
