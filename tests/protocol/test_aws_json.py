from __future__ import annotations

import inspect
import json

import pytest

from pytest_sqsq import errors
from pytest_sqsq.errors import MalformedInput, SqsError
from pytest_sqsq.protocol import Call, decode, encode_error, encode_result

JSON_HEADERS = [
    ("x-amzn-RequestId", "R"),
    ("Content-Type", "application/x-amz-json-1.0"),
]
VOID_ACTIONS = [
    "AddPermission",
    "ChangeMessageVisibility",
    "DeleteMessage",
    "DeleteQueue",
    "PurgeQueue",
    "RemovePermission",
    "SetQueueAttributes",
    "TagQueue",
    "UntagQueue",
]
# Shape, namespace, query code, status.
ERROR_TABLE = """
QueueDoesNotExist               sqs    AWS.SimpleQueueService.NonExistentQueue              400
QueueNameExists                 sqs    QueueAlreadyExists                                   400
QueueDeletedRecently            sqs    AWS.SimpleQueueService.QueueDeletedRecently          400
PurgeQueueInProgress            sqs    AWS.SimpleQueueService.PurgeQueueInProgress          403
OverLimit                       sqs    OverLimit                                            403
ReceiptHandleIsInvalid          sqs    ReceiptHandleIsInvalid                               404
ResourceNotFoundException       sqs    ResourceNotFoundException                            404
UnsupportedOperation            sqs    AWS.SimpleQueueService.UnsupportedOperation          400
EmptyBatchRequest               sqs    AWS.SimpleQueueService.EmptyBatchRequest             400
TooManyEntriesInBatchRequest    sqs    AWS.SimpleQueueService.TooManyEntriesInBatchRequest  400
BatchEntryIdsNotDistinct        sqs    AWS.SimpleQueueService.BatchEntryIdsNotDistinct      400
InvalidBatchEntryId             sqs    AWS.SimpleQueueService.InvalidBatchEntryId           400
BatchRequestTooLong             sqs    AWS.SimpleQueueService.BatchRequestTooLong           400
InvalidAttributeName            sqs    InvalidAttributeName                                 400
InvalidAttributeValue           sqs    InvalidAttributeValue                                400
InvalidMessageContents          sqs    InvalidMessageContents                               400
RequestThrottled                sqs    RequestThrottled                                     403
InvalidIdFormat                 sqs    InvalidIdFormat                                      400
InvalidAddress                  sqs    InvalidAddress                                       404
InvalidSecurity                 sqs    InvalidSecurity                                      403
MessageNotInflight              sqs    AWS.SimpleQueueService.MessageNotInflight            400
KmsAccessDenied                 sqs    KMS.AccessDeniedException                            400
KmsDisabled                     sqs    KMS.DisabledException                                400
KmsInvalidKeyUsage              sqs    KMS.InvalidKeyUsageException                         400
KmsInvalidState                 sqs    KMS.InvalidStateException                            400
KmsNotFound                     sqs    KMS.NotFoundException                                400
KmsThrottled                    sqs    KMS.ThrottlingException                              400
KmsOptInRequired                sqs    KMS.OptInRequired                                    403
InvalidParameterValueException  coral  InvalidParameterValue                                400
MissingRequiredParameterException coral MissingParameter                                    400
UnknownOperationException       coral  InvalidAction                                        400
SerializationException          coral  MalformedInput                                       400
AccessDeniedException           coral  AccessDenied                                         403
UnrecognizedClientException     coral  InvalidClientTokenId                                 403
InvalidSignatureException       coral  SignatureDoesNotMatch                                403
IncompleteSignatureException    coral  IncompleteSignature                                  400
InternalFailure                 coral  InternalFailure                                      500
ServiceUnavailable              coral  ServiceUnavailable                                   503
"""
ERRORS = {
    kind.shape: kind
    for kind in vars(errors).values()
    if inspect.isclass(kind) and issubclass(kind, SqsError) and kind is not SqsError
}


def parameters(json_request, action, document):
    return decode(json_request(action, document)).parameters


def test_a_send_is_decoded_with_its_blobs_as_bytes_and_its_numbers_as_integers(json_request):
    sent = {
        "QueueUrl": "http://127.0.0.1:9324/123456789012/q",
        "MessageBody": "grüße\r\n",
        "DelaySeconds": 5,
        "MessageAttributes": {
            "b": {"DataType": "Binary", "BinaryValue": "AAEC"},
            "s": {"DataType": "String", "StringListValues": ["x"], "BinaryListValues": ["AA=="]},
        },
        "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "R"}},
    }
    decoded = parameters(json_request, "SendMessage", sent)
    sent["MessageAttributes"] = {
        "b": {"DataType": "Binary", "BinaryValue": b"\0\1\2"},
        "s": {"DataType": "String", "StringListValues": ["x"], "BinaryListValues": [b"\0"]},
    }
    assert decoded == sent


def test_create_queue_has_tags_in_lower_case_and_tag_queue_in_upper_case(json_request):
    both = {"tags": {"a": "b"}, "Tags": {"c": "d"}}
    assert parameters(json_request, "CreateQueue", both) == {"tags": {"a": "b"}}
    assert parameters(json_request, "TagQueue", both) == {"Tags": {"c": "d"}}


