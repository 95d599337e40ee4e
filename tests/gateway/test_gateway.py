from __future__ import annotations

import json
from threading import Event, Thread
from urllib.parse import urlencode

import pytest

from pytest_sqsq.clock import Clock
from pytest_sqsq.engine import Broker
from pytest_sqsq.errors import AccessDenied
from pytest_sqsq.gateway.gate import RequestGate
from pytest_sqsq.gateway.gateway import Gateway, new_request_id
from pytest_sqsq.gateway.requests import RequestLog
from pytest_sqsq.protocol import HttpRequest, HttpResponse

LONG = 5.0
DEFAULT_ACCOUNT = "000000000000"


class Service:
    """A gateway on a frozen clock, and requests made of few words."""

    def __init__(self, **options) -> None:
        self.clock = Clock("frozen", start="2030-01-01T00:00:00Z")
        self.broker = Broker(self.clock)
        self.gate = RequestGate()
        self.log = RequestLog()
        self.gateway = Gateway(self.broker, self.gate, self.log, **options)

    def handle(self, request: HttpRequest) -> HttpResponse:
        with self.gate.request("a test"):
            return self.gateway.handle(request)

    def json(self, action: str, parameters: dict, **headers: str) -> HttpResponse:
        return self.handle(json_request(action, parameters, **headers))

    def create_queue(self, name: str = "orders", **headers: str) -> str:
        return answer(self.json("CreateQueue", {"QueueName": name}, **headers))["QueueUrl"]


def json_request(action: str, parameters: dict, is_alive=lambda: True, **headers: str):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpRequest(
        "POST",
        "/",
        "",
        {"host": "sqs.test:9324", "x-amz-target": f"AmazonSQS.{action}"} | names,
        json.dumps(parameters).encode(),
        "127.0.0.1:5000",
        is_alive=is_alive,
    )


def query_request(path: str = "/", **fields: str) -> HttpRequest:
    headers = {"host": "sqs.test", "content-type": "application/x-www-form-urlencoded"}
    return HttpRequest("POST", path, "", headers, urlencode(fields).encode())


def signed(access_key: str = "test", region: str = "us-east-1") -> str:
    scope = f"{access_key}/20300101/{region}/sqs/aws4_request"
    return f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"


def answer(response: HttpResponse) -> dict:
    assert response.status == 200, response.body
    return json.loads(response.body)


@pytest.fixture
def service() -> Service:
    return Service()


def test_answers_in_json(service):
    url = service.create_queue()
    sent = answer(service.json("SendMessage", {"QueueUrl": url, "MessageBody": "a"}))
    received = answer(service.json("ReceiveMessage", {"QueueUrl": url}))
    assert [each["MessageId"] for each in received["Messages"]] == [sent["MessageId"]]


def test_answers_in_xml(service):
    service.create_queue()
    response = service.handle(query_request(Action="GetQueueUrl", QueueName="orders"))
    assert response.status == 200
    assert b"<QueueUrl>http://sqs.test/000000000000/orders</QueueUrl>" in response.body


def test_errors_keep_the_protocols_shape(service):
    url = "http://sqs.test/000000000000/missing"
    as_json = service.json("SendMessage", {"QueueUrl": url, "MessageBody": "a"})
    as_xml = service.handle(query_request(Action="PurgeQueue", QueueUrl=url))
    assert as_json.status == as_xml.status == 400
    assert json.loads(as_json.body)["__type"] == "com.amazonaws.sqs#QueueDoesNotExist"
    assert b"<Code>AWS.SimpleQueueService.NonExistentQueue</Code>" in as_xml.body


def test_queue_urls_begin_with_the_host_header(service):
    assert service.create_queue() == "http://sqs.test:9324/000000000000/orders"
    assert service.create_queue(host="[::1]:80") == "http://[::1]:80/000000000000/orders"


@pytest.mark.parametrize("host", ["", "a b", "evil/path", "user@host", "a" * 300, "h\u00f6st"])
def test_an_odd_host_header_never_reaches_a_queue_url(host):
    service = Service(base_url="http://127.0.0.1:9324")
    assert service.create_queue(host=host) == "http://127.0.0.1:9324/000000000000/orders"


def test_without_a_host_header_urls_begin_with_the_servers_own():
    service = Service(base_url="http://127.0.0.1:9324")
    request = json_request("CreateQueue", {"QueueName": "orders"})
    del request.headers["host"]
    url = answer(service.handle(request))["QueueUrl"]
    assert url == "http://127.0.0.1:9324/000000000000/orders"


