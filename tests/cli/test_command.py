from __future__ import annotations

import errno
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from threading import Event, main_thread
from urllib.request import urlopen

import boto3
import pytest

from pytest_sqsq import SqsServer, cli
from pytest_sqsq.options import SERVER_OPTIONS

NAME = f"pytest-sqsq {version('pytest-sqsq')}"


def url_in(line: str) -> str:
    found = re.search(r"http://\S+", line)
    assert found, line
    return found[0]


def client_of(url: str):
    return boto3.client(
        "sqs",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_listens_and_ends_cleanly(start, how) -> None:
    command = start("serve", "--port", "0")

    line = command.stdout.line()
    url = url_in(line)
    assert line == f"{NAME} listens on {url} (clock live, store memory)\n"
    client = client_of(url)
    queue_url = client.create_queue(QueueName="orders")["QueueUrl"]
    client.send_message(QueueUrl=queue_url, MessageBody="hello")
    [message] = client.receive_message(QueueUrl=queue_url)["Messages"]
    assert message["Body"] == "hello"

    assert command.end(how) == (0, "", "")


def test_it_is_the_script_of_the_package() -> None:
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    scripts = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts == {"sqsq": f"{cli.main.__module__}:{cli.main.__name__}"}


def test_its_version_is_that_of_the_package(run) -> None:
    assert run("--version") == (0, f"{NAME}\n", "")


def test_without_a_command_it_shows_its_help(run) -> None:
    shown = run("--help")
    assert shown.status == 0
    assert re.search(r"^    serve +start a server", shown.stdout, re.MULTILINE)

    assert run() == (2, "", shown.stdout)


def test_its_port_is_always_the_same_unless_told_otherwise(run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = run("serve", "--help").stdout

    assert "--port PORT" in shown
    assert re.search(r"port to listen on; 0 takes a free one \(default: 9324\)", shown)
    assert SERVER_OPTIONS["port"].default == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("serve", "--port", "many"),
            (
                "sqsq serve: error: argument --port:"
                " port must be an integer from 0 to 65535, not 'many'"
            ),
        ),
        (
            ("serve", "--clock", "stopped"),
            (
                "sqsq serve: error: argument --clock: clock must be one of 'live', 'frozen',"
                " 'autojump', 'system', not 'stopped'"
            ),
        ),
        (
            ("serve", "--start", "yesterday"),
            "sqsq serve: error: argument --start: start: 'yesterday' is not an instant in ISO 8601",
        ),
        (
            ("serve", "--in-flight-limit", "0"),
            (
                "sqsq serve: error: argument --in-flight-limit: in_flight_limit must be an integer"
                " of at least 1, not 0"
            ),
        ),
        (("serve", "--cool"), "sqsq: error: unrecognized arguments: --cool"),
    ],
)
def test_a_bad_argument_is_a_usage_error(run, arguments, text) -> None:
    status, stdout, stderr = run(*arguments)

    assert (status, stdout) == (2, "")
    assert stderr.startswith("usage: sqsq ")
    assert stderr.splitlines()[-1] == text


def test_every_option_of_a_server_is_a_flag(start) -> None:
    given = {
        "--clock": "frozen",
        "--start": "2031-05-05T00:00:00Z",
        "--store": "fakeredis",
        "--store-prefix": "mine:",
        "--store-timeout": "1.5",
        "--region": "eu-west-1",
        "--account-id": "111111111111",
        "--dead-letter-on": "receive",
        "--in-flight-limit": "5",
        "--delivery": "realistic",
        "--seed": "-7",
        "--signatures": "check",
        "--journal-size": "50",
        "--request-log-size": "50",
        "--max-connections": "20",
        "--control": "anywhere",
        "--autojump-threshold": "0.001",
        "--autojump-grace": "0.2",
    }
    flags = [part for flag in given.items() for part in flag]
    command = start("serve", "--host", "localhost", "--port", "0", *flags, "--cooldowns")
    asked = {name.replace("_", "-") for name in SERVER_OPTIONS}
    assert asked == {flag[2:] for flag in given} | {"host", "port", "cooldowns"}

    line = command.stdout.line()

    url = url_in(line)
    assert re.fullmatch(r"http://localhost:\d+", url)
    assert line == f"{NAME} listens on {url} (clock frozen, store fakeredis)\n"
    client = client_of(url)
    queue_url = client.create_queue(QueueName="orders")["QueueUrl"]
    assert queue_url == f"{url}/111111111111/orders"
    asked_for = client.get_queue_attributes(
        QueueUrl=queue_url, AttributeNames=["CreatedTimestamp", "QueueArn"]
    )
    assert asked_for["Attributes"]["CreatedTimestamp"] == "1935705600"
    client.purge_queue(QueueUrl=queue_url)
    with pytest.raises(client.exceptions.PurgeQueueInProgress):
        client.purge_queue(QueueUrl=queue_url)
    with pytest.raises(client.exceptions.ClientError, match="SignatureDoesNotMatch"):
        boto3.client(
            "sqs",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="another",
        ).list_queues()


