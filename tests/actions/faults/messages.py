"""Faults of the actions on single messages: code, status and exact text."""

from __future__ import annotations

from typing import Any

from . import NO_DEDUPLICATION, Fault, send, value

INVALID_CHARACTERS = (
    "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD |"
    " #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"
)

WRONG_TYPE = "The request include parameter that is not valid for this queue type"

BAD_ID = "can only include alphanumeric and punctuation characters. 1 to 128 in length"


def attribute(text: str, code: str = "InvalidParameterValue", /, **attributes: Any) -> Fault:
    return send(code, text, MessageAttributes=attributes)


def named(name: str, text: str) -> Fault:
    return attribute(text, **{name: {"DataType": "String", "StringValue": "x"}})


def receive(parameter: str, given: object, reason: str, queue: str = "plain") -> Fault:
    text = f"Value {given} for parameter {parameter} is invalid. Reason: {reason}"
    return value({"QueueUrl": queue, parameter: given}, "ReceiveMessage", text)


SENDING = [
    *(
        send("InvalidMessageContents", INVALID_CHARACTERS, MessageBody=f"a{character}b")
        for character in "\x00\x08\x0b\x0c\x0e\x1f\ufffe\uffff"
    ),
    send(
        "InvalidParameterValue",
        "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.",
        queue="small",
        MessageBody="a" * 1025,
    ),
    send(
        "InvalidParameterValue",
        "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.",
        MessageBody="a" * 1_048_569,
        MessageAttributes={"k": {"DataType": "String", "StringValue": "x"}},
    ),
    *(
        send(
            "InvalidParameterValue",
            f"Value {delay} for parameter DelaySeconds is invalid."
            " Reason: DelaySeconds must be >= 0 and <= 900.",
            DelaySeconds=delay,
        )
        for delay in (-1, 901)
    ),
    send(
        "InvalidParameterValue",
        f"Value 2 for parameter DelaySeconds is invalid. Reason: {WRONG_TYPE}.",
        queue="content.fifo",
        MessageGroupId="g",
        DelaySeconds=2,
    ),
    send("InvalidParameterValue", NO_DEDUPLICATION, queue="plain.fifo", MessageGroupId="g"),
    *(
        send(
            "InvalidParameterValue",
            f"Value {given} for parameter MessageGroupId is invalid."
            f" Reason: MessageGroupId {BAD_ID}.",
            queue=queue,
            MessageGroupId=given,
        )
        for queue in ("plain", "content.fifo")
        for given in ("", "a" * 129, "group 123", "grüße")
    ),
    *(
        send(
            "InvalidParameterValue",
            f"Value {given} for parameter MessageDeduplicationId is invalid."
            f" Reason: MessageDeduplicationId {BAD_ID}.",
            queue="plain.fifo",
            MessageGroupId="g",
            MessageDeduplicationId=given,
        )
        for given in ("", "a" * 129, "group 123")
    ),
    send(
        "InvalidParameterValue",
        f"Value d for parameter MessageDeduplicationId is invalid. Reason: {WRONG_TYPE}.",
        MessageDeduplicationId="d",
    ),
]

