"""What botocore writes is read, and what is written here botocore reads, in both protocols.

The requests and results are drawn from botocore's own model.  Today's botocore writes and parses
Query for other services; a copy of SQS's model with the names that SQS's last Query model had
makes it do so for SQS.
"""

from __future__ import annotations

import copy
from typing import Any
from urllib.parse import urlencode

import pytest
from botocore.awsrequest import HeadersDict
from botocore.loaders import Loader
from botocore.model import ServiceModel, Shape
from botocore.parsers import create_parser
from botocore.serialize import create_serializer
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_sqsq import errors
from pytest_sqsq.protocol import Call, HttpRequest, decode, encode_error, encode_result

TODAY = Loader().load_service_model("sqs", "service-2")
JSON_MODEL = ServiceModel(TODAY, "sqs")
ACTIONS = sorted(JSON_MODEL.operation_names)

# As in the service model of botocore 1.31.79.
OLD_LIST_MEMBERS = {
    "AWSAccountIdList": "AWSAccountId",
    "ActionNameList": "ActionName",
    "AttributeNameList": "AttributeName",
    "BatchResultErrorEntryList": "BatchResultErrorEntry",
    "BinaryList": "BinaryListValue",
    "ChangeMessageVisibilityBatchRequestEntryList": "ChangeMessageVisibilityBatchRequestEntry",
    "ChangeMessageVisibilityBatchResultEntryList": "ChangeMessageVisibilityBatchResultEntry",
    "DeleteMessageBatchRequestEntryList": "DeleteMessageBatchRequestEntry",
    "DeleteMessageBatchResultEntryList": "DeleteMessageBatchResultEntry",
    "ListMessageMoveTasksResultEntryList": "ListMessageMoveTasksResultEntry",
    "MessageAttributeNameList": "MessageAttributeName",
    "MessageList": "Message",
    "MessageSystemAttributeList": "MessageSystemAttributeName",
    "QueueUrlList": "QueueUrl",
    "SendMessageBatchRequestEntryList": "SendMessageBatchRequestEntry",
    "SendMessageBatchResultEntryList": "SendMessageBatchResultEntry",
    "StringList": "StringListValue",
    "TagKeyList": "TagKey",
}
OLD_MAPS = {
    "MessageBodyAttributeMap": ("MessageAttribute", "Name", "Value"),
    "MessageBodySystemAttributeMap": ("MessageSystemAttribute", "Name", "Value"),
    "MessageSystemAttributeMap": ("Attribute", "Name", "Value"),
    "QueueAttributeMap": ("Attribute", "Name", "Value"),
    "TagMap": ("Tag", "Key", "Value"),
}


def query_model() -> ServiceModel:
    document = copy.deepcopy(TODAY)
    document["metadata"].update(protocol="query", protocols=["query"])
    for name, operation in document["operations"].items():
        if "output" in operation:
            operation["output"]["resultWrapper"] = f"{name}Result"
    for name, element in OLD_LIST_MEMBERS.items():
        document["shapes"][name]["flattened"] = True
        document["shapes"][name]["member"]["locationName"] = element
    for name, (_, key, value) in OLD_MAPS.items():
        document["shapes"][name]["key"]["locationName"] = key
        document["shapes"][name]["value"]["locationName"] = value
    for shape in document["shapes"].values():
        for member in shape.get("members", {}).values():
            if member["shape"] in OLD_MAPS:
                member["locationName"] = OLD_MAPS[member["shape"]][0]
            elif member["shape"] in ("StringList", "BinaryList"):
                member["locationName"] = OLD_LIST_MEMBERS[member["shape"]]
    return ServiceModel(document, "sqs")


QUERY_MODEL = query_model()
# What XML 1.0 can write; JSON can write more, which other tests show.
TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
    | st.sampled_from("\t\r\n\"&<> +%='"),
    max_size=8,
)


SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "boolean": st.booleans(),
    "blob": st.binary(max_size=8),
    "string": TEXT,
}


