"""Who may use the control API, and what is refused before anything is done."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_sqsq import SqsServer
from pytest_sqsq.protocol import HttpRequest

JSON = {"Content-Type": "application/json"}


def asked_from(server: SqsServer, address: str, path: str = "/_sqsq/health") -> tuple[int, bytes]:
    request = HttpRequest("GET", path, "", {}, b"", address)
    with server.traffic.request("a test"):
        response = server.handle(request)
    return response.status, response.body


@pytest.mark.parametrize(
    "address", ["127.0.0.1:5", "127.8.8.8:5", "[::1]:5", "[::ffff:127.0.0.1]:5", "127.0.0.1", "::1"]
)
def test_clients_on_the_same_machine_are_answered(server, address) -> None:
    assert asked_from(server, address)[0] == 200


@pytest.mark.parametrize("address", ["10.0.0.7:5", "[2001:db8::1]:5", "[::ffff:10.0.0.7]:5", "x:y"])
@pytest.mark.parametrize("path", ["/_sqsq/health", "/_sqsq/", "/_aws/sqs/messages"])
def test_clients_elsewhere_are_told_which_option_lets_them_in(server, address, path) -> None:
    status, body = asked_from(server, address, path)

    assert status == 403
    assert body.decode() == (
        '{"error": "the control API is for clients on the same machine, not for '
        f"{address}; the option control='anywhere' opens it\"}}"
    )


def test_a_client_without_an_address_is_refused(server) -> None:
    assert asked_from(server, "")[0] == 403


def test_clients_anywhere_are_answered_where_the_option_says_so(make_server) -> None:
    assert asked_from(make_server(control="anywhere"), "10.0.0.7:5")[0] == 200


def test_nothing_is_there_where_it_is_off(make_server) -> None:
    server = make_server(control="off")
    for path in ("/_sqsq/health", "/_sqsq/", "/_aws/sqs/messages"):
        status, body = asked_from(server, "127.0.0.1:5", path)
        assert (status, body.decode()) == (404, f'{{"error": "there is nothing at {path}"}}')


def test_a_reset_with_another_option_holds_from_then_on(server) -> None:
    server.configure(control="off")

    assert asked_from(server, "127.0.0.1:5")[0] == 404


def test_requests_without_a_socket_are_answered(server) -> None:
    request = HttpRequest("GET", "/_sqsq/health", "", {}, b"", transport="direct")
    with server.traffic.request("a test"):
        assert server.handle(request).status == 200


def test_the_control_api_is_loaded_with_the_first_request_to_it() -> None:
    code = """
import sys, urllib.request
from pytest_sqsq import SqsServer
with SqsServer() as server:
    server.client().list_queues()
    print("pytest_sqsq.admin" in sys.modules)
    urllib.request.urlopen(server.url + "/_sqsq/health").read()
    print("pytest_sqsq.admin" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout.split(), done.stderr) == (["False", "True"], "")


def test_control_requests_are_in_no_log(server, remote) -> None:
    remote.get("queues")
    remote.post("tick")

    assert list(server.requests) == []


# What is refused


@pytest.mark.parametrize("path", ["nope", "health/", "queues/1", "queues/1/2", "clock/now", "?"])
def test_an_unknown_path_is_told(remote, path) -> None:
    path = path.replace("?", "%00")
    assert remote.get(path).error == (404, f"there is nothing at /_sqsq/{path}")


@pytest.mark.parametrize(
    ("method", "path", "allowed", "words"),
    [
        ("GET", "clock/advance", "POST", "POST is"),
        ("DELETE", "clock", "GET, HEAD", "GET and HEAD are"),
        ("POST", "health", "GET, HEAD", "GET and HEAD are"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(remote, method, path, allowed, words) -> None:
    answer = remote.send(method, f"/_sqsq/{path}", headers=JSON)

    assert answer.error == (405, f"{method} is not possible at /_sqsq/{path}; {words}")
    assert answer.headers["allow"] == allowed


def test_head_is_answered_as_get_is_without_the_body(remote) -> None:
    answer = remote.send("HEAD", "/_sqsq/health")

    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-length"] == str(len(remote.get("health").body))


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"Content-Type": "text/plain"}, "not 'text/plain'"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, "not 'application/x-www-form-u"),
        ({"Content-Type": "application/jsonp"}, "not 'application/jsonp'"),
        ({}, "which is missing"),
    ],
)
def test_a_post_must_declare_json_since_no_foreign_page_can(
    server, remote, declared, words
) -> None:
    server.create_queue("orders")

    status, text = remote.send("POST", "/_sqsq/reset", b"{}", declared).error

    assert status == 415
    assert text.startswith(f"the Content-Type must be application/json, {words}")
    assert len(server.queues) == 1


def test_a_charset_may_be_declared_too(remote) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert remote.send("POST", "/_sqsq/tick", b" ", headers).json == {"events": []}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"{", "the body is not valid JSON: Expecting property name"),
        (b"\xff", "the body is not valid JSON: 'utf-8' codec can't decode"),
        (b'{"seconds": NaN}', "the body is not valid JSON: NaN is no number of JSON"),
        (b"[1]", "the body must be a JSON object, not [1]"),
        (b"[" * 200_000, "the body is nested too deeply"),
        (b'{"second": 1}', "unknown key 'second'; did you mean 'seconds'?"),
        (b'{"x": 1}', "unknown key 'x'; there are seconds"),
        (b"{}", "seconds is missing"),
        (b'{"seconds": null}', "seconds is missing"),
        (b'{"seconds": "1"}', 'seconds must be a number of seconds from 0, at most 1e+12, not "1"'),
        (b'{"seconds": true}', "seconds must be a number of seconds from 0, at most 1e+12, not tr"),
        (b'{"seconds": -1}', "seconds must be a number of seconds from 0, at most 1e+12, not -1"),
        (b'{"seconds": 1e999}', "seconds must be a number of seconds from 0, at most 1e+12, not I"),
        (b'{"seconds": 1' + b"0" * 5000 + b"}", "the body is not valid JSON: Exceeds the limit"),
        (b'{"seconds": 1' + b"0" * 999 + b"}", "seconds must be a number of seconds from 0, at m"),
        (b'{"seconds": 999999999999}', "the clock goes to 9900-01-01T00:00:00Z at most"),
    ],
)
def test_what_is_wrong_with_a_body_is_told(server, remote, body, text) -> None:
    before = server.now

    status, told = remote.post_bytes("clock/advance", body).error

    assert status == 400
    assert told.startswith(text)
    assert len(told) < 250
    assert server.now == before


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("health?x=1", "unknown parameter 'x'; this request takes none"),
        ("queues?prefx=a", "unknown parameter 'prefx'; did you mean 'prefix'?"),
        ("queues?prefix=%ff", "The request's parameters are not valid UTF-8."),
    ],
)
def test_what_is_wrong_with_a_query_is_told(remote, path, text) -> None:
    assert remote.get(path).error == (400, text)