MESSAGE_ATTRIBUTES = [
    attribute(
        "Number of message attributes [11] exceeds the allowed maximum [10].",
        **{f"a{number}": {"DataType": "String", "StringValue": "x"} for number in range(11)},
    ),
    named("", "The request must contain non-empty message (user) attribute names."),
    *(
        named(
            name,
            "You can't use message attribute names beginning with 'AWS.' or 'Amazon'."
            " These strings are reserved for internal use.",
        )
        for name in ("AWS.x", "aWs.x", "Amazon.x", "AMAZON.x")
    ),
    named(".x", "Message (user) attribute name must not begin with character '.'."),
    named("x.", "Message (user) attribute name must not end with character '.'."),
    named("a..b", "Message (user) attribute name must not have successive '.' characters."),
    named("a" * 257, "Message (user) attribute name must be shorter than 256 bytes."),
    *(
        named(
            f"a{character}b",
            "Message (user) attribute name can only include letters, digits, hyphens,"
            " underscores and periods.",
        )
        for character in '!"§(? '
    ),
    attribute(
        "The message (user) attribute 'k' must contain a non-empty message attribute type.",
        k={"StringValue": "x"},
    ),
    attribute(
        "The message (user) attribute 'k' must contain a non-empty message attribute type.",
        k={"DataType": "", "StringValue": "x"},
    ),
    attribute(
        "Message (user) attribute type must be shorter than 256 bytes.",
        k={"DataType": "String." + "x" * 250, "StringValue": "x"},
    ),
    *(
        attribute(
            "The type of message (user) attribute 'k' is invalid. You must use only the following"
            " supported type prefixes: Binary, Number, String.",
            k={"DataType": data_type, "StringValue": "x"},
        )
        for data_type in ("string", "Strings", "Boolean", ".String")
    ),
    attribute(
        "Message (user) attribute 'k' contains characters that are not allowed.",
        k={"DataType": "String.\x00", "StringValue": "x"},
    ),
    attribute(
        "The message (user) attribute 'k' must contain a non-empty message attribute value.",
        k={"DataType": "String"},
    ),
    attribute(
        "Message (user) attribute 'k' must have a single value.",
        k={"DataType": "String", "StringValue": "x", "BinaryValue": b"x"},
    ),
    attribute(
        "Message (user) attribute 'k' with type 'String' must use field 'String'.",
        k={"DataType": "String", "BinaryValue": b"x"},
    ),
    attribute(
        "Message (user) attribute 'k' with type 'Number' must use field 'String'.",
        k={"DataType": "Number", "BinaryValue": b"1"},
    ),
    attribute(
        "Message (user) attribute 'k' with type 'Binary' must use field 'Binary'.",
        k={"DataType": "Binary", "StringValue": "x"},
    ),
    attribute(
        "Message (user) attribute 'k' must contain a non-empty value of type 'String'.",
        k={"DataType": "String", "StringValue": ""},
    ),
    attribute(
        "Message (user) attribute 'k' must contain a non-empty value of type 'Binary.gif'.",
        k={"DataType": "Binary.gif", "BinaryValue": b""},
    ),
    attribute(
        "Message (user) attribute 'k' contains characters that are not allowed.",
        k={"DataType": "String", "StringValue": "a\x02b"},
    ),
    *(
        attribute(
            "Can't cast the value of message (user) attribute 'k' to a number.",
            k={"DataType": "Number", "StringValue": number},
        )
        for number in (
            "abc",
            "1_000",
            " 1",
            "NaN",
            "Infinity",
            "٣",
            "1e",
            ".",
            "1" * 39,
            "1e127",
            "1e-129",
            "-1e127",
            "1e99999999999999999999",
        )
    ),
    *(
        attribute(
            "Message attribute list values in SendMessage operation are not supported.",
            "AWS.SimpleQueueService.UnsupportedOperation",
            k={"DataType": "String", **given},
        )
        for given in ({"StringListValues": ["x"]}, {"BinaryListValues": [b"x"]})
    ),
    send(
        "InvalidParameterValue",
        "Message system attribute name 'Foo' is invalid.",
        MessageSystemAttributes={"Foo": {"DataType": "String", "StringValue": "x"}},
    ),
    send(
        "InvalidParameterValue",
        "Message (system) attribute 'AWSTraceHeader' must contain a non-empty value of type"
        " 'String'.",
        MessageSystemAttributes={"AWSTraceHeader": {"DataType": "String", "StringValue": ""}},
    ),
    send(
        "InvalidParameterValue",
        "The type of message (system) attribute 'AWSTraceHeader' is invalid. You must use only the"
        " following supported type prefixes: String.",
        MessageSystemAttributes={"AWSTraceHeader": {"DataType": "Number", "StringValue": "1"}},
    ),
]

RECEIVING = [
    *(
        receive("MaxNumberOfMessages", count, "Must be between 1 and 10, if provided.")
        for count in (-1, 0, 11)
    ),
    *(
        receive("WaitTimeSeconds", wait, "Must be >= 0 and <= 20, if provided.")
        for wait in (-1, 21)
    ),
    *(
        receive("VisibilityTimeout", seconds, "Must be >= 0 and <= 43200, if provided.")
        for seconds in (-1, 43_201)
    ),
    receive("ReceiveRequestAttemptId", "a", f"{WRONG_TYPE}."),
    *(
        receive(
            "ReceiveRequestAttemptId", given, f"ReceiveRequestAttemptId {BAD_ID}.", "plain.fifo"
        )
        for given in ("", "a" * 129, "a b")
    ),
    *(
        Fault(
            "ReceiveMessage",
            {"QueueUrl": "plain", parameter: ["SenderId", "Foobar"]},
            "InvalidAttributeName",
            400,
            "Unknown Attribute Foobar.",
        )
        for parameter in ("AttributeNames", "MessageSystemAttributeNames")
    ),
    *(
        value(
            {"QueueUrl": "plain", "ReceiptHandle": "h", "VisibilityTimeout": seconds},
            "ChangeMessageVisibility",
            f"Value {seconds} for parameter VisibilityTimeout is invalid."
            " Reason: Must be between 0 and 43200.",
        )
        for seconds in (-1, 43_201)
    ),
    *(
        Fault(
            action,
            {"QueueUrl": "plain", "ReceiptHandle": "garbage", "VisibilityTimeout": 1},
            "ReceiptHandleIsInvalid",
            404,
            'The input receipt handle "garbage" is not a valid receipt handle.',
        )
        for action in ("DeleteMessage", "ChangeMessageVisibility")
    ),
]

FAULTS = (*SENDING, *MESSAGE_ATTRIBUTES, *RECEIVING)
