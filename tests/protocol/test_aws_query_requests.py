from __future__ import annotations

import pytest

from pytest_sqsq.errors import MalformedInput, MissingParameter
from pytest_sqsq.protocol import decode

QUEUE = "QueueUrl=http%3A%2F%2F127.0.0.1%3A9324%2F123456789012%2Fq"
URL = "http://127.0.0.1:9324/123456789012/q"

# Bodies as botocore 1.31.79, the last to speak Query, wrote them.
RECORDED = [
    (
        (
            f"Action=SendMessage&Version=2012-11-05&{QUEUE}"
            "&MessageBody=a+b%2Bc%0D%0A%22%C3%A9%26%3C%3E&DelaySeconds=5"
            "&MessageAttribute.1.Name=b&MessageAttribute.1.Value.DataType=Binary"
            "&MessageAttribute.1.Value.BinaryValue=AAEC&MessageAttribute.2.Name=s"
            "&MessageAttribute.2.Value.DataType=String&MessageAttribute.2.Value.StringValue=x"
            "&MessageAttribute.2.Value.StringListValue.1=a"
            "&MessageAttribute.2.Value.StringListValue.2=b"
            "&MessageAttribute.2.Value.BinaryListValue.1=eA%3D%3D"
            "&MessageSystemAttribute.1.Name=AWSTraceHeader"
            "&MessageSystemAttribute.1.Value.DataType=String"
            "&MessageSystemAttribute.1.Value.StringValue=Root%3D1"
        ),
        {
            "QueueUrl": URL,
            "MessageBody": 'a b+c\r\n"é&<>',
            "DelaySeconds": 5,
            "MessageAttributes": {
                "b": {"DataType": "Binary", "BinaryValue": b"\0\1\2"},
                "s": {
                    "DataType": "String",
                    "StringValue": "x",
                    "StringListValues": ["a", "b"],
                    "BinaryListValues": [b"x"],
                },
            },
            "MessageSystemAttributes": {
                "AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}
            },
        },
    ),
    (
        (
            "Action=CreateQueue&Version=2012-11-05&QueueName=q&Attribute.1.Name=DelaySeconds"
            "&Attribute.1.Value=3&Tag.1.Key=a&Tag.1.Value=b"
        ),
        {"QueueName": "q", "Attributes": {"DelaySeconds": "3"}, "tags": {"a": "b"}},
    ),
    ("Action=CreateQueue&Version=2012-11-05&QueueName=q", {"QueueName": "q"}),
    (
        (
            f"Action=ReceiveMessage&Version=2012-11-05&{QUEUE}&AttributeName.1=All"
            "&MessageAttributeName.1=x&MessageAttributeName.2=y&MaxNumberOfMessages=10"
        ),
        {
            "QueueUrl": URL,
            "AttributeNames": ["All"],
            "MessageAttributeNames": ["x", "y"],
            "MaxNumberOfMessages": 10,
        },
    ),
    (
        f"Action=ReceiveMessage&Version=2012-11-05&{QUEUE}&AttributeNames=&MessageAttributeNames=",
        {"QueueUrl": URL, "AttributeNames": [], "MessageAttributeNames": []},
    ),
    (
        (
            f"Action=SendMessageBatch&Version=2012-11-05&{QUEUE}"
            "&SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageBody=1"
            "&SendMessageBatchRequestEntry.1.MessageAttribute.1.Name=k"
            "&SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.DataType=String"
            "&SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.StringValue=x"
            "&SendMessageBatchRequestEntry.2.Id=b&SendMessageBatchRequestEntry.2.MessageBody=2"
        ),
        {
            "QueueUrl": URL,
            "Entries": [
                {
                    "Id": "a",
                    "MessageBody": "1",
                    "MessageAttributes": {"k": {"DataType": "String", "StringValue": "x"}},
                },
                {"Id": "b", "MessageBody": "2"},
            ],
        },
    ),
    (
        f"Action=SendMessageBatch&Version=2012-11-05&{QUEUE}&Entries=",
        {"QueueUrl": URL, "Entries": []},
    ),
    (
        (
            f"Action=SendMessage&Version=2012-11-05&{QUEUE}&MessageBody=&MessageAttribute.1.Name=s"
            "&MessageAttribute.1.Value.DataType=String&MessageAttribute.1.Value.StringListValue="
        ),
        {
            "QueueUrl": URL,
            "MessageBody": "",
            "MessageAttributes": {"s": {"DataType": "String", "StringListValues": []}},
        },
    ),
    (
        f"Action=UntagQueue&Version=2012-11-05&{QUEUE}&TagKey.1=a&TagKey.2=b",
        {"QueueUrl": URL, "TagKeys": ["a", "b"]},
    ),
    (
        f"Action=UntagQueue&Version=2012-11-05&{QUEUE}&TagKeys=",
        {"QueueUrl": URL, "TagKeys": []},
    ),
    (
        f"Action=TagQueue&Version=2012-11-05&{QUEUE}&Tag.1.Key=a&Tag.1.Value=b",
        {"QueueUrl": URL, "Tags": {"a": "b"}},
    ),
    (f"Action=TagQueue&Version=2012-11-05&{QUEUE}", {"QueueUrl": URL}),
    (
        (
            f"Action=AddPermission&Version=2012-11-05&{QUEUE}&Label=l&AWSAccountId.1=1"
            "&ActionName.1=%2A"
        ),
        {"QueueUrl": URL, "Label": "l", "AWSAccountIds": ["1"], "Actions": ["*"]},
    ),
    (
        f"Action=AddPermission&Version=2012-11-05&{QUEUE}&Label=l&AWSAccountIds=&Actions=",
        {"QueueUrl": URL, "Label": "l", "AWSAccountIds": [], "Actions": []},
    ),
    (
        (
            f"Action=SetQueueAttributes&Version=2012-11-05&{QUEUE}&Attribute.1.Name=A"
            "&Attribute.1.Value=1"
        ),
        {"QueueUrl": URL, "Attributes": {"A": "1"}},
    ),
    (
        f"Action=GetQueueAttributes&Version=2012-11-05&{QUEUE}&AttributeName.1=All",
        {"QueueUrl": URL, "AttributeNames": ["All"]},
    ),
    (
        (
            f"Action=ChangeMessageVisibilityBatch&Version=2012-11-05&{QUEUE}"
            "&ChangeMessageVisibilityBatchRequestEntry.1.Id=a"
            "&ChangeMessageVisibilityBatchRequestEntry.1.ReceiptHandle=h"
            "&ChangeMessageVisibilityBatchRequestEntry.1.VisibilityTimeout=0"
        ),
        {
            "QueueUrl": URL,
            "Entries": [{"Id": "a", "ReceiptHandle": "h", "VisibilityTimeout": 0}],
        },
    ),
    (
        "Action=ListMessageMoveTasks&Version=2012-11-05&SourceArn=a&MaxResults=3",
        {"SourceArn": "a", "MaxResults": 3},
    ),
]


