"""What front ends and codecs hand to each other: HTTP messages, and a decoded call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Protocol = Literal["json", "query", "query-json"]
"""The form of an answer: AWS JSON 1.0, XML, or the JSON that a Query client may ask for."""


def _always_alive() -> bool:
    return True


@dataclass(slots=True)
class HttpRequest:
    """A request as a front end received it, whole.

    ``path`` (without the query) and ``query_string`` are the octets of the request line as
    Latin-1 text, percent-escapes included, as in WSGI.  Names of ``headers`` are in lower case.
    ``is_alive`` says whether the client still waits for the answer.
    """

    method: str
    path: str
    query_string: str
    headers: Mapping[str, str]
    body: bytes
    client_address: str = ""
    transport: Literal["http", "direct"] = "http"
    is_alive: Callable[[], bool] = _always_alive


@dataclass(slots=True)
class HttpResponse:
    """An answer.  The front end adds ``Date``, ``Content-Length`` and ``Connection``.

    ``close`` asks it to close the connection after the answer.  ``cut`` asks it to break the
    connection instead: before anything of the answer is written, or in the middle of it.
    """

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    close: bool = False
    cut: Literal["unanswered", "truncated"] | None = None


@dataclass(slots=True)
class Call:
    """A decoded request: an action of the service model and its parameters.

    ``parameters`` has the wire names of the JSON protocol's members, whichever protocol was
    spoken, and converted values: integers within 64 bits, blobs as bytes.  Members that the
    model does not know, and JSON nulls, are left out; whether a required member is there is for
    the action to check.  Text may hold lone surrogates, which JSON escapes can write.
    ``access_key`` and ``region`` are what the credential scope claims, if there is one.
    """

    action: str
    parameters: dict[str, Any]
    protocol: Protocol
    access_key: str | None = None
    region: str | None = None
    trace_header: str | None = None
