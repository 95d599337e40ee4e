"""What a store is asked to keep: flat records, without behaviour and without a sense of time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from pytest_sqsq.models import QueueKey, QueueSettings

DeduplicationScope = Literal["queue", "messageGroup"]
MoveTaskStatus = Literal["RUNNING", "COMPLETED", "CANCELLING", "CANCELLED", "FAILED"]


class MessageRecord(NamedTuple):
    """A message as it is kept: all that a restart needs, ``arrival`` giving the order.

    What time has done since the last write is not in it: a delay or a visibility timeout may be
    over.  A delayed message of a FIFO queue has no ``delayed_until_ms`` of its own.
    """

    message_id: str
    arrival: int
    body: str
    attributes: Mapping[str, tuple[str, str | bytes]] | None
    sent_ms: int
    retention_start_ms: int
    delayed: bool
    delayed_until_ms: int | None
    receive_count: int
    receives_here: int
    first_received_ms: int | None
    received_ms: int | None
    visible_at_ms: int | None
    receipt_handle: str | None
    message_group_id: str | None
    message_deduplication_id: str | None
    sequence_number: int | None
    trace_header: str | None
    dead_letter_source_arn: str | None
    carries_delay: bool


class PutMessage(NamedTuple):
    queue: QueueKey
    message: MessageRecord


class RemoveMessage(NamedTuple):
    queue: QueueKey
    message_id: str


class QueueRecord(NamedTuple):
    """A queue without its messages.

    Sequence numbers below ``sequence_limit`` may have been given away.
    """

    settings: QueueSettings
    tags: Mapping[str, str]
    created_ms: int
    last_modified_ms: int
    purged_ms: int | None
    sequence_limit: int
    deduplication_scope: DeduplicationScope


class PutQueue(NamedTuple):
    queue: QueueKey
    record: QueueRecord


class RemoveQueue(NamedTuple):
    queue: QueueKey


class PutDeduplication(NamedTuple):
    """An accepted deduplication id; ``group`` is ``None`` where the scope is the queue."""

    queue: QueueKey
    group: str | None
    deduplication_id: str
    message_id: str
    sequence_number: int
    accepted_ms: int


class RemoveDeduplication(NamedTuple):
    """A deduplication id whose window is over."""

    queue: QueueKey
    group: str | None
    deduplication_id: str


class ClearMessages(NamedTuple):
    """A purge: messages and deduplication memory."""

    queue: QueueKey


class MoveTaskRecord(NamedTuple):
    """A move task; ``place`` gives the order in which tasks were started."""

    task_id: str
    place: int
    source: QueueKey
    destination_arn: str | None
    rate: int | None
    status: MoveTaskStatus
    started_ms: int
    moved: int
    to_move: int
    failure_reason: str | None


class PutMoveTask(NamedTuple):
    task: MoveTaskRecord


class RemoveMoveTask(NamedTuple):
    source: QueueKey
    task_id: str


class PutClock(NamedTuple):
    """An instant up to which everything has happened."""

    now_ms: int


Record = (
    PutMessage
    | RemoveMessage
    | PutQueue
    | RemoveQueue
    | PutDeduplication
    | RemoveDeduplication
    | ClearMessages
    | PutMoveTask
    | RemoveMoveTask
    | PutClock
)
