from __future__ import annotations

import socket

import pytest

LONG = 10.0


def wait_until_somebody_waits(server) -> None:
    # Each wait listens to the broker, this one too.
    server.wait_until(lambda: len(server.broker.listeners.current) == 2, LONG)


def test_what_is_so_already_is_answered_at_once(server, remote) -> None:
    server.create_queue("orders")

    assert remote.post("wait", **{"for": "idle"}).json == {}
    assert remote.post("wait", **{"for": "empty", "queue": "orders"}).json == {}


def test_messages_that_come_are_told(server, remote, beside) -> None:
    queue = server.create_queue("orders")
    waiting = beside(
        remote.post, "wait", **{"for": "messages", "queue": queue.arn, "body": "b", "timeout": LONG}
    )
    wait_until_somebody_waits(server)
    queue.send("a")
    view = queue.send("b")

    answer = waiting.result()

    assert answer.status == 200
    [message] = answer.json["messages"]
    assert (message["message_id"], message["body"]) == (view.message_id, "b")
    assert message["state"] == "visible"


@pytest.mark.parametrize("name", ["orders", "url", "arn"])
def test_a_queue_goes_by_its_name_url_or_arn(server, remote, name) -> None:
    queue = server.create_queue("orders")
    given = {"url": queue.url, "arn": queue.arn}.get(name, name)

    assert remote.post("wait", **{"for": "empty", "queue": given}).status == 200


def test_messages_can_be_waited_for_by_state_pattern_and_number(server, remote) -> None:
    queue = server.create_queue("orders")
    for body in ("a1", "a2", "b1"):
        queue.send(body, DelaySeconds=5)

    wanted = {"for": "messages", "queue": "orders", "body": {"pattern": "^a"}, "timeout": 0}
    assert remote.post("wait", **wanted, count=2, state="delayed").status == 200
    assert remote.post("wait", **wanted, count=3).status == 408
    assert remote.post("wait", **wanted, state="visible").status == 408
    none = {"for": "messages", "queue": "orders", "body": "c", "count": 0}
    assert remote.post("wait", **none).json == {"messages": []}


def test_polls_can_be_waited_for(server, remote, beside) -> None:
    queue = server.create_queue("orders")
    waiting = beside(
        remote.post, "wait", **{"for": "pollers", "count": 1, "queue": "orders", "timeout": LONG}
    )
    polling = beside(server.client().receive_message, QueueUrl=queue.url, WaitTimeSeconds=20)

    assert waiting.result().json == {}
    assert queue.statistics.parked_polls == 1
    queue.send("a")
    assert len(polling.result()["Messages"]) == 1


def test_a_wait_in_vain_tells_what_it_waited_for(server, remote) -> None:
    server.create_queue("orders").send("a")

    status, text = remote.post("wait", **{"for": "empty", "queue": "orders", "timeout": 0}).error

    assert status == 408
    assert text.splitlines()[0] == "waited 0 s for 'orders' to be empty"
    assert "'a' visible, never received" in text


@pytest.mark.parametrize(
    ("values", "status", "text"),
    [
        ({}, 400, "for is missing"),
        ({"for": "godot"}, 400, "for must be one of 'idle', 'pollers', 'messages', 'empty', not"),
        ({"for": "idle", "queue": "orders"}, 400, "queue has no meaning in a wait for idle"),
        ({"for": "empty", "state": "visible"}, 400, "state has no meaning in a wait for empty"),
        ({"for": "empty"}, 400, "queue is missing: its name, URL or ARN, for a wait for empty"),
        ({"for": "messages"}, 400, "queue is missing: its name, URL or ARN"),
        ({"for": "empty", "queue": "ordres"}, 404, "no queue 'ordres' in account 000000000000, "),
        ({"for": "empty", "queue": "arn:x"}, 400, "'arn:x' is no ARN of an SQS queue"),
        ({"for": "empty", "queue": 1}, 400, "queue must be a text, not 1"),
        ({"for": "idle", "timeout": 601}, 400, "timeout must be a number of seconds from 0, at mo"),
        ({"for": "pollers", "count": 0}, 400, "count must be an integer of at least 1, not 0"),
        ({"for": "messages", "queue": "orders", "count": -1}, 400, "count must be an integer of "),
        ({"for": "messages", "queue": "orders", "state": "gone"}, 400, "state must be one of 'vi"),
    ],
)
def test_a_wait_that_makes_no_sense_is_refused(server, remote, values, status, text) -> None:
    server.create_queue("orders")

    got, told = remote.post("wait", **values).error

    assert got == status
    assert told.startswith(text)


def test_time_can_be_moved_and_the_server_reset_while_somebody_waits(
    server, remote, beside
) -> None:
    server.create_queue("orders").send("a", DelaySeconds=30)
    wanted = {"for": "messages", "queue": "orders", "state": "visible", "timeout": LONG}
    waiting = beside(remote.post, "wait", **wanted)
    wait_until_somebody_waits(server)

    assert remote.post("clock/advance", seconds=30).status == 200
    assert waiting.result().status == 200

    waiting = beside(remote.post, "wait", **{**wanted, "state": "in_flight"})
    wait_until_somebody_waits(server)
    assert remote.post("reset").status == 200
    assert waiting.result().error == (404, "The specified queue does not exist.")


def test_a_server_that_stops_lets_those_who_wait_go(make_server, connect, beside) -> None:
    server = make_server()
    waiting = beside(connect(server).post, "wait", **{"for": "pollers", "timeout": 600})
    wait_until_somebody_waits(server)

    server.stop()

    assert waiting.result(LONG).error == (503, "the server was stopped")


def test_a_client_that_has_gone_frees_its_thread(make_server) -> None:
    server = make_server(clock="live", start=None)
    body = b'{"for": "pollers", "timeout": 600}'
    head = (
        b"POST /_sqsq/wait HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=LONG) as client:
        client.sendall(head + body)
        wait_until_somebody_waits(server)

    server.wait_until(lambda: len(server.broker.listeners.current) == 1, LONG)
