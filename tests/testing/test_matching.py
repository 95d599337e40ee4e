from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest

from pytest_sqsq.testing.matching import Criteria, json_difference

if TYPE_CHECKING:
    from collections.abc import Callable


def is_shout(body: str) -> bool:
    return body.isupper()


@pytest.mark.parametrize(
    ("body", "text", "accepted"),
    [
        ("order", "order", True),
        ("order", "order-7", False),
        ("order", "an order", False),
        (re.compile("order"), "an order-7", True),
        (re.compile("^order$"), "order-7", False),
        (is_shout, "ORDER", True),
        (is_shout, "order", False),
        (None, "anything", True),
    ],
)
def test_a_body_is_a_text_a_pattern_or_a_callable(body: Any, text: str, accepted: bool) -> None:
    assert Criteria(body=body).accepts_body(text) is accepted


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({}, {"a": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}),
        ({"a": (1, 2)}, {"a": [1, 2]}),
        ({"a": ANY}, {"a": None}),
        ({"a": ANY}, {"a": True}),
        ({"a": [ANY, 2]}, {"a": [1, 2]}),
        (ANY, [1]),
        ("text", "text"),
        (1, 1.0),
    ],
)
def test_json_matches_a_part_of_the_body_at_every_depth(expected: Any, actual: Any) -> None:
    assert json_difference(expected, actual, exact=False) is None


@pytest.mark.parametrize(
    ("expected", "actual", "difference"),
    [
        ({"a": 1}, {}, "$.a is missing"),
        ({"a": 1}, {"a": 2}, "$.a is 2, not 1"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "$.a.b is 2, not 1"),
        ({"a": [1, 2]}, {"a": [1]}, "$.a has length 1, not 2"),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "$.a[1].b is 3, not 2"),
        ({"a": 1}, {"a": True}, "$.a is True, not 1"),
        ({"a": False}, {"a": 0}, "$.a is 0, not False"),
        ({"a": {}}, {"a": []}, "$.a is [], not {}"),
        ({"a": None}, {}, "$.a is missing"),
        ([1], {"a": 1}, "$ is {'a': 1}, not [1]"),
    ],
)
def test_a_json_difference_is_told_by_its_path(expected: Any, actual: Any, difference: str) -> None:
    assert json_difference(expected, actual, exact=False) == difference


@pytest.mark.parametrize(
    ("actual", "difference"),
    [
        ({"a": {"b": 1}}, None),
        ({"a": {"b": 1}, "c": 2}, "$.c is not expected"),
        ({"a": {"b": 1, "c": 2}}, "$.a.c is not expected"),
    ],
)
def test_exact_json_has_nothing_beside_what_is_expected(
    actual: Any, difference: str | None
) -> None:
    assert json_difference({"a": {"b": ANY}}, actual, exact=True) == difference


def test_a_body_that_is_no_json_matches_no_json() -> None:
    assert not Criteria(json={}).accepts_body("{")
    assert Criteria(json={}).accepts_body("{}")


@pytest.mark.parametrize(
    ("wanted", "actual", "matches"),
    [
        ("order", "order", True),
        ("order", "orders", False),
        (3, "3", True),
        (3, "3.0", True),
        (0.5, "0.50", True),
        (Decimal("1.10"), "1.1", True),
        (3, "three", False),
        (3, b"3", False),
        (b"\x00", b"\x00", True),
        (re.compile("^or"), "order", True),
        (re.compile("^or"), "nor", False),
        (ANY, b"\x00", True),
    ],
)
def test_attributes_are_compared_as_plain_values(
    world: Any, wanted: Any, actual: str | bytes, matches: bool
) -> None:
    queue = world.queue("orders")
    attribute = (
        {"DataType": "Binary", "BinaryValue": actual}
        if isinstance(actual, bytes)
        else {"DataType": "String", "StringValue": actual}
    )
    view = queue.send("a", MessageAttributes={"k": attribute})
    assert Criteria(attributes={"k": wanted}).matches(view) is matches
    assert not Criteria(attributes={"other": ANY}).matches(view)


def test_an_unknown_state_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^state 'inflight' is none of 'visible', 'in_flight', 'delayed'$"
    ):
        Criteria(state="inflight")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"body": 5}, "body is text, a compiled pattern for text, or a callable, not 5"),
        (
            {"body": re.compile(b"a")},
            "body is text, a compiled pattern for text, or a callable, not re.compile(b'a')",
        ),
        ({"body": "a", "exact": True}, "exact=True is about json=, and there is none"),
        ({"attributes": ["k"]}, "attributes are plain values by name, not ['k']"),
    ],
)
def test_what_matches_nothing_by_mistake_is_refused(given: dict[str, Any], error: str) -> None:
    with pytest.raises(TypeError) as caught:
        Criteria(**given)
    assert str(caught.value) == error


def test_long_bodies_that_begin_alike_are_told_apart(
    world: Any, failure_of: Callable[..., str]
) -> None:
    queue = world.queue("orders")
    queue.send("x" * 200 + "a")
    assert failure_of(queue.assert_contains, "x" * 200 + "b" * 30).splitlines()[-2] == (
        f"    the body goes on with 'a' after 200 characters, not with '{'b' * 19}…'"
    )


def test_large_values_are_cut(world: Any, failure_of: Callable[..., str]) -> None:
    queue = world.queue("orders")
    large = "x" * 1000
    queue.send(
        f'{{"a": "{large}"}}',
        MessageAttributes={"k": {"DataType": "String", "StringValue": large}},
    )
    text = failure_of(queue.assert_contains, json={"a": [large]}, attributes={"k": large[1:]})
    assert max(map(len, text.splitlines())) < 700


def test_any_body_will_do() -> None:
    assert Criteria(body=ANY) == Criteria()


@pytest.mark.parametrize(
    ("criteria", "count", "phrase"),
    [
        (Criteria(), 0, "no message"),
        (Criteria(), 1, "1 message"),
        (Criteria(), None, "at least 1 message"),
        (Criteria(body="a", state="visible"), 2, "2 visible messages with body 'a'"),
        (Criteria(body=re.compile("^a")), 1, "1 message with a body matching '^a'"),
        (Criteria(body=is_shout), 1, "1 message with a body that is_shout accepts"),
        (
            Criteria(json={"a": ANY}, attributes={"k": 1}, group_id="g", state="in_flight"),
            1,
            "1 message in flight with json {'a': <ANY>} and attributes {'k': 1} in group 'g'",
        ),
        (
            Criteria(json={"a": 1}, exact=True, state="delayed"),
            1,
            "1 delayed message with exactly the json {'a': 1}",
        ),
        (Criteria(body="x" * 81), 1, f"1 message with body '{'x' * 79}…'"),
    ],
)
def test_criteria_read_as_a_phrase(criteria: Criteria, count: int | None, phrase: str) -> None:
    assert criteria.phrase(count) == phrase