def drawn_from(shape: Shape) -> st.SearchStrategy[Any]:
    """Values of this shape, all members optional, collections not empty."""
    match shape.type_name:
        case "structure":
            members = {name: drawn_from(member) for name, member in shape.members.items()}
            required = {"Id": members.pop("Id")} if "Id" in members else {}
            return st.fixed_dictionaries(required, optional=members)
        case "list":
            return st.lists(drawn_from(shape.member), min_size=1, max_size=3)
        case "map":
            return st.dictionaries(TEXT, drawn_from(shape.value), min_size=1, max_size=3)
        case scalar:
            return SCALARS[scalar]


def sent_by_botocore(action: str, parameters: dict[str, Any], protocol: str) -> HttpRequest:
    model = JSON_MODEL if protocol == "json" else QUERY_MODEL
    serializer = create_serializer(protocol, include_validation=False)
    request = serializer.serialize_to_request(parameters, model.operation_model(action))
    headers = {name.lower(): value for name, value in request["headers"].items()}
    body = request["body"]
    return HttpRequest(
        request["method"],
        request["url_path"],
        "",
        headers,
        body if isinstance(body, bytes) else urlencode(body).encode(),
    )


def read_by_botocore(action: str, response: Any, protocol: str) -> dict[str, Any]:
    model = JSON_MODEL if protocol == "json" else QUERY_MODEL
    parsed = create_parser(protocol).parse(
        {
            "status_code": response.status,
            "headers": HeadersDict(response.headers),
            "body": response.body,
        },
        model.operation_model(action).output_shape,
    )
    assert parsed["ResponseMetadata"]["HTTPStatusCode"] == response.status
    assert parsed.pop("ResponseMetadata")["RequestId"] == "R"
    return parsed


@pytest.mark.parametrize("protocol", ["json", "query"])
@pytest.mark.parametrize("action", ACTIONS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_requests_of_botocore_come_out_as_they_went_in(data, protocol, action):
    parameters = data.draw(drawn_from(JSON_MODEL.operation_model(action).input_shape))
    call = decode(sent_by_botocore(action, parameters, protocol))
    if protocol == "query" and "AttributeNames" in parameters:
        parameters.pop("MessageSystemAttributeNames", None)
    assert (call.action, call.protocol) == (action, protocol)
    assert call.parameters == parameters


@pytest.mark.parametrize("protocol", ["json", "query"])
@pytest.mark.parametrize("action", ACTIONS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_results_come_out_of_botocore_as_they_went_in(data, protocol, action):
    shape = JSON_MODEL.operation_model(action).output_shape
    result = None if shape is None else data.draw(drawn_from(shape))
    response = encode_result(Call(action, {}, protocol), result, "R")
    assert read_by_botocore(action, response, protocol) == (result or {})


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            errors.QueueDoesNotExist(),
            ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "Sender"),
        ),
        (
            errors.QueueNameExists("DelaySeconds"),
            ("QueueAlreadyExists", "QueueNameExists", "Sender"),
        ),
        (
            errors.InvalidParameterValue("Text."),
            ("InvalidParameterValue", "InvalidParameterValueException", "Sender"),
        ),
        (
            errors.MissingParameter("MessageBody"),
            ("MissingParameter", "MissingRequiredParameterException", "Sender"),
        ),
        (errors.AccessDenied("Text."), ("AccessDenied", "AccessDeniedException", "Sender")),
        (
            errors.InternalFailure("Text."),
            ("InternalFailure", "InternalFailure", "Receiver"),
        ),
    ],
)
def test_errors_are_what_botocores_users_expect(error, expected):
    parsed = read_by_botocore("SendMessage", encode_error("json", error, "R"), "json")
    code, shape, fault = expected
    assert parsed["Error"] == {
        "Code": code,
        "QueryErrorCode": shape,
        "Type": fault,
        "Message": error.message,
    }
    parsed = read_by_botocore("SendMessage", encode_error("query", error, "R"), "query")
    assert parsed["Error"] == {
        "Code": code,
        "Type": fault,
        "Message": error.query_message,
        "Detail": None,
    }
