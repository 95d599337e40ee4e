from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_sqsq import SqsServer
from pytest_sqsq.serve_file import ServeFileError, create_queues, read


@pytest.fixture
def write(tmp_path, monkeypatch) -> Callable[[str], Path]:
    """Writes ``queues.toml`` into the present folder."""
    monkeypatch.chdir(tmp_path)

    def write_text(text: str) -> Path:
        file = tmp_path / "queues.toml"
        file.write_text(text, encoding="utf-8")
        return file

    return write_text


@pytest.fixture
def server():
    with SqsServer(clock="frozen") as started:
        yield started


@pytest.fixture
def begin(write, server):
    """Creates the queues of a file on the server."""

    def begin_with(text: str) -> None:
        create_queues(server, read(str(write(text))).queues)

    return begin_with


def test_a_server_begins_with_what_the_file_says(start, write) -> None:
    write(
        """
        [server]
        clock = "frozen"
        store = "fakeredis"
        port = 0
        cooldowns = true

        [[queues]]
        name = "orders"
        """
    )

    command = start("serve", "--config", "queues.toml", "--store", "memory", "--no-cooldowns")

    line = command.stdout.line()
    assert line.endswith(" (clock frozen, store memory)\n")
    with SqsServer() as other:
        endpoint = re.search(r"http://\S+", line)[0]
        client = other.client(endpoint_url=endpoint)
    urls = client.list_queues()["QueueUrls"]
    assert urls == [f"{endpoint}/000000000000/orders"]
    client.purge_queue(QueueUrl=urls[0])
    client.purge_queue(QueueUrl=urls[0])
    assert command.end() == (0, "", "")


def test_options_are_of_the_types_of_toml(write) -> None:
    file = read(
        str(
            write(
                """
                [server]
                start = 2030-01-01T02:00:00+02:00
                seed = 5
                store_timeout = 2
                """
            )
        )
    )

    with SqsServer(clock="frozen", **file.options) as server:
        assert server.now.isoformat() == "2030-01-01T00:00:00+00:00"
        assert (server.options["seed"], server.options["store_timeout"]) == (5, 2)
    assert file.queues == []


def test_queues_have_what_the_file_gives_them(begin, server) -> None:
    begin(
        """
        [[queues]]
        name = "orders"
        dead_letter_queue = "dead-orders"
        max_receive_count = 3

        [queues.attributes]
        VisibilityTimeout = 60
        DelaySeconds = "5"

        [queues.tags]
        team = "shop"

        [[queues]]
        name = "events.fifo"
        account_id = "111111111111"
        region = "eu-west-1"
        attributes = { ContentBasedDeduplication = "true" }
        """
    )

    orders = server.queue("orders")
    assert orders.attributes["VisibilityTimeout"] == "60"
    assert orders.attributes["DelaySeconds"] == "5"
    assert orders.attributes["RedrivePolicy"] == (
        '{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead-orders",'
        '"maxReceiveCount":3}'
    )
    assert orders.tags == {"team": "shop"}
    events = server.queue("events.fifo", account_id="111111111111", region="eu-west-1")
    assert events.attributes["ContentBasedDeduplication"] == "true"
    assert len(server.queues) == 3


def test_dead_letter_queues_are_created_before_what_names_them(begin, server) -> None:
    begin(
        """
        [[queues]]
        name = "first"
        dead_letter_queue = "second"

        [[queues]]
        name = "second"
        attributes = { VisibilityTimeout = 2 }
        dead_letter_queue = "arn:aws:sqs:us-east-1:000000000000:third"

        [[queues]]
        name = "third"
        attributes = { VisibilityTimeout = 3 }
        """
    )

    assert server.queue("second").attributes["VisibilityTimeout"] == "2"
    assert server.queue("third").attributes["VisibilityTimeout"] == "3"
    assert "third" in server.queue("second").attributes["RedrivePolicy"]


def test_the_same_file_fits_queues_that_are_there(begin, server) -> None:
    text = """
        [[queues]]
        name = "orders"
        attributes = { VisibilityTimeout = 60 }
        tags = { team = "shop" }
        dead_letter_queue = "dead-orders"
        """
    begin(text)
    server.queue("orders").send("hello")
    server.client().tag_queue(QueueUrl=server.queue("orders").url, Tags={"cost": "7"})
    begin(text)

    server.queue("orders").assert_contains(body="hello")


@pytest.mark.parametrize(
    ("queue", "difference"),
    [
        ("attributes = { VisibilityTimeout = 30 }", "VisibilityTimeout: '60'"),
        ('tags = { team = "mail" }', "tags: {'team': 'shop'}"),
        ('dead_letter_queue = "dead-orders"', "RedrivePolicy: None"),
    ],
)
def test_a_queue_that_is_there_and_differs_is_refused(begin, server, queue, difference) -> None:
    server.create_queue("orders", attributes={"VisibilityTimeout": 60}, tags={"team": "shop"})

    with pytest.raises(ServeFileError) as refused:
        begin(f'[[queues]]\nname = "orders"\n{queue}\n')

    assert str(refused.value).endswith(
        f"queues.toml: [[queues]] 1, name 'orders': the queue exists already, and has another"
        f" value for {difference}; write that into the file, or change the queue there, or"
        " delete it"
    )


def test_queues_of_one_name_may_live_in_several_places(begin, server) -> None:
    begin(
        """
        [[queues]]
        name = "orders"

        [[queues]]
        name = "orders"
        region = "eu-west-1"
        """
    )

    assert {queue.region for queue in server.queues} == {"us-east-1", "eu-west-1"}