@pytest.mark.parametrize(("fields", "parameters"), RECORDED)
def test_what_botocore_wrote_in_query_is_understood(form_request, fields, parameters):
    assert decode(form_request(fields)).parameters == parameters


@pytest.mark.parametrize(("fields", "parameters"), RECORDED)
def test_the_same_fields_are_understood_in_a_query_string(get_request, fields, parameters):
    assert decode(get_request(fields, "/")).parameters == parameters


def parameters_of(form_request, fields):
    return decode(form_request(f"Action={fields}")).parameters


def test_indexes_order_elements_by_number_and_may_leave_gaps(form_request):
    fields = "UntagQueue&TagKey.10=c&TagKey.2=b&TagKey.1=a&TagKey.999999999999999999=d"
    assert parameters_of(form_request, fields) == {"TagKeys": ["a", "b", "c", "d"]}


@pytest.mark.parametrize("index", ["0", "-1", "1.5", "x", "٣", "9" * 5_000, ""])
def test_what_is_no_index_is_an_unknown_name(form_request, index):
    fields = f"UntagQueue&TagKey.1=a&TagKey.{index}=b"
    assert parameters_of(form_request, fields) == {"TagKeys": ["a"]}


@pytest.mark.parametrize(
    ("fields", "parameters"),
    [
        ("GetQueueAttributes&AttributeName=All", {"AttributeNames": ["All"]}),
        ("ReceiveMessage&MessageAttributeName=x", {"MessageAttributeNames": ["x"]}),
        ("UntagQueue&TagKey=a", {"TagKeys": ["a"]}),
        (
            "AddPermission&ActionName=*&AWSAccountId=1",
            {"Actions": ["*"], "AWSAccountIds": ["1"]},
        ),
        ("SetQueueAttributes&Attribute.Name=A&Attribute.Value=1", {"Attributes": {"A": "1"}}),
        ("TagQueue&Tag.Key=a&Tag.Value=", {"Tags": {"a": ""}}),
        (
            "SendMessage&MessageAttribute.Name=k&MessageAttribute.Value.DataType=String",
            {"MessageAttributes": {"k": {"DataType": "String"}}},
        ),
        (
            "DeleteMessageBatch&DeleteMessageBatchRequestEntry.Id=a",
            {"Entries": [{"Id": "a"}]},
        ),
    ],
)
def test_an_unnumbered_single_counts_as_the_first(form_request, fields, parameters):
    assert parameters_of(form_request, fields) == parameters


