"""Load from eight threads, SIGKILL in the middle of it, and every message accounted for."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from random import Random
from threading import Barrier, Event, Lock, Thread
from typing import Any

import pytest

from pytest_sqsq.errors import ServiceUnavailable
from pytest_sqsq.models import OutgoingMessage, ReceiveRequest

THREADS = 8
# A long run: SQSQ_ROUNDS=50 pytest tests/store/test_accounting.py
SEEDS = range(int(os.environ.get("SQSQ_ROUNDS", "5")))
DRIVER = Path(__file__).with_name("driver.py")


class Load:
    """Threads that send, receive and delete, and note what they were told.

    ``sent`` maps bodies to message ids, ``deleted`` holds bodies, ``doubtful`` the bodies of sends
    and deletes that were answered with an error.
    """

    def __init__(self, world: Any, queues: list[Any], seed: int) -> None:
        self._world = world
        self._queues = queues
        self._lock = Lock()
        self._stop = Event()
        self._begin = Barrier(THREADS)
        self.failures: list[BaseException] = []
        self.refused = 0
        self.done = 0
        self.enough = Event()
        self.sent: dict[str, str] = {}
        self.deleted: set[str] = set()
        self._threads = [Thread(target=self._run, args=(seed, n)) for n in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        assert self.failures == []

    def _run(self, seed: int, number: int) -> None:
        random = Random(f"{seed} {number}")
        self._begin.wait(30)
        try:
            count = 0
            while not self._stop.is_set():
                count += 1
                try:
                    self._operate(random, f"{number}-{count}")
                except ServiceUnavailable:
                    with self._lock:
                        self.refused += 1
        except BaseException as failure:  # noqa: BLE001 - raised again by stop
            self.failures.append(failure)

    def _operate(self, random: Random, name: str) -> None:
        broker, queue = self._world.broker, random.choice(self._queues)
        bodies = [f"{name}.{n}" for n in range(random.randint(1, 3))]
        group = f"{random.randrange(4)}" if queue.settings.fifo else None
        receipts = broker.send(queue, [OutgoingMessage(b, message_group_id=group) for b in bodies])
        with self._lock:
            for body, receipt in zip(bodies, receipts, strict=True):
                self.sent[body] = receipt.message_id
        for delivery in broker.receive(queue, ReceiveRequest(random.randint(1, 3), 43_000)):
            if random.random() < 0.8:
                broker.delete(queue, [delivery.receipt_handle])
                with self._lock:
                    self.deleted.add(delivery.body)
        with self._lock:
            self.done += 1
            if self.done % 200 == 0:
                self.enough.set()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_redis_that_is_killed_under_load_costs_no_message(
    start_redis, opener, make_world, seed: int
) -> None:
    process = start_redis("--appendonly", "yes", "--save", "")
    world = make_world(opener(process)())
    queues = [world.queue("orders"), world.queue("orders.fifo")]
    load = Load(world, queues, seed)
    for _ in range(2):
        assert load.enough.wait(60)
        process.kill()
        process.start()
        load.enough.clear()
    assert load.enough.wait(60)
    load.stop()
    assert load.refused > 0

    world.broker.catch_up()
    before = world.picture()
    live = {body for queue in queues for body in world.bodies(queue)}
    assert live == load.sent.keys() - load.deleted
    world = world.crashed()
    assert world.picture() == before
    assert_groups_in_order(world)


def assert_groups_in_order(world: Any) -> None:
    queue = world.queue("orders.fifo")
    with world.broker.entry(queue):
        numbers = [message.sequence_number for message in queue.log.live_messages()]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_server_that_is_killed_under_load_costs_no_message(
    start_redis, start_python, opener, make_world, seed: int
) -> None:
    """What the process was asked and answered is read from its output, line by line."""
    process = start_redis("--appendonly", "yes", "--save", "")
    driver = start_python(str(DRIVER), process.url, str(seed), str(THREADS))
    assert driver.stdout is not None
    lines = []
    for line in driver.stdout:
        lines.append(line)
        if len(lines) == 1500 + 100 * seed:
            driver.send_signal(signal.SIGKILL)
    driver.wait(30)
    told = [json.loads(line) for line in lines if line.endswith("\n")]
    asked = {what: {b for t in told if t[0] == f"ask {what}" for b in t[1]} for what in DOING}
    done = {what: {b for t in told if t[0] == f"done {what}" for b in t[1]} for what in DOING}
    held = {body: t[2] for t in told if t[0] == "held" for body in t[1]}
    assert len(done["send"]) > 100
    assert len(done["delete"]) > 50

    world = make_world(opener(process)(), now_ms=0)
    queues = [world.queue("orders"), world.queue("orders.fifo")]
    bodies = [body for queue in queues for body in world.bodies(queue)]
    assert len(bodies) == len(set(bodies))
    live = set(bodies)
    # What was answered holds; what was asked and not answered may have happened or not.
    assert done["send"] - asked["delete"] <= live
    assert live <= asked["send"] - done["delete"]
    assert_groups_in_order(world)
    world.broker.check()

    # Handles that were handed out work.
    for body in sorted(live & held.keys() - asked["delete"]):
        name, handle = held[body]
        queue = world.queue(name)
        assert world.broker.delete(queue, [handle]) == [None]
        assert body not in world.bodies(queue)
    last = max(t[2] for t in told if t[0] == "done send" and t[2] is not None)
    [receipt] = world.send(world.queue("orders.fifo"), "after")
    assert receipt.sequence_number > last


DOING = ("send", "delete")
