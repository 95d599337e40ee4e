from __future__ import annotations

import datetime as dt
import threading
from contextlib import contextmanager

import pytest

from pytest_sqsq.clock import Clock
from pytest_sqsq.models import Event

START = "2030-01-01T00:00:00Z"
START_MS = 1_893_456_000_000


def at(seconds: float) -> dt.datetime:
    return dt.datetime(2030, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)


class World:
    """A driver in which messages become visible and polls end at given seconds."""

    def __init__(self, visible=(), polls=()) -> None:
        self.visible = [START_MS + round(1000 * s) for s in visible]
        self.polls = [START_MS + round(1000 * s) for s in polls]
        self.gate = "open"
        self.trace: list[str] = []
        self.on_settle = lambda now_ms: None
        self.lock = threading.Lock()

    @contextmanager
    def exclusive(self):
        with self.lock:
            self.gate = "closed"
            try:
                yield
            finally:
                self.gate = "open"

    @contextmanager
    def serialised(self):
        with self.lock:
            yield

    @contextmanager
    def released(self):
        self.gate = "open"
        try:
            yield
        finally:
            self.gate = "closed"

    def next_due_ms(self):
        return min([*self.visible, *self.polls], default=None)

    def next_event(self):
        due = self.next_due_ms()
        return None if due is None else Event(due, "visible", "orders")

    def settle(self, now_ms):
        self.on_settle(now_ms)
        return self._take(self.visible, now_ms, "visible")

    def end_polls(self, now_ms):
        return self._take(self.polls, now_ms, "poll_ended")

    def _take(self, instants, now_ms, kind):
        due = sorted(instant for instant in instants if instant <= now_ms)
        instants[:] = [instant for instant in instants if instant > now_ms]
        self.trace += [kind] * len(due)
        return [Event(instant, kind, "orders") for instant in due]


def frozen(world: World | None = None) -> Clock:
    clock = Clock("frozen", start=START)
    if world is not None:
        clock.attach(world)
    return clock


def told(events) -> list[tuple[float, str]]:
    return [((event.at_ms - START_MS) / 1000, event.kind) for event in events]


@pytest.mark.parametrize(
    ("duration", "milliseconds"),
    [
        (30, 30_000),
        (29.999, 29_999),
        (0.1 + 0.2, 300),
        (0, 0),
        (dt.timedelta(days=14), 1_209_600_000),
        (dt.timedelta(milliseconds=1), 1),
        (dt.timedelta(microseconds=1_500_400), 1_500),
    ],
)
def test_advance_is_exact_to_the_millisecond(duration, milliseconds) -> None:
    clock = frozen()
    clock.advance(duration)

    assert clock.now_ms == START_MS + milliseconds


@pytest.mark.parametrize("duration", [-1, -0.001, dt.timedelta(seconds=-1), float("nan"), 1e400])
def test_advance_refuses_what_is_no_span_ahead(duration) -> None:
    with pytest.raises(ValueError, match=r"time cannot go back|must be finite"):
        frozen().advance(duration)


def test_a_clock_goes_to_the_end_of_the_calendar_and_no_further() -> None:
    clock = frozen()
    clock.travel_to("9900-01-01T00:00:00Z")
    for attempt in (
        lambda: clock.advance(0.001),
        lambda: clock.travel_to("9900-01-01T00:00:00.001Z"),
        lambda: next(clock.steps(1)),
        lambda: clock.call_every(1, pytest.fail),
        lambda: Clock("frozen", start="9999-12-31"),
    ):
        with pytest.raises(ValueError, match=r"^the clock goes to 9900-01-01T00:00:00Z at most$"):
            attempt()
    assert clock.now == dt.datetime(9900, 1, 1, tzinfo=dt.UTC)


@pytest.mark.parametrize("duration", ["30", None, True])
def test_advance_refuses_what_is_no_duration(duration) -> None:
    with pytest.raises(TypeError, match="a duration is seconds or a timedelta"):
        frozen().advance(duration)