@pytest.mark.parametrize(
    "fields",
    [
        "GetQueueAttributes&AttributeName=a&AttributeName.1=b",
        "GetQueueAttributes&AttributeName.1=b&AttributeName=a",
        "GetQueueAttributes&AttributeNames=&AttributeName.1=b",
        "GetQueueAttributes&AttributeName.1=b&AttributeNames=",
    ],
)
def test_numbered_elements_count_more_than_other_forms(form_request, fields):
    assert parameters_of(form_request, fields) == {"AttributeNames": ["b"]}


@pytest.mark.parametrize(
    "fields",
    ["GetQueueAttributes&AttributeName=", "GetQueueAttributes&AttributeNames="],
)
def test_an_empty_name_list_is_a_list(form_request, fields):
    assert parameters_of(form_request, fields) == {"AttributeNames": []}


def test_only_an_empty_text_may_stand_under_the_name_of_a_collection(form_request):
    assert parameters_of(form_request, "UntagQueue&TagKeys=a&TagKeys.1=b") == {}
    assert parameters_of(form_request, "SetQueueAttributes&Attributes=") == {"Attributes": {}}


def test_unknown_fields_are_ignored_at_every_depth(form_request):
    fields = (
        "SendMessage&MessageBody=x&DefaultVisibilityTimeout=5&MessageBody.1=y&.=z&a.b.c=d&=e"
        "&MessageAttribute.1.Name=k&MessageAttribute.1.Value.New=x&MessageAttribute.1.New.1=x"
        "&MessageAttributes.k.DataType=String&MessageAttributes=x"
    )
    decoded = parameters_of(form_request, fields)
    assert decoded == {"MessageBody": "x", "MessageAttributes": {"k": {}}}


def test_a_name_that_goes_on_below_a_scalar_is_not_that_scalar(form_request):
    assert parameters_of(form_request, "SendMessage&MessageBody.1=y") == {}


def test_message_attributes_may_lack_a_value_which_the_action_words(form_request):
    fields = "SendMessage&MessageAttribute.1.Name=k&MessageAttribute.2.Name="
    assert parameters_of(form_request, fields) == {"MessageAttributes": {"k": {}, "": {}}}


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ("SetQueueAttributes&Attribute.1.Value=1", "Attribute.1.Name"),
        ("SetQueueAttributes&Attribute.3.Name=A", "Attribute.3.Value"),
        ("SetQueueAttributes&Attribute.Value=1", "Attribute.Name"),
        ("SetQueueAttributes&Attribute=1", "Attribute.Name"),
        ("SetQueueAttributes&Attribute.1=1", "Attribute.1.Name"),
        ("TagQueue&Tag.1.Value=1", "Tag.1.Key"),
        ("TagQueue&Tag.1.Key=1", "Tag.1.Value"),
        ("SendMessage&MessageAttribute.2.Value.DataType=x", "MessageAttribute.2.Name"),
    ],
)
def test_half_of_a_map_entry_is_refused(form_request, refusal, fields, parameter):
    error = refusal(form_request(f"Action={fields}"))
    assert isinstance(error, MissingParameter)
    assert error.message == f"The request must contain the parameter {parameter}."


