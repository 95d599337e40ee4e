"""No octets, whatever they are, raise anything but ProtocolFault; and each fault has an answer."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_sqsq.protocol import HttpRequest, ProtocolFault, decode

LATIN = st.text(st.characters(max_codepoint=255), max_size=60)
ACTION = st.sampled_from(["SendMessage", "SendMessageBatch", "TagQueue", "ReceiveMessage", "Foo"])
FIELD_PART = st.sampled_from(
    [
        "MessageAttribute",
        "SendMessageBatchRequestEntry",
        "Tag",
        "AttributeName",
        "Name",
        "Key",
        "Value",
        "BinaryValue",
        "DelaySeconds",
        "1",
        "2",
        "999999999",
        "0",
        "-1",
        "",
    ]
)
FIELD = st.tuples(st.lists(FIELD_PART, max_size=9).map(".".join), st.binary(max_size=6))
FORM = st.builds(
    lambda action, fields: b"&".join(
        [f"Action={action}".encode(), *(name.encode() + b"=" + value for name, value in fields)]
    ),
    ACTION,
    st.lists(FIELD, max_size=8),
)
MEMBER = st.sampled_from(
    ["QueueUrl", "Entries", "Tags", "MessageAttributes", "BinaryValue", "DelaySeconds", "Id"]
)
DOCUMENT = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBER, inner, max_size=4),
    max_leaves=12,
).map(lambda document: json.dumps(document).encode())


def answered(request: HttpRequest) -> None:
    """Decodes; a fault must have an answer that a client of its protocol can read."""
    try:
        call = decode(request)
    except ProtocolFault as fault:
        response = fault.response("R")
        assert response.status in {400, 404}
        if fault.protocol == "query" or response.status == 404:
            assert ET.fromstring(response.body) is not None
        else:
            assert isinstance(json.loads(response.body), dict)
    else:
        assert call.action
        assert None not in call.parameters.values()


@settings(deadline=None)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "HEAD"]),
    path=LATIN,
    query_string=LATIN | FORM.map(lambda octets: octets.decode("latin-1")),
    headers=st.fixed_dictionaries(
        {},
        optional={
            "x-amz-target": LATIN | ACTION.map("AmazonSQS.{}".format),
            "content-type": LATIN
            | st.sampled_from(
                ["application/x-amz-json-1.0", "application/x-www-form-urlencoded", "text/xml"]
            ),
            "accept": LATIN | st.just("application/json"),
            "authorization": LATIN | LATIN.map("AWS4-HMAC-SHA256 Credential={}".format),
            "x-amzn-trace-id": LATIN,
        },
    ),
    body=st.binary() | FORM | DOCUMENT,
)
def test_any_request_is_decoded_or_refused(method, path, query_string, headers, body):
    answered(HttpRequest(method, path, query_string, headers, body))


@settings(deadline=None)
@given(action=ACTION, document=DOCUMENT)
def test_any_json_document_is_decoded_or_refused(action, document):
    headers = {"x-amz-target": f"AmazonSQS.{action}"}
    answered(HttpRequest("POST", "/", "", headers, document))


@settings(deadline=None)
@given(form=FORM, path=st.sampled_from(["/", "/123456789012/q"]))
def test_any_form_is_decoded_or_refused(form, path):
    answered(HttpRequest("POST", path, "", {}, form))
