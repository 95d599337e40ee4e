from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from pytest_sqsq import errors
from pytest_sqsq.protocol import Call, encode_error, encode_result

ROOT = ' xmlns="http://queue.amazonaws.com/doc/2012-11-05/">'
METADATA = "<ResponseMetadata><RequestId>R</RequestId></ResponseMetadata>"


def answer(action, result, protocol="query"):
    response = encode_result(Call(action, {}, protocol), result, "R")
    assert response.status == 200
    return response


def inside(action, result):
    """What stands between the result's tags; the rest is checked here."""
    text = answer(action, result).body.decode()
    before = f'<?xml version="1.0"?><{action}Response{ROOT}<{action}Result>'
    after = f"</{action}Result>{METADATA}</{action}Response>"
    assert text.startswith(before)
    assert text.endswith(after)
    return text[len(before) : -len(after)]


def test_the_headers_of_an_xml_answer():
    assert answer("DeleteMessage", None).headers == [
        ("x-amzn-RequestId", "R"),
        ("Content-Type", "text/xml"),
    ]


def test_an_action_without_output_has_no_result_element():
    assert answer("DeleteMessage", None).body.decode() == (
        f'<?xml version="1.0"?><DeleteMessageResponse{ROOT}{METADATA}</DeleteMessageResponse>'
    )


@pytest.mark.parametrize("action", ["ReceiveMessage", "ListQueues", "ListQueueTags"])
@pytest.mark.parametrize("result", [None, {}])
def test_an_empty_result_is_an_empty_element(action, result):
    response = f"<{action}Response{ROOT}<{action}Result/>{METADATA}</{action}Response>"
    assert answer(action, result).body.decode() == f'<?xml version="1.0"?>{response}'