def test_advance_visits_each_due_instant_in_order_and_returns_what_happened() -> None:
    world = World(visible=[5, 1, 30, 31], polls=[20])
    clock = frozen(world)
    seen: list[float] = []
    world.on_settle = lambda now_ms: seen.append((clock.now_ms - START_MS) / 1000)

    assert told(clock.advance(30)) == [
        (1, "visible"),
        (5, "visible"),
        (20, "poll_ended"),
        (30, "visible"),
    ]
    assert seen == [1, 5, 20, 30]
    assert clock.now == at(30)


def test_an_event_a_millisecond_past_the_span_stays_due() -> None:
    clock = frozen(World(visible=[30]))

    assert clock.advance(29.999) == ()
    assert told(clock.advance(0.001)) == [(30, "visible")]


def test_advance_by_nothing_settles_what_is_overdue() -> None:
    clock = frozen(World(visible=[-5, 0]))

    assert told(clock.advance(0)) == [(-5, "visible"), (0, "visible")]
    assert clock.now_ms == START_MS


def test_the_gate_is_closed_while_time_moves() -> None:
    world = World(visible=[1])
    clock = frozen(world)
    gates: list[str] = []
    world.on_settle = lambda now_ms: gates.append(world.gate)
    clock.advance(1)

    assert gates == ["closed"]
    assert world.gate == "open"


def test_a_live_clock_stands_at_each_instant_and_gains_exactly_the_span() -> None:
    clock = Clock("live", start=START)
    seen: list[int] = []
    due = START_MS + 3_600_000
    world = World(visible=[3600])
    world.on_settle = lambda now_ms: seen.extend([clock.now_ms, clock.now_ms])
    clock.attach(world)
    other = Clock("live", start=START)
    behind = clock.now_ms - other.now_ms
    clock.advance(dt.timedelta(days=1))

    assert seen == [due, due]
    assert clock.now_ms - other.now_ms == pytest.approx(behind + 86_400_000, abs=1)


def test_travel_to_goes_to_the_instant() -> None:
    clock = frozen(World(visible=[60]))

    assert told(clock.travel_to(at(60))) == [(60, "visible")]
    assert clock.now == at(60)
    assert clock.travel_to("2030-01-01T00:02:00Z") == ()
    assert clock.now == at(120)


def test_travel_to_the_past_is_refused() -> None:
    clock = frozen()
    with pytest.raises(ValueError, match=r"^time cannot go back: it is 2030-01-01T00:00:00.000Z"):
        clock.travel_to(at(-0.001))


def test_advance_to_next_event_stops_at_the_first() -> None:
    clock = frozen(World(visible=[10], polls=[4]))

    assert told([clock.next_event, clock.advance_to_next_event()]) == [
        (4, "visible"),
        (4, "poll_ended"),
    ]
    assert clock.now == at(4)
    assert told([clock.advance_to_next_event()]) == [(10, "visible")]
    assert clock.advance_to_next_event() is None
    assert clock.next_event is None
    assert clock.now == at(10)


def test_steps_stop_at_each_instant_with_the_gate_open() -> None:
    world = World(visible=[1, 1, 2, 9])
    clock = frozen(world)
    stops = []
    for events in clock.steps(5):
        assert world.gate == "open"
        stops.append((clock.now, told(events)))

    assert stops == [
        (at(1), [(1, "visible"), (1, "visible")]),
        (at(2), [(2, "visible")]),
    ]
    assert clock.now == at(5)


def test_steps_see_what_their_body_made_due() -> None:
    world = World(visible=[1])
    clock = frozen(world)
    stops = []
    for _ in clock.steps(5):
        stops.append(clock.now)
        if len(stops) == 1:
            world.visible.append(START_MS + 3000)

    assert stops == [at(1), at(3)]


def test_a_body_of_steps_may_move_the_clock() -> None:
    clock = frozen(World(visible=[1, 2, 4]))
    stops = []
    for events in clock.steps(5):
        stops += told(events)
        clock.advance(2)

    assert stops == [(1, "visible"), (4, "visible")]
    assert clock.now == at(6)


