"""Handles of faults, what is said of them, and plans that make no sense."""

from __future__ import annotations

import re
from datetime import timedelta
from threading import Barrier

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

ONE_ATTEMPT = Config(retries={"total_max_attempts": 1})
ERROR = "InternalFailure"


def poisonous(body):
    return "poison" in body


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        ({"error": "RequestThrottled"}, "RequestThrottled"),
        (
            {"error": "OverLimit", "action": "SendMessage", "queue": "orders", "times": 1},
            "OverLimit for SendMessage on 'orders', once",
        ),
        ({"status": 503, "times": 2, "after": 1}, "status 503, twice, after 1 request"),
        ({"status": 503, "times": 3, "after": 2}, "status 503, 3 times, after 2 requests"),
        ({"latency": 2.5}, "latency of 2.5 s"),
        (
            {"latency": timedelta(hours=1), "clock": "virtual", "after": timedelta(seconds=5)},
            "latency of 1:00:00 by the server's clock, after 5 s",
        ),
        ({"drop_connection": "before"}, "connection dropped before the effect"),
        ({"drop_connection": "after"}, "connection dropped after the effect"),
        ({"truncate": True, "for_seconds": 30}, "truncated answer, for 30 s"),
        ({"fail_entries": ["a", "b"]}, "failure of the entries 'a', 'b'"),
        ({"status": 500, "body": "x"}, "status 500 with body 'x'"),
        ({"status": 500, "body": re.compile("x+")}, "status 500 with a body matching 'x+'"),
        ({"status": 500, "body": poisonous}, "status 500 with a body that poisonous accepts"),
        (
            {"status": 500, "sequence": ("fail", "pass"), "probability": 0.25},
            "status 500, in the sequence fail pass, with probability 0.25",
        ),
    ],
)
def test_a_fault_tells_in_one_line_what_it_does(faults, plan, text):
    fault = faults.add(**plan)
    assert fault.text == text
    assert str(fault) == f"{text}: never fired"
    assert repr(fault) == f"<Fault {text}: never fired>"


def test_the_other_faults_tell_as_well(faults, queue):
    for fault in (
        faults.throttle(10, "SendMessage", queue),
        faults.duplicate_delivery(probability=0.5),
        faults.late_duplicate(queue, after=90),
        faults.lost_delete(times=None),
        faults.stale_counts(queue.url),
        faults.store_down(),
    ):
        assert fault in list(faults)
    assert [fault.text for fault in faults] == [
        "RequestThrottled for SendMessage on 'orders' beyond 10 a second",
        "duplicate delivery, with probability 0.5",
        "late duplicate 0:01:30 after the delete on 'orders', once",
        "lost delete",
        "stale counts for GetQueueAttributes on 'orders'",
        "the store is down",
    ]
    assert len(faults) == 6


def test_a_fault_counts_how_often_it_fired(faults, outcomes):
    fault = faults.add(error=ERROR)
    for text in ("once", "twice", "3 times"):
        outcomes(1)
        assert str(fault) == f"InternalFailure: fired {text}"


def test_a_removed_fault_fires_no_more(faults, outcomes):
    fault = faults.add(error=ERROR)
    assert outcomes(1) == "x"
    fault.remove()
    fault.remove()
    assert outcomes(1) == "."


def test_a_fault_lasts_as_long_as_its_context(faults, outcomes):
    with faults.add(error=ERROR) as fault:
        assert outcomes(1) == "x"
    assert outcomes(1) == "."
    assert fault.fired == 1


def test_faults_end_with_a_reset_and_outlive_a_restart(server, queue):
    fault = server.faults.add(action="ListQueues", error=ERROR)
    sqs = server.client(transport="direct", config=ONE_ATTEMPT)
    server.restart()
    with pytest.raises(ClientError):
        sqs.list_queues()
    assert fault.fired == 1
    server.faults.store_down()
    server.faults.lost_delete()
    server.reset()
    sqs.list_queues()
    assert len(server.faults) == 0
    queue = server.create_queue("orders")
    queue.send("a")
    (message,) = queue.receive()
    queue.delete(message)
    queue.assert_empty()


def test_all_faults_can_be_removed_at_once(faults, outcomes):
    faults.add(error=ERROR)
    faults.store_down()
    faults.clear()
    assert outcomes(1) == "."
    assert faults.unused() == ()


def test_faults_that_never_fired_are_named(faults, outcomes):
    fired = faults.add(action="SendMessage", error=ERROR, times=1)
    assert outcomes(1) == "x"
    assert faults.unused() == ()
    assert faults.unused_text() is None
    first = faults.add(action="ListQueues", error=ERROR)
    assert faults.unused_text() == ("a planned fault never fired: InternalFailure for ListQueues")
    with faults.lost_delete() as second:
        pass
    assert fired not in faults.unused()
    assert faults.unused() == (first, second)
    assert faults.unused_text() == (
        "2 planned faults never fired: InternalFailure for ListQueues; lost delete, once"
    )


def test_a_fault_that_luck_has_spared_is_not_unused(faults, outcomes):
    fault = faults.add(error=ERROR, probability=1e-9)
    assert faults.unused() == (fault,)
    assert outcomes(1) == "."
    assert faults.unused() == ()


