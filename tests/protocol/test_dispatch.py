from __future__ import annotations

import pytest

from pytest_sqsq.errors import MalformedInput, UnknownOperation
from pytest_sqsq.protocol import HttpRequest, NoOperation, ProtocolFault, decode

SIGNED = (
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261130/eu-west-1/sqs/aws4_request, "
    "SignedHeaders=content-type;host;x-amz-date, Signature=0ba1ffac"
)


@pytest.mark.parametrize("path", ["/", "/123456789012/q", "/anything/at/all"])
def test_a_target_header_means_json_whatever_the_path(path):
    headers = {"x-amz-target": "AmazonSQS.ListQueues"}
    call = decode(HttpRequest("POST", path, "", headers, b'{"QueueNamePrefix":"a"}'))
    assert (call.action, call.protocol) == ("ListQueues", "json")
    assert call.parameters == {"QueueNamePrefix": "a"}


def test_in_json_the_body_names_the_queue_and_the_path_does_not(json_request):
    request = json_request("PurgeQueue", {"QueueUrl": "http://h/123456789012/inside"})
    request.path = "/123456789012/outside"
    assert decode(request).parameters == {"QueueUrl": "http://h/123456789012/inside"}
    request.body = b"{}"
    assert decode(request).parameters == {}


def test_a_target_header_wins_over_a_form_with_an_action(json_request):
    request = json_request("PurgeQueue", b"")
    request.query_string = "Action=ListQueues"
    assert decode(request).action == "PurgeQueue"


@pytest.mark.parametrize(
    ("target", "action"),
    [
        ("AmazonSQS.FooBar", "FooBar"),
        ("AmazonSNS.SendMessage", "SendMessage"),
        ("AmazonSQS_20121105.SendMessage", "SendMessage"),
        ("AmazonSQS.v1.SendMessage", "SendMessage"),
        ("SendMessage", "SendMessage"),
        ("AmazonSQS.sendmessage", "sendmessage"),
        ("AmazonSQS.", ""),
        ("", ""),
    ],
)
def test_a_target_that_is_no_operation_of_sqs_is_refused_in_json(target, action):
    with pytest.raises(ProtocolFault) as caught:
        decode(HttpRequest("POST", "/", "", {"x-amz-target": target}, b"{"))
    assert isinstance(caught.value.error, UnknownOperation)
    assert (caught.value.protocol, caught.value.call.action) == ("json", action)


@pytest.mark.parametrize(
    "content_type",
    [
        "application/x-amz-json-1.0",
        "application/x-amz-json-1.1",
        "Application/X-AMZ-JSON-1.0; charset=utf-8",
    ],
)
def test_a_json_type_without_a_target_is_refused_with_the_error_type_alone(content_type):
    headers = {"content-type": content_type}
    with pytest.raises(ProtocolFault) as caught:
        decode(HttpRequest("POST", "/", "Action=ListQueues", headers, b"{}"))
    response = caught.value.response("R")
    assert response.status == 400
    assert response.body == b'{"__type":"com.amazon.coral.service#UnknownOperationException"}'
    assert ("x-amzn-query-error", "InvalidAction;Sender") in response.headers


@pytest.mark.parametrize(
    ("method", "path", "query_string", "body"),
    [
        ("GET", "/123456789012/q", "", b""),
        ("GET", "/", "", b""),
        ("GET", "/123456789012/q", "MessageBody=x", b""),
        ("GET", "/", "Action=", b""),
        ("POST", "/", "", b""),
        ("POST", "/", "", b"QueueName=x"),
        ("PUT", "/", "Action=ListQueues", b""),
        ("DELETE", "/123456789012/q", "Action=DeleteQueue", b""),
    ],
)
@pytest.mark.parametrize("accept", ["*/*", "application/json"])
def test_a_request_without_an_action_gets_the_one_404_of_aws(
    method, path, query_string, body, accept
):
    with pytest.raises(NoOperation) as caught:
        decode(HttpRequest(method, path, query_string, {"accept": accept}, body))
    response = caught.value.response("R")
    assert (response.status, response.body) == (404, b"<UnknownOperationException/>")
    assert ("x-amzn-RequestId", "R") in response.headers


