from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Thread

import pytest

from pytest_sqsq.errors import GateTimeout
from pytest_sqsq.gateway.gate import RequestGate

# Real seconds; a passing test never waits this long.
LONG = 5.0
# Real seconds that something forbidden is given to happen.
A_MOMENT = 0.05


@pytest.fixture
def gate() -> RequestGate:
    return RequestGate()


@pytest.fixture
def run() -> Iterator[Callable[[Callable[[], None]], Thread]]:
    """Starts a function on a thread; the threads are joined, and what they raised is raised."""
    threads: list[Thread] = []
    failures: list[BaseException] = []

    def start(function: Callable[[], None]) -> Thread:
        def body() -> None:
            try:
                function()
            except BaseException as failure:  # noqa: BLE001 - raised again by the fixture
                failures.append(failure)

        thread = Thread(target=body, daemon=True)
        threads.append(thread)
        thread.start()
        return thread

    yield start
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


class Poll:
    """A request that parks, on a thread of its own, and what a test steers it with."""

    def __init__(self, gate: RequestGate, name: str = "poll") -> None:
        self.gate = gate
        self.name = name
        self.left = Event()
        self.released = Event()
        self.woken = Event()
        self.written = Event()
        self.may_write = Event()
        self.may_write.set()
        self.answered = False
        self.wake: Callable[[], None] = self.woken.set

    def __call__(self) -> None:
        with self.gate.request(self.name):
            with self.gate.parked() as parking:
                self.wake = parking.wake
                parking.leave(lambda: self.answered)
                self.left.set()
                assert self.released.wait(LONG)
            self.woken.set()
            assert self.may_write.wait(LONG)
            self.written.set()

    def answer(self) -> None:
        self.answered = True
        self.wake()
        self.released.set()


def test_counts_a_request_from_its_begin_to_its_end(gate):
    with gate.request("SendMessage"):
        assert gate.open_count == 1
        assert gate.open_requests() == ("SendMessage",)
    assert gate.open_count == 0


def test_counts_a_request_within_a_request_of_the_same_thread_once(gate):
    with gate.request("outer"):
        with gate.request("inner"):
            assert gate.open_requests() == ("outer",)
        assert gate.open_count == 1
    assert gate.open_count == 0


def test_a_request_that_fails_is_no_longer_open(gate):
    with pytest.raises(LookupError), gate.request("SendMessage"):
        raise LookupError
    assert gate.open_count == 0


def test_new_requests_wait_while_it_is_closed(gate, run):
    entered = Event()

    def request() -> None:
        with gate.request("late"):
            entered.set()

    with gate.closed():
        run(request)
        assert not entered.wait(A_MOMENT)
    assert entered.wait(LONG)


def test_closing_waits_for_the_open_requests(gate, run):
    begun, may_end, closed = Event(), Event(), Event()

    def request() -> None:
        with gate.request("early"):
            begun.set()
            assert may_end.wait(LONG)

    def close() -> None:
        with gate.closed():
            assert gate.open_count == 0
            closed.set()

    run(request)
    assert begun.wait(LONG)
    run(close)
    assert not closed.wait(A_MOMENT)
    may_end.set()
    assert closed.wait(LONG)


def test_closing_gives_up_naming_the_open_requests_and_opens_again(gate, run):
    begun, may_end = Event(), Event()

    def request() -> None:
        with gate.request("SendMessage from 127.0.0.1:5000"):
            begun.set()
            assert may_end.wait(LONG)

    run(request)
    assert begun.wait(LONG)
    with (
        pytest.raises(GateTimeout, match=r"1 open request.*: SendMessage from 127.0.0.1:5000$"),
        gate.closed(timeout=0.01),
    ):
        pytest.fail("closed with an open request")
    with gate.request("another"):
        assert gate.open_count == 2
    may_end.set()


def test_opens_again_when_the_body_raises(gate):
    with pytest.raises(LookupError), gate.closed():
        raise LookupError
    with gate.request("next"):
        assert gate.open_count == 1