@pytest.mark.parametrize(
    ("action", "result", "xml"),
    [
        (
            "SendMessage",
            {
                "SequenceNumber": "1",
                "MD5OfMessageBody": "b",
                "MD5OfMessageSystemAttributes": "s",
                "MD5OfMessageAttributes": "a",
                "MessageId": "i",
            },
            (
                "<MessageId>i</MessageId><MD5OfMessageBody>b</MD5OfMessageBody>"
                "<MD5OfMessageAttributes>a</MD5OfMessageAttributes>"
                "<MD5OfMessageSystemAttributes>s</MD5OfMessageSystemAttributes>"
                "<SequenceNumber>1</SequenceNumber>"
            ),
        ),
        ("CreateQueue", {"QueueUrl": "http://h/1/q"}, "<QueueUrl>http://h/1/q</QueueUrl>"),
        (
            "ListQueues",
            {"NextToken": "t", "QueueUrls": ["http://h/1/a", "http://h/1/b"]},
            (
                "<QueueUrl>http://h/1/a</QueueUrl><QueueUrl>http://h/1/b</QueueUrl>"
                "<NextToken>t</NextToken>"
            ),
        ),
        (
            "ListDeadLetterSourceQueues",
            {"queueUrls": ["http://h/1/a"]},
            "<QueueUrl>http://h/1/a</QueueUrl>",
        ),
        (
            "GetQueueAttributes",
            {"Attributes": {"VisibilityTimeout": "30", "DelaySeconds": "0"}},
            (
                "<Attribute><Name>DelaySeconds</Name><Value>0</Value></Attribute>"
                "<Attribute><Name>VisibilityTimeout</Name><Value>30</Value></Attribute>"
            ),
        ),
        (
            "ListQueueTags",
            {"Tags": {"b": "2", "a": ""}},
            "<Tag><Key>a</Key><Value/></Tag><Tag><Key>b</Key><Value>2</Value></Tag>",
        ),
        (
            "ReceiveMessage",
            {
                "Messages": [
                    {
                        "MessageAttributes": {
                            "s": {"DataType": "String", "StringValue": "x"},
                            "b": {"DataType": "Binary", "BinaryValue": b"\0\1\2"},
                        },
                        "MD5OfMessageAttributes": "a",
                        "Attributes": {"SentTimestamp": "1", "SenderId": "A"},
                        "Body": "hi",
                        "MD5OfBody": "m",
                        "ReceiptHandle": "h",
                        "MessageId": "i",
                    },
                    {"Body": "second"},
                ]
            },
            (
                "<Message><MessageId>i</MessageId><ReceiptHandle>h</ReceiptHandle>"
                "<MD5OfBody>m</MD5OfBody><Body>hi</Body>"
                "<Attribute><Name>SenderId</Name><Value>A</Value></Attribute>"
                "<Attribute><Name>SentTimestamp</Name><Value>1</Value></Attribute>"
                "<MD5OfMessageAttributes>a</MD5OfMessageAttributes>"
                "<MessageAttribute><Name>b</Name><Value><BinaryValue>AAEC</BinaryValue>"
                "<DataType>Binary</DataType></Value></MessageAttribute>"
                "<MessageAttribute><Name>s</Name><Value><StringValue>x</StringValue>"
                "<DataType>String</DataType></Value></MessageAttribute></Message>"
                "<Message><Body>second</Body></Message>"
            ),
        ),
        (
            "SendMessageBatch",
            {
                "Failed": [
                    {"Message": "Text.", "Code": "C", "SenderFault": True, "Id": "b"},
                    {"Code": "D", "SenderFault": False, "Id": "c"},
                ],
                "Successful": [{"MD5OfMessageBody": "m", "MessageId": "i", "Id": "a"}],
            },
            (
                "<SendMessageBatchResultEntry><Id>a</Id><MessageId>i</MessageId>"
                "<MD5OfMessageBody>m</MD5OfMessageBody></SendMessageBatchResultEntry>"
                "<BatchResultErrorEntry><Id>b</Id><SenderFault>true</SenderFault><Code>C</Code>"
                "<Message>Text.</Message></BatchResultErrorEntry>"
                "<BatchResultErrorEntry><Id>c</Id><SenderFault>false</SenderFault><Code>D</Code>"
                "</BatchResultErrorEntry>"
            ),
        ),
        (
            "DeleteMessageBatch",
            {"Successful": [{"Id": "a"}]},
            "<DeleteMessageBatchResultEntry><Id>a</Id></DeleteMessageBatchResultEntry>",
        ),
        (
            "ChangeMessageVisibilityBatch",
            {"Successful": [{"Id": "a"}]},
            (
                "<ChangeMessageVisibilityBatchResultEntry><Id>a</Id>"
                "</ChangeMessageVisibilityBatchResultEntry>"
            ),
        ),
        (
            "ListMessageMoveTasks",
            {"Results": [{"StartedTimestamp": 5, "Status": "RUNNING"}]},
            (
                "<ListMessageMoveTasksResultEntry><Status>RUNNING</Status>"
                "<StartedTimestamp>5</StartedTimestamp></ListMessageMoveTasksResultEntry>"
            ),
        ),
        (
            "CancelMessageMoveTask",
            {"ApproximateNumberOfMessagesMoved": 0},
            "<ApproximateNumberOfMessagesMoved>0</ApproximateNumberOfMessagesMoved>",
        ),
    ],
)
def test_results_are_flattened_in_the_order_of_aws(action, result, xml):
    assert inside(action, result) == xml


def test_texts_are_escaped_as_aws_escapes_them_and_survive_a_parser():
    body = " a&b<c>\"d\"'e'\r\n\r\t]]> "
    xml = inside("ReceiveMessage", {"Messages": [{"Body": body}]})
    assert xml == (
        "<Message><Body> a&amp;b&lt;c&gt;&quot;d&quot;'e'&#xD;\n&#xD;\t]]&gt; </Body></Message>"
    )
    assert ET.fromstring(xml).findtext("Body") == body


def test_characters_beyond_ascii_are_written_in_utf_8():
    assert inside("CreateQueue", {"QueueUrl": "grüße 😀"}) == "<QueueUrl>grüße 😀</QueueUrl>"


@pytest.mark.parametrize("character", ["\0", "\x1b", "\ud800", "\ufffe"])
def test_an_error_may_quote_what_xml_has_no_way_to_write(character):
    error = errors.ReceiptHandleIsInvalid.not_a_handle(f"a{character}b")
    document = ET.fromstring(encode_error("query", error, "R").body)
    text = document.findtext("{*}Error/{*}Message")
    assert text == 'The input receipt handle "a\ufffdb" is not a valid receipt handle.'


