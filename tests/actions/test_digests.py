"""The digests that SDKs verify.  Recorded from AWS where the comment says nothing else."""

from __future__ import annotations

import pytest

from pytest_sqsq.actions.digests import md5_of_attributes, md5_of_body
from pytest_sqsq.models import MessageAttribute


def text(value: str, data_type: str = "String") -> MessageAttribute:
    return MessageAttribute(data_type, value)


HELLO = {"Hello": text("There")}
GENERAL = {"General": text("Kenobi")}
HELP_ME = {"Help.Me": text("Me")}
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
TRACE_PARENT = b"traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01"


@pytest.mark.parametrize(
    ("attributes", "digest"),
    [
        ({"k": text("x")}, "a45daa70926828a2f0a1db3418e6feb4"),
        ({"Foo": text("Bar")}, "ae7155c6026991b6d54b11589678bf9c"),
        ({"MyAttribute": text("foobar")}, "adb59cd4678ea5a855436b949cd07ab6"),
        ({"timestamp": text("1493147359900", "Number")}, "235c5c510d26fb653d073faed50ae77c"),
        (HELLO | GENERAL | HELP_ME, "4c360f3fdafd970e05fae2f149d997f5"),
        (HELLO | GENERAL, "fca026605781cb4126a1e9044df24232"),
        (HELLO, "a311262e065454b75da111d535b8dacd"),
        (HELLO | HELP_ME, "83fee93c1bcd8b9a5a923ffacdc636c7"),
        ({"attr1": MessageAttribute("Binary", TRACE_PARENT)}, "8cbe4db156db8a94db8b801b7addb984"),
        ({"AWSTraceHeader": text(TRACE)}, "5ae4d5d7636402d80f4eb6d213245a88"),
        # Worked out by hand from the algorithm.
        (
            {
                "blob": MessageAttribute("Binary", b"\x01\x02\x03"),
                "color": text("blue"),
                "count": text("3", "Number"),
            },
            "d838729972a4b70e2d2acd9d59ac847c",
        ),
        ({"color": text("blue")}, "da1b33cc3cbfe8b1630921e78e6b9880"),
        (
            {
                "f": text("1.50", "Number.float"),
                "j": text('{"a":1}', "String.json"),
                "é": text("日本"),
            },
            "094c95249252fc3bb8be6f171d0004e3",
        ),
    ],
)
def test_the_digest_of_attributes_is_that_of_aws(attributes, digest):
    assert md5_of_attributes(attributes) == digest


def test_the_digest_does_not_depend_on_the_order_in_which_attributes_are_given():
    shuffled = {**HELP_ME, **HELLO, **GENERAL}

    assert md5_of_attributes(shuffled) == "4c360f3fdafd970e05fae2f149d997f5"


@pytest.mark.parametrize(
    ("body", "digest"),
    [
        ("message", "78e731027d8fd50ed642340b7c9a63b3"),
        ("test", "098f6bcd4621d373cade4e832627b4f6"),
        ("hello", "5d41402abc4b2a76b9719d911017c592"),
        ("日本", "4dbed2e657457884e67137d3514119b3"),
    ],
)
def test_the_digest_of_a_body_is_the_md5_of_its_utf_8_bytes(body, digest):
    assert md5_of_body(body) == digest
