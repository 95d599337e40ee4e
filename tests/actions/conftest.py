from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

import pytest

from pytest_sqsq.actions import ActionContext, perform
from pytest_sqsq.clock import Clock
from pytest_sqsq.engine import Broker, Waiter
from pytest_sqsq.errors import SqsError
from pytest_sqsq.gateway.gate import RequestGate
from pytest_sqsq.gateway.gateway import Gateway
from pytest_sqsq.gateway.requests import RequestLog
from pytest_sqsq.protocol import HttpRequest, HttpResponse
from pytest_sqsq.protocol.model import ListOf, MapOf, Scalar, Shape, Structure, operations

ACCOUNT = "123456789012"
BASE_URL = "http://sqs.test:9324"


class Caller:
    """Calls actions as one account in one region, on a broker whose clock stands still.

    A poll that would park is ended at once, unless ``while_parked`` says what happens then.
    """

    def __init__(
        self, broker: Broker, clock: Clock, account_id: str = ACCOUNT, region: str = "us-east-1"
    ) -> None:
        self.broker = broker
        self.clock = clock
        self.parked: list[Waiter] = []
        self.while_parked: Callable[[Waiter], object] = broker.cancel_poll
        self.context = ActionContext(
            broker=broker,
            account_id=account_id,
            region=region,
            base_url=BASE_URL,
            park=self._park,
            is_alive=lambda: True,
        )

    def _park(self, waiter: Waiter) -> None:
        self.parked.append(waiter)
        self.while_parked(waiter)

    def __call__(self, action: str, **parameters: Any) -> dict[str, Any]:
        return perform(self.context, action, parameters) or {}

    def error(self, action: str, **parameters: Any) -> SqsError:
        with pytest.raises(SqsError) as caught:
            perform(self.context, action, parameters)
        return caught.value

    def other(self, account_id: str | None = None, region: str | None = None) -> Caller:
        context = self.context
        return Caller(
            self.broker, self.clock, account_id or context.account_id, region or context.region
        )

    def create(self, name: str, **attributes: str) -> str:
        if name.endswith(".fifo"):
            attributes.setdefault("FifoQueue", "true")
        return str(self("CreateQueue", QueueName=name, Attributes=attributes)["QueueUrl"])

    def attributes(self, queue: str, *names: str) -> dict[str, str]:
        asked = list(names or ["All"])
        reply = self("GetQueueAttributes", QueueUrl=queue, AttributeNames=asked)
        return dict(reply.get("Attributes", {}))

    def everything(self) -> dict[str, Any]:
        """All attributes and tags of the caller's queues, by URL."""
        return {
            url: (self.attributes(url), self("ListQueueTags", QueueUrl=url))
            for url in self("ListQueues").get("QueueUrls", [])
        }

    def arn(self, queue: str) -> str:
        return self.attributes(queue, "QueueArn")["QueueArn"]

    def send(self, queue: str, body: str, **parameters: Any) -> dict[str, Any]:
        return self("SendMessage", QueueUrl=queue, MessageBody=body, **parameters)

    def receive(self, queue: str, **parameters: Any) -> list[dict[str, Any]]:
        return list(self("ReceiveMessage", QueueUrl=queue, **parameters).get("Messages", []))

    def receive_one(self, queue: str, **parameters: Any) -> dict[str, Any]:
        (message,) = self.receive(queue, **parameters)
        return dict(message)


@pytest.fixture
def clock() -> Clock:
    return Clock("frozen", start="2030-01-01T00:00:00Z")


@pytest.fixture
def broker(clock: Clock) -> Broker:
    return Broker(clock, seed=1)


@pytest.fixture
def sqs(broker: Broker, clock: Clock) -> Caller:
    return Caller(broker, clock)


