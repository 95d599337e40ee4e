from __future__ import annotations

import pytest

from pytest_sqsq.errors import MalformedInput, RequestEntityTooLarge
from pytest_sqsq.http import parsing
from pytest_sqsq.http.parsing import ChunkedBody, parse_head


def head_of(*lines: str, request_line: str = "POST / HTTP/1.1"):
    return parse_head("\r\n".join((request_line, *lines)).encode("latin-1"))


def test_reads_a_head():
    head = parse_head(
        b"POST /000000000000/orders?Action=SendMessage&a=%20 HTTP/1.1\r\n"
        b"Host: localhost:9324\r\n"
        b"X-Amz-Target:AmazonSQS.SendMessage\r\n"
        b"content-LENGTH:  17 \t"
    )
    assert head.method == "POST"
    assert head.path == "/000000000000/orders"
    assert head.query_string == "Action=SendMessage&a=%20"
    assert head.headers == {
        "host": "localhost:9324",
        "x-amz-target": "AmazonSQS.SendMessage",
        "content-length": "17",
    }
    assert head.content_length == 17
    assert head.keep_alive
    assert not head.chunked
    assert not head.expects_continue


def test_a_head_may_have_no_headers():
    head = head_of(request_line="GET / HTTP/1.0")
    assert head.headers == {}
    assert head.content_length == 0


def test_headers_sent_twice_are_joined():
    assert head_of("Accept: a", "Accept: b").headers["accept"] == "a, b"


def test_octets_beyond_ascii_stay_what_they_are():
    assert head_of("X-Name: m\xfcller").headers["x-name"] == "m\xfcller"


@pytest.mark.parametrize(
    ("target", "path", "query_string"),
    [
        ("http://sqs.test/a/b?c=d", "/a/b", "c=d"),
        ("http://sqs.test", "/", ""),
        ("http://sqs.test?c=d", "/", "c=d"),
        ("*", "*", ""),
        ("/a?b?c", "/a", "b?c"),
    ],
)
def test_reads_targets_of_every_form(target, path, query_string):
    head = head_of(request_line=f"GET {target} HTTP/1.1")
    assert (head.path, head.query_string) == (path, query_string)


@pytest.mark.parametrize(
    ("version", "connection", "lasts"),
    [
        ("1.1", None, True),
        ("1.1", "close", False),
        ("1.1", "Keep-Alive", True),
        ("1.1", "upgrade, Close", False),
        ("1.0", None, False),
        ("1.0", "keep-alive", True),
        ("1.0", "Keep-Alive, Upgrade", True),
    ],
)
def test_the_connection_lasts_as_the_version_and_the_header_say(version, connection, lasts):
    lines = [] if connection is None else [f"Connection: {connection}"]
    assert head_of(*lines, request_line=f"GET / HTTP/{version}").keep_alive is lasts


@pytest.mark.parametrize(
    "request_line",
    [
        "",
        "GET",
        "GET /",
        "GET / HTTP/1.1 ",
        "GET  / HTTP/1.1",
        "GET / HTTP/2.0",
        "GET / HTTP/0.9",
        "GET / http/1.1",
        "PRI * HTTP/2.0",
        "G(T / HTTP/1.1",
        " GET / HTTP/1.1",
    ],
)
def test_refuses_malformed_request_lines(request_line):
    with pytest.raises(MalformedInput):
        head_of(request_line=request_line)


@pytest.mark.parametrize(
    "line",
    [
        "no colon",
        ": no name",
        "Content-Length : 5",
        " folded: line",
        "na me: value",
        "X-A: a\nX-B: b",
        "X-A: a\rX-B: b",
        "X-A: \0",
    ],
)
def test_refuses_malformed_header_lines(line):
    with pytest.raises(MalformedInput):
        head_of(line)


def test_refuses_two_hosts():
    with pytest.raises(MalformedInput, match="two hosts"):
        head_of("Host: a", "Host: a")


@pytest.mark.parametrize(
    "value", ["-1", "+5", "", "5 5", "0x10", "1_0", "5, 6", "\u00b2", "5,", "1.0"]
)
def test_refuses_a_content_length_that_is_not_one_number(value):
    with pytest.raises(MalformedInput):
        head_of(f"Content-Length: {value}")


def test_a_content_length_sent_twice_alike_is_one():
    assert head_of("Content-Length: 5", "Content-Length: 5").content_length == 5


def test_refuses_content_lengths_that_differ():
    with pytest.raises(MalformedInput):
        head_of("Content-Length: 5", "Content-Length: 6")


def test_takes_the_largest_body_and_refuses_one_beyond():
    assert head_of(f"Content-Length: {parsing.BODY_BYTES}").content_length == parsing.BODY_BYTES
    for too_large in (str(parsing.BODY_BYTES + 1), "9" * 5_000):
        with pytest.raises(RequestEntityTooLarge):
            head_of(f"Content-Length: {too_large}")


def test_refuses_two_framings_at_once():
    with pytest.raises(MalformedInput, match="both"):
        head_of("Content-Length: 5", "Transfer-Encoding: chunked")


@pytest.mark.parametrize("encoding", ["gzip", "gzip, chunked", "identity", "chunked, chunked"])
def test_refuses_transfer_encodings_other_than_chunked(encoding):
    with pytest.raises(MalformedInput):
        head_of(f"Transfer-Encoding: {encoding}")


def test_refuses_unknown_expectations_but_not_in_http_1_0():
    assert head_of("Expect: 100-Continue").expects_continue
    with pytest.raises(MalformedInput):
        head_of("Expect: a miracle")
    old = head_of("Expect: 100-continue", request_line="POST / HTTP/1.0")
    assert not old.expects_continue


CHUNKED = b"5\r\nhello\r\n006;name=value\r\n world\r\n0\r\nX-Trailer: dropped\r\n\r\nGET"


def test_decodes_chunks_and_keeps_what_follows():
    body = ChunkedBody()
    assert body.feed(CHUNKED)
    assert (body.body, body.rest) == (b"hello world", b"GET")


def test_decodes_chunks_that_arrive_in_any_pieces():
    for cut in range(1, len(CHUNKED) - 3):
        body = ChunkedBody()
        assert not body.feed(CHUNKED[:cut])
        assert body.feed(CHUNKED[cut:])
        assert (body.body, body.rest) == (b"hello world", b"GET")


@pytest.mark.parametrize(
    "octets",
    [
        b"\r\n",
        b"x\r\n",
        b"-5\r\n",
        b"0x5\r\n",
        b"5 5\r\n",
        b"5\r\nhelloworld",
        b"5\r\nhello\n\n",
        b"1" * 17 + b"\r\n",
        b"5;" + b"a" * 5_000,
        b"5;" + b"a" * 5_000 + b"\r\n",
        b"0\r\n" + b"a: b\r\n" * 20_000,
    ],
)
def test_refuses_malformed_chunks(octets):
    with pytest.raises(MalformedInput):
        ChunkedBody().feed(octets)


def test_refuses_chunks_beyond_the_largest_body():
    body = ChunkedBody()
    half = parsing.BODY_BYTES // 2
    assert not body.feed(b"%x\r\n" % half + b"a" * half + b"\r\n")
    with pytest.raises(RequestEntityTooLarge):
        body.feed(b"%x\r\n" % (half + 1))