def test_the_query_string_and_the_form_of_a_post_are_merged(form_request):
    request = form_request("MessageBody=from+the+form&QueueUrl=a")
    request.query_string = "Action=SendMessage&QueueUrl=b&DelaySeconds=3"
    call = decode(request)
    assert call.action == "SendMessage"
    assert call.parameters == {"MessageBody": "from the form", "QueueUrl": "a", "DelaySeconds": 3}


@pytest.mark.parametrize("content_type", ["text/plain", "multipart/form-data; boundary=x"])
def test_a_body_of_another_type_is_not_read_as_a_form(form_request, content_type):
    request = form_request("QueueNamePrefix=x", **{"content-type": content_type})
    request.query_string = "Action=ListQueues"
    assert decode(request).parameters == {}


def test_a_body_without_a_type_is_read_as_a_form():
    call = decode(HttpRequest("POST", "/", "", {}, b"Action=CreateQueue&QueueName=x"))
    assert call.parameters == {"QueueName": "x"}


@pytest.mark.parametrize("action", ["CreateQueue", "ListQueues"])
@pytest.mark.parametrize("path", ["/123456789012/q", "/q", "//q/"])
def test_two_actions_are_not_valid_on_the_path_of_a_queue(get_request, refusal, action, path):
    error = refusal(get_request(f"Action={action}&QueueName=x", path))
    assert isinstance(error, UnknownOperation)
    assert error.message == f"The action {action} is not valid for this endpoint."


def test_get_queue_url_is_valid_on_the_path_of_another_queue(get_request):
    call = decode(get_request("Action=GetQueueUrl&QueueName=other"))
    assert call.parameters == {"QueueName": "other"}


@pytest.mark.parametrize("path", ["/", "/123456789012/q"])
def test_an_unknown_action_is_named_in_the_refusal(get_request, refusal, path):
    error = refusal(get_request("Action=FooBar&Version=2012-11-05", path))
    assert isinstance(error, UnknownOperation)
    assert error.message == "The action FooBar is not valid for this endpoint."


def test_in_query_the_path_names_the_queue_unless_a_parameter_does(get_request):
    path = "/123456789012/q.fifo"
    assert decode(get_request("Action=PurgeQueue", path)).parameters == {"QueueUrl": path}
    call = decode(get_request("Action=PurgeQueue&QueueUrl=http://h/1/other", path))
    assert call.parameters == {"QueueUrl": "http://h/1/other"}


def test_in_query_neither_path_nor_parameter_leaves_the_queue_unnamed(get_request):
    assert decode(get_request("Action=PurgeQueue", "/")).parameters == {}


def test_an_escaped_path_is_read_as_the_name_it_stands_for(get_request):
    call = decode(get_request("Action=PurgeQueue", "/123456789012/q%2Efifo"))
    assert call.parameters == {"QueueUrl": "/123456789012/q.fifo"}


def test_a_path_that_is_not_utf_8_names_a_queue_that_cannot_exist(get_request):
    call = decode(get_request("Action=PurgeQueue", "/123456789012/%ff"))
    assert call.parameters == {"QueueUrl": "/123456789012/\ufffd"}


def test_a_path_names_no_queue_for_actions_that_take_none(get_request):
    call = decode(get_request("Action=ListMessageMoveTasks&SourceArn=a"))
    assert call.parameters == {"SourceArn": "a"}


@pytest.mark.parametrize("version", ["", "&Version=2012-11-05", "&Version=2009-02-01"])
def test_any_version_or_none_is_accepted(get_request, version):
    assert decode(get_request(f"Action=ListQueues{version}", "/")).action == "ListQueues"


@pytest.mark.parametrize(
    ("accept", "protocol"),
    [
        ("", "query"),
        ("*/*", "query"),
        ("text/xml", "query"),
        ("application/json", "query-json"),
        ("Application/JSON, */*", "query-json"),
    ],
)
def test_the_accept_header_chooses_the_form_of_query_answers(get_request, accept, protocol):
    call = decode(get_request("Action=ListQueues", "/", accept=accept))
    assert call.protocol == protocol
    with pytest.raises(ProtocolFault) as caught:
        decode(get_request("Action=FooBar", "/", accept=accept))
    assert caught.value.protocol == protocol


