from __future__ import annotations

from threading import Event, Lock

import freezegun
import pytest
import time_machine

from pytest_sqsq.store.keeper import Keeper

LONG = 3600.0


class Beats:
    """Counts beats; ``answers`` is what they say one after the other, the last one for ever."""

    def __init__(self, *answers: bool) -> None:
        self._answers = list(answers) or [True]
        self._lock = Lock()
        self._wanted = 1
        self._reached = Event()
        self.count = 0

    def __call__(self) -> bool:
        with self._lock:
            self.count += 1
            if self.count >= self._wanted:
                self._reached.set()
            return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def wait_for(self, count: int) -> bool:
        with self._lock:
            self._wanted = count
            if self.count >= count:
                return True
            self._reached.clear()
        return self._reached.wait(30)


@pytest.fixture
def keep():
    keepers = []

    def start(beats: Beats, **seconds: float) -> Keeper:
        keeper = Keeper(beats, **seconds)
        keeper.start()
        keepers.append(keeper)
        return keeper

    yield start
    for keeper in keepers:
        keeper.stop(30)


def test_beats_again_and_again_by_itself(keep) -> None:
    beats = Beats(True)
    keep(beats, well=0.001, ill=LONG)
    assert beats.wait_for(5)


def test_beats_more_often_while_the_store_is_in_trouble(keep) -> None:
    beats = Beats(False, False, False, True)
    keeper = keep(beats, well=LONG, ill=0.001)
    keeper.wake()
    assert beats.wait_for(4)


def test_beats_when_woken(keep) -> None:
    beats = Beats(True)
    keeper = keep(beats, well=LONG, ill=LONG)
    for count in (1, 2, 3):
        keeper.wake()
        assert beats.wait_for(count)


def test_beats_no_more_when_stopped(keep) -> None:
    beats = Beats(True)
    keeper = keep(beats, well=0.001)
    assert beats.wait_for(1)
    keeper.stop(30)
    count = beats.count
    keeper.wake()
    assert beats.count == count


@pytest.mark.parametrize(
    "patch",
    [
        lambda: freezegun.freeze_time("2001-01-01"),
        lambda: time_machine.travel(978_307_200, tick=False),
    ],
)
def test_a_patched_process_clock_neither_stops_the_beats_nor_ends_a_lease(
    open_kept, make_world, keep, patch
) -> None:
    world = make_world(open_kept())
    world.send(world.queue(), "before")
    with patch():
        beats = Beats(True)
        keep(beats, well=0.001)
        assert beats.wait_for(3)
        world.store.beat()
        world.send(world.queue(), "a")
    with patch():
        world = world.crashed()
        world.send(world.queue(), "b")
    assert world.bodies(world.queue()) == ["before", "a", "b"]
    assert open_kept.client.exists("ssq:lease")
