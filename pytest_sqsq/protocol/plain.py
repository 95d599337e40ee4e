"""Answers in plain JSON, which the control API speaks."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any

from pytest_sqsq.protocol.wire import HttpResponse

JSON_TYPE = ("Content-Type", "application/json")


def json_answer(document: Mapping[str, Any], status: int = 200) -> HttpResponse:
    """A document as an answer; bytes in it become ``{"base64": "…"}``."""
    body = json.dumps(document, default=_bytes_document).encode("ascii")
    return HttpResponse(status, [JSON_TYPE], body)


def error_answer(
    status: int, message: str, headers: Iterable[tuple[str, str]] = ()
) -> HttpResponse:
    """An error of the control API."""
    response = json_answer({"error": message}, status)
    response.headers += headers
    return response


def _bytes_document(value: object) -> dict[str, str]:
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode("ascii")}
    raise TypeError(f"{type(value).__name__} has no form in JSON")