def test_several_threads_close_it_one_after_the_other(gate, run):
    inside: list[str] = []
    overlaps: list[list[str]] = []

    def closer(name: str) -> Callable[[], None]:
        def close() -> None:
            for _ in range(50):
                with gate.closed():
                    inside.append(name)
                    if len(inside) != 1:
                        overlaps.append(list(inside))
                    inside.remove(name)

        return close

    threads = [run(closer(name)) for name in "abcd"]
    for thread in threads:
        thread.join(LONG)
    assert overlaps == []


def test_the_request_that_closes_does_not_wait_for_itself(gate):
    with gate.request("advance"):
        with gate.closed(timeout=0.01):
            assert gate.open_count == 0
        assert gate.open_requests() == ("advance",)


def test_two_requests_that_both_close_do_not_wait_for_each_other(gate, run):
    both_open = [Event(), Event()]
    done = [Event(), Event()]

    def advance(index: int) -> Callable[[], None]:
        def request() -> None:
            with gate.request(f"advance {index}"):
                both_open[index].set()
                assert both_open[1 - index].wait(LONG)
                with gate.closed():
                    assert gate.open_count == 0
            done[index].set()

        return request

    run(advance(0))
    run(advance(1))
    assert done[0].wait(LONG)
    assert done[1].wait(LONG)


def test_a_closer_waits_for_the_answer_of_the_request_that_closed_before_it(gate, run):
    in_first, may_answer, in_second = Event(), Event(), Event()

    def first() -> None:
        with gate.request("first advance"):
            with gate.closed():
                in_first.set()
            assert may_answer.wait(LONG)

    def second() -> None:
        with gate.closed():
            in_second.set()

    run(first)
    assert in_first.wait(LONG)
    run(second)
    assert not in_second.wait(A_MOMENT)
    may_answer.set()
    assert in_second.wait(LONG)


def test_the_closing_thread_may_make_requests(gate):
    with gate.closed(timeout=0.01), gate.request("direct"):
        assert gate.open_count == 0


def test_closing_inside_closing_changes_nothing(gate, run):
    entered = Event()

    def request() -> None:
        with gate.request("late"):
            entered.set()

    with gate.closed():
        with gate.closed():
            pass
        run(request)
        assert not entered.wait(A_MOMENT)
    assert entered.wait(LONG)


def test_parked_polls_do_not_count(gate, run):
    poll = Poll(gate)
    run(poll)
    assert poll.left.wait(LONG)
    with gate.closed(timeout=0.01):
        assert (gate.open_count, gate.parked_count) == (0, 1)
    poll.answer()
    assert poll.written.wait(LONG)
    assert gate.parked_count == 0


def test_a_poll_whose_answer_is_there_already_never_parks(gate, run):
    poll = Poll(gate)
    poll.answered = True
    run(poll)
    assert poll.left.wait(LONG)
    assert (gate.open_count, gate.parked_count) == (1, 0)
    poll.answer()


def test_a_poll_woken_before_it_leaves_never_parks(gate):
    with gate.request("poll"), gate.parked() as parking:
        parking.wake()
        parking.leave(lambda: False)
        assert (gate.open_count, gate.parked_count) == (1, 0)


def test_a_poll_woken_while_closed_counts_at_once_and_is_waited_for(gate, run):
    poll = Poll(gate)
    poll.may_write.clear()
    closed, may_open, opened = Event(), Event(), Event()

    def advance() -> None:
        with gate.closed():
            poll.answer()
            assert gate.open_requests() == ("poll",)
            closed.set()
            assert may_open.wait(LONG)
        assert poll.written.is_set()
        opened.set()

    run(poll)
    assert poll.left.wait(LONG)
    run(advance)
    assert closed.wait(LONG)
    may_open.set()
    assert not opened.wait(A_MOMENT)
    poll.may_write.set()
    assert opened.wait(LONG)


