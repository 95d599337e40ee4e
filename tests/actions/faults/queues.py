"""Faults of naming, creating and listing queues, and of tags."""

from __future__ import annotations

from typing import Any

from . import FIFO_NAME_TEXT, NAME_TEXT, Fault, create, entries, missing, value

NO_QUEUE = "The specified queue does not exist."

QUEUE_ACTIONS: dict[str, dict[str, Any]] = {
    "AddPermission": {"Label": "l", "AWSAccountIds": ["111111111111"], "Actions": ["*"]},
    "ChangeMessageVisibility": {"ReceiptHandle": "unknown", "VisibilityTimeout": 99_999},
    "ChangeMessageVisibilityBatch": {"Entries": []},
    "DeleteMessage": {"ReceiptHandle": "unknown"},
    "DeleteMessageBatch": {"Entries": []},
    "DeleteQueue": {},
    "GetQueueAttributes": {"AttributeNames": ["Foobar"]},
    "ListDeadLetterSourceQueues": {"MaxResults": 0},
    "ListQueueTags": {},
    "PurgeQueue": {},
    "ReceiveMessage": {"WaitTimeSeconds": 21},
    "RemovePermission": {"Label": "l"},
    "SendMessage": {"MessageBody": "\x00"},
    "SendMessageBatch": {"Entries": []},
    "SetQueueAttributes": {"Attributes": {"Foobar": "1"}},
    "TagQueue": {"Tags": {"": ""}},
    "UntagQueue": {"TagKeys": []},
}


def no_queue(action: str, parameters: dict[str, Any]) -> Fault:
    code = "AWS.SimpleQueueService.NonExistentQueue"
    return Fault(action, parameters, code, 400, NO_QUEUE)


NAMING_THE_QUEUE = [
    *(
        no_queue(action, {"QueueUrl": "http://sqs.test/123456789012/gone", **parameters})
        for action, parameters in QUEUE_ACTIONS.items()
    ),
    *(no_queue(action, parameters) for action, parameters in QUEUE_ACTIONS.items()),
    no_queue("SendMessage", {"QueueUrl": "http://whatever", "MessageBody": "b"}),
    no_queue("SendMessage", {"QueueUrl": "", "MessageBody": "b"}),
    no_queue("SendMessage", {"QueueUrl": "http://x/999999999999/plain", "MessageBody": "b"}),
    no_queue("SendMessageBatch", {"QueueUrl": "gone", "Entries": entries("a")}),
    no_queue("GetQueueUrl", {"QueueName": "gone"}),
    no_queue("GetQueueUrl", {"QueueName": "plain", "QueueOwnerAWSAccountId": "999999999999"}),
    Fault("FooBar", {}, "InvalidAction", 400, "The action FooBar is not valid for this endpoint."),
]

# Required parameters are looked for before the queue is.
REQUIRED = [
    missing("SendMessage", "MessageBody", QueueUrl="gone"),
    missing("SendMessage", "MessageBody", QueueUrl="plain", MessageBody=""),
    missing("DeleteMessage", "ReceiptHandle", QueueUrl="gone"),
    missing("ChangeMessageVisibility", "ReceiptHandle", QueueUrl="gone", VisibilityTimeout=1),
    missing("ChangeMessageVisibility", "VisibilityTimeout", QueueUrl="gone", ReceiptHandle="h"),
    missing("SetQueueAttributes", "Attribute.Name", QueueUrl="gone"),
    missing("SetQueueAttributes", "Attribute.Name", QueueUrl="plain", Attributes={}),
    missing("TagQueue", "Tags", QueueUrl="plain"),
    missing("TagQueue", "Tags", QueueUrl="plain", Tags={}),
    missing("UntagQueue", "TagKeys", QueueUrl="plain"),
    missing(
        "AddPermission", "Label", QueueUrl="plain", AWSAccountIds=["111111111111"], Actions=["*"]
    ),
    missing("AddPermission", "AWSAccountIds", QueueUrl="plain", Label="l", Actions=["*"]),
    missing("AddPermission", "Actions", QueueUrl="plain", Label="l", AWSAccountIds=["1" * 12]),
    missing("RemovePermission", "Label", QueueUrl="plain"),
    missing("StartMessageMoveTask", "SourceArn"),
    missing("ListMessageMoveTasks", "SourceArn"),
    missing("CancelMessageMoveTask", "TaskHandle"),
    missing("SendMessage", "MessageGroupId", QueueUrl="plain.fifo", MessageBody="b"),
    missing(
        "SendMessage",
        "MessageGroupId",
        QueueUrl="plain.fifo",
        MessageBody="b",
        MessageDeduplicationId="d",
    ),
]

