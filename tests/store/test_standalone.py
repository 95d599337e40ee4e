"""``sqsq serve`` on a real Redis: what is there after a restart, and who may use it."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from pytest_sqsq import SqsServer
from pytest_sqsq.cli import main

SECONDS = 60

QUEUES = """
    [[queues]]
    name = "orders"
    attributes = { VisibilityTimeout = 600 }
    dead_letter_queue = "dead-orders"
    """


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "queues.toml"
    file.write_text(QUEUES, encoding="utf-8")
    return file


class Served:
    """``sqsq serve`` in a process of its own, once it listens."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.announced = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", self.announced)
        assert found, self.announced
        self.url = found[0]
        self.port = int(found[1])

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        return self.process.wait(SECONDS)


@pytest.fixture
def serve(start_python, shared_redis) -> Callable[..., Served]:
    """Start the command on ``shared_redis``."""
    shared_redis.client.flushall()

    def start(*arguments: str, store: str = shared_redis.url) -> Served:
        command = ("-m", "pytest_sqsq", "serve", "--port", "0", "--store", store)
        return Served(start_python(*command, *arguments))

    return start


@pytest.fixture
def client_of() -> Iterator[Callable[[Served], object]]:
    with SqsServer() as other:
        yield lambda served: other.client(endpoint_url=served.url)


@pytest.mark.parametrize(("how", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_queues_and_messages_are_there_after_a_restart(
    serve, client_of, config, how, status
) -> None:
    first = serve("--config", str(config))
    client = client_of(first)
    queue_url = client.get_queue_url(QueueName="orders")["QueueUrl"]
    client.send_message(QueueUrl=queue_url, MessageBody="taken")
    [taken] = client.receive_message(QueueUrl=queue_url)["Messages"]
    client.send_message(QueueUrl=queue_url, MessageBody="waiting")
    assert first.end(how) == status

    second = serve("--config", str(config))

    client = client_of(second)
    queue_url = client.get_queue_url(QueueName="orders")["QueueUrl"]
    [waiting] = client.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10)["Messages"]
    assert waiting["Body"] == "waiting"
    client.delete_message(QueueUrl=queue_url, ReceiptHandle=taken["ReceiptHandle"])
    attributes = client.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])
    assert attributes["Attributes"]["ApproximateNumberOfMessagesNotVisible"] == "1"


def test_it_tells_what_the_store_held(serve, config, shared_redis) -> None:
    assert serve("--config", str(config)).end(signal.SIGTERM) == 0

    second = subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest_sqsq", "serve", "--port", "0"),
            *("--store", shared_redis.url),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        Served(second)
        second.send_signal(signal.SIGTERM)
        assert second.stderr is not None
        told = second.stderr.read()
    finally:
        second.kill()
        second.communicate()

    assert re.fullmatch(
        rf"sqsq: <RedisStore 'ssq:' in the Redis at 127\.0\.0\.1:{shared_redis.port}, database 0>"
        r" held 2 queues with 0 messages; the clock begins at \S+\n",
        told,
    )


def test_a_kept_queue_that_differs_is_refused_and_stays(
    serve, client_of, config, shared_redis, capsys
) -> None:
    assert serve("--config", str(config)).end(signal.SIGTERM) == 0
    config.write_text(QUEUES.replace("600", "30"), encoding="utf-8")

    arguments = ["serve", "--port", "0", "--store", shared_redis.url, "--config", str(config)]
    assert main(arguments) == 1

    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    _, refusal = stderr.splitlines()
    assert refusal == (
        f"sqsq: {config}: [[queues]] 1, name 'orders': the queue exists already, and has another"
        " value for VisibilityTimeout: '600'; write that into the file, or change the queue"
        " there, or delete it"
    )
    assert not shared_redis.client.exists("ssq:lease")
    queues = client_of(serve()).list_queues()["QueueUrls"]
    assert [url.rpartition("/")[2] for url in queues] == ["dead-orders", "orders"]


def test_a_store_in_use_is_refused_and_its_holder_named(serve, shared_redis, capsys) -> None:
    holder = serve()

    assert main(["serve", "--port", "0", "--store", shared_redis.url]) == 1

    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    [line] = stderr.splitlines()
    assert line.startswith(
        f"sqsq: the namespace 'ssq:' in the Redis at 127.0.0.1:{shared_redis.port}, database 0 is"
        f" in use by process {holder.process.pid} on host {socket.gethostname()}. Stop that server"
    )
    assert holder.end(signal.SIGTERM) == 0
    assert not shared_redis.client.exists("ssq:lease")


def test_servers_with_prefixes_of_their_own_share_a_redis(serve, client_of) -> None:
    first = serve()
    second = serve("--store-prefix", "second:")
    client_of(first).create_queue(QueueName="orders")

    assert "QueueUrls" not in client_of(second).list_queues()


def test_the_password_of_a_store_is_not_shown(serve, start_redis) -> None:
    redis = start_redis("--requirepass", "secret", "--save", "")
    place = f"127.0.0.1:{redis.port}"

    served = serve(store=f"redis://:secret@{place}/0")

    assert served.announced.endswith(f"(clock live, store redis://{place}/0)\n")


def test_a_second_signal_ends_it_at_once(serve, start_redis) -> None:
    redis = start_redis("--save", "")
    served = serve("--store-timeout", "600", store=redis.url)
    client = HTTPConnection("127.0.0.1", served.port, timeout=SECONDS)
    with closing(client):
        client.request("GET", "/?Action=ListQueues")
        assert client.getresponse().read()
        redis.freeze()
        served.process.send_signal(signal.SIGTERM)
        # It has begun to end, and cannot let go of the store.
        assert client.sock.recv(1) == b""

        assert served.end(signal.SIGTERM) == -signal.SIGTERM
    redis.thaw()


def test_a_start_that_fails_on_its_port_does_not_keep_the_store(serve, shared_redis) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = ("-m", "pytest_sqsq", "serve", "--port", port, "--store", shared_redis.url)
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, check=False, timeout=SECONDS
        )
    assert (done.returncode, done.stdout) == (1, b"")
    assert not shared_redis.client.exists("ssq:lease")

    assert serve().end(signal.SIGTERM) == 0