def test_a_live_clock_stands_during_steps_and_gains_exactly_the_span() -> None:
    clock = Clock("live", start=START)
    clock.attach(World(visible=[3600]))
    other = Clock("live", start=START)
    behind = clock.now_ms - other.now_ms
    for _ in clock.steps(7200):
        assert clock.now_ms == clock.now_ms == START_MS + 3_600_000

    assert clock.now_ms - other.now_ms == pytest.approx(behind + 7_200_000, abs=1)


def test_steps_left_early_leave_the_clock_there() -> None:
    clock = frozen(World(visible=[1, 2]))
    for _ in clock.steps(5):
        break

    assert clock.now == at(1)


def test_a_reset_inside_steps_leaves_a_working_clock() -> None:
    clock = Clock("live", start=START)
    world = World(visible=[3600])
    clock.attach(world)
    for _ in clock.steps(3600):
        clock.reset()
    with clock.freeze():
        stands_at = clock.now_ms
        clock.advance(1)
        assert clock.now_ms == stands_at + 1000


def test_a_jump_goes_where_it_is_told_once_the_gate_is_closed() -> None:
    world = World(visible=[5], polls=[7])
    clock = frozen(world)
    gates: list[str] = []

    def choose() -> int:
        gates.append(world.gate)
        return START_MS + 6000

    assert clock.jump(choose)
    assert (clock.now, gates, world.trace) == (at(6), ["closed"], ["visible"])


def test_a_jump_to_nowhere_and_one_to_the_past_move_nothing() -> None:
    clock = frozen(World(visible=[0]))

    assert not clock.jump(lambda: None)
    assert clock.jump(lambda: START_MS - 1000)
    assert clock.now == at(0)


def test_listeners_are_told_of_callbacks_and_ends_of_polls_as_they_happen() -> None:
    world = World(visible=[5], polls=[5])
    clock = frozen(world)
    heard: list[Event] = []
    clock.add_listener(heard.append)
    clock.call_at(at(5), lambda: world.trace.append(f"{len(heard)} heard"))
    clock.advance(5)
    clock.remove_listener(heard.append)
    world.polls.append(START_MS + 6000)
    clock.advance(5)

    assert told(heard) == [(5, "callback"), (5, "poll_ended")]
    assert world.trace == ["visible", "1 heard", "poll_ended", "poll_ended"]


def test_run_due_runs_what_is_due_and_moves_nothing() -> None:
    clock = frozen(World(visible=[-1, 0, 1], polls=[0]))

    assert told(clock.run_due()) == [(-1, "visible"), (0, "visible"), (0, "poll_ended")]
    assert clock.now_ms == START_MS


def test_run_due_beside_requests_leaves_the_gate_open() -> None:
    world = World(visible=[0])
    clock = frozen(world)
    gates: list[str] = []
    world.on_settle = lambda now_ms: gates.append(world.gate)

    assert told(clock.run_due(beside_requests=True)) == [(0, "visible")]
    assert gates == ["open"]


class Boom(Exception):
    pass


def raise_boom() -> None:
    raise Boom


def test_a_callback_runs_while_the_clock_stands_at_its_instant_and_the_gate_is_open() -> None:
    world = World()
    clock = frozen(world)
    seen: list[tuple[dt.datetime, str]] = []
    clock.call_at(at(5), lambda: seen.append((clock.now, world.gate)))

    assert told(clock.advance(10)) == [(5, "callback")]
    assert seen == [(at(5), "open")]
    assert world.gate == "open"


def test_at_equal_instants_queues_settle_then_callbacks_run_then_polls_end() -> None:
    world = World(visible=[5], polls=[5])
    clock = frozen(world)
    clock.call_at(at(5), lambda: world.trace.append("callback"))
    clock.advance(5)

    assert world.trace == ["visible", "callback", "poll_ended"]


def test_what_a_callback_makes_due_at_its_instant_happens_before_polls_end() -> None:
    world = World(polls=[5])
    clock = frozen(world)
    clock.call_at(at(5), lambda: world.visible.append(clock.now_ms))

    assert told(clock.advance(5)) == [(5, "callback"), (5, "visible"), (5, "poll_ended")]


