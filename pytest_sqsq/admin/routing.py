"""From a method and a path to what answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from pytest_sqsq.admin.controlled import Controlled, Helpers
from pytest_sqsq.admin.fields import Fields, Refusal, body_fields, query_fields
from pytest_sqsq.protocol import HttpRequest, HttpResponse


@dataclass(frozen=True)
class Asked:
    """A request on its way to the handler of its route.

    ``captured`` are the parts of the path that a route leaves open, by name.
    """

    server: Controlled
    helpers: Helpers
    request: HttpRequest
    captured: Mapping[str, str]
    query: Fields
    body: Fields


Handler = Callable[[Asked], HttpResponse]


class Route(NamedTuple):
    """What answers at a path, such as ``queues/{account}``, and the keys that it takes."""

    method: str
    path: str
    handler: Handler
    query: tuple[str, ...] = ()
    body: tuple[str, ...] = ()


class Router:
    """Finds the route of a request, and reads what it says."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._by_path: dict[tuple[str, ...], dict[str, Route]] = {}
        for route in routes:
            self._by_path.setdefault(tuple(route.path.split("/")), {})[route.method] = route

    def answer(
        self, server: Controlled, helpers: Helpers, request: HttpRequest, path: str
    ) -> HttpResponse | None:
        """The answer, ``None`` where there is nothing at ``path``.  Raises :class:`Refusal`."""
        found = self._find(path)
        if found is None:
            return None
        methods, captured = found
        method = "GET" if request.method == "HEAD" else request.method
        route = methods.get(method)
        if route is None:
            raise wrong_method(request, methods)
        query = query_fields(request, route.query)
        body = (
            body_fields(request, route.body) if method == "POST" else Fields("key", {}, route.body)
        )
        return route.handler(Asked(server, helpers, request, captured, query, body))

    def _find(self, path: str) -> tuple[Mapping[str, Route], Mapping[str, str]] | None:
        segments = path.split("/")
        for parts, methods in self._by_path.items():
            if len(parts) != len(segments):
                continue
            captured = {}
            for part, segment in zip(parts, segments, strict=True):
                if part.startswith("{"):
                    captured[part.strip("{}")] = unquote(segment, errors="replace")
                elif part != segment:
                    break
            else:
                return methods, captured
        return None


def wrong_method(request: HttpRequest, methods: Iterable[str]) -> Refusal:
    """What a request is told whose path takes other methods."""
    allowed = sorted({*methods, *(["HEAD"] if "GET" in methods else ())})
    *others, last = allowed
    words = f"{', '.join(others)} and {last} are" if others else f"{last} is"
    text = f"{request.method} is not possible at {request.path}; {words}"
    return Refusal(405, text, [("Allow", ", ".join(allowed))])