def test_accept_changes_nothing_for_json(json_request):
    assert decode(json_request("ListQueues", accept="application/json")).protocol == "json"


@pytest.mark.parametrize(
    ("authorization", "expected"),
    [
        (SIGNED, ("AKIDEXAMPLE", "eu-west-1")),
        (SIGNED.replace("AKIDEXAMPLE", "000000000001"), ("000000000001", "eu-west-1")),
        (SIGNED.replace("AKIDEXAMPLE", "we/ird"), ("we/ird", "eu-west-1")),
        (SIGNED.replace(", ", ","), ("AKIDEXAMPLE", "eu-west-1")),
        # Multi-region signatures (SigV4A) have no region in their scope.
        (
            "AWS4-ECDSA-P256-SHA256 Credential=AKID/20261130/sqs/aws4_request, Signature=0",
            ("AKID", None),
        ),
        (SIGNED.replace("eu-west-1", ""), ("AKIDEXAMPLE", None)),
        (SIGNED.replace("eu-west-1", "a:b"), ("AKIDEXAMPLE", None)),
        (SIGNED.replace("eu-west-1", "x" * 65), ("AKIDEXAMPLE", None)),
        ("AWS4-HMAC-SHA256 Credential=AKID, Signature=0", ("AKID", None)),
        ("AWS4-HMAC-SHA256 Credential=////", (None, None)),
        ("AWS4-HMAC-SHA256 Credential=, x", (None, None)),
        ("AWS4-HMAC-SHA256", (None, None)),
        ("Bearer abc", (None, None)),
        ("\x00\xff", (None, None)),
    ],
)
def test_a_signature_claims_an_access_key_and_a_region_and_is_never_refused(
    json_request, authorization, expected
):
    call = decode(json_request("ListQueues", authorization=authorization))
    assert (call.access_key, call.region) == expected


def test_a_request_without_credentials_claims_nothing(json_request, get_request):
    call = decode(json_request("ListQueues"))
    assert (call.access_key, call.region) == (None, None)
    call = decode(get_request("Action=ListQueues&NotX-Amz-Credential=a/b/c/d/e", "/"))
    assert (call.access_key, call.region) == (None, None)


@pytest.mark.parametrize("before", ["", "Action=ReceiveMessage&"])
def test_a_presigned_url_claims_the_same(get_request, before):
    scope = "X-Amz-Credential=AKID%2F20261130%2Fus-west-2%2Fsqs%2Faws4_request"
    request = get_request(f"{before}{scope}&Action=ReceiveMessage&X-Amz-Signature=0")
    call = decode(request)
    assert (call.access_key, call.region) == ("AKID", "us-west-2")
    assert call.parameters == {"QueueUrl": "/123456789012/q"}


def test_the_header_counts_more_than_the_query_string(get_request):
    scope = "X-Amz-Credential=OTHER%2F20261130%2Fus-west-2%2Fsqs%2Faws4_request"
    call = decode(get_request(f"Action=PurgeQueue&{scope}", authorization=SIGNED))
    assert (call.access_key, call.region) == ("AKIDEXAMPLE", "eu-west-1")


def test_a_refused_request_still_says_who_sent_it(json_request):
    with pytest.raises(ProtocolFault) as caught:
        decode(json_request("SendMessage", b"{", authorization=SIGNED))
    fault = caught.value
    assert isinstance(fault.error, MalformedInput)
    assert (fault.call.action, fault.call.parameters) == ("SendMessage", {})
    assert (fault.call.access_key, fault.call.region) == ("AKIDEXAMPLE", "eu-west-1")


def test_the_trace_header_of_http_is_kept_in_both_protocols(json_request, get_request):
    trace = {"x-amzn-trace-id": "Root=1-5759e988-bd862e3fe1be46a994272793"}
    json_call = decode(json_request("SendMessage", **trace))
    query_call = decode(get_request("Action=SendMessage", **trace))
    assert json_call.trace_header == query_call.trace_header == trace["x-amzn-trace-id"]
    assert decode(json_request("SendMessage")).trace_header is None


def test_a_request_counts_as_alive_unless_its_front_end_says_otherwise(json_request):
    assert json_request("ListQueues").is_alive()
