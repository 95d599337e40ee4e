"""Faults that fail a whole batch: code, status and exact text."""

from __future__ import annotations

from typing import Any

from . import NO_DEDUPLICATION, Fault, entries, missing, value


def batch(action: str, entries: list[dict[str, Any]], code: str, text: str, queue: str = "plain"):
    parameters = {"QueueUrl": queue, "Entries": entries}
    return Fault(action, parameters, f"AWS.SimpleQueueService.{code}", 400, text)


BATCH_ID_TEXT = (
    "A batch entry id can only contain alphanumeric characters, hyphens and underscores."
    " It can be at most 80 letters long."
)

BATCHES = {
    "SendMessageBatch": "SendMessageBatchRequestEntry",
    "DeleteMessageBatch": "DeleteMessageBatchRequestEntry",
    "ChangeMessageVisibilityBatch": "ChangeMessageVisibilityBatchRequestEntry",
}

TWENTY = [f"id{number}" for number in range(20)]

FAULTS = [
    *(
        batch(
            action, [], "EmptyBatchRequest", f"There should be at least one {shape} in the request."
        )
        for action, shape in BATCHES.items()
    ),
    *(
        batch(
            action,
            entries(*TWENTY),
            "TooManyEntriesInBatchRequest",
            "Maximum number of entries per request are 10. You have sent 20.",
        )
        for action in BATCHES
    ),
    *(
        batch(action, entries("good", bad), "InvalidBatchEntryId", BATCH_ID_TEXT)
        for action in BATCHES
        for bad in ("", "a" * 81, "invalid:id", "a b", "é")
    ),
    *(
        batch(
            action,
            entries("id_1", "id_2", "id_2", "id_1"),
            "BatchEntryIdsNotDistinct",
            "Id id_2 repeated.",
        )
        for action in BATCHES
    ),
    *(
        missing(
            action,
            f"{shape}.2.Id",
            QueueUrl="plain",
            Entries=[*entries("a"), {"MessageBody": "b", "ReceiptHandle": "h"}],
        )
        for action, shape in BATCHES.items()
    ),
    missing(
        "SendMessageBatch",
        "SendMessageBatchRequestEntry.2.MessageBody",
        QueueUrl="plain",
        Entries=[*entries("a"), {"Id": "b"}],
    ),
    missing(
        "SendMessageBatch",
        "SendMessageBatchRequestEntry.1.MessageBody",
        QueueUrl="plain",
        Entries=[{"Id": "b", "MessageBody": ""}],
    ),
    missing(
        "DeleteMessageBatch",
        "DeleteMessageBatchRequestEntry.1.ReceiptHandle",
        QueueUrl="plain",
        Entries=[{"Id": "b"}],
    ),
    *(
        batch(
            "SendMessageBatch",
            sent,
            "BatchRequestTooLong",
            "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes.",
        )
        for sent in (
            entries("a", MessageBody="a" * 1_048_577),
            entries("a", MessageBody="a" * 1_000_000) + entries("b", MessageBody="b" * 48_577),
            entries(
                "a",
                MessageBody="a" * 1_048_569,
                MessageAttributes={"k": {"DataType": "String", "StringValue": "x"}},
            ),
            entries(
                "a",
                MessageBody="a" * 1_048_568,
                MessageAttributes={"k": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}},
            ),
        )
    ),
    value(
        {"QueueUrl": "plain.fifo", "Entries": entries("a", MessageGroupId="g") + entries("b")},
        "SendMessageBatch",
        "The request must contain the parameter MessageGroupId.",
    ),
    value(
        {"QueueUrl": "plain.fifo", "Entries": entries("a", MessageGroupId="g")},
        "SendMessageBatch",
        NO_DEDUPLICATION,
    ),
]