def test_an_empty_body_has_no_parameters(json_request):
    assert parameters(json_request, "ListQueues", b"") == {}


def test_null_is_absence_at_every_depth(json_request):
    sent = {
        "QueueUrl": None,
        "Entries": [None, {"Id": "a", "MessageBody": None, "MessageAttributes": {"k": None}}],
    }
    decoded = parameters(json_request, "SendMessageBatch", sent)
    assert decoded == {"Entries": [{"Id": "a", "MessageAttributes": {}}]}


def test_unknown_members_are_ignored_at_every_depth(json_request):
    sent = {
        "Entries": [{"Id": "a", "New": [1, {}]}],
        "New": {"x": 1.5},
        "queueUrl": "wrong case",
    }
    assert parameters(json_request, "SendMessageBatch", sent) == {"Entries": [{"Id": "a"}]}


def test_of_a_member_given_twice_the_last_counts(json_request):
    assert parameters(json_request, "PurgeQueue", b'{"QueueUrl":"a","QueueUrl":"b"}') == {
        "QueueUrl": "b"
    }


def test_empty_texts_and_collections_are_not_absence(json_request):
    sent = {"QueueUrl": "", "Entries": []}
    assert parameters(json_request, "SendMessageBatch", sent) == sent


def test_a_lone_surrogate_reaches_the_action_which_knows_how_to_refuse_it(json_request):
    decoded = parameters(json_request, "SendMessage", b'{"MessageBody":"a\\ud800"}')
    assert decoded == {"MessageBody": "a\ud800"}


@pytest.mark.parametrize("value", [-(2**63), -1, 0, 2**31, 2**63 - 1])
def test_integers_are_accepted_within_64_bits(json_request, value):
    decoded = parameters(json_request, "SendMessage", {"DelaySeconds": value})
    assert decoded == {"DelaySeconds": value}


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b"{} {}",
        b'{"QueueUrl":NaN}',
        b'{"Unknown":Infinity}',
        b'{"QueueUrl":"\xff"}',
        b"\xff\xfe{\0}\0",
        b'{"QueueUrl":"a\nb"}',
        b"[" * 100_000,
        b'{"QueueUrl":' + b'{"a":' * 100_000,
        b'{"DelaySeconds":' + b"9" * 5_000 + b"}",
    ],
)
def test_what_is_not_json_is_a_serialization_fault(json_request, refusal, body):
    error = refusal(json_request("SendMessage", body))
    assert isinstance(error, MalformedInput)
    assert error.message == "The request body is not valid JSON."


