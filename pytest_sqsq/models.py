"""The plain values that the layers hand to each other.  No behaviour, and no imports but limits.

Instants are integer milliseconds since the epoch and end in ``_ms``; durations that come from
the wire are integer seconds under SQS's own names.  Absence is ``None``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from pytest_sqsq.limits import (
    DEFAULT_DELAY_SECONDS,
    DEFAULT_KMS_DATA_KEY_REUSE_PERIOD_SECONDS,
    DEFAULT_MAXIMUM_MESSAGE_SIZE,
    DEFAULT_MESSAGE_RETENTION_PERIOD,
    DEFAULT_RECEIVE_MESSAGE_WAIT_TIME_SECONDS,
    DEFAULT_VISIBILITY_TIMEOUT,
)

MessageState = Literal["visible", "in_flight", "delayed"]
DeadLetterOn = Literal["tick", "receive"]

EventKind = Literal[
    "sent",
    "deduplicated",
    "visible",
    "received",
    "visibility_changed",
    "delete_lost",
    "returned",
    "expired",
    "dead_lettered",
    "moved",
    "deleted",
    "purged",
    "poll_ended",
    "callback",
]


def partition_of(region: str) -> str:
    """The AWS partition of a region, by the region's prefix."""
    for prefix, partition in _PARTITIONS:
        if region.startswith(prefix):
            return partition
    return "aws"


_PARTITIONS = (
    ("cn-", "aws-cn"),
    ("us-gov-", "aws-us-gov"),
    ("eusc-", "aws-eusc"),
    ("us-isob-", "aws-iso-b"),
    ("us-isof-", "aws-iso-f"),
    ("us-iso-", "aws-iso"),
    ("eu-isoe-", "aws-iso-e"),
)


class QueueKey(NamedTuple):
    """What names a queue in the whole server: accounts and regions are separate worlds."""

    account_id: str
    region: str
    name: str

    @property
    def arn(self) -> str:
        return f"arn:{partition_of(self.region)}:sqs:{self.region}:{self.account_id}:{self.name}"

    @classmethod
    def from_arn(cls, arn: str) -> QueueKey | None:
        """The key an SQS ARN names, or ``None`` where the text is no ARN of an SQS queue."""
        parts = arn.split(":")
        if len(parts) != 6 or parts[0] != "arn" or parts[2] != "sqs" or not all(parts[3:]):
            return None
        return cls(parts[4], parts[3], parts[5])

    def __str__(self) -> str:
        return f"{self.account_id}:{self.region}:{self.name}"


class MessageAttribute(NamedTuple):
    """A message attribute: its full data type, and a text or the raw bytes."""

    data_type: str
    value: str | bytes


class RedrivePolicy(NamedTuple):
    """After how many receives a message moves, and where to; the target need not exist."""

    dead_letter_target_arn: str
    max_receive_count: int


class RedriveAllowPolicy(NamedTuple):
    """Who may use a queue as dead-letter queue; the ARNs are for ``byQueue`` and there only."""

    redrive_permission: Literal["allowAll", "denyAll", "byQueue"]
    source_queue_arns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """All attributes of a queue that can be set, parsed; a change replaces the whole object.

    Durations are seconds, sizes bytes.  ``fifo_throughput_limit`` and the encryption attributes
    are kept and reported, and change nothing.
    """

    fifo: bool = False
    delay_seconds: int = DEFAULT_DELAY_SECONDS
    maximum_message_size: int = DEFAULT_MAXIMUM_MESSAGE_SIZE
    message_retention_period: int = DEFAULT_MESSAGE_RETENTION_PERIOD
    receive_message_wait_time_seconds: int = DEFAULT_RECEIVE_MESSAGE_WAIT_TIME_SECONDS
    visibility_timeout: int = DEFAULT_VISIBILITY_TIMEOUT
    policy: str | None = None
    redrive_policy: RedrivePolicy | None = None
    redrive_allow_policy: RedriveAllowPolicy | None = None
    kms_master_key_id: str | None = None
    kms_data_key_reuse_period_seconds: int = DEFAULT_KMS_DATA_KEY_REUSE_PERIOD_SECONDS
    sqs_managed_sse_enabled: bool = True
    content_based_deduplication: bool = False
    deduplication_scope: Literal["queue", "messageGroup"] = "queue"
    fifo_throughput_limit: Literal["perQueue", "perMessageGroupId"] = "perQueue"