def test_callbacks_of_one_instant_run_in_the_order_of_planning() -> None:
    clock = frozen()
    order: list[str] = []
    clock.call_at(at(2), lambda: order.append("later"))
    clock.call_at(at(1), lambda: order.append("first"))
    clock.call_at(at(1), lambda: order.append("second"))
    clock.advance(2)

    assert order == ["first", "second", "later"]


def test_call_every_runs_at_each_interval() -> None:
    clock = frozen()
    instants: list[dt.datetime] = []
    clock.call_every(dt.timedelta(seconds=10), lambda: instants.append(clock.now))
    clock.advance(35)
    clock.advance(5)

    assert instants == [at(10), at(20), at(30), at(40)]


@pytest.mark.parametrize("interval", [0, 0.0001])
def test_an_interval_of_nothing_is_refused(interval) -> None:
    with pytest.raises(ValueError, match="at least a millisecond"):
        frozen().call_every(interval, lambda: None)


def test_a_cancelled_callback_never_runs() -> None:
    clock = frozen()
    once = clock.call_at(at(1), raise_boom)
    again = clock.call_every(1, raise_boom)
    once.cancel()
    again.cancel()

    assert clock.advance(10) == ()
    assert clock.next_event is None


def test_a_callback_planned_for_now_runs_in_the_next_advance_or_tick() -> None:
    clock = frozen()
    clock.call_at(clock.now, lambda: None)
    assert told(clock.run_due()) == [(0, "callback")]
    clock.call_at(clock.now, lambda: None)
    assert told(clock.advance(0)) == [(0, "callback")]


def test_the_next_event_may_be_a_callback() -> None:
    clock = frozen(World(visible=[10]))
    clock.call_at(at(4), raise_boom)

    event = clock.next_event
    assert event is not None
    assert (event.kind, event.detail["function"]) == ("callback", "raise_boom")


def test_a_raising_callback_stops_the_clock_there_and_loses_nothing() -> None:
    world = World(visible=[5, 7], polls=[5])
    clock = frozen(world)
    ran: list[str] = []
    clock.call_at(at(5), raise_boom)
    clock.call_at(at(5), lambda: ran.append("sibling"))
    with pytest.raises(Boom):
        clock.advance(10)

    assert clock.now == at(5)
    assert (world.gate, ran) == ("open", [])
    assert told(clock.advance(5)) == [
        (5, "callback"),
        (5, "poll_ended"),
        (7, "visible"),
    ]
    assert ran == ["sibling"]


def test_a_raising_callback_leaves_a_live_clock_running_from_its_instant() -> None:
    clock = Clock("live", start=START)
    clock.call_at(at(3600), raise_boom)
    with pytest.raises(Boom):
        clock.advance(7200)

    assert START_MS + 3_600_000 <= clock.now_ms < START_MS + 7_200_000
    assert clock.real_seconds_until(clock.now_ms) == 0


@pytest.mark.parametrize("beside_requests", [True, False])
def test_a_live_clock_stands_while_a_callback_runs_that_became_due(beside_requests) -> None:
    clock = Clock("live", start=START)
    readings: list[float | None] = []
    clock.call_at(START, lambda: readings.append(clock.real_seconds_until(0)))
    clock.run_due(beside_requests=beside_requests)

    assert readings == [None]
    assert clock.real_seconds_until(0) == 0


def test_a_repeating_callback_survives_its_own_error() -> None:
    clock = frozen()
    clock.call_every(10, raise_boom)
    for instant in (10, 20):
        with pytest.raises(Boom):
            clock.advance(15)
        assert clock.now == at(instant)


def test_an_endless_chain_of_callbacks_at_one_instant_is_an_error() -> None:
    clock = frozen()

    def plan_again() -> None:
        clock.call_at(clock.now, plan_again)

    clock.call_at(at(1), plan_again)
    with pytest.raises(RuntimeError, match="made new work for the same instant 1000 times"):
        clock.advance(10)

    assert clock.now == at(1)


