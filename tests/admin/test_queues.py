from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from itertools import count

import fakeredis
import pytest

from pytest_sqsq.admin import queues
from pytest_sqsq.errors import ServiceUnavailable

START_MS = 1_893_456_000_000
ORDERS = "queues/000000000000/us-east-1/orders"


def test_a_server_without_trouble_is_healthy(server, remote) -> None:
    server.create_queue("orders")

    answer = remote.get("health")

    assert answer.status == 200
    assert answer.json == {
        "status": "ok",
        "version": version("pytest-sqsq"),
        "store": {"kind": "memory", "trouble": None},
        "clock": "frozen",
        "queues": 1,
    }


def test_a_store_in_trouble_degrades_it(make_server, connect) -> None:
    redis = fakeredis.FakeServer()
    server = make_server(store=fakeredis.FakeRedis(server=redis))
    queue = server.create_queue("orders")
    assert connect(server).get("health").json["store"] == {"kind": "redis", "trouble": None}

    redis.connected = False
    with pytest.raises(ServiceUnavailable):
        queue.send("a")
    answer = connect(server).get("health")

    assert (answer.status, answer.json["status"]) == (200, "degraded")
    assert answer.json["store"] == {"kind": "redis", "trouble": server.broker.store_trouble}
    assert server.broker.store_trouble
    redis.connected = True


def test_the_store_of_the_process_itself_is_told(make_server, connect) -> None:
    store = connect(make_server(store="fakeredis")).get("health").json["store"]
    assert store == {"kind": "fakeredis", "trouble": None}


def test_queues_are_told_as_the_api_and_the_probe_tell_them(server, remote) -> None:
    server.create_queue("dead")
    queue = server.create_queue("orders", dead_letter_queue="dead", attributes={"DelaySeconds": 5})
    server.create_queue("jobs.fifo", region="eu-west-1", account_id="111122223333")
    queue.send("a")

    told = remote.get("queues").json["queues"]

    assert [(each["name"], each["fifo"]) for each in told] == [
        ("dead", False),
        ("orders", False),
        ("jobs.fifo", True),
    ]
    reported = server.client().get_queue_attributes(QueueUrl=queue.url, AttributeNames=["All"])
    assert told[1] == {
        "name": "orders",
        "account_id": "000000000000",
        "region": "us-east-1",
        "url": queue.url,
        "arn": queue.arn,
        "fifo": False,
        "attributes": reported["Attributes"],
        "statistics": asdict(queue.statistics),
    }
    assert remote.get(ORDERS).json == told[1]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["jobs", "orders", "orders"]),
        ("?prefix=jo", ["jobs"]),
        ("?prefix=ORD", []),
        ("?region=eu-west-1", ["orders"]),
        ("?account_id=111122223333", ["jobs"]),
        ("?account_id=111122223333&prefix=o", []),
    ],
)
def test_queues_can_be_chosen(server, remote, query, names) -> None:
    server.create_queue("orders")
    server.create_queue("orders", region="eu-west-1")
    server.create_queue("jobs", account_id="111122223333")

    assert sorted(each["name"] for each in remote.get(f"queues{query}").json["queues"]) == names


@pytest.mark.parametrize("path", [ORDERS, f"{ORDERS}/messages", "queues/%2F/%ff/%00"])
def test_a_queue_that_is_not_there_is_not_found(remote, path) -> None:
    assert remote.get(path).error == (404, "The specified queue does not exist.")


def test_messages_are_told_with_everything_a_view_has(server, remote) -> None:
    queue = server.create_queue("orders")
    binary = {"DataType": "Binary", "BinaryValue": b"\xff\x00"}
    text = {"DataType": "String", "StringValue": "é"}
    queue.send("a ☃", MessageAttributes={"blob": binary, "text": text})
    queue.send("b", DelaySeconds=7)
    [view] = queue.receive()

    answer = remote.get(f"{ORDERS}/messages").json

    assert answer["next"] is None
    first, second = answer["messages"]
    assert first == {
        **asdict(queue.message(view.message_id)),
        "attributes": {"blob": {"base64": "/wA="}, "text": "é"},
        "queue": "orders",
        "arrival": 0,
    }
    assert second["state"] == "delayed"
    assert second["visible_at_ms"] == START_MS + 7_000
    assert second["why_not_deliverable"] == "delayed until 2030-01-01T00:00:07.000Z"
    assert [each.receive_count for each in queue.messages()] == [1, 0]