def test_what_it_prints_for_a_shell_leads_what_the_shell_starts_to_it(start) -> None:
    command = start("serve", "--port", "0", "--print-env", "--region", "eu-west-1")
    lines = [command.stdout.line()]
    while "listens on" not in lines[-1]:
        lines.append(command.stdout.line())
    url = url_in(lines.pop())
    client_of(url).create_queue(QueueName="seen-from-us-east-1")

    assert lines[0] == f"export AWS_ENDPOINT_URL_SQS={url}\n"
    assert "unset AWS_PROFILE\n" in lines
    code = (
        "import boto3; boto3.client('sqs').create_queue(QueueName='orders');"
        " print(boto3.client('sqs').list_queues()['QueueUrls'])"
    )
    done = subprocess.run(
        ["sh", "-c", f'{"".join(lines)}exec "$0" -c "$1"', sys.executable, code],
        env={**os.environ, "AWS_PROFILE": "nobody", "AWS_REGION": "ap-south-1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"['{url}/000000000000/orders']\n", "")


def test_a_taken_port_is_told_in_a_line(run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        done = run("serve", "--port", str(port))

    assert done == (
        1,
        "",
        (
            f"sqsq: cannot listen on 127.0.0.1:{port}: Address already in use;"
            " choose another port, or 0 for a free one\n"
        ),
    )


def test_a_store_that_cannot_be_had_is_told_in_a_line(run) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]

        done = run("serve", "--port", "0", "--store", f"redis://:secret@127.0.0.1:{port}/3")

    assert done == (
        1,
        "",
        (
            f"sqsq: the Redis at 127.0.0.1:{port}, database 3 cannot be used as a store:"
            f" Error {errno.ECONNREFUSED} connecting to 127.0.0.1:{port}. Connection refused.\n"
        ),
    )


def test_it_tells_of_requests_if_asked_to_each_in_a_line(start) -> None:
    command = start(
        *("serve", "--port", "0", "--verbose"),
        *("--clock", "frozen", "--start", "2030-01-01T00:00:00Z"),
    )
    url = url_in(command.stdout.line())
    client = client_of(url)

    client.create_queue(QueueName="orders")
    sender = r"127\.0\.0\.1:\d+"
    assert re.fullmatch(
        r"sqsq: 2030-01-01T00:00:00\.000Z CreateQueue on 'orders': 200"
        rf" \(http, json from {sender}\)\n",
        command.stderr.line(),
    )

    with pytest.raises(OSError, match="400"):
        urlopen(f"{url}/?Action=Lie%0Asqsq:%20me", timeout=30)
    assert re.fullmatch(
        r"sqsq: 2030-01-01T00:00:00\.000Z Lie sqsq: me: 400 InvalidAction"
        rf" \(http, query from {sender}\)\n",
        command.stderr.line(),
    )
    assert command.end() == (0, "", "")


@pytest.fixture
def beside(monkeypatch):
    """Runs the command here, and beside it what makes use of its server and then ends it."""
    made: list[SqsServer] = []
    announced = Event()

    def make(**options: object) -> SqsServer:
        made.append(SqsServer(**options))
        return made[-1]

    def announce(*_: object, **__: object) -> None:
        announced.set()

    monkeypatch.setattr(cli, "SqsServer", make)
    monkeypatch.setattr(cli, "_announce", announce)

    def end_after(story, server_told: Event):
        assert server_told.wait(60)
        try:
            return story(made[0])
        finally:
            signal.pthread_kill(main_thread().ident, signal.SIGTERM)

    with ThreadPoolExecutor(1) as pool:

        def run_beside(story, *arguments: str):
            told = pool.submit(end_after, story, announced)
            status = cli.main(["serve", "--port", "0", *arguments])
            return status, told.result(60)

        yield run_beside


def test_polls_that_wait_are_answered_when_it_ends(beside) -> None:
    with ThreadPoolExecutor(1) as pool:

        def story(server: SqsServer):
            queue = server.create_queue("orders")
            poll = pool.submit(
                server.client().receive_message, QueueUrl=queue.url, WaitTimeSeconds=20
            )
            server.wait_for_pollers(1, timeout=60)
            return poll

        status, poll = beside(story)

        assert status == 0
        answer = poll.result(60)
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
        assert "Messages" not in answer


def test_signals_mean_afterwards_what_they_meant_before(beside) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    beside(lambda server: None)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_what_went_wrong_inside_is_raised_in_the_end(beside) -> None:
    def story(server: SqsServer) -> None:
        server._running().note_failure(ArithmeticError("a defect"))

    with pytest.raises(ArithmeticError, match="a defect"):
        beside(story)


def test_requests_wait_until_all_queues_of_the_file_are_there(
    beside, monkeypatch, tmp_path
) -> None:
    file = tmp_path / "queues.toml"
    file.write_text('[[queues]]\nname = "orders"\n', encoding="utf-8")
    create_queues = cli.create_queues
    early = socket.socket()

    def send_first(server: SqsServer, tables: object) -> None:
        early.connect(("127.0.0.1", server.port))
        early.sendall(b"GET /?Action=GetQueueUrl&QueueName=orders HTTP/1.1\r\nHost: here\r\n\r\n")
        assert select.select([early], [], [], 0.1)[0] == []
        create_queues(server, tables)

    monkeypatch.setattr(cli, "create_queues", send_first)
    with early:
        _, answer = beside(lambda server: early.recv(100_000).decode(), "--config", str(file))

    assert answer.startswith("HTTP/1.1 200 ")
    assert "<QueueUrl>http://here/000000000000/orders</QueueUrl>" in answer