class OutgoingMessage(NamedTuple):
    """A message as the engine takes it in: validated, its deduplication id worked out.

    ``delay_seconds`` is ``None`` where the queue's own delay applies; FIFO queues ignore it.
    """

    body: str
    attributes: Mapping[str, MessageAttribute] | None = None
    delay_seconds: int | None = None
    message_group_id: str | None = None
    message_deduplication_id: str | None = None
    trace_header: str | None = None


class SendReceipt(NamedTuple):
    """What a send is answered with; of the original message where ``duplicate``."""

    message_id: str
    sequence_number: int | None
    duplicate: bool = False


class ReceiveRequest(NamedTuple):
    """What a receive asks for.

    ``visibility_timeout`` in seconds, ``None`` for the queue's own; ``wait_time_seconds`` 0 is a
    short poll.
    """

    max_number_of_messages: int = 1
    visibility_timeout: int | None = None
    wait_time_seconds: int = 0
    receive_request_attempt_id: str | None = None

    def visible_seconds(self, default: int) -> int:
        """The visibility timeout to use, in seconds, where ``default`` is the queue's own."""
        return default if self.visibility_timeout is None else self.visibility_timeout


class Delivery(NamedTuple):
    """One received message: a snapshot taken under the queue's lock, safe to read at any time."""

    message_id: str
    receipt_handle: str
    body: str
    attributes: Mapping[str, MessageAttribute] | None
    sent_ms: int
    receive_count: int
    first_received_ms: int
    message_group_id: str | None
    message_deduplication_id: str | None
    sequence_number: int | None
    trace_header: str | None
    dead_letter_source_arn: str | None


def instant_text(instant_ms: int) -> str:
    """An instant as ISO 8601 in UTC with milliseconds, for people to read."""
    moment = datetime.fromtimestamp(instant_ms / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{instant_ms % 1000:03d}Z"


def shortened(text: str, limit: int = 80) -> str:
    """At most ``limit`` characters of a text, the cut shown."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


NO_DETAIL: Mapping[str, str | int | None] = {}
"""Shared by all events that have none."""


class Event(NamedTuple):
    """One thing that happened to a message, or at an instant of the clock.

    ``queue`` is the queue's name; ``detail`` holds what belongs to the kind: ``receive_count``,
    ``visible_at_ms``, ``receipt_handle``, ``source_arn``, ``target_arn`` and the like.
    """

    at_ms: int
    kind: EventKind
    queue: str
    message_id: str | None = None
    body: str | None = None
    detail: Mapping[str, str | int | None] = NO_DETAIL

    def __str__(self) -> str:
        subject = f" {shortened(self.body, 60)!r}" if self.body is not None else ""
        extra = ", ".join(f"{name}={value}" for name, value in self.detail.items())
        where = f" on {self.queue!r}" if self.queue else ""
        return f"{instant_text(self.at_ms)} {self.kind}{subject}{where}" + (
            f" ({extra})" if extra else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatistics:
    """A queue's gauges and totals at one instant.

    ``groups`` counts message groups with live messages; ``dead_lettered`` counts messages moved
    out of this queue by its redrive policy.
    """

    visible: int
    in_flight: int
    delayed: int
    live_count: int
    dead_count: int
    slot_count: int
    compactions: int
    receipt_index_size: int
    uuid_index_size: int
    groups: int
    parked_polls: int
    sent: int
    received: int
    deleted: int
    expired: int
    dead_lettered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """A message as it stood when somebody looked; looking changes nothing.

    ``receipt_handle`` is the current one of a message in flight, else ``None``;
    ``visible_at_ms`` is when a delayed or in-flight message becomes visible, else ``None``;
    ``why_not_deliverable`` is ``None`` for what the next receive could take.
    """

    message_id: str
    body: str
    md5_of_body: str
    attributes: Mapping[str, str | bytes]
    system_attributes: Mapping[str, str]
    state: MessageState
    receive_count: int
    receipt_handle: str | None
    sent_ms: int
    visible_at_ms: int | None
    expires_at_ms: int
    message_group_id: str | None
    message_deduplication_id: str | None
    sequence_number: str | None
    slot: int | None
    dead_letter_source_arn: str | None
    why_not_deliverable: str | None
    queue: str = field(default="", repr=False)