def test_many_hosts_are_all_answered_with_their_own_url(service):
    urls = {service.create_queue(host=f"host-{number}") for number in range(300)}
    assert len(urls) == 300


def test_twelve_digits_as_access_key_are_the_callers_account(service):
    url = service.create_queue(authorization=signed("123456789012"))
    assert url.endswith("/123456789012/orders")


@pytest.mark.parametrize(
    "key", ["test", "12345678901", "1234567890123", "１２３４５６７８９０１２"]
)
def test_any_other_access_key_is_the_default_account(key):
    service = Service(account_id="111111111111")
    url = service.create_queue(authorization=signed(key))
    assert url.endswith("/111111111111/orders")


def test_the_credential_scope_decides_the_region(service):
    service.create_queue(authorization=signed(region="eu-west-1"))
    assert [queue.key.region for queue in service.broker.queues] == ["eu-west-1"]


def test_without_a_credential_scope_the_region_is_the_default():
    service = Service(region="ap-south-1")
    service.create_queue()
    assert [queue.key.region for queue in service.broker.queues] == ["ap-south-1"]


def test_logs_what_was_asked_and_answered(service):
    url = service.create_queue()
    service.json("SendMessage", {"QueueUrl": url, "MessageBody": "a"})
    record = list(service.log)[-1]
    assert record._replace(duration_ms=0.0) == (
        "SendMessage",
        "orders",
        DEFAULT_ACCOUNT,
        "us-east-1",
        "json",
        {"QueueUrl": url, "MessageBody": "a"},
        200,
        None,
        service.clock.now_ms,
        0.0,
        "127.0.0.1:5000",
        "http",
        False,
    )
    assert record.duration_ms > 0


def test_logs_parameters_by_wire_name_in_both_protocols(service):
    url = service.create_queue()
    service.json("SendMessage", {"QueueUrl": url, "MessageBody": "a", "DelaySeconds": 5})
    service.handle(
        query_request(Action="SendMessage", QueueUrl=url, MessageBody="a", DelaySeconds="5")
    )
    in_json, in_query = service.log.calls("SendMessage")
    assert in_json.parameters == in_query.parameters
    assert (in_json.protocol, in_query.protocol) == ("json", "query")


def test_logs_errors_by_the_code_that_boto3_shows(service):
    service.json("ReceiveMessage", {"QueueUrl": "orders"})
    (record,) = service.log
    assert (record.status, record.error_code) == (400, "AWS.SimpleQueueService.NonExistentQueue")


def test_logs_requests_that_name_no_action(service):
    response = service.handle(HttpRequest("GET", "/", "", {}, b""))
    assert response.status == 404
    (record,) = service.log
    assert (record.action, record.status, record.error_code) == (None, 404, "InvalidAction")


def test_logs_the_account_and_name_of_the_queue_that_the_url_names(service):
    service.json("ReceiveMessage", {"QueueUrl": "http://any/123456789012/orders"})
    service.json("StartMessageMoveTask", {"SourceArn": "arn:aws:sqs:eu-west-1:1:dead"})
    service.json("GetQueueUrl", {"QueueName": "q", "QueueOwnerAWSAccountId": "222222222222"})
    service.json("ListQueues", {})
    assert [(each.queue, each.account_id, each.region) for each in service.log] == [
        ("orders", "123456789012", "us-east-1"),
        ("dead", "1", "eu-west-1"),
        ("q", "222222222222", "us-east-1"),
        (None, DEFAULT_ACCOUNT, "us-east-1"),
    ]


def test_marks_queue_urls_that_were_not_handed_out_as_stale():
    service = Service(is_known=lambda key: key.name == "known")
    service.json("ReceiveMessage", {"QueueUrl": "known"})
    service.json("ReceiveMessage", {"QueueUrl": "unknown"})
    service.json("GetQueueUrl", {"QueueName": "unknown"})
    assert [each.stale for each in service.log] == [False, True, False]


def test_a_retired_gateway_answers_and_logs_no_more(service):
    service.gateway.retire()
    service.create_queue()
    assert len(service.log) == 0


