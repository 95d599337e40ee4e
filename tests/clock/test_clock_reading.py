from __future__ import annotations

import datetime as dt
import subprocess
import sys

import freezegun
import pytest
import time_machine

from pytest_sqsq.clock import Clock, monotonic, real_now_ms
from pytest_sqsq.errors import ClockModeError

START = "2030-01-01T00:00:00Z"
START_MS = 1_893_456_000_000
LONG_AGO = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def test_a_frozen_clock_stands_at_its_start() -> None:
    clock = Clock("frozen", start=START)

    assert clock.now_ms == START_MS
    assert clock.now == dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    assert clock.started_ms == START_MS


def test_a_clock_without_a_start_begins_at_the_real_now() -> None:
    before = real_now_ms()
    frozen = Clock("frozen").now_ms

    assert before <= frozen <= real_now_ms()


def test_a_live_clock_runs_from_its_start() -> None:
    before = monotonic()
    clock = Clock("live", start=START)
    reading = clock.now_ms
    elapsed_ms = (monotonic() - before) * 1000

    assert START_MS <= reading <= START_MS + elapsed_ms + 1


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("2030-01-01", START_MS),
        ("2030-01-01T00:00:00.250", START_MS + 250),
        ("2030-01-01T02:00:00+02:00", START_MS),
        (dt.datetime(2030, 1, 1, tzinfo=dt.UTC), START_MS),
    ],
)
def test_a_start_is_a_datetime_or_text(start: dt.datetime | str, expected: int) -> None:
    assert Clock("frozen", start=start).now_ms == expected


def test_a_naive_start_is_refused() -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        Clock("frozen", start=dt.datetime(2030, 1, 1))  # noqa: DTZ001 - the point of the test


def test_a_start_that_is_no_instant_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^'tomorrow' is not an instant in ISO 8601$"):
        Clock("frozen", start="tomorrow")


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown clock mode 'stopped'"):
        Clock("stopped")  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["live", "frozen", "autojump"])
@pytest.mark.parametrize(
    "patched", [freezegun.freeze_time(LONG_AGO), time_machine.travel(LONG_AGO, tick=False)]
)
def test_a_patched_process_clock_moves_no_clock(mode, patched) -> None:
    clock = Clock(mode, start=START)
    with patched:
        assert START_MS <= clock.now_ms < START_MS + 3_600_000
        assert clock.now.year == 2030
        assert real_now_ms() > LONG_AGO.timestamp() * 1000 + 3_600_000


