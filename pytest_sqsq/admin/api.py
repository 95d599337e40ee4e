"""The control API as a whole: who may use it, and what is where."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address

from pytest_sqsq.admin import (
    clock,
    developer,
    faults,
    health,
    metrics,
    page,
    queues,
    requests,
    waiting,
)
from pytest_sqsq.admin.controlled import Controlled, Helpers
from pytest_sqsq.admin.fields import Refusal
from pytest_sqsq.admin.routing import Route, Router
from pytest_sqsq.errors import (
    ClockModeError,
    GateTimeout,
    QueueDoesNotExist,
    QueueNotFound,
)
from pytest_sqsq.protocol import HttpRequest, HttpResponse
from pytest_sqsq.protocol.plain import error_answer

PREFIX = "/_sqsq/"

ROUTES = (
    Route("GET", "", page.show),
    Route("GET", "health", health.show),
    Route("GET", "queues", queues.show_all, query=("account_id", "region", "prefix")),
    Route("GET", "queues/{account}/{region}/{name}", queues.show),
    Route(
        "GET",
        "queues/{account}/{region}/{name}/messages",
        queues.show_messages,
        query=("limit", "after", "state"),
    ),
    Route("GET", "clock", clock.show),
    Route("POST", "clock/advance", clock.advance, body=("seconds",)),
    Route("POST", "clock/travel_to", clock.travel_to, body=("instant",)),
    Route("POST", "clock/advance_to_next_event", clock.advance_to_next_event),
    Route("POST", "clock/freeze", clock.freeze),
    Route("POST", "clock/resume", clock.resume),
    Route(
        "POST", "clock/autojump", clock.autojump, body=("threshold", "grace", "skip_empty_polls")
    ),
    Route("POST", "tick", clock.tick),
    Route("POST", "reset", clock.reset),
    Route("GET", "requests", requests.show, query=("action", "queue", "limit")),
    Route("DELETE", "requests", requests.clear),
    Route("POST", "wait", waiting.wait, body=waiting.KEYS),
    Route("GET", "faults", faults.show),
    Route("POST", "faults", faults.plan, body=faults.KEYS),
    Route("DELETE", "faults", faults.clear),
    Route("DELETE", "faults/{id}", faults.remove),
    Route("GET", "metrics", metrics.show),
)


class ControlApi:
    """Answers the requests to the control API of a server."""

    def __init__(self, server: Controlled, helpers: Helpers) -> None:
        self._server = server
        self._helpers = helpers
        self._router = Router(ROUTES)

    def __call__(self, request: HttpRequest) -> HttpResponse | None:
        """The answer; ``None`` where there is nothing at that path."""
        access = self._server.options["control"]
        if access == "off":
            return None
        try:
            if access == "loopback" and not is_local(request):
                raise Refusal(
                    403,
                    "the control API is for clients on the same machine, not for"
                    f" {request.client_address or 'one of no address'}; the option"
                    " control='anywhere' opens it",
                )
            with _told():
                return self._answer(request)
        except Refusal as refusal:
            return error_answer(refusal.status, refusal.text, refusal.headers)

    def _answer(self, request: HttpRequest) -> HttpResponse | None:
        if request.path.startswith(developer.PREFIX):
            return developer.answer(self._server, request)
        if not request.path.startswith(PREFIX):
            return page.lead_to(PREFIX)
        path = request.path.removeprefix(PREFIX)
        return self._router.answer(self._server, self._helpers, request, path)


@contextmanager
def _told() -> Iterator[None]:
    """What an answer says of the failures that a client can do something about."""
    try:
        yield
    except QueueDoesNotExist as error:
        raise Refusal(404, error.message) from None
    except QueueNotFound as error:
        raise Refusal(404, str(error)) from None
    except ClockModeError as error:
        raise Refusal(409, str(error)) from None
    except GateTimeout as error:
        raise Refusal(503, str(error)) from None


def is_local(request: HttpRequest) -> bool:
    """Whether a request came from the machine that the server runs on."""
    if request.transport == "direct":
        return True
    address = request.client_address
    if address.startswith("["):
        address = address[1:].partition("]")[0]
    elif address.count(":") == 1:
        address = address.partition(":")[0]
    try:
        host = ip_address(address)
    except ValueError:
        return False
    if isinstance(host, IPv6Address) and host.ipv4_mapped is not None:
        return host.ipv4_mapped.is_loopback
    return host.is_loopback
