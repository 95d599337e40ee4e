from __future__ import annotations

import re

from pytest_sqsq.admin.api import ROUTES


def test_the_page_is_html_that_loads_nothing_from_elsewhere(remote) -> None:
    answer = remote.get("")

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; ")
    page = answer.body.decode()
    assert page.startswith("<!doctype html>")
    assert not re.search("(src|href)=|https?:|@import", page)


def test_texts_of_messages_cannot_become_markup(remote) -> None:
    page = remote.get("").body.decode()

    assert "textContent" in page
    assert not re.search(r"(inner|outer)HTML|insertAdjacent|document\.write|eval\(", page)


def test_what_the_page_asks_for_is_there(remote) -> None:
    page = remote.get("").body.decode()
    served = {(route.method, route.path) for route in ROUTES}

    posted = re.findall('data-path="([a-z_/]+)"', page)
    read = re.findall(r'ask\("([a-z_/]+)"\)', page)

    assert {("POST", path) for path in posted} | {("GET", path) for path in read} <= served
    assert (len(posted), read) == (5, ["clock", "queues"])


def test_the_way_to_the_page_is_shown(remote) -> None:
    answer = remote.send("GET", "/_sqsq")

    assert (answer.status, answer.headers["location"], answer.body) == (308, "/_sqsq/", b"")
