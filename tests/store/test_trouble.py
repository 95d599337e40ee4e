"""A Redis that hangs, dies, comes back, forgets, is full or read-only."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Event, Thread

import pytest

from pytest_sqsq.clock import monotonic
from pytest_sqsq.engine.looking import statistics_of
from pytest_sqsq.errors import QueueDoesNotExist, ServiceUnavailable
from pytest_sqsq.store import make_store

TIMEOUT = 0.3
AT_ONCE = 5.0
"""Real seconds: far below what a hundred waits would take, far above what none of them takes."""


@pytest.fixture
def process(start_redis):
    return start_redis("--appendonly", "yes", "--save", "")


@pytest.fixture
def world(process, opener, make_world):
    return make_world(opener(process)(timeout=TIMEOUT))


def try_to_send(world, queue) -> bool:
    try:
        world.send(queue, "probe")
    except ServiceUnavailable:
        return False
    world.delete(queue, *[d for d in world.receive(queue) if d.body == "probe"])
    return True


def wait_until_it_can_be_written(world, queue) -> None:
    """Try again and again, as clients do; without a restart of anything."""
    until = monotonic() + 30
    while not try_to_send(world, queue):
        assert monotonic() < until, world.store.trouble


def assert_all_else_goes_on(world, queue) -> None:
    """Reads, counters, the registry and the clock, with something due and more to come."""
    visible, in_flight, _ = world.counts(queue)
    assert in_flight == 1
    assert world.broker.find_queue(queue.key) is queue
    assert world.broker.list_queues("000000000000", "us-east-1") == list(world.broker.queues)
    with pytest.raises(QueueDoesNotExist):
        world.broker.get_queue(queue.key._replace(name="other"))
    with world.broker.entry(queue):
        assert statistics_of(queue).visible == visible
    world.advance(30)
    assert world.counts(queue) == (visible + 1, 0, 0)
    world.broker.maintain()
    world.broker.note_time()
    world.broker.check()


def test_a_redis_that_hangs_is_waited_for_once_and_then_by_nobody(
    world, process, came_back
) -> None:
    queue = world.queue(visibility_timeout=30, message_retention_period=3600)
    world.send(queue, "a", "b", "c")
    [held] = world.receive(queue, 1)
    back = came_back(world)
    process.freeze()
    with pytest.raises(ServiceUnavailable):
        world.send(queue, "unanswered")
    begun = monotonic()
    for _ in range(100):
        with pytest.raises(ServiceUnavailable, match="cannot be used"):
            world.delete(queue, held)
    assert_all_else_goes_on(world, queue)
    assert monotonic() - begun < AT_ONCE
    assert world.store.trouble is not None
    process.thaw()
    assert back.wait(30)
    assert world.store.trouble is None
    world.delete(queue, *world.receive(queue, 1))
    world = world.crashed()
    assert world.bodies(world.queue()) == ["b", "c"]


def test_what_a_hanging_redis_was_sent_is_undone_when_it_is_back(world, process, came_back) -> None:
    queue = world.queue()
    back = came_back(world)
    process.freeze()
    with pytest.raises(ServiceUnavailable):
        world.send(queue, "x" * 1_000_000)
    process.thaw()
    assert back.wait(30)
    assert process.client.hlen("ssq:msg:000000000000:us-east-1:orders") == 0
    assert world.crashed().loaded == (1, 0)


def test_a_restart_begins_with_telling_redis_what_it_missed(process, opener, make_world) -> None:
    world = make_world(opener(process)(timeout=1.0))
    queue = world.queue()
    process.freeze()
    with pytest.raises(ServiceUnavailable):
        world.send(queue, "x" * 1_000_000)
    process.thaw()
    assert world.restarted().loaded == (1, 0)


class Trickle:
    """Passes on what a client and Redis say; once ``begun``, a byte of an answer at a time."""

    def __init__(self, port: int) -> None:
        self.begun = Event()
        self._over = Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}"
        self._target = port
        self._sockets: list[socket.socket] = []
        self._threads: list[Thread] = []
        self._start(self._accept)

    def _start(self, target, *arguments) -> None:
        self._threads.append(Thread(target=target, args=arguments))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [client, server]
                self._start(self._pass_on, client, server)
                self._start(self._pass_on, server, client, self.begun)

    def _pass_on(self, source, target, trickles=None) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if trickles is None or not trickles.is_set():
                    target.sendall(data)
                    continue
                for byte in data:
                    target.sendall(bytes([byte]))
                    if self._over.wait(0.05):
                        return

    def close(self) -> None:
        self._over.set()
        for end in (self._listener, *self._sockets):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join(30)


@pytest.fixture
def trickle(process):
    relay = Trickle(process.port)
    yield relay
    relay.close()


def test_the_timeout_is_for_a_whole_write_however_little_comes_at_a_time(
    process, trickle, make_world
) -> None:
    world = make_world(make_store(trickle.url, timeout=TIMEOUT))
    queue = world.queue()
    trickle.begun.set()
    with pytest.raises(ServiceUnavailable, match=r"no complete answer|Timeout"):
        world.send(queue, "a")
    assert world.store.trouble is not None


def test_a_redis_that_was_killed_is_used_again_when_it_is_back(world, process) -> None:
    queue = world.queue(visibility_timeout=30)
    world.send(queue, "a", "b", "c")
    [held] = world.receive(queue, 1)
    process.kill()
    with pytest.raises(ServiceUnavailable):
        world.send(queue, "refused")
    assert_all_else_goes_on(world, queue)
    process.start()
    wait_until_it_can_be_written(world, queue)
    assert world.delete(queue, held) == [None]
    before = world.picture()
    world = world.crashed()
    assert world.picture() == before
    assert sorted(world.bodies(world.queue())) == ["b", "c"]


def test_a_dead_letter_move_waits_for_the_store(world, process, came_back) -> None:
    world.queue("dead")
    queue = world.dead_lettering("orders", "dead", visibility_timeout=30)
    world.send(queue, "a")
    world.receive(queue)
    process.kill()
    world.advance(30)
    assert world.counts(queue) == (0, 1, 0)
    back = came_back(world)
    process.start()
    # The clock stands: it is real time that tries again.
    world.store.beat()
    assert back.wait(30)
    assert world.bodies(world.queue("dead")) == ["a"]
    world = world.crashed()
    assert world.bodies(world.queue("dead")) == ["a"]


@pytest.mark.parametrize("options", [(), ("--save", "3600 1000000")])
def test_a_redis_that_forgot_everything_is_given_it_again(
    start_redis, opener, make_world, came_back, options
) -> None:
    process = start_redis(*options)
    world = make_world(opener(process)(timeout=TIMEOUT))
    queue = world.queue("orders.fifo", visibility_timeout=30)
    other = world.queue("other")
    world.send(queue, "a", "b", message_deduplication_id=None)
    world.send(queue, "c", message_deduplication_id="c")
    world.delete(queue, *world.receive(queue, 1))
    world.receive(queue, 1)
    world.send(other, "d")
    world.broker.start_move_task(other, queue.arn, 1)
    back = came_back(world)
    process.kill()
    process.start()
    world.store.beat()
    assert back.wait(30)
    before = world.picture()
    assert world.crashed().picture() == before


def test_a_redis_that_went_back_in_time_is_brought_up_to_date(
    start_redis, opener, make_world, came_back
) -> None:
    process = start_redis("--save", "")
    world = make_world(opener(process)(timeout=TIMEOUT))
    queue = world.queue()
    doomed = world.queue("doomed")
    world.send(queue, "deleted later", "stays")
    world.send(doomed, "a")
    process.client.save()
    world.delete(queue, *world.receive(queue, 1))
    world.broker.delete_queue(doomed)
    world.send(queue, "new")
    before = world.picture()
    back = came_back(world)
    process.kill()
    process.start()
    world.store.beat()
    assert back.wait(30)
    assert world.crashed().picture() == before


def test_writes_find_out_by_themselves_that_a_redis_forgot(open_kept, make_world) -> None:
    world = make_world(open_kept())
    queue, other = world.queue(), world.queue("other")
    world.send(queue, "a")
    world.send(other, "b")
    open_kept.client.flushall()
    world.send(queue, "c")
    world.broker.maintain()
    before = world.picture()
    world = world.crashed()
    assert world.picture() == before
    assert world.bodies(world.queue()) == ["a", "c"]
    assert world.bodies(world.queue("other")) == ["b"]


def test_a_full_redis_refuses_messages_and_lets_them_be_deleted(world, process) -> None:
    queue, other = world.queue(), world.queue("other")
    world.send(queue, "a", "b")
    world.send(other, "c")
    [held] = world.receive(queue, 1)
    before = world.picture()
    process.client.config_set("maxmemory", "1")
    for change in (
        lambda: world.send(queue, "d"),
        lambda: world.receive(queue, 1),
        lambda: world.queue("new"),
        lambda: world.set(queue, delay_seconds=1),
    ):
        with pytest.raises(ServiceUnavailable, match="maxmemory"):
            change()
    assert world.picture() == before
    process.client.pexpire("ssq:lease", 100_000)
    assert not world.store.beat()
    assert process.client.pttl("ssq:lease") <= 10_000
    assert world.delete(queue, held) == [None]
    world.broker.purge(other)
    assert process.client.hlen("ssq:msg:000000000000:us-east-1:orders") == 1
    assert not process.client.exists("ssq:msg:000000000000:us-east-1:other")
    process.client.config_set("maxmemory", "0")
    world.send(queue, "e")
    world.broker.catch_up()
    before = world.picture()
    world = world.crashed()
    assert world.picture() == before
    assert world.bodies(world.queue()) == ["b", "e"]


def test_a_read_only_redis_refuses_changes_until_it_is_writable(world, process) -> None:
    queue = world.queue(visibility_timeout=30)
    world.send(queue, "a", "b")
    world.receive(queue, 1)
    process.client.replicaof("127.0.0.1", "1")
    with pytest.raises(ServiceUnavailable, match="read only"):
        world.send(queue, "c")
    assert_all_else_goes_on(world, queue)
    process.client.replicaof("NO", "ONE")
    wait_until_it_can_be_written(world, queue)
    world.broker.catch_up()
    before = world.picture()
    assert world.crashed().picture() == before


def test_a_connection_that_died_unused_is_replaced_unnoticed(world, process) -> None:
    queue = world.queue()
    for _ in range(3):
        process.client.client_kill_filter(_type="normal", skipme=True)
        world.send(queue, "a")
    assert world.crashed().loaded == (1, 3)


def test_a_closed_store_takes_nothing_and_opens_no_connection(open_kept, make_world) -> None:
    world = make_world(open_kept())
    queue = world.queue()
    world.broker.close()
    world.broker.close()
    with pytest.raises(ServiceUnavailable, match="closed"):
        world.send(queue, "a")


def test_closing_does_not_wait_for_a_redis_that_hangs(world, process) -> None:
    queue = world.queue()
    process.freeze()
    with pytest.raises(ServiceUnavailable):
        world.send(queue, "a")
    world.broker.close()
    process.thaw()
