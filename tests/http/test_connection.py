from __future__ import annotations

from email.utils import parsedate_to_datetime
from time import monotonic

import pytest
import time_machine

from pytest_sqsq.http import connection, parsing
from pytest_sqsq.protocol import HttpResponse

GET = b"GET / HTTP/1.1\r\nHost: sqs.test\r\n\r\n"
LONG = 5.0
A_MOMENT = 0.05


def post(body: bytes, *lines: bytes) -> bytes:
    return b"\r\n".join(
        (
            b"POST / HTTP/1.1",
            b"Host: sqs.test",
            b"Content-Length: %d" % len(body),
            *lines,
            b"",
            body,
        )
    )


def chunked(*chunks: bytes) -> bytes:
    parts = [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b"")]
    return b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(parts)


def test_hands_the_whole_request_over(application, client):
    client.send(
        b"POST /000000000000/a%20b?x=%C3%A9 HTTP/1.1\r\nHost: sqs.test\r\n"
        b"X-Amz-Target: AmazonSQS.SendMessage\r\nContent-Length: 2\r\n\r\n{}"
    )
    client.answer()
    request = application.next_request()
    assert request.method == "POST"
    assert request.path == "/000000000000/a%20b"
    assert request.query_string == "x=%C3%A9"
    assert request.headers["x-amz-target"] == "AmazonSQS.SendMessage"
    assert request.body == b"{}"
    assert request.client_address == client.address
    assert request.transport == "http"


def test_frames_the_answer(client):
    status, headers, body = client.send(post(b"hello")).answer()
    assert (status, body) == (200, b"hello")
    assert headers["content-type"] == "text/plain"
    assert headers["content-length"] == "5"
    assert "connection" not in headers
    assert parsedate_to_datetime(headers["date"]).year >= 2024


def test_the_date_is_real_whatever_the_process_clock_says(client):

    with time_machine.travel("1999-12-31T23:59:59Z", tick=False):
        _, headers, _ = client.send(GET).answer()
    assert parsedate_to_datetime(headers["date"]).year >= 2024


def test_keeps_the_connection_for_further_requests(client, server):
    for number in range(3):
        assert client.send(post(b"%d" % number)).answer()[2] == b"%d" % number
    assert [each.address for each in server.connections] == [client.address]


def test_answers_pipelined_requests_in_order(client):
    client.send(post(b"first") + chunked(b"sec", b"ond") + GET + post(b"fourth"))
    assert [client.answer()[2] for _ in range(4)] == [b"first", b"second", b"", b"fourth"]


def test_takes_a_request_in_single_octets(application, client):
    for octet in post(b"hello"):
        client.send(bytes([octet]))
    assert client.answer()[2] == b"hello"
    assert application.next_request().body == b"hello"


def test_decodes_chunked_bodies(application, client):
    client.send(chunked(b"a" * 100_000, b"b"))
    assert len(client.answer()[2]) == 100_001
    assert application.next_request().body == b"a" * 100_000 + b"b"


def test_takes_bodies_far_larger_than_a_receive(client):
    body = bytes(range(256)) * 16_384
    client.socket.settimeout(30)
    assert client.send(post(body)).answer()[2] == body


def test_asks_to_continue_only_if_the_body_is_not_there(client):
    client.send(b"POST / HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    assert client.answer()[0] == 100
    assert client.send(b"hello").answer()[2] == b"hello"
    assert client.send(post(b"hello", b"Expect: 100-continue")).answer()[0] == 200


def test_asks_to_continue_a_chunked_body(client):
    client.send(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")
    assert client.answer()[0] == 100
    assert client.send(b"5\r\nhello\r\n0\r\n\r\n").answer()[2] == b"hello"


def test_closes_when_the_client_asks(client):
    _, headers, _ = client.send(post(b"last", b"Connection: close")).answer()
    assert headers["connection"] == "close"
    assert client.is_closed()


def test_closes_after_a_request_of_http_1_0(client):
    assert client.send(b"GET / HTTP/1.0\r\n\r\n").answer()[1]["connection"] == "close"
    assert client.is_closed()


def test_keeps_a_connection_of_http_1_0_that_asks_for_it(client):
    kept = b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    assert client.send(kept).answer()[1]["connection"] == "keep-alive"
    assert client.send(kept).answer()[0] == 200


def test_closes_when_the_application_asks(application, client):
    application.answer.close = True
    assert client.send(post(b"last")).answer()[1]["connection"] == "close"
    assert client.is_closed()


def test_answers_head_with_the_length_and_without_the_body(application, client):
    application.answer = HttpResponse(200, [], b"hello")
    _, headers, _ = client.send(b"HEAD / HTTP/1.1\r\n\r\n").answer(without_body=True)
    assert headers["content-length"] == "5"
    assert client.send(GET).answer()[2] == b"hello"


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "PATCH", "BREW"])
def test_leaves_every_method_to_the_application(application, client, method):
    client.send(b"%b / HTTP/1.1\r\n\r\n" % method.encode())
    assert client.answer()[0] == 200
    assert application.next_request().method == method


def test_answers_without_a_body_have_no_length(application, client):
    application.answer = HttpResponse(204, [], b"")
    status, headers, _ = client.send(GET).answer()
    assert status == 204
    assert "content-length" not in headers
    assert client.send(GET).answer()[0] == 204


def test_an_answer_may_be_withheld(application, client):
    application.answer.cut = "unanswered"
    assert client.send(post(b"hello")).is_closed()


