"""Nothing that is sent brings the control API down, or makes it answer with anything but JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from pytest_sqsq import SqsServer
from pytest_sqsq.admin.api import ROUTES
from pytest_sqsq.protocol import HttpRequest, HttpResponse

VALUES = [
    *(None, True, False, 0, -1, 1, 5, 0.01, 1e300, 10**400, [], [[]], {}, {"a": 1}),
    *("", "a", "orders", "x" * 500, "\ud800", "\0", "//", "a/", "2031-01-01", "arn:aws:sqs:a:b:c"),
    *("idle", "empty", "messages", "pollers", "add", "throttle", "late_duplicate", "virtual"),
    *({"pattern": "("}, {"pattern": "a"}, {"pattern": 1}, "http://x/000000000000/orders"),
]
WORDS = [
    "1",
    "0",
    "x",
    "orders",
    "%ff",
    "%zz",
    "9" * 30,
    "",
    "visible",
    "a=b",
    "&",
    "ReceiveMessage",
]
PARTS = ["000000000000", "us-east-1", "orders", "1", "%ff", "%00", "%2F", "é"]
HEADERS = [
    {},
    {"content-type": "application/json"},
    {"content-type": "application/x-www-form-urlencoded"},
    {"content-type": "application/x-amz-json-1.0", "x-amz-target": "AmazonSQS.ReceiveMessage"},
    {"x-amz-target": "nothing", "accept": "application/json"},
]
DEVELOPER = "/_aws/sqs/messages"


def requests(chances: random.Random, count: int) -> Iterator[HttpRequest]:
    for _ in range(count):
        route = chances.choice([each for each in ROUTES if each.path])
        segments = route.path.split("/")
        path = "/_sqsq/" + "/".join(
            chances.choice(PARTS) if each.startswith("{") else each for each in segments
        )
        values = {key: chances.choice(VALUES) for key in route.body if chances.random() < 0.5}
        if "timeout" in route.body:
            values["timeout"] = 0
        fields = {key: chances.choice(WORDS) for key in route.query if chances.random() < 0.5}
        headers = HEADERS[1]
        if chances.random() < 0.2:
            path = chances.choice([DEVELOPER, DEVELOPER + "/" + "/".join(PARTS[2::-1]), path + "/"])
            names = ("QueueUrl", "ShowDelayed", "Action", "MaxNumberOfMessages")
            fields = {name: chances.choice(WORDS) for name in names if chances.random() < 0.5}
            headers = chances.choice(HEADERS)
        body = json.dumps(values).encode()
        if chances.random() < 0.1:
            body = chances.randbytes(20)
        method = route.method if chances.random() < 0.9 else chances.choice(["GET", "POST", "PUT"])
        yield HttpRequest(method, path, urlencode(fields), headers, body, "127.0.0.1:5")


def answer(server: SqsServer, request: HttpRequest) -> HttpResponse:
    with server.traffic.request("a test"):
        return server.handle(request)


@pytest.mark.parametrize("seed", range(4))
def test_hostile_requests_are_refused_in_json(server, seed) -> None:
    for request in requests(random.Random(seed), 500):
        if not server.queues:
            server.create_queue("orders").send("a")

        response = answer(server, request)

        assert response.status < 500, (request, response)
        kind = dict(response.headers)["Content-Type"]
        if request.path.startswith(DEVELOPER):
            assert kind in {"text/xml", "application/json", "application/x-amz-json-1.0"}
        elif request.path.startswith("/_sqsq/metrics") and response.status == 200:
            assert kind.startswith("text/plain")
        else:
            assert kind == "application/json", request
            json.loads(response.body)
    server.check()
