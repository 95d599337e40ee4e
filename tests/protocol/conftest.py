from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_sqsq.errors import SqsError
from pytest_sqsq.protocol import HttpRequest, ProtocolFault, decode

JSON = "application/x-amz-json-1.0"
FORM = "application/x-www-form-urlencoded; charset=utf-8"


@pytest.fixture
def json_request() -> Callable[..., HttpRequest]:
    """A request as today's SDKs send it; parameters as a dict, or the body as it stands."""

    def build(action: str, parameters: Any = None, **headers: str) -> HttpRequest:
        body = (
            parameters if isinstance(parameters, bytes) else json.dumps(parameters or {}).encode()
        )
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        lines = {"x-amz-target": f"AmazonSQS.{action}", "content-type": JSON, **named}
        return HttpRequest("POST", "/", "", lines, body)

    return build


@pytest.fixture
def form_request() -> Callable[..., HttpRequest]:
    """A request as old SDKs send it: fields in the body."""

    def build(fields: str | bytes, path: str = "/", **headers: str) -> HttpRequest:
        body = fields if isinstance(fields, bytes) else fields.encode()
        return HttpRequest("POST", path, "", {"content-type": FORM, **headers}, body)

    return build


@pytest.fixture
def get_request() -> Callable[..., HttpRequest]:
    """A request as somebody types it: fields in the query string."""

    def build(fields: str, path: str = "/123456789012/q", **headers: str) -> HttpRequest:
        return HttpRequest("GET", path, fields, headers, b"")

    return build


@pytest.fixture
def refusal() -> Callable[[HttpRequest], SqsError]:
    """The error with which a request is refused."""

    def error_of(request: HttpRequest) -> SqsError:
        with pytest.raises(ProtocolFault) as caught:
            decode(request)
        return caught.value.error

    return error_of