def test_pages_follow_each_other_whatever_is_deleted_between_them(server, remote) -> None:
    queue = server.create_queue("orders")
    sent = [queue.send(str(number)) for number in range(7)]
    queue.delete(queue.receive(max_messages=1)[0])

    page = remote.get(f"{ORDERS}/messages?limit=2").json
    assert [each["body"] for each in page["messages"]] == ["1", "2"]
    assert page["next"] == 2

    # 3 goes, with the one that the next page begins after.
    for view in queue.receive(max_messages=3):
        queue.delete(view)
    page = remote.get(f"{ORDERS}/messages?limit=2&after={page['next']}").json
    assert [each["body"] for each in page["messages"]] == ["4", "5"]

    page = remote.get(f"{ORDERS}/messages?limit=2&after={page['next']}").json
    assert [each["message_id"] for each in page["messages"]] == [sent[6].message_id]
    assert page["next"] is None


def test_a_full_last_page_has_no_next(server, remote) -> None:
    queue = server.create_queue("orders")
    queue.send("a")
    queue.send("b")

    assert remote.get(f"{ORDERS}/messages?limit=2").json["next"] is None
    assert remote.get(f"{ORDERS}/messages?after=1").json == {"messages": [], "next": None}


def test_a_page_can_be_of_one_state(server, remote) -> None:
    queue = server.create_queue("orders")
    for body in "abcdef":
        queue.send(body)
    queue.receive(max_messages=2)

    page = remote.get(f"{ORDERS}/messages?state=visible&limit=3").json
    assert [each["body"] for each in page["messages"]] == ["c", "d", "e"]
    assert page["next"] == 4

    page = remote.get(f"{ORDERS}/messages?state=in_flight&limit=2").json
    assert [each["body"] for each in page["messages"]] == ["a", "b"]
    assert page["next"] is None


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("limit=0", "limit must be an integer from 1 to 1000, not 0"),
        ("limit=1001", "limit must be an integer from 1 to 1000, not 1001"),
        ("limit=x", "limit must be an integer from 1 to 1000, not x"),
        ("limit=", 'limit must be an integer from 1 to 1000, not ""'),
        ("after=-1", "after must be an integer of at least 0, not -1"),
        ("after=1.5", "after must be an integer of at least 0, not 1.5"),
        (
            "state=gone",
            "state must be one of 'visible', 'in_flight', 'delayed', not gone",
        ),
    ],
)
def test_a_page_that_cannot_be_is_refused(server, remote, query, text) -> None:
    server.create_queue("orders")

    status, told = remote.get(f"{ORDERS}/messages?{query}").error

    assert (status, told) == (400, text)


def test_a_long_look_lets_others_into_the_queue(server, monkeypatch) -> None:
    queue = server.create_queue("orders")
    for number in range(100):
        queue.send(str(number))
    locked = queue.internals.lock
    ticks = count()
    monkeypatch.setattr(queues, "LOCKED_SECONDS", 10)
    monkeypatch.setattr(queues, "monotonic", lambda: next(ticks))
    looked_at: list[str] = []

    def take(message):
        assert locked.locked()
        looked_at.append(message.body)
        return message.body

    looks = set()
    for position, body in enumerate(queues.walk(server.broker, queue.internals, take)):
        assert not locked.locked()
        assert body == str(position)
        looks.add(len(looked_at))

    assert looks == {10, 20, 30, 40, 50, 60, 70, 80, 90, 100}