def test_an_answer_may_be_broken_off(application, client):
    application.answer.cut = "truncated"
    client.send(post(b"hello"))
    received = b""
    while octets := client.socket.recv(65536):
        received += octets
    assert b"Content-Length: 5" in received
    assert received.endswith(b"\r\n\r\nhel")


def test_ignores_empty_lines_before_a_request(client):
    assert client.send(b"\r\n\r\n" + GET).answer()[0] == 200
    assert client.send(b"\r\n").send(GET).answer()[0] == 200


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"HTTPS is not spoken here"),
        (b"hello\n", b"end with CR and LF"),
        (b"GET / HTTP/1.1\n\n", b"end with CR and LF"),
        (b"hello world\r\n\r\n", b"request line is malformed"),
        (b"GET / HTTP/2.0\r\n\r\n", b"HTTP/1.1"),
        (b"GET / HTTP/1.1\r\nbroken\r\n\r\n", b"malformed header line"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"not one number"),
        (post(b"hello", b"Content-Length: 6"), b"not one number"),
        (post(b"hello", b"Transfer-Encoding: chunked"), b"both"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", b"chunked"),
    ],
)
def test_refuses_what_cannot_be_framed_and_closes(application, client, octets, reason):
    status, headers, body = client.send(octets).answer()
    assert status == 400
    assert headers["connection"] == "close"
    assert headers["content-type"] == "application/x-amz-json-1.0"
    assert b"com.amazon.coral.service#SerializationException" in body
    assert reason in body
    assert client.is_closed()
    assert application.requests.empty()


def test_refusals_speak_the_protocol_of_the_request(client):
    client.send(
        b"POST / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n"
    )
    status, headers, body = client.answer()
    assert status == 400
    assert headers["content-type"] == "text/xml"
    assert b"<Code>MalformedInput</Code>" in body


def test_refuses_a_head_that_is_too_large(client):
    status, _, body = client.send(
        b"GET / HTTP/1.1\r\nX-Long: " + b"a" * parsing.HEAD_BYTES + b"\r\n\r\n"
    ).answer()
    assert status == 431
    assert b"RequestHeaderSectionTooLarge" in body
    assert client.is_closed()


def test_refuses_an_endless_head(client):
    assert client.send(b"GET /" + b"a" * 2 * parsing.HEAD_BYTES).answer()[0] == 431
    assert client.is_closed()


def test_refuses_a_body_that_is_announced_too_large(client):
    status, headers, body = client.send(
        b"POST / HTTP/1.1\r\nX-Amz-Target: AmazonSQS.SendMessage\r\n"
        b"Content-Length: %d\r\n\r\n" % (parsing.BODY_BYTES + 1)
    ).answer()
    assert status == 413
    assert b"RequestEntityTooLarge" in body
    assert client.is_closed()
    assert headers["connection"] == "close"


def test_the_client_can_read_a_refusal_although_it_is_still_sending(application, client, run):
    client.socket.settimeout(30)
    head = b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (2 * parsing.BODY_BYTES)
    sender = run(lambda: client.send(head + b"a" * (2 * parsing.BODY_BYTES)))
    assert client.answer()[0] == 413
    sender.join()
    assert application.requests.empty()


def test_forgets_half_a_request_whose_client_closes(application, connect, server):
    for half in (b"POST / HT", post(b"hello")[:-2], chunked(b"hello")[:-4]):
        client = connect().send(half)
        client.socket.close()
    assert connect().send(GET).answer()[0] == 200
    assert application.requests.qsize() == 1


def test_gives_up_a_head_and_a_body_that_do_not_come(application, connect, monkeypatch):
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.01)
    monkeypatch.setattr(connection, "BODY_SECONDS", 0.01)
    assert connect().send(b"POST / HT").is_closed()
    assert connect().send(post(b"hello")[:-2]).is_closed()
    assert application.requests.empty()


def test_an_unfinished_request_is_open_and_named(application, client):
    changes = application.gate.changes
    client.send(post(b"hello", b"X-Amz-Target: AmazonSQS.SendMessage")[:-2])
    application.gate.wait_for_change(changes, LONG)
    (name,) = application.gate.open_requests()
    assert name in {
        f"SendMessage from {client.address}",
        f"an unfinished request from {client.address}",
    }
    client.send(b"lo")
    assert client.answer()[2] == b"hello"


def test_requests_wait_while_the_gate_is_closed(application, client):
    with application.gate.closed():
        client.send(post(b"hello"))
        client.socket.settimeout(A_MOMENT)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)
        assert application.requests.empty()
    client.socket.settimeout(LONG)
    assert client.answer()[2] == b"hello"


def test_tells_whether_the_client_is_still_there(application, client):
    client.send(b"GET /wait HTTP/1.1\r\n\r\n")
    request = application.next_request()
    assert request.is_alive()
    client.send(GET)
    assert request.is_alive()
    application.let_go.set()
    client.answer()
    client.answer()


def test_notices_a_client_that_closed(application, client):
    client.send(b"GET /wait HTTP/1.1\r\n\r\n")
    request = application.next_request()
    client.socket.close()
    until = monotonic() + LONG
    while request.is_alive():
        assert monotonic() < until


def test_an_idle_keep_alive_connection_may_pause(client, monkeypatch):
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.001)
    client.send(GET).answer()
    client.socket.settimeout(A_MOMENT)
    with pytest.raises(TimeoutError):
        client.socket.recv(1)
    client.socket.settimeout(LONG)
    assert client.send(GET).answer()[0] == 200
