from __future__ import annotations

import inspect

import pytest
from botocore.exceptions import ClientError

from pytest_sqsq import Faults
from pytest_sqsq.admin.faults import KINDS


def test_a_planned_fault_comes_to_pass(server, remote) -> None:
    queue = server.create_queue("orders")
    client = server.client()

    answer = remote.post("faults", action="SendMessage", queue="orders", times=1, error="OverLimit")

    assert answer.status == 201
    text = "OverLimit for SendMessage on 'orders', once"
    assert answer.json == {"id": 1, "text": text}
    assert remote.get("faults").json == {"faults": [{"id": 1, "text": text, "fired": 0}]}
    with pytest.raises(ClientError, match="OverLimit"):
        client.send_message(QueueUrl=queue.url, MessageBody="a")
    client.send_message(QueueUrl=queue.url, MessageBody="a")
    assert remote.get("faults").json == {"faults": [{"id": 1, "text": text, "fired": 1}]}


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"status": 503, "times": 2}, "status 503, twice"),
        ({"latency": 1.5, "clock": "virtual"}, "latency of 1.5 s by the server's clock"),
        ({"error": "OverLimit", "after": 2}, "OverLimit, after 2 requests"),
        (
            {"error": "OverLimit", "after_seconds": 60, "for_seconds": 5},
            "OverLimit, after 0:01:00, for 5 s",
        ),
        ({"error": "OverLimit", "body": "a"}, "OverLimit with body 'a'"),
        ({"error": "OverLimit", "body": {"pattern": "^a+"}}, "OverLimit with a body matching '^a"),
        ({"error": "OverLimit", "sequence": ["fail", "pass"]}, "OverLimit, in the sequence fail p"),
        ({"kind": "throttle", "rate": 2}, "RequestThrottled beyond 2 a second"),
        (
            {"kind": "duplicate_delivery", "probability": 0.5, "queue": "orders"},
            "duplicate delivery on 'orders', with probability 0.5",
        ),
        (
            {"kind": "late_duplicate", "after_seconds": 5, "times": None},
            "late duplicate 5 s after the delete, once",
        ),
        ({"kind": "lost_delete", "times": 3}, "lost delete, 3 times"),
        ({"kind": "stale_counts"}, "stale counts for GetQueueAttributes"),
        ({"kind": "store_down"}, "the store is down"),
    ],
)
def test_each_kind_can_be_planned(server, remote, values, text) -> None:
    answer = remote.post("faults", **values)

    assert answer.status == 201, answer
    assert answer.json["text"].startswith(text)
    assert [fault.text for fault in server.faults] == [answer.json["text"]]


def test_the_keys_are_those_of_the_methods() -> None:
    for kind, keys in KINDS.items():
        parameters = set(inspect.signature(getattr(Faults, kind)).parameters) - {"self"}
        assert {key.replace("after_seconds", "after") for key in keys} == parameters


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, "a fault needs an effect, one of error, status, latency, drop_connection, truncate, "),
        ({"error": "Overlimit"}, "unknown error 'Overlimit'; did you mean 'OverLimit'?"),
        ({"error": []}, "unknown error []; "),
        ({"status": "503"}, "status must be an HTTP status from 400 to 599, not '503'"),
        ({"status": 503, "error": "OverLimit"}, "a fault has one effect, not error and status"),
        ({"status": 503, "times": 0}, "times must be a whole number of at least 1, not 0"),
        ({"status": 503, "times": {}}, "times must be a whole number of at least 1, not {}"),
        ({"status": 503, "after": 1, "after_seconds": 1}, "give after, a number of requests, or"),
        ({"status": 503, "after_seconds": "1"}, "after_seconds must be a number of seconds above "),
        ({"status": 503, "sequence": "fail"}, 'sequence must be made of "fail" and "pass"'),
        ({"status": 503, "sequence": [[], "fail"]}, 'sequence must be made of "fail" and "pass"'),
        ({"status": 503, "queue": 5}, "queue must be a queue or its name, URL or ARN, not 5"),
        ({"status": 503, "action": {}}, "unknown action {}; there are "),
        ({"status": 503, "body": {"pattern": "("}}, "body: '(' is no regular expression: missing"),
        ({"status": 503, "body": {"regex": "a"}}, 'body must be a text or {"pattern": "a regular'),
        ({"status": 503, "body": {"pattern": 1}}, 'body must be a text or {"pattern": "a regular'),
        ({"latency": 1e300}, "latency must be a number of seconds above 0, at most 1e+09, not 1e"),
        ({"truncate": "yes"}, "truncate must be True or False, not 'yes'"),
        ({"fail_entries": [1]}, "fail_entries must be the ids of some entries, not [1]"),
        ({"kind": "nothing"}, "kind must be one of 'add', 'throttle', "),
        ({"kind": ["add"]}, "kind must be one of 'add', 'throttle', "),
        ({"kind": "throttle"}, "rate is missing"),
        ({"kind": "throttle", "rate": 0}, "rate must be a number of requests a second above 0"),
        ({"kind": "throttle", "rate": 10**400}, "rate must be a number, at most 1e+09, not 1000"),
        ({"kind": "store_down", "queue": "a"}, "queue is not for store_down, which takes nothing"),
        ({"kind": "lost_delete", "rate": 1}, "rate is not for lost_delete, which takes queue, ti"),
        ({"kind": "duplicate_delivery", "queue": "a.fifo"}, "a FIFO queue delivers nothing twice"),
        ({"eror": "OverLimit"}, "unknown key 'eror'; did you mean 'error'?"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(server, remote, values, text) -> None:
    status, told = remote.post("faults", **values).error

    assert status == 400
    assert told.startswith(text)
    assert list(server.faults) == []


def test_a_fault_can_be_removed_and_is_told_still(server, remote) -> None:
    server.create_queue("orders")
    remote.post("faults", status=503)
    remote.post("faults", error="OverLimit")

    assert remote.delete("faults/1").json == {}

    with pytest.raises(ClientError, match="OverLimit"):
        server.client().list_queues()
    assert [each["fired"] for each in remote.get("faults").json["faults"]] == [0, 1]
    assert remote.delete("faults/1").json == {}


def test_a_fault_that_is_not_there_cannot_be_removed(remote) -> None:
    for name in ("1", "0", "-1", "x", "%31%32"):
        assert remote.delete(f"faults/{name}").status == 404
    assert remote.delete("faults/1").error == (404, "there is no fault '1'; 0 were planned")


def test_all_faults_can_be_removed(server, remote) -> None:
    remote.post("faults", status=503)

    assert remote.delete("faults").json == {}

    server.client().list_queues()
    assert remote.get("faults").json == {"faults": []}