@pytest.mark.parametrize("text", ["0", "-5", "+5", "007", str(2**63 - 1), str(-(2**63))])
def test_integers_are_decimal_texts_within_64_bits(form_request, text):
    fields = f"SendMessage&DelaySeconds={text.replace('+', '%2B')}"
    assert parameters_of(form_request, fields) == {"DelaySeconds": int(text)}


@pytest.mark.parametrize(
    "text", ["", "x", "5.0", "1e3", "+5", "0x10", "1_0", "%D9%A3", str(2**63), "9" * 5_000]
)
def test_what_is_no_integer_is_malformed(form_request, refusal, text):
    error = refusal(form_request(f"Action=SendMessage&DelaySeconds={text}"))
    assert isinstance(error, MalformedInput)
    assert error.message == "STRING_VALUE can not be converted to an Integer"


@pytest.mark.parametrize("text", ["A", "AA=", "%3D", "A+A=", "%C3%A9%C3%A9%3D%3D"])
def test_what_is_no_base64_is_malformed(form_request, refusal, text):
    fields = f"MessageAttribute.1.Name=k&MessageAttribute.1.Value.BinaryValue={text}"
    error = refusal(form_request(f"Action=SendMessage&{fields}"))
    assert isinstance(error, MalformedInput)
    assert error.message == "A binary value is not valid base64."


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        ("a+b%20c%2B", "a b c+"),
        ("%0D%0A%0d%0a%09", "\r\n\r\n\t"),
        ("+x+", " x "),
        ("%F0%9F%98%80", "😀"),
        ("😀", "😀"),
        ("%zz%", "%zz%"),
        ("a=b;c", "a=b;c"),
        ("%00", "\0"),
    ],
)
def test_a_value_reaches_the_action_unmodified(form_request, get_request, escaped, text):
    fields = f"Action=SendMessage&QueueUrl=q&MessageBody={escaped}"
    expected = {"QueueUrl": "q", "MessageBody": text}
    assert decode(form_request(fields)).parameters == expected
    as_in_wsgi = fields.encode().decode("latin-1")
    assert decode(get_request(as_in_wsgi)).parameters == expected


@pytest.mark.parametrize("octets", ["MessageBody=%FF", "MessageBody=\xff", "%ED%A0%80=x"])
def test_what_is_not_utf_8_is_malformed(form_request, get_request, refusal, octets):
    fields = f"Action=SendMessage&{octets}"
    for request in (get_request(fields), form_request(fields.encode("latin-1"))):
        error = refusal(request)
        assert isinstance(error, MalformedInput)
        assert error.message == "The request's parameters are not valid UTF-8."


def test_of_a_field_given_twice_the_last_counts(form_request):
    assert parameters_of(form_request, "SendMessage&MessageBody=a&MessageBody=b") == {
        "MessageBody": "b"
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            "AttributeName.1=SenderId&MessageSystemAttributeName.1=All",
            {"AttributeNames": ["SenderId"]},
        ),
        (
            "AttributeNames=&MessageSystemAttributeName.1=All",
            {"AttributeNames": [], "MessageSystemAttributeNames": ["All"]},
        ),
        ("MessageSystemAttributeName.1=All", {"MessageSystemAttributeNames": ["All"]}),
    ],
)
def test_in_query_the_old_attribute_names_alone_count_when_both_are_given(
    form_request, fields, expected
):
    assert parameters_of(form_request, f"ReceiveMessage&{fields}") == expected


def test_in_json_both_lists_of_attribute_names_count(json_request):
    both = {"AttributeNames": ["SenderId"], "MessageSystemAttributeNames": ["All"]}
    assert decode(json_request("ReceiveMessage", both)).parameters == both


def test_a_name_of_any_depth_is_ignored_and_any_number_of_elements_read(form_request):
    deep = f"TagKey{'.1' * 50_000}=x&a{'.b' * 50_000}=x"
    many = "&".join(f"TagKey.{index}={index}" for index in range(20_000, 0, -1))
    decoded = parameters_of(form_request, f"UntagQueue&{deep}&{many}")
    assert decoded == {"TagKeys": [str(index) for index in range(1, 20_001)]}
