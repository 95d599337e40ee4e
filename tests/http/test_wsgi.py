from __future__ import annotations

import io
import json
from collections import deque

import pytest
from werkzeug.serving import make_server
from werkzeug.test import Client, EnvironBuilder, run_wsgi_app

from pytest_sqsq.gateway.gate import RequestGate
from pytest_sqsq.http import parsing
from pytest_sqsq.http.wsgi import Application
from pytest_sqsq.protocol import HttpRequest, HttpResponse


class FakeGateway:
    """Answers with the request's body, and keeps what it was asked."""

    def __init__(self, gate: RequestGate) -> None:
        self.gate = gate
        self.internal_failures: deque[Exception] = deque()
        self.requests: list[HttpRequest] = []
        self.open_meanwhile: tuple[str, ...] = ()
        self.answer = HttpResponse(200, [("Content-Type", "text/plain")], b"")

    def handle(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        self.open_meanwhile = self.gate.open_requests()
        answer = self.answer
        body = answer.body or request.body
        return HttpResponse(answer.status, answer.headers, body, answer.close, answer.cut)


@pytest.fixture
def gate() -> RequestGate:
    return RequestGate()


@pytest.fixture
def gateway(gate) -> FakeGateway:
    return FakeGateway(gate)


@pytest.fixture
def application(gateway, gate) -> Application:
    return Application(gateway, gate)


@pytest.fixture
def client(application) -> Client:
    return Client(application)


def asked(path: str) -> HttpRequest:
    return HttpRequest("GET", path, "", {}, b"")


def test_hands_the_whole_request_over(gateway, client):
    response = client.post(
        "/000000000000/orders?x=%20",
        data=b"{}",
        headers={"X-Amz-Target": "AmazonSQS.SendMessage", "Content-Type": "text/x"},
        environ_overrides={"REMOTE_ADDR": "127.0.0.1", "REMOTE_PORT": "5000"},
    )
    assert (response.status, response.data) == ("200 OK", b"{}")
    assert response.headers["Content-Length"] == "2"
    (request,) = gateway.requests
    assert request.method == "POST"
    assert request.path == "/000000000000/orders"
    assert request.query_string == "x=%20"
    assert request.headers["x-amz-target"] == "AmazonSQS.SendMessage"
    assert request.headers["content-type"] == "text/x"
    assert request.headers["host"] == "localhost"
    assert request.client_address == "127.0.0.1:5000"


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({"REMOTE_ADDR": "::1", "REMOTE_PORT": "5000"}, "[::1]:5000"),
        ({"REMOTE_ADDR": "::1", "REMOTE_PORT": ""}, "::1"),
        ({"REMOTE_ADDR": "", "REMOTE_PORT": "5000"}, ""),
    ],
)
def test_tells_the_address_of_the_client_as_far_as_it_is_known(gateway, client, environ, text):
    client.get("/", environ_overrides=environ)
    assert gateway.requests[0].client_address == text


def test_the_request_passes_the_gate(gateway, client, gate):
    client.get("/a")
    (description,) = gateway.open_meanwhile
    assert description.startswith("GET /a")
    assert gate.open_count == 0


def test_the_path_is_as_it_was_sent(gateway, application):
    sent = EnvironBuilder("/a b").get_environ() | {"REQUEST_URI": "/a%20b?c"}
    unsent = EnvironBuilder().get_environ() | {"PATH_INFO": "/a \xc3\xa9"}
    unsent.pop("REQUEST_URI")
    unsent.pop("RAW_URI")
    for environ in (sent, unsent):
        run_wsgi_app(application, environ)
    assert [each.path for each in gateway.requests] == ["/a%20b", "/a%20%C3%A9"]


def test_answers_head_without_the_body(client):
    response = client.head("/", data=b"hello")
    assert response.data == b""
    assert response.headers["Content-Length"] == "5"


def test_an_answer_may_ask_to_close_the_connection(gateway, client):
    gateway.answer.close = True
    assert client.get("/").headers["Connection"] == "close"


