"""Records as text: one JSON object for each message, queue, deduplication id and move task.

Names are SQS's own, in snake_case; instants are milliseconds since the epoch.  What is absent is
left out.  Sequence numbers are text: they have more digits than many readers of JSON can hold.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from pytest_sqsq.models import QueueKey, QueueSettings, RedriveAllowPolicy, RedrivePolicy
from pytest_sqsq.store.records import (
    MessageRecord,
    MoveTaskRecord,
    PutDeduplication,
    QueueRecord,
)

_text_of = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode_message(record: MessageRecord) -> str:
    """A message with everything but its id, which is the name of its field."""
    document: dict[str, Any] = {
        name: value
        for name, value in zip(record._fields, record, strict=True)
        if value is not None and value is not False
    }
    del document["message_id"]
    if record.attributes is not None:
        document["attributes"] = {
            name: _encode_attribute(data_type, value)
            for name, (data_type, value) in record.attributes.items()
        }
    if record.sequence_number is not None:
        document["sequence_number"] = str(record.sequence_number)
    return _text_of(document)


def decode_message(message_id: str, text: str | bytes) -> MessageRecord:
    """The reverse of :func:`encode_message`."""
    document = json.loads(text)
    attributes = document.get("attributes")
    if attributes is not None:
        document["attributes"] = {
            name: _decode_attribute(value) for name, value in attributes.items()
        }
    if "sequence_number" in document:
        document["sequence_number"] = int(document["sequence_number"])
    return MessageRecord(message_id=message_id, **{**_ABSENT, **document})


_PRESENT = {
    *("message_id", "arrival", "body", "sent_ms", "retention_start_ms"),
    *("receive_count", "receives_here"),
}
_ABSENT: Mapping[str, Any] = {
    **{name: None for name in MessageRecord._fields if name not in _PRESENT},
    "delayed": False,
    "carries_delay": False,
}


def _encode_attribute(data_type: str, value: str | bytes) -> dict[str, str]:
    if isinstance(value, str):
        return {"data_type": data_type, "string_value": value}
    return {"data_type": data_type, "binary_value": b64encode(value).decode()}


def _decode_attribute(document: Mapping[str, str]) -> tuple[str, str | bytes]:
    if "binary_value" in document:
        return document["data_type"], b64decode(document["binary_value"])
    return document["data_type"], document["string_value"]


def encode_queue(record: QueueRecord) -> str:
    """A queue without its messages; its attributes are those that differ from the default."""
    document = {name: value for name, value in record._asdict().items() if value is not None}
    document["attributes"] = _encode_settings(document.pop("settings"))
    document["tags"] = dict(record.tags)
    document["sequence_limit"] = str(record.sequence_limit)
    return _text_of(document)


def decode_queue(text: str | bytes) -> QueueRecord:
    """The reverse of :func:`encode_queue`."""
    document = json.loads(text)
    return QueueRecord(
        settings=_decode_settings(document["attributes"]),
        tags=document["tags"],
        created_ms=document["created_ms"],
        last_modified_ms=document["last_modified_ms"],
        purged_ms=document.get("purged_ms"),
        sequence_limit=int(document["sequence_limit"]),
        deduplication_scope=document["deduplication_scope"],
    )


_DEFAULTS = QueueSettings()


def _encode_settings(settings: QueueSettings) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name in QueueSettings.__slots__:
        value = getattr(settings, name)
        if value != getattr(_DEFAULTS, name):
            document[name] = value._asdict() if hasattr(value, "_asdict") else value
    return document


def _decode_settings(document: dict[str, Any]) -> QueueSettings:
    policy = document.get("redrive_policy")
    if policy is not None:
        document["redrive_policy"] = RedrivePolicy(**policy)
    allowed = document.get("redrive_allow_policy")
    if allowed is not None:
        arns = tuple(allowed["source_queue_arns"])
        document["redrive_allow_policy"] = RedriveAllowPolicy(allowed["redrive_permission"], arns)
    return QueueSettings(**document)


def deduplication_field(group: str | None, deduplication_id: str) -> str:
    """The field of a deduplication id; ``group`` is ``None`` where the scope is the queue."""
    return _text_of([group, deduplication_id])


def encode_deduplication(record: PutDeduplication) -> str:
    return _text_of(
        {
            "message_id": record.message_id,
            "sequence_number": str(record.sequence_number),
            "accepted_ms": record.accepted_ms,
        }
    )


def decode_deduplication(queue: QueueKey, field: bytes, text: bytes) -> PutDeduplication:
    """The reverse of :func:`encode_deduplication`."""
    group, deduplication_id = json.loads(field)
    document = json.loads(text)
    document["sequence_number"] = int(document["sequence_number"])
    return PutDeduplication(queue, group, deduplication_id, **document)


def encode_task(record: MoveTaskRecord) -> str:
    """A move task with everything but its id, which is the name of its field."""
    document = {name: value for name, value in record._asdict().items() if value is not None}
    del document["task_id"]
    document["source"] = str(record.source)
    return _text_of(document)


def decode_task(task_id: str, text: bytes) -> MoveTaskRecord:
    """The reverse of :func:`encode_task`."""
    document = {"destination_arn": None, "rate": None, "failure_reason": None, **json.loads(text)}
    document["source"] = decode_key(document["source"])
    return MoveTaskRecord(task_id=task_id, **document)


def decode_key(text: str) -> QueueKey:
    """The reverse of ``str(key)``; account and region hold no colon."""
    return QueueKey(*text.split(":", 2))