def test_many_callbacks_of_one_instant_are_no_chain() -> None:
    clock = frozen()
    for _ in range(3000):
        clock.call_at(at(1), lambda: None)

    assert len(clock.advance(1)) == 3000


def test_a_callback_cannot_move_the_clock_that_calls_it() -> None:
    clock = frozen()
    clock.call_at(at(1), lambda: clock.advance(1))
    with pytest.raises(RuntimeError, match="a callback cannot move the clock"):
        clock.advance(10)
    clock.advance(1)

    assert clock.now == at(2)


def test_a_callback_may_plan_another_at_its_instant() -> None:
    clock = frozen()
    instants: list[dt.datetime] = []
    clock.call_at(at(1), lambda: clock.call_at(clock.now, lambda: instants.append(clock.now)))
    clock.advance(1)

    assert instants == [at(1)]


def test_a_callback_may_freeze_and_resume_the_clock() -> None:
    clock = Clock("live", start=START)
    clock.call_at(at(3600), clock.freeze)
    clock.advance(7200)
    assert clock.mode == "frozen"
    stands_at = clock.now_ms
    clock.call_at(at(10_000), clock.resume)
    clock.advance(3600)

    assert clock.mode == "live"
    assert stands_at + 3_600_000 <= clock.now_ms < stands_at + 7_200_000


def test_steps_stop_at_callbacks() -> None:
    clock = frozen()
    clock.call_every(2, lambda: None)

    assert [clock.now for _ in clock.steps(5)] == [at(2), at(4)]


@pytest.mark.parametrize(("mode", "calls"), [("live", 1), ("frozen", 0), ("autojump", 0)])
def test_only_a_clock_that_runs_again_tells_so_after_an_advance(mode, calls) -> None:
    clock = Clock(mode)
    told: list[int] = []
    clock.on_changed = lambda: told.append(clock.now_ms)
    clock.advance(60)
    assert len(told) == calls


def in_a_pause(world: World, clock: Clock, function) -> None:
    """Have the world call a function in the middle of the next settling."""

    def pause(now_ms: int) -> None:
        world.on_settle = lambda now_ms: None
        function()

    world.on_settle = pause


def test_in_a_pause_all_others_that_are_due_get_their_turn() -> None:
    world = World(visible=[0])
    clock = frozen(world)

    def let_others_happen() -> None:
        world.visible, world.polls = [START_MS, START_MS + 1], [START_MS, START_MS + 1]
        clock.let_others_happen()
        assert world.trace == ["visible", "poll_ended"]

    in_a_pause(world, clock, let_others_happen)
    clock.run_due(beside_requests=True)
    assert world.visible == world.polls == [START_MS + 1]


def test_in_a_pause_nobody_overtakes_a_callback() -> None:
    world = World(visible=[0])
    clock = frozen(world)
    clock.call_at(START, lambda: world.trace.append("callback"))

    def let_others_happen() -> None:
        world.polls = [START_MS - 1, START_MS]
        clock.let_others_happen()

    in_a_pause(world, clock, let_others_happen)
    clock.run_due(beside_requests=True)
    assert world.trace == ["poll_ended", "visible", "callback", "poll_ended"]


def test_in_a_pause_within_a_pause_nobody_gets_a_turn() -> None:
    world = World(visible=[0])
    clock = frozen(world)
    pauses = 0

    def pause(now_ms: int) -> None:
        nonlocal pauses
        pauses += 1
        world.visible = [START_MS, START_MS]
        clock.let_others_happen()

    world.on_settle = pause
    clock.run_due(beside_requests=True)
    assert pauses == 2


def test_only_in_a_pause_and_in_its_thread_do_others_get_a_turn() -> None:
    world = World(visible=[0], polls=[0])
    clock = frozen(world)
    clock.let_others_happen()
    clock.call_at(START, clock.let_others_happen)

    def let_others_happen() -> None:
        thread = threading.Thread(target=clock.let_others_happen)
        thread.start()
        thread.join(10)
        assert not world.trace

    in_a_pause(world, clock, let_others_happen)
    clock.run_due(beside_requests=True)
    assert world.trace == ["visible", "poll_ended"]