def test_a_poll_that_gives_up_while_closed_counts_once_the_gate_is_open(gate, run):
    poll = Poll(gate)
    run(poll)
    assert poll.left.wait(LONG)
    with gate.closed():
        poll.released.set()
        assert not poll.woken.wait(A_MOMENT)
        assert gate.open_count == 0
    assert poll.written.wait(LONG)


def test_a_poll_that_gave_up_while_closed_and_is_woken_after_all_comes_back_at_once(gate, run):
    poll = Poll(gate)
    run(poll)
    assert poll.left.wait(LONG)
    with gate.closed():
        poll.released.set()
        assert not poll.woken.wait(A_MOMENT)
        poll.wake()
        assert poll.woken.wait(LONG)


def test_woken_answers_that_are_never_written_are_named(gate, run):
    poll = Poll(gate, "ReceiveMessage from 127.0.0.1:5000")
    poll.may_write.clear()
    run(poll)
    assert poll.left.wait(LONG)
    with (
        pytest.raises(GateTimeout, match=r"ReceiveMessage from 127\.0\.0\.1:5000$"),
        gate.closed(timeout=0.01),
    ):
        poll.answer()
    poll.may_write.set()


def test_what_the_body_raised_goes_before_an_unwritten_answer(gate, run):
    poll = Poll(gate)
    poll.may_write.clear()
    run(poll)
    assert poll.left.wait(LONG)

    def fail() -> None:
        poll.answer()
        raise LookupError

    with pytest.raises(LookupError), gate.closed(timeout=0.01):
        fail()
    poll.may_write.set()


def test_requests_run_while_it_is_reopened_and_are_waited_for(gate, run):
    begun, may_end, closed_again = Event(), Event(), Event()

    def request() -> None:
        with gate.request("meanwhile"):
            begun.set()
            assert may_end.wait(LONG)

    def advance() -> None:
        with gate.closed():
            with gate.reopened():
                assert begun.wait(LONG)
            closed_again.set()

    run(advance)
    run(request)
    assert begun.wait(LONG)
    assert not closed_again.wait(A_MOMENT)
    may_end.set()
    assert closed_again.wait(LONG)


def test_the_thread_that_reopened_it_makes_counted_requests(gate):
    with gate.request("advance"), gate.closed(), gate.reopened():
        assert gate.open_count == 0
        with gate.request("by the callback"):
            assert gate.open_requests() == ("by the callback",)


def test_a_callback_cannot_close_the_gate_opened_for_it(gate):
    with (
        gate.closed(),
        gate.reopened(),
        pytest.raises(RuntimeError, match="callback"),
        gate.closed(),
    ):
        pytest.fail("closed")


def test_only_the_thread_that_closed_it_can_reopen_it(gate):
    with pytest.raises(RuntimeError, match="only the thread"), gate.reopened():
        pytest.fail("reopened")


def test_a_request_that_a_callback_waits_for_cannot_close_it(gate, run):
    failed = Event()

    def advance() -> None:
        with (
            pytest.raises(GateTimeout, match="stands in a callback"),
            gate.request("advance by a callback"),
            gate.closed(timeout=0.01),
        ):
            pytest.fail("closed")
        failed.set()

    with gate.closed(), gate.reopened():
        run(advance)
        assert failed.wait(LONG)


def test_serialised_work_excludes_closing_but_not_requests(gate, run):
    closed = Event()

    def close() -> None:
        with gate.closed():
            closed.set()

    with gate.serialised():
        with gate.request("meanwhile"):
            assert gate.open_count == 1
        run(close)
        assert not closed.wait(A_MOMENT)
    assert closed.wait(LONG)


def test_a_request_set_aside_is_not_waited_for(gate, run):
    aside, may_return, done = Event(), Event(), Event()

    def request() -> None:
        with gate.request("wait"):
            with gate.set_aside():
                aside.set()
                assert may_return.wait(LONG)
            done.set()

    run(request)
    assert aside.wait(LONG)
    with gate.closed(timeout=0.01):
        may_return.set()
        assert not done.wait(A_MOMENT)
    assert done.wait(LONG)
    assert gate.parked_high_water == 0


