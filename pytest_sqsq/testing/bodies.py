"""Message bodies as the services that write to SQS queues shape them.

Field names and forms follow AWS's pages on Amazon SNS message formats, the Amazon S3 event
message structure, and Amazon EventBridge events.  Ids are made from what the body is about, so
that the same test gives the same bytes.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import md5, sha256
from typing import Any
from urllib.parse import quote_plus

from pytest_sqsq.models import QueueKey, partition_of

_NAMESPACE = uuid.UUID("5f7c6b0e-6a52-4f0c-9d1c-6c1d6a0b9f57")
_SIGNATURE = "RVhBTVBMRQ=="
_OWNER = "A3NL1KOZZKExample"


def sns_body(
    key: QueueKey,
    now: datetime,
    message: str,
    *,
    nonce: int,
    topic_arn: str | None,
    subject: str | None,
    attributes: Mapping[str, Any],
) -> str:
    """A notification as SNS delivers it without raw message delivery.

    ``attributes`` are plain values by name: text, bytes, numbers, or a list of such.
    """
    topic_arn = topic_arn or f"{_arn(key, 'sns')}:topic"
    parts = topic_arn.split(":")
    if len(parts) != 6 or parts[2] != "sns":
        raise ValueError(f"{topic_arn!r} is no ARN of an SNS topic")
    region = parts[3]
    host = f"https://sns.{region}.{_domain(region)}"
    message_id = _uuid("sns", topic_arn, message, now.isoformat(), nonce)
    notification: dict[str, Any] = {
        "Type": "Notification",
        "MessageId": message_id,
        "TopicArn": topic_arn,
    }
    if topic_arn.endswith(".fifo"):
        notification["SequenceNumber"] = f"{10**19 + nonce:020d}"
    if subject is not None:
        notification["Subject"] = subject
    notification |= {
        "Message": message,
        "Timestamp": _timestamp(now),
        "SignatureVersion": "1",
        "Signature": _SIGNATURE,
        "SigningCertURL": f"{host}/SimpleNotificationService-{'0' * 32}.pem",
        "UnsubscribeURL": f"{host}/?Action=Unsubscribe&SubscriptionArn={topic_arn}:"
        + _uuid("subscription", topic_arn, key.arn),
    }
    if attributes:
        notification["MessageAttributes"] = {
            name: _sns_attribute(value) for name, value in attributes.items()
        }
    return json.dumps(notification, indent=2, separators=(",", " : "), ensure_ascii=False)


def s3_body(
    key: QueueKey,
    now: datetime,
    bucket: str,
    object_key: str,
    *,
    nonce: int,
    event_name: str,
    size: int,
    etag: str | None,
    version_id: str | None,
) -> str:
    """A notification of one change in a bucket; ``s3:TestEvent`` gives S3's test message."""
    request_id = sha256(f"{bucket}/{object_key}/{nonce}".encode()).hexdigest()[:16].upper()
    host_id = _SIGNATURE
    name = event_name.removeprefix("s3:")
    if name == "TestEvent":
        return _compact(
            {
                "Service": "Amazon S3",
                "Event": "s3:TestEvent",
                "Time": _timestamp(now),
                "Bucket": bucket,
                "RequestId": request_id,
                "HostId": host_id,
            }
        )
    changed: dict[str, Any] = {"key": quote_plus(object_key, safe="/")}
    if not name.startswith(("ObjectRemoved:", "LifecycleExpiration:")):
        changed["size"] = size
        changed["eTag"] = etag or md5(object_key.encode(), usedforsecurity=False).hexdigest()
    if version_id is not None:
        changed["versionId"] = version_id
    changed["sequencer"] = f"{round(now.timestamp() * 1000):014X}{nonce:04X}"
    record = {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": key.region,
        "eventTime": _timestamp(now),
        "eventName": name,
        "userIdentity": {"principalId": f"AWS:{_OWNER}"},
        "requestParameters": {"sourceIPAddress": "127.0.0.1"},
        "responseElements": {"x-amz-request-id": request_id, "x-amz-id-2": host_id},
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "notification",
            "bucket": {
                "name": bucket,
                "ownerIdentity": {"principalId": _OWNER},
                "arn": f"arn:{partition_of(key.region)}:s3:::{bucket}",
            },
            "object": changed,
        },
    }
    return _compact({"Records": [record]})


def eventbridge_body(
    key: QueueKey,
    now: datetime,
    detail: Mapping[str, Any],
    *,
    nonce: int,
    source: str,
    detail_type: str,
    resources: Sequence[str],
) -> str:
    """An event as a rule without an input transformer hands it to a queue."""
    return _compact(
        {
            "version": "0",
            "id": _uuid("eventbridge", key.arn, _compact(detail), now.isoformat(), nonce),
            "detail-type": detail_type,
            "source": source,
            "account": key.account_id,
            "time": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": key.region,
            "resources": list(resources),
            "detail": detail,
        }
    )


def sqs_attributes(attributes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Plain values as message attributes, as raw message delivery hands them on."""
    return {name: _sqs_attribute(value) for name, value in attributes.items()}


def _sns_attribute(value: Any) -> dict[str, str]:
    data_type, plain = _typed(value)
    if isinstance(plain, bytes):
        from base64 import b64encode

        plain = b64encode(plain).decode()
    return {"Type": data_type, "Value": plain}


def _sqs_attribute(value: Any) -> dict[str, Any]:
    data_type, plain = _typed(value)
    field = "BinaryValue" if isinstance(plain, bytes) else "StringValue"
    return {"DataType": data_type, field: plain}


def _typed(value: Any) -> tuple[str, str | bytes]:
    if isinstance(value, bytes):
        return "Binary", value
    if isinstance(value, list | tuple):
        return "String.Array", json.dumps(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "Number", str(value)
    if isinstance(value, str):
        return "String", value
    raise TypeError(f"an attribute is text, bytes, a number or a list, not {value!r}")


def _timestamp(now: datetime) -> str:
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _uuid(*parts: object) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\n".join(map(str, parts))))


def _arn(key: QueueKey, service: str) -> str:
    return f"arn:{partition_of(key.region)}:{service}:{key.region}:{key.account_id}"


def _domain(region: str) -> str:
    return "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