def test_an_xml_error():
    response = encode_error("query", errors.QueueDoesNotExist(), "R")
    assert response.status == 400
    assert response.headers == [("x-amzn-RequestId", "R"), ("Content-Type", "text/xml")]
    assert response.body.decode() == (
        f'<?xml version="1.0"?><ErrorResponse{ROOT}<Error><Type>Sender</Type>'
        "<Code>AWS.SimpleQueueService.NonExistentQueue</Code>"
        "<Message>The specified queue does not exist for this wsdl version.</Message>"
        "<Detail/></Error><RequestId>R</RequestId></ErrorResponse>"
    )


@pytest.mark.parametrize(
    ("error", "status", "fault"),
    [
        (errors.PurgeQueueInProgress("q"), 403, "Sender"),
        (errors.ReceiptHandleIsInvalid.not_a_handle("h"), 404, "Sender"),
        (errors.MalformedInput("x"), 400, "Sender"),
        (errors.InternalFailure("x"), 500, "Receiver"),
        (errors.ServiceUnavailable("x"), 503, "Receiver"),
    ],
)
def test_errors_have_the_same_status_in_every_form(error, status, fault):
    xml = encode_error("query", error, "R")
    document = encode_error("query-json", error, "R")
    assert xml.status == document.status == encode_error("json", error, "R").status == status
    assert ET.fromstring(xml.body).findtext("{*}Error/{*}Type") == fault
    assert json.loads(document.body)["Error"]["Type"] == fault


def query_json(action, result):
    response = answer(action, result, "query-json")
    assert response.headers == [("x-amzn-RequestId", "R"), ("Content-Type", "application/json")]
    envelope = json.loads(response.body)[f"{action}Response"]
    assert envelope.pop("ResponseMetadata") == {"RequestId": "R"}
    return envelope


@pytest.mark.parametrize(
    ("action", "result", "document"),
    [
        ("DeleteQueue", None, {}),
        ("ReceiveMessage", {}, {"ReceiveMessageResult": {"messages": None}}),
        (
            "ListQueues",
            {"QueueUrls": ["http://h/1/a"]},
            {"ListQueuesResult": {"queueUrls": ["http://h/1/a"], "NextToken": None}},
        ),
        (
            "GetQueueAttributes",
            {"Attributes": {"QueueArn": "a", "DelaySeconds": "0"}},
            {
                "GetQueueAttributesResult": {
                    "Attributes": [
                        {"Name": "DelaySeconds", "Value": "0"},
                        {"Name": "QueueArn", "Value": "a"},
                    ]
                }
            },
        ),
        (
            "ReceiveMessage",
            {
                "Messages": [
                    {
                        "Body": 'a"\r\n',
                        "MessageAttributes": {
                            "b": {"DataType": "Binary", "BinaryValue": b"\0\1\2"}
                        },
                    }
                ]
            },
            {
                "ReceiveMessageResult": {
                    "messages": [
                        {
                            "MessageId": None,
                            "ReceiptHandle": None,
                            "MD5OfBody": None,
                            "Body": 'a"\r\n',
                            "Attributes": None,
                            "MD5OfMessageAttributes": None,
                            "MessageAttributes": [
                                {
                                    "Name": "b",
                                    "Value": {
                                        "StringValue": None,
                                        "BinaryValue": "AAEC",
                                        "StringListValues": None,
                                        "BinaryListValues": None,
                                        "DataType": "Binary",
                                    },
                                }
                            ],
                        }
                    ]
                }
            },
        ),
        (
            "DeleteMessageBatch",
            {"Failed": [{"Id": "b", "SenderFault": True, "Code": "C"}]},
            {
                "DeleteMessageBatchResult": {
                    "Successful": None,
                    "Failed": [{"Id": "b", "SenderFault": True, "Code": "C", "Message": None}],
                }
            },
        ),
    ],
)
def test_a_query_client_that_accepts_json_gets_querys_own_json(action, result, document):
    assert query_json(action, result) == document


def test_an_error_in_querys_own_json():
    error = errors.UnknownOperation.action("FooBar")
    response = encode_error("query-json", error, "R")
    assert response.status == 400
    assert response.headers == [("x-amzn-RequestId", "R"), ("Content-Type", "application/json")]
    assert json.loads(response.body) == {
        "Error": {
            "Type": "Sender",
            "Code": "InvalidAction",
            "Message": "The action FooBar is not valid for this endpoint.",
        },
        "RequestId": "R",
    }
