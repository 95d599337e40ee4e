"""The control API of a server, put together with the first request to it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pytest_sqsq.testing import waits
from pytest_sqsq.testing.queues import find_key
from pytest_sqsq.testing.views import live_view

if TYPE_CHECKING:
    from pytest_sqsq.admin import ControlApi
    from pytest_sqsq.http.wsgi import Admin
    from pytest_sqsq.protocol import HttpRequest, HttpResponse
    from pytest_sqsq.server import SqsServer


def control_of(server: SqsServer) -> Admin:
    """What answers the requests to the server's control API."""

    @cache
    def api() -> ControlApi:
        from pytest_sqsq.admin import ControlApi, Helpers

        return ControlApi(
            server,
            Helpers(
                view=live_view,
                find_key=lambda name: find_key(
                    server, name, server.options["account_id"], server.options["region"]
                ),
                until_idle=lambda timeout: waits.until_idle(server, timeout),
                until_parked=lambda n, queue, timeout: waits.until_parked(
                    server, n, queue, timeout
                ),
                until_there=lambda key, body, count, state, timeout: waits.until_there(
                    server, key, body=body, count=count, state=state, timeout=timeout
                ),
                until_empty=lambda key, timeout: waits.until_empty(server, key, timeout),
            ),
        )

    def answer(request: HttpRequest) -> HttpResponse | None:
        return api()(request)

    return answer