QUEUES = [
    *(
        value(
            {},
            action,
            "Value for parameter QueueName is invalid. Reason: Must specify a queue name.",
        )
        for action in ("CreateQueue", "GetQueueUrl")
    ),
    create("InvalidParameterValue", "Queue name cannot be empty", ""),
    *(
        create("InvalidParameterValue", NAME_TEXT, name)
        for name in ("a b", "a/b", "a.b", "é", "a" * 81, "a\n")
    ),
    *(
        create("InvalidParameterValue", FIFO_NAME_TEXT, name, FifoQueue="true")
        for name in (".fifo", "a b.fifo", "a.fifo.fifo", "a" * 76 + ".fifo", "a.FIFO")
    ),
    *(
        value(
            {"QueueUrl": "plain", "MaxResults": size},
            action,
            "Value for parameter MaxResults is invalid."
            " Reason: MaxResults must be an integer between 1 and 1000.",
        )
        for action in ("ListQueues", "ListDeadLetterSourceQueues")
        for size in (0, 1001, -1)
    ),
    *(
        value(
            {"QueueUrl": "plain", "NextToken": "x"},
            action,
            "MaxResults is a mandatory parameter when you provide a value for NextToken.",
        )
        for action in ("ListQueues", "ListDeadLetterSourceQueues")
    ),
    *(
        value(
            {"QueueUrl": "plain", "NextToken": token, "MaxResults": 2},
            action,
            "Invalid or expired next token.",
        )
        for action in ("ListQueues", "ListDeadLetterSourceQueues")
        for token in ("not base64", "é", "/w==")
    ),
]

TAGS = [
    *(
        value({"QueueUrl": "plain", "Tags": {key: "v"}}, "TagQueue",
              "Tag keys must be between 1 and 128 characters in length.")
        for key in ("", "k" * 129)
    ),
    *(
        value({"QueueUrl": "plain", "TagKeys": keys}, "UntagQueue",
              "Tag keys must be between 1 and 128 characters in length.")
        for keys in ([], [""], ["good", "k" * 129])
    ),
    value(
        {"QueueUrl": "plain", "Tags": {"a?": "v"}},
        "TagQueue",
        "Tag keys may only contain unicode letters, digits, whitespace, or one of these symbols:"
        " _ . : / = + - @",
    ),
    value(
        {"QueueUrl": "plain", "Tags": {"a": "v?"}},
        "TagQueue",
        "Tag values may only contain unicode letters, digits, whitespace, or one of these"
        " symbols: _ . : / = + - @",
    ),
    value(
        {"QueueUrl": "plain", "Tags": {"a": "v" * 257}},
        "TagQueue",
        "Tag values must be between 0 and 256 characters in length.",
    ),
    *(
        value({"QueueUrl": "plain", "Tags": {key: "v"}}, "TagQueue",
              "Tag keys may not begin with aws:")
        for key in ("aws:x", "AWS:x")
    ),
    value(
        {"QueueUrl": "plain", "Tags": {f"k{number}": "" for number in range(51)}},
        "TagQueue",
        "Too many tags added for queue plain.",
    ),
    value(
        {"QueueName": "new", "tags": {f"k{number}": "" for number in range(51)}},
        "CreateQueue",
        "Too many tags added for queue new.",
    ),
    value(
        {"QueueName": "new", "tags": {"": "v"}},
        "CreateQueue",
        "Tag keys must be between 1 and 128 characters in length.",
    ),
]  # fmt: skip

FAULTS = (*NAMING_THE_QUEUE, *REQUIRED, *QUEUES, *TAGS)
