"""The page for people."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from pytest_sqsq.admin.routing import Asked
from pytest_sqsq.protocol import HttpResponse

_POLICY = (
    "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline';"
    " style-src 'unsafe-inline'; frame-ancestors 'none'"
)
_HEADERS = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-cache"),
    ("Content-Security-Policy", _POLICY),
)


def show(asked: Asked) -> HttpResponse:  # noqa: ARG001 - as every handler
    """``GET /_sqsq/``."""
    return HttpResponse(200, list(_HEADERS), _page())


def lead_to(path: str) -> HttpResponse:
    """Where the page is."""
    return HttpResponse(308, [("Location", path)], b"")


@cache
def _page() -> bytes:
    return files(__package__).joinpath("page.html").read_bytes()