def test_an_unexpected_failure_is_answered_in_shape_and_kept(service, monkeypatch):
    def fail(*_):
        raise LookupError("broken on purpose")

    url = service.create_queue()
    monkeypatch.setattr(service.broker, "send", fail)
    as_json = service.json("SendMessage", {"QueueUrl": url, "MessageBody": "a"})
    as_xml = service.handle(query_request(Action="SendMessage", QueueUrl=url, MessageBody="a"))
    assert as_json.status == as_xml.status == 500
    assert json.loads(as_json.body)["__type"].endswith("#InternalFailure")
    assert b"<Type>Receiver</Type><Code>InternalFailure</Code>" in as_xml.body
    assert b"Traceback" not in as_json.body + as_xml.body
    assert [each.error_code for each in service.log][-2:] == ["InternalFailure"] * 2
    failures = service.gateway.take_internal_failures()
    assert [type(each) for each in failures] == [LookupError, LookupError]
    assert failures[0].__traceback__ is not None
    assert service.gateway.take_internal_failures() == []


def test_authorize_may_refuse_a_call():
    asked: list[str] = []

    def authorize(_request, call):
        asked.append(call.action)
        raise AccessDenied("not today")

    service = Service(authorize=authorize)
    response = service.json("CreateQueue", {"QueueName": "orders"})
    assert response.status == 403
    assert asked == ["CreateQueue"]
    assert service.broker.queues == ()


def test_request_ids_look_like_uuids_and_differ():
    ids = {new_request_id() for _ in range(100)}
    assert len(ids) == 100
    assert {tuple(len(part) for part in each.split("-")) for each in ids} == {(8, 4, 4, 4, 12)}


class LongPoll(Thread):
    """A ReceiveMessage with the longest wait, on a thread of its own."""

    def __init__(self, service: Service, url: str, is_alive=lambda: True) -> None:
        super().__init__(daemon=True)
        self.service = service
        self.request = json_request(
            "ReceiveMessage", {"QueueUrl": url, "WaitTimeSeconds": 20}, is_alive
        )
        self.response: HttpResponse | None = None

    def run(self) -> None:
        self.response = self.service.handle(self.request)

    def park(self) -> LongPoll:
        gate = self.service.gate
        wanted = gate.parked_count + 1
        changes = gate.changes
        self.start()
        while gate.parked_count < wanted:
            changed = gate.wait_for_change(changes, LONG)
            assert changed != changes, "the poll did not park"
            changes = changed
        return self

    def ended(self) -> HttpResponse:
        self.join(LONG)
        assert self.response is not None
        return self.response


def test_a_parked_poll_is_answered_by_a_message(service):
    url = service.create_queue()
    poll = LongPoll(service, url).park()
    with service.gate.closed(timeout=0.01):
        pass
    service.json("SendMessage", {"QueueUrl": url, "MessageBody": "a"})
    assert answer(poll.ended())["Messages"][0]["Body"] == "a"
    assert service.gate.parked_count == service.gate.open_count == 0


def test_a_poll_answered_while_the_gate_is_closed_is_logged_before_it_opens(service):
    poll = LongPoll(service, service.create_queue()).park()
    with service.gate.closed():
        service.broker.end_polls(service.clock.now_ms + 20_000)
    assert len(service.log.calls("ReceiveMessage")) == 1
    assert "Messages" not in answer(poll.ended())


def test_a_poll_ended_by_a_stop_asks_to_close_the_connection(service):
    poll = LongPoll(service, service.create_queue()).park()
    service.broker.close_polls(None, close_connection=True)
    assert poll.ended().close is True


def test_a_poll_on_a_deleted_queue_fails(service):
    url = service.create_queue()
    poll = LongPoll(service, url).park()
    service.json("DeleteQueue", {"QueueUrl": url})
    assert json.loads(poll.ended().body)["__type"] == "com.amazonaws.sqs#QueueDoesNotExist"


def test_a_client_that_goes_away_frees_its_thread_and_takes_no_message(service, monkeypatch):
    monkeypatch.setattr("pytest_sqsq.gateway.gateway.ALIVE_CHECK_SECONDS", 0.01)
    gone = Event()
    url = service.create_queue()
    poll = LongPoll(service, url, lambda: not gone.is_set()).park()
    gone.set()
    assert "Messages" not in answer(poll.ended())
    service.json("SendMessage", {"QueueUrl": url, "MessageBody": "a"})
    assert len(answer(service.json("ReceiveMessage", {"QueueUrl": url}))["Messages"]) == 1


def test_a_poll_ends_when_its_real_time_is_up_although_the_clock_stands(service, monkeypatch):
    passed = 0.0
    monkeypatch.setattr("pytest_sqsq.gateway.gateway.ALIVE_CHECK_SECONDS", 0.01)
    monkeypatch.setattr("pytest_sqsq.gateway.gateway.monotonic", lambda: passed)
    poll = LongPoll(service, service.create_queue()).park()
    passed = 20.0
    assert "Messages" not in answer(poll.ended())
    assert service.gate.parked_count == 0