def test_many_threads_share_a_fault_exactly(server, queue, beside):
    fault = server.faults.add(action="SendMessage", error=ERROR, times=20)
    barrier = Barrier(8)

    def send_some() -> int:
        sqs = clients.pop()
        barrier.wait(10)
        failures = 0
        for _ in range(10):
            try:
                sqs.send_message(QueueUrl=queue.url, MessageBody="a")
            except ClientError:
                failures += 1
        return failures

    clients = [server.client(transport="direct", config=ONE_ATTEMPT) for _ in range(8)]
    sums = [beside(send_some) for _ in range(8)]
    assert sum(each.result(30) for each in sums) == 20
    assert fault.fired == 20
    queue.assert_counts(visible=60)


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (
            {},
            "a fault needs an effect, one of error, status, latency, drop_connection, truncate,",
        ),
        ({"truncate": False}, "a fault needs an effect"),
        (
            {"error": ERROR, "status": 503},
            "a fault has one effect, not error and status; add two faults",
        ),
        (
            {"error": "RequestThrotled"},
            "unknown error 'RequestThrotled'; did you mean 'RequestThrottled'[?]",
        ),
        ({"error": 503}, "unknown error 503; there are AccessDeniedException, BatchEntryIdsNot"),
        ({"truncate": "yes"}, "truncate must be True or False, not 'yes'"),
        ({"fail_entries": 5}, "fail_entries must be the ids of some entries, not 5"),
        ({"error": ERROR, "sequence": 5}, 'contain a "fail", not 5'),
        ({"error": ERROR, "sequence": [["fail"]]}, 'contain a "fail", not'),
        (
            {"error": ERROR, "action": "SendMesage"},
            "unknown action 'SendMesage'; did you mean 'SendMessage'[?]",
        ),
        ({"error": ERROR, "action": 5}, "unknown action 5; there are AddPermission, "),
        ({"status": 200}, "status must be an HTTP status from 400 to 599, not 200"),
        ({"status": "503"}, "status must be an HTTP status from 400 to 599, not '503'"),
        ({"latency": -1}, "latency: time cannot go back: the duration is -1"),
        ({"latency": 0}, "latency must be at least a millisecond, not 0"),
        ({"latency": "1 s"}, "latency: a duration is seconds or a timedelta, not '1 s'"),
        ({"latency": 1, "clock": "frozen"}, "clock must be 'real' or 'virtual', not 'frozen'"),
        (
            {"error": ERROR, "clock": "virtual"},
            "clock='virtual' is for latency; other effects take no time",
        ),
        ({"drop_connection": True}, "drop_connection must be 'before' or 'after', not True"),
        (
            {"drop_connection": "before", "action": "ReceiveMessage", "body": "a"},
            "what a receive will hand out is not known before; use drop_connection='after'",
        ),
        ({"fail_entries": []}, r"fail_entries must be the ids of some entries, not \[\]"),
        ({"fail_entries": "a"}, "fail_entries must be the ids of some entries, not 'a'"),
        (
            {"fail_entries": ["a"], "action": "SendMessage"},
            "SendMessage has no entries, there are ChangeMessageVisibilityBatch, DeleteMessageBa",
        ),
        ({"error": ERROR, "queue": 5}, "queue must be a queue or its name, URL or ARN, not 5"),
        ({"error": ERROR, "queue": ""}, "queue must be a queue or its name, URL or ARN, not ''"),
        (
            {"error": ERROR, "queue": "//"},
            "queue must be a queue or its name, URL or ARN, not '//'",
        ),
        (
            {"error": ERROR, "queue": "a/"},
            "queue must be a queue or its name, URL or ARN, not 'a/'",
        ),
        (
            {"error": ERROR, "body": 5},
            "body must be a text, a compiled pattern or a callable, not 5",
        ),
        (
            {"error": ERROR, "body": "a", "action": "ListQueues"},
            "ListQueues is about no message, so none can have a body",
        ),
        ({"error": ERROR, "times": 0}, "times must be a whole number of at least 1, not 0"),
        ({"error": ERROR, "times": 1.0}, "times must be a whole number of at least 1, not 1.0"),
        ({"error": ERROR, "after": -1}, "after must be a whole number of at least 0, not -1"),
        ({"error": ERROR, "after": timedelta(0)}, "after must be at least a millisecond"),
        ({"error": ERROR, "sequence": ()}, 'sequence must be made of "fail" and "pass" and'),
        ({"error": ERROR, "sequence": ("pass",)}, 'contain a "fail", not'),
        ({"error": ERROR, "sequence": "fail"}, "not 'fail'"),
        ({"error": ERROR, "sequence": ("fail", "pas")}, r"not \('fail', 'pas'\)"),
        ({"error": ERROR, "for_seconds": 0}, "for_seconds must be at least a millisecond, not 0"),
        ({"error": ERROR, "for_seconds": -1}, "for_seconds: time cannot go back"),
        ({"error": ERROR, "probability": 0}, "probability must be above 0 and at most 1, not 0"),
        ({"error": ERROR, "probability": 1.5}, "probability must be above 0 and at most 1"),
        ({"error": ERROR, "probability": True}, "probability must be above 0 and at most 1"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(faults, plan, text):
    with pytest.raises(ValueError, match=text):
        faults.add(**plan)
    assert len(faults) == 0


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (
            lambda faults: faults.throttle(0),
            "rate must be a number of requests a second above 0, not 0",
        ),
        (lambda faults: faults.throttle("5"), "rate must be a number of requests a second"),
        (lambda faults: faults.throttle(5, action="Send"), "unknown action 'Send'"),
        (
            lambda faults: faults.duplicate_delivery("a.fifo"),
            "a FIFO queue delivers nothing twice at once: 'a.fifo'",
        ),
        (lambda faults: faults.duplicate_delivery(probability=2), "probability must be above 0"),
        (lambda faults: faults.late_duplicate(after=0), "after must be at least a millisecond"),
        (lambda faults: faults.lost_delete(times=0), "times must be a whole number"),
        (lambda faults: faults.stale_counts(5), "queue must be a queue or its name"),
    ],
)
def test_so_are_the_others(faults, plan, text):
    with pytest.raises(ValueError, match=text):
        plan(faults)
    assert len(faults) == 0
