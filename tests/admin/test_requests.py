from __future__ import annotations

import pytest

START_MS = 1_893_456_000_000


def test_requests_are_told_oldest_first(server, remote) -> None:
    queue = server.create_queue("orders")
    client = server.client()
    blob = {"x": {"DataType": "Binary", "BinaryValue": b"\xff"}}
    client.send_message(QueueUrl=queue.url, MessageBody="a", MessageAttributes=blob)
    client.receive_message(QueueUrl=queue.url)

    told = remote.get("requests").json

    assert told["forgotten"] == 0
    first, second = told["requests"]
    logged = server.requests.calls("SendMessage")[0]
    assert first == {
        "action": "SendMessage",
        "queue": "orders",
        "account_id": "000000000000",
        "region": "us-east-1",
        "protocol": "json",
        "parameters": {
            "QueueUrl": queue.url,
            "MessageBody": "a",
            "MessageAttributes": {"x": {"DataType": "Binary", "BinaryValue": {"base64": "/w=="}}},
        },
        "status": 200,
        "error_code": None,
        "at_ms": START_MS,
        "duration_ms": logged.duration_ms,
        "client_address": logged.client_address,
        "transport": "http",
        "stale": False,
    }
    assert second["action"] == "ReceiveMessage"


@pytest.mark.parametrize(
    ("query", "actions"),
    [
        ("?action=ListQueues", ["ListQueues", "ListQueues"]),
        ("?action=PurgeQueue", []),
        ("?queue=orders", ["GetQueueUrl"]),
        ("?queue=arn:aws:sqs:us-east-1:000000000000:orders", ["GetQueueUrl"]),
        ("?limit=2", ["GetQueueUrl", "ListQueues"]),
        ("?limit=1&action=ListQueues", ["ListQueues"]),
    ],
)
def test_requests_can_be_chosen(server, remote, query, actions) -> None:
    server.create_queue("orders")
    client = server.client()
    client.list_queues()
    client.get_queue_url(QueueName="orders")
    client.list_queues()

    assert [each["action"] for each in remote.get(f"requests{query}").json["requests"]] == actions


def test_what_the_log_has_dropped_is_counted(make_server, connect) -> None:
    server = make_server(request_log_size=1)
    client = server.client()
    client.list_queues()
    client.list_queues()

    told = connect(server).get("requests").json

    assert (len(told["requests"]), told["forgotten"]) == (1, 1)


def test_requests_can_be_forgotten(server, remote) -> None:
    server.client().list_queues()

    assert remote.delete("requests").json == {}
    assert remote.get("requests").json == {"requests": [], "forgotten": 0}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("action=SendMesage", "unknown action 'SendMesage'; did you mean 'SendMessage'?"),
        ("queue=", "queue must be a queue or its name, URL or ARN, not ''"),
        ("limit=0", "limit must be an integer of at least 1, not 0"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(remote, query, text) -> None:
    assert remote.get(f"requests?{query}").error == (400, text)