@pytest.mark.parametrize("patch", ["freezegun.freeze_time", "time_machine.travel"])
def test_real_time_is_real_when_the_module_is_loaded_under_a_patched_clock(patch) -> None:
    package, function = patch.split(".")
    script = (
        f"import time\nreal = time.time()\nimport {package}\n"
        f"with {package}.{function}('2020-01-01'):\n"
        "    from pytest_sqsq.clock import real_now_ms, monotonic\n"
        "    print(abs(real_now_ms() / 1000 - real) < 3600, monotonic() < 1577836800)\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout

    assert printed == "True True\n"


@pytest.mark.parametrize(
    "travel", [freezegun.freeze_time, lambda at: time_machine.travel(at, tick=False)]
)
class TestSystemMode:
    def test_it_follows_the_process_clock(self, travel) -> None:
        with travel(LONG_AGO):
            clock = Clock("system")
            assert clock.now == LONG_AGO
            assert clock.started_ms == clock.now_ms
        with travel(LONG_AGO + dt.timedelta(days=1)):
            assert clock.now == LONG_AGO + dt.timedelta(days=1)

    def test_time_stands_while_the_process_clock_is_behind(self, travel) -> None:
        with travel(LONG_AGO + dt.timedelta(days=2)):
            clock = Clock("system")
        with travel(LONG_AGO):
            assert clock.now == LONG_AGO + dt.timedelta(days=2)
        with travel(LONG_AGO + dt.timedelta(days=3)):
            assert clock.now == LONG_AGO + dt.timedelta(days=3)

    def test_a_reset_lets_it_go_back(self, travel) -> None:
        with travel(LONG_AGO + dt.timedelta(days=2)):
            clock = Clock("system")
        with travel(LONG_AGO):
            clock.reset()
            assert clock.now == LONG_AGO


@pytest.mark.parametrize(
    "move",
    [
        lambda clock: clock.advance(1),
        lambda clock: clock.travel_to("2040-01-01"),
        lambda clock: clock.advance_to_next_event(),
        lambda clock: clock.steps(1),
        lambda clock: clock.freeze(),
        lambda clock: clock.resume(),
        lambda clock: clock.autojump(),
        lambda clock: clock.jump(lambda: None),
    ],
)
def test_a_system_clock_cannot_be_moved(move) -> None:
    with pytest.raises(ClockModeError, match="follows the process clock"):
        move(Clock("system"))


def test_a_system_clock_takes_no_start() -> None:
    with pytest.raises(ValueError, match="takes no start"):
        Clock("system", start=START)


def test_freeze_stops_a_live_clock_until_the_context_ends() -> None:
    clock = Clock("live", start=START)
    with clock.freeze():
        stands_at = clock.now_ms
        assert clock.mode == "frozen"
        assert clock.real_seconds_until(stands_at + 1000) is None
        clock.advance(60)
        assert clock.now_ms == stands_at + 60_000

    assert clock.mode == "live"
    assert stands_at + 60_000 <= clock.now_ms < stands_at + 120_000


def test_resume_lets_a_frozen_clock_run_until_the_context_ends() -> None:
    clock = Clock("frozen", start=START)
    with clock.resume():
        assert clock.mode == "live"
        assert clock.real_seconds_until(START_MS) == 0
        assert clock.real_seconds_until(START_MS + 3_600_000) == pytest.approx(3600, abs=60)

    assert clock.mode == "frozen"
    assert clock.now_ms == clock.now_ms >= START_MS


def test_freeze_and_resume_work_without_a_context() -> None:
    clock = Clock("live")
    clock.freeze()
    assert clock.mode == "frozen"
    clock.resume()
    assert clock.mode == "live"


def test_autojump_lets_a_clock_stand_until_the_context_ends() -> None:
    clock = Clock("live", start=START)
    with clock.autojump():
        stands_at = clock.now_ms
        assert clock.mode == "autojump"
        assert clock.real_seconds_until(stands_at + 1000) is None
        clock.advance(60)
        assert clock.now_ms == stands_at + 60_000

    assert clock.mode == "live"


def test_an_autojump_clock_without_a_server_stands() -> None:
    clock = Clock("autojump", start=START)
    assert clock.now_ms == START_MS
    assert clock.real_seconds_until(START_MS) is None


def test_the_rules_of_jumps_are_those_of_the_constructor_until_they_are_changed() -> None:
    clock = Clock("autojump", autojump_threshold=0.5, autojump_grace=3)
    assert clock.jump_rules == (0.5, 3, False)
    clock.autojump(threshold=0.1, skip_empty_polls=True)
    assert clock.jump_rules == (0.1, 3, True)
    clock.reset()
    assert clock.jump_rules == (0.5, 3, False)


def test_jumps_are_counted_until_a_reset() -> None:
    clock = Clock("autojump")
    clock.count_jump(busy=False)
    clock.count_jump(busy=True)
    assert (clock.jumps, clock.busy_jumps) == (2, 1)
    clock.reset()
    assert (clock.jumps, clock.busy_jumps) == (0, 0)


def test_what_was_begun_before_a_reset_undoes_nothing_after_it() -> None:
    clock = Clock("frozen")
    hold, live = clock.hold(), clock.resume()
    clock.reset()
    with clock.hold():
        hold.release()
        live.release()
        assert (clock.holds, clock.mode) == (1, "frozen")


def test_holds_are_counted_and_released_once() -> None:
    clock = Clock("frozen")
    outer = clock.hold()
    with clock.hold():
        assert clock.holds == 2
    outer.release()
    outer.release()

    assert clock.holds == 0


def test_reset_returns_to_the_first_mode_and_instant() -> None:
    clock = Clock("frozen", start=START)
    clock.advance(60)
    clock.call_every(1, lambda: None)
    clock.hold()
    clock.resume()
    clock.reset()

    assert (clock.mode, clock.now_ms, clock.holds) == ("frozen", START_MS, 0)
    assert clock.advance(10) == ()


def test_a_change_of_mode_and_a_new_callback_are_told() -> None:
    clock = Clock("frozen", start=START)
    told: list[str] = []
    clock.on_changed = lambda: told.append(clock.mode)
    clock.resume()
    clock.call_at(clock.now, lambda: None)

    assert told == ["live", "live"]
