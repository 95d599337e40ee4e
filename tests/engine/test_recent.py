from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_sqsq.engine.recent import Recent

WINDOW_MS = 300


@pytest.fixture
def recent() -> Recent[str, int]:
    return Recent(WINDOW_MS)


def test_a_note_is_found_until_its_window_is_over(recent) -> None:
    recent.remember("a", 1, 1000)
    assert recent.find("a", 1299) == 1
    assert recent.find("a", 1300) is None
    assert len(recent) == 0


def test_what_is_over_is_known_until_it_is_forgotten(recent) -> None:
    recent.remember("a", 1, 1000)
    assert recent.known("a") == 1
    recent.remember("b", 2, 1300)
    assert recent.known("a") is None
    assert recent.all() == [("b", 2)]


def test_a_note_replaces_an_earlier_one_and_begins_a_window_of_its_own(recent) -> None:
    recent.remember("a", 1, 1000)
    recent.remember("b", 2, 1100)
    recent.remember("a", 3, 1200)
    assert recent.all() == [("b", 2), ("a", 3)]
    assert recent.find("a", 1499) == 3
    assert recent.all() == [("a", 3)]


def test_each_key_that_is_forgotten_is_told_once_and_none_that_is_cleared(recent) -> None:
    told: list[str] = []
    recent.on_forgotten = told.append
    for number, key in enumerate("aba"):
        recent.remember(key, number, 1000 + number)
    recent.find("c", 2000)
    assert told == ["b", "a"]
    recent.remember("d", 4, 2000)
    recent.clear()
    assert recent.find("d", 3000) is None
    assert told == ["b", "a"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 200), st.booleans())))
def test_it_remembers_as_a_list_of_all_notes_would(steps) -> None:
    recent: Recent[str, int] = Recent(WINDOW_MS)
    notes: list[tuple[str, int]] = []
    now_ms = 0
    for key, step_ms, writes in steps:
        now_ms += step_ms
        if writes:
            notes.append((key, now_ms))
            recent.remember(key, now_ms, now_ms)
        latest = max((at_ms for noted, at_ms in notes if noted == key), default=-WINDOW_MS)
        assert recent.find(key, now_ms) == (latest if latest + WINDOW_MS > now_ms else None)