def test_an_answer_may_have_a_status_without_a_name(gateway, client):
    gateway.answer.status = 599
    assert client.get("/").status_code == 599


def test_an_answer_to_be_cut_breaks_the_connection(gateway, client):
    gateway.answer.cut = "unanswered"
    with pytest.raises(ConnectionAbortedError):
        client.get("/")


@pytest.mark.parametrize("length", ["-1", "five"])
def test_refuses_a_content_length_that_is_no_number(gateway, application, length):
    environ = EnvironBuilder(method="POST").get_environ() | {"CONTENT_LENGTH": length}
    _, status, _ = run_wsgi_app(application, environ)
    assert status.startswith("400 ")
    assert gateway.requests == []


def test_refuses_a_body_that_is_too_large(gateway, application):
    announced = {"CONTENT_LENGTH": str(parsing.BODY_BYTES + 1)}
    unannounced = {
        "CONTENT_LENGTH": "",
        "wsgi.input_terminated": True,
        "wsgi.input": io.BytesIO(b"a" * (parsing.BODY_BYTES + 1)),
    }
    for body in (announced, unannounced):
        environ = EnvironBuilder(method="POST").get_environ() | body
        _, status, _ = run_wsgi_app(application, environ)
        assert status.startswith("413 ")
    assert gateway.requests == []


def test_reads_a_body_without_a_length_where_the_server_ends_it(gateway, application):
    ended = {"wsgi.input_terminated": True, "wsgi.input": io.BytesIO(b"hello")}
    for body in (ended, {"wsgi.input": io.BytesIO(b"whatever comes next")}):
        environ = EnvironBuilder(method="POST").get_environ() | {"CONTENT_LENGTH": ""} | body
        run_wsgi_app(application, environ)
    assert [each.body for each in gateway.requests] == [b"hello", b""]


def test_runs_under_another_server(application, gateway, run):
    import http.client

    server = make_server("127.0.0.1", 0, application, threaded=True)
    run(lambda: server.serve_forever(poll_interval=0.01))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    connection.request("POST", "/a%20b?c=d", b"hello")
    assert connection.getresponse().read() == b"hello"
    connection.close()
    server.shutdown()
    assert gateway.requests[0].path == "/a%20b"


@pytest.mark.parametrize(
    "path", ["/_sqsq", "/_sqsq/", "/_sqsq/health", "/_aws/sqs/messages", "/_aws/sqs/messages/json"]
)
def test_control_paths_go_to_the_control_api(application, gateway, path):
    application.admin = lambda request: HttpResponse(200, [], request.path.encode())
    assert application.handle(asked(path)).body == path.encode()
    assert gateway.requests == []


@pytest.mark.parametrize("path", ["/", "/_sqsqueue", "/_other/", "/000000000000/_sqsq/"])
def test_other_paths_go_to_the_service(application, gateway, path):
    application.admin = lambda _: pytest.fail("asked the control API")
    application.handle(asked(path))
    assert [each.path for each in gateway.requests] == [path]


@pytest.mark.parametrize("admin", [None, lambda _: None])
def test_a_control_path_with_nothing_there_is_not_found(application, admin):
    application.admin = admin
    response = application.handle(asked("/_sqsq/nothing"))
    assert response.status == 404
    assert json.loads(response.body) == {"error": "there is nothing at /_sqsq/nothing"}


def test_a_failure_of_the_control_api_is_answered_and_kept(application, gateway):
    def fail(_):
        raise LookupError("broken on purpose")

    application.admin = fail
    response = application.handle(asked("/_sqsq/health"))
    assert response.status == 500
    assert "broken on purpose" in json.loads(response.body)["error"]
    assert [type(each) for each in gateway.internal_failures] == [LookupError]


def test_the_gateway_may_be_exchanged(application, gate):
    application.gateway = successor = FakeGateway(gate)
    application.handle(asked("/"))
    assert len(successor.requests) == 1