@pytest.fixture
def prepared(sqs: Caller) -> Caller:
    """A caller with one queue for each kind of fault; ``taken`` is a label of ``plain``."""
    arn = f"arn:aws:sqs:us-east-1:{ACCOUNT}:"
    target = {"deadLetterTargetArn": f"{arn}dlq", "maxReceiveCount": 3}
    chosen = {"redrivePermission": "byQueue", "sourceQueueArns": [f"{arn}source"]}
    sqs.create("plain")
    sqs.create("small", MaximumMessageSize="1024")
    sqs.create("plain.fifo")
    sqs.create("content.fifo", ContentBasedDeduplication="true")
    sqs.create("dlq")
    sqs.create("dlq.fifo")
    sqs.create("source", RedrivePolicy=json.dumps(target))
    sqs.create("closed", RedriveAllowPolicy='{"redrivePermission": "denyAll"}')
    sqs.create("chosen", RedriveAllowPolicy=json.dumps(chosen))
    sqs.other(region="eu-west-1").create("dlq")
    sqs.other("999999999999").create("dlq")
    sqs(
        "AddPermission",
        QueueUrl="plain",
        Label="taken",
        AWSAccountIds=["111111111111"],
        Actions=["SendMessage"],
    )
    return sqs


def base64(value: bytes) -> str:
    return b64encode(value).decode()


def query_fields(shape: Shape, name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The form fields in which a Query client writes a value of this shape under a name."""
    match shape:
        case Scalar():
            yield name, base64(value) if isinstance(value, bytes) else str(value)
        case ListOf():
            for number, item in enumerate(value, 1):
                yield from query_fields(shape.member, f"{name}.{number}", item)
        case MapOf():
            for number, (key, item) in enumerate(value.items(), 1):
                yield f"{name}.{number}.{shape.key_name}", key
                yield from query_fields(shape.value, f"{name}.{number}.{shape.value_name}", item)
        case Structure():
            for member, part in shape.members.items():
                if member in value:
                    is_plain = isinstance(part, Scalar | Structure)
                    below = member if is_plain else part.element
                    path = f"{name}.{below}" if name else below
                    if value[member] == []:
                        # As botocore wrote an empty list.
                        yield f"{name}.{member}" if name else member, ""
                    yield from query_fields(part, path, value[member])


#: What is worded differently in Query.
QUERY_TEXTS = {
    "The specified queue does not exist.": (
        "The specified queue does not exist for this wsdl version."
    ),
    "The request must contain the parameter AWSAccountIds.": (
        "The request must contain the parameter AWSAccountId."
    ),
    "The request must contain the parameter Actions.": (
        "The request must contain the parameter ActionName."
    ),
}


class Wire:
    """Sends the requests of one protocol to the prepared queues, and reads the refusals."""

    def __init__(self, caller: Caller, protocol: str) -> None:
        self.protocol = protocol
        self._gate = RequestGate()
        self._gateway = Gateway(caller.broker, self._gate, RequestLog(), account_id=ACCOUNT)

    def refusal(self, action: str, parameters: dict[str, Any]) -> tuple[str, int, str]:
        """Code, status and text of the answer to a faulty request."""
        build = self._in_json if self.protocol == "json" else self._in_query
        with self._gate.request("a test"):
            return self._read(self._gateway.handle(build(action, parameters)))

    def wording(self, text: str) -> str:
        """How a text of the JSON protocol is worded in this one."""
        return text if self.protocol == "json" else QUERY_TEXTS.get(text, text)

    def _in_json(self, action: str, parameters: dict[str, Any]) -> HttpRequest:
        body = json.dumps(parameters, default=base64).encode()
        return HttpRequest("POST", "/", "", {"x-amz-target": f"AmazonSQS.{action}"}, body)

    def _in_query(self, action: str, parameters: dict[str, Any]) -> HttpRequest:
        shape = operations()[action].input if action in operations() else Structure(action, {})
        fields = [("Action", action), *query_fields(shape, "", parameters)]
        headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
        return HttpRequest("POST", "/", "", headers, urlencode(fields).encode())

    def _read(self, response: HttpResponse) -> tuple[str, int, str]:
        if self.protocol == "json":
            code = dict(response.headers)["x-amzn-query-error"].removesuffix(";Sender")
            return code, response.status, json.loads(response.body)["message"]
        error = ET.fromstring(response.body).find("{*}Error")
        assert error is not None
        code, text = error.findtext("{*}Code", ""), error.findtext("{*}Message", "")
        return code, response.status, text


@pytest.fixture(params=["json", "query"])
def wire(request: pytest.FixtureRequest, prepared: Caller) -> Wire:
    return Wire(prepared, request.param)