ORDERS = '[[queues]]\nname = "orders"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("port = ", "is no TOML file: Invalid value (at end of document)"),
        (
            "[sever]\nport = 1",
            ": unknown table 'sever'; did you mean 'server'?",
        ),
        ("server = 5", ": server must be a table, not 5"),
        ("[queues]\nname = 'orders'", ": queues must be tables, each under [[queues]], not {*}"),
        (
            "[server]\nprot = 1",
            ": [server]: unknown option 'prot'; did you mean 'port'?",
        ),
        (
            "[server]\nport = '9324'",
            ": [server]: port must be an integer from 0 to 65535, not '9324'",
        ),
        (
            "[server]\nstrict = true",
            ": [server]: strict is an option of a test run, not of a server; *",
        ),
        (
            "[server]\nstart = 2030-01-01",
            ": [server]: start must be an aware datetime or ISO 8601 text, not *",
        ),
        ("[[queues]]\ntags = {}", ": [[queues]] 1: name is missing"),
        ("[[queues]]\nname = 5", ": [[queues]] 1, name 5: name must be a text that is not empty,*"),
        (
            f"{ORDERS}max_recieve_count = 3",
            (
                ": [[queues]] 1, name 'orders': unknown key 'max_recieve_count'; did you mean"
                " 'max_receive_count'?"
            ),
        ),
        (
            f"{ORDERS}max_receive_count = '3'",
            ": [[queues]] 1, name 'orders': max_receive_count must be an integer, not '3'",
        ),
        (
            f"{ORDERS}max_receive_count = 3",
            ": [[queues]] 1, name 'orders': max_receive_count needs a dead_letter_queue",
        ),
        (
            f"{ORDERS}attributes = 'none'",
            ": [[queues]] 1, name 'orders': attributes must be a table, not 'none'",
        ),
        (
            f"{ORDERS}attributes = {{ VisibilityTimeout = true }}",
            (
                ": [[queues]] 1, name 'orders': attributes.VisibilityTimeout must be a text or a"
                " number, not True"
            ),
        ),
        (
            f"{ORDERS}attributes = {{ VisibilityTimeout = 43201 }}",
            ": [[queues]] 1, name 'orders': Invalid value for the parameter VisibilityTimeout.",
        ),
        (
            f"{ORDERS}attributes = {{ Visibility = 5 }}",
            ": [[queues]] 1, name 'orders': Unknown Attribute Visibility.",
        ),
        (
            f"{ORDERS}tags = {{ team = 5 }}",
            ": [[queues]] 1, name 'orders': tags.team must be a text, not 5",
        ),
        (
            f"{ORDERS}account_id = '12'",
            ": [[queues]] 1, name 'orders': account_id is '12'; an account has 12 digits",
        ),
        (
            "[[queues]]\nname = 'or ders'",
            (
                ": [[queues]] 1, name 'or ders': Can only include alphanumeric characters, hyphens,"
                " or underscores. 1 to 80 in length"
            ),
        ),
        (
            f"{ORDERS}dead_letter_queue = 'dead.fifo'",
            (
                ": [[queues]] 1, name 'orders': the dead-letter queue of 'orders' cannot be"
                " 'dead.fifo': both are FIFO queues, with names that end in .fifo, or neither is"
            ),
        ),
        (
            f"{ORDERS}dead_letter_queue = 'arn:aws:s3:::orders'",
            (
                ": [[queues]] 1, name 'orders': dead_letter_queue: 'arn:aws:s3:::orders' is no ARN"
                " of an SQS queue"
            ),
        ),
        (
            f"{ORDERS}dead_letter_queue = 'orders'",
            (
                ": [[queues]] 1, name 'orders': dead_letter_queue leads back to where it began:"
                " 'orders' → 'orders'; leave one of them out, and set its RedrivePolicy with"
                " SetQueueAttributes"
            ),
        ),
        (
            (
                f"{ORDERS}dead_letter_queue = 'dead'\n[[queues]]\nname = 'dead'\n"
                "dead_letter_queue = 'orders'"
            ),
            (
                ": [[queues]] 1, name 'orders': dead_letter_queue leads back to where it began:"
                " 'orders' → 'dead' → 'orders'; *"
            ),
        ),
        (
            f"[[queues]]\nname = 'mails'\n{ORDERS}{ORDERS}region = 'us-east-1'",
            (
                ": [[queues]] 3, name 'orders': the queue of this name is told of in [[queues]] 2"
                " already"
            ),
        ),
    ],
)
def test_what_cannot_be_had_is_told_in_a_line_and_nobody_listens(run, write, text, told) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    write(text)

    done = run("serve", "--port", str(port), "--config", "queues.toml")

    assert (done.status, done.stdout) == (1, "")
    start = "sqsq: queues.toml" + ("" if told.startswith(":") else " ")
    pattern = re.escape(start + told).replace(r"\*", ".*")
    assert re.fullmatch(pattern + "\n", done.stderr), done.stderr
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", port)) != 0


def test_a_file_that_is_not_there_is_told_in_a_line(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)

    done = run("serve", "--config", "queues.toml")

    assert done == (1, "", "sqsq: cannot read queues.toml: No such file or directory\n")


def test_a_file_in_another_encoding_is_told_in_a_line(run, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("queues.toml").write_bytes('[[queues]]\nname = "ä"'.encode("latin-1"))

    done = run("serve", "--config", "queues.toml")

    assert (done.status, done.stdout) == (1, "")
    assert done.stderr.startswith("sqsq: queues.toml is no TOML file: 'utf-8' codec can't decode")
    assert done.stderr.count("\n") == 1