def test_the_high_water_mark_is_the_most_polls_parked_at_once(gate, run):
    polls = [Poll(gate), Poll(gate)]
    threads = [run(poll) for poll in polls]
    for poll in polls:
        assert poll.left.wait(LONG)
    polls[0].answer()
    threads[0].join(LONG)
    assert (gate.parked_count, gate.parked_high_water) == (1, 2)
    gate.lower_high_water()
    assert gate.parked_high_water == 1
    polls[1].answer()


def test_observers_wake_on_each_change(gate, run):
    seen: list[int] = []
    before = gate.changes

    def observe() -> None:
        seen.append(gate.wait_for_change(before, LONG))

    thread = run(observe)
    with gate.request("SendMessage"):
        thread.join(LONG)
    assert seen == [before + 1]


def test_observers_see_changes_noted_from_elsewhere(gate):
    before = gate.changes
    gate.note_change()
    assert gate.wait_for_change(before, LONG) == before + 1


def test_an_observer_whose_time_is_up_sees_no_change(gate):
    assert gate.wait_for_change(gate.changes, 0.001) == gate.changes


def test_who_waits_for_rest_sleeps_until_no_request_is_open(gate, run):
    seen: list[int] = []
    before = gate.changes

    def observe() -> None:
        seen.append(gate.wait_for_rest(before, LONG))

    def request() -> None:
        with gate.request("short"):
            pass

    thread = run(observe)
    with gate.request("long"):
        run(request).join(LONG)
    thread.join(LONG)
    assert seen == [before + 4]


def test_a_poll_that_parks_leaves_rest_behind(gate, run):
    poll = Poll(gate)
    before = gate.changes
    run(poll)
    assert gate.wait_for_rest(before, LONG) == before + 2
    assert (gate.open_count, gate.parked_count) == (0, 1)
    poll.answer()


def test_who_waits_for_rest_sees_what_is_noted_from_elsewhere(gate):
    before = gate.changes
    gate.note_change()
    assert gate.wait_for_rest(before, LONG) == before + 1


def test_who_waits_for_rest_in_vain_sees_what_has_changed(gate):
    before = gate.changes
    with gate.request("long"):
        assert gate.wait_for_rest(before, 0.001) == before + 1


@pytest.fixture
def one_of_two_polls_ended(gate, run) -> Iterator[None]:
    """One poll is parked, and two have been."""
    polls = [Poll(gate), Poll(gate)]
    threads = [run(poll) for poll in polls]
    for poll in polls:
        assert poll.left.wait(LONG)
    polls[0].answer()
    threads[0].join(LONG)
    yield
    polls[1].answer()


@pytest.mark.usefixtures("one_of_two_polls_ended")
def test_who_waits_for_rest_sleeps_until_as_many_polls_are_parked_as_have_been(gate, run):
    seen: list[int] = []
    before = gate.changes
    thread = run(lambda: seen.append(gate.wait_for_rest(before, LONG)))
    with gate.request("in between"):
        pass
    poll = Poll(gate)
    run(poll)
    thread.join(LONG)
    assert seen == [before + 4]
    poll.answer()


@pytest.mark.usefixtures("one_of_two_polls_ended")
def test_who_waits_for_rest_in_vain_since_a_consumer_is_at_work_sees_what_has_changed(gate):
    before = gate.changes
    gate.note_change()
    assert gate.wait_for_rest(before, 0.001) == before + 1


@pytest.mark.usefixtures("one_of_two_polls_ended")
def test_a_lowered_high_water_mark_wakes_who_waits_for_rest(gate, run):
    seen: list[int] = []
    before = gate.changes
    thread = run(lambda: seen.append(gate.wait_for_rest(before, LONG)))
    gate.note_change()
    gate.lower_high_water()
    thread.join(LONG)
    assert seen == [before + 1]