@pytest.mark.parametrize(
    ("action", "document", "text"),
    [
        # The body as a whole.
        ("SendMessage", b"[]", "Start of list found where not expected"),
        ("SendMessage", b'"x"', "Unexpected field type"),
        ("SendMessage", b"null", "Unexpected field type"),
        ("SendMessage", b"5", "Unexpected field type"),
        # Texts.
        (
            "SendMessage",
            {"MessageBody": {}},
            "Start of structure or map found where not expected.",
        ),
        ("SendMessage", {"MessageBody": []}, "Start of list found where not expected"),
        ("SendMessage", {"MessageBody": 5}, "NUMBER_VALUE can not be converted to a String"),
        ("SendMessage", {"MessageBody": 5.5}, "NUMBER_VALUE can not be converted to a String"),
        ("SendMessage", {"MessageBody": True}, "TRUE_VALUE can not be converted to a String"),
        ("SendMessage", {"MessageBody": False}, "FALSE_VALUE can not be converted to a String"),
        # Integers.
        (
            "SendMessage",
            {"DelaySeconds": {}},
            "Start of structure or map found where not expected.",
        ),
        ("SendMessage", {"DelaySeconds": []}, "Start of list found where not expected"),
        ("SendMessage", {"DelaySeconds": "5"}, "STRING_VALUE can not be converted to an Integer"),
        ("SendMessage", {"DelaySeconds": True}, "TRUE_VALUE can not be converted to an Integer"),
        ("SendMessage", {"DelaySeconds": False}, "FALSE_VALUE can not be converted to an Integer"),
        ("SendMessage", {"DelaySeconds": 5.0}, "NUMBER_VALUE can not be converted to an Integer"),
        ("SendMessage", {"DelaySeconds": 2**63}, "NUMBER_VALUE can not be converted to an Integer"),
        (
            "SendMessage",
            b'{"DelaySeconds":1e999}',
            "NUMBER_VALUE can not be converted to an Integer",
        ),
        # Values of maps.
        (
            "SetQueueAttributes",
            {"Attributes": {"DelaySeconds": 5}},
            "NUMBER_VALUE can not be converted to a String",
        ),
        (
            "SetQueueAttributes",
            {"Attributes": {"DelaySeconds": ["5"]}},
            "Unrecognized collection type class java.lang.String",
        ),
        (
            "CreateQueue",
            {"tags": {"a": []}},
            "Unrecognized collection type class java.lang.String",
        ),
        (
            "SetQueueAttributes",
            {"Attributes": {"RedrivePolicy": {"maxReceiveCount": 1}}},
            "Start of structure or map found where not expected.",
        ),
        # Elements of lists, and what lies deeper.
        (
            "UntagQueue",
            {"TagKeys": ["a", 1]},
            "NUMBER_VALUE can not be converted to a String",
        ),
        (
            "ChangeMessageVisibilityBatch",
            {"Entries": [{"VisibilityTimeout": "0"}]},
            "STRING_VALUE can not be converted to an Integer",
        ),
        # Collections.
        ("UntagQueue", {"TagKeys": {}}, "Start of structure or map found where not expected."),
        ("UntagQueue", {"TagKeys": "a"}, "Unexpected field type"),
        ("TagQueue", {"Tags": []}, "Start of list found where not expected"),
        ("TagQueue", {"Tags": True}, "Unexpected field type"),
        ("SendMessageBatch", {"Entries": ["a"]}, "Unexpected field type"),
        ("SendMessage", {"MessageAttributes": {"k": "v"}}, "Unexpected field type"),
        # Blobs.
        (
            "SendMessage",
            {"MessageAttributes": {"k": {"BinaryValue": "!"}}},
            "A binary value is not valid base64.",
        ),
        (
            "SendMessage",
            {"MessageAttributes": {"k": {"BinaryValue": "é==="}}},
            "A binary value is not valid base64.",
        ),
        (
            "SendMessage",
            {"MessageAttributes": {"k": {"BinaryValue": 5}}},
            "NUMBER_VALUE can not be converted to a Blob",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_as_aws_words_it(
    json_request, refusal, action, document, text
):
    error = refusal(json_request(action, document))
    assert isinstance(error, MalformedInput)
    assert error.message == text


@pytest.mark.parametrize("action", VOID_ACTIONS)
def test_an_action_without_output_answers_with_no_bytes_at_all(action):
    response = encode_result(Call(action, {}, "json"), None, "R")
    assert (response.status, response.headers, response.body) == (200, JSON_HEADERS, b"")


@pytest.mark.parametrize("result", [None, {}])
def test_an_empty_receive_is_an_empty_object(result):
    response = encode_result(Call("ReceiveMessage", {}, "json"), result, "R")
    assert (response.status, response.headers, response.body) == (200, JSON_HEADERS, b"{}")


def test_a_result_is_written_compactly_with_blobs_in_base64():
    value = {"DataType": "Binary", "BinaryValue": b"\0\1\2"}
    result = {"Messages": [{"Body": 'ü "\r\n', "MessageAttributes": {"b": value}}]}
    response = encode_result(Call("ReceiveMessage", {}, "json"), result, "R")
    assert (
        response.body
        == '{"Messages":[{"Body":"ü \\"\\r\\n","MessageAttributes":'
        '{"b":{"DataType":"Binary","BinaryValue":"AAEC"}}}]}'.encode()
    )


def test_numbers_and_truth_values_keep_their_json_types():
    result = {"Successful": [{"Id": "a"}], "Failed": [{"Id": "b", "SenderFault": True}]}
    response = encode_result(Call("DeleteMessageBatch", {}, "json"), result, "R")
    assert json.loads(response.body) == result
    result = {"ApproximateNumberOfMessagesMoved": 7}
    response = encode_result(Call("CancelMessageMoveTask", {}, "json"), result, "R")
    assert response.body == b'{"ApproximateNumberOfMessagesMoved":7}'


@pytest.mark.parametrize("row", [line.split() for line in ERROR_TABLE.split("\n") if line])
def test_errors_travel_as_the_reference_tells(row):
    shape, namespace, code, status = row
    kind = ERRORS[shape]
    error = kind.__new__(kind)
    SqsError.__init__(error, "Text.")
    response = encode_error("json", error, "R")
    prefix = {"sqs": "com.amazonaws.sqs", "coral": "com.amazon.coral.service"}[namespace]
    fault = "Receiver" if int(status) >= 500 else "Sender"
    member = "Message" if shape == "AccessDeniedException" else "message"
    assert response.status == int(status)
    assert sorted(response.headers) == [
        ("Content-Type", "application/x-amz-json-1.0"),
        ("x-amzn-RequestId", "R"),
        ("x-amzn-query-error", f"{code};{fault}"),
    ]
    assert json.loads(response.body) == {"__type": f"{prefix}#{shape}", member: "Text."}


def test_the_missing_queue_is_worded_without_a_wsdl_version():
    response = encode_error("json", errors.QueueDoesNotExist(), "R")
    assert response.body == (
        b'{"__type":"com.amazonaws.sqs#QueueDoesNotExist",'
        b'"message":"The specified queue does not exist."}'
    )


def test_an_error_that_quotes_a_lone_surrogate_can_still_be_sent():
    error = errors.ReceiptHandleIsInvalid.not_a_handle("\ud800")
    text = json.loads(encode_error("json", error, "R").body)["message"]
    assert text == 'The input receipt handle "?" is not a valid receipt handle.'
