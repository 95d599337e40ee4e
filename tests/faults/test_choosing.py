"""Which requests a fault is for, and when it comes to pass."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import timedelta

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

ONE_ATTEMPT = Config(retries={"total_max_attempts": 1})
ERROR = "InternalFailure"


def test_without_a_choice_every_request_fails(faults, sqs, send):
    faults.add(error=ERROR)
    for request in (send, sqs.list_queues):
        with pytest.raises(ClientError):
            request()


def test_a_fault_of_an_action_spares_the_others(faults, sqs, send):
    fault = faults.add(action="ListQueues", error=ERROR)
    send()
    with pytest.raises(ClientError):
        sqs.list_queues()
    assert fault.fired == 1


@pytest.mark.parametrize("named", ["probe", "name", "url", "arn"])
def test_a_fault_of_a_queue_spares_the_others(server, faults, sqs, send, queue, named):
    other = server.create_queue("others")
    faults.add(
        queue={"probe": queue, "name": "orders"}.get(named) or getattr(queue, named, None),
        error=ERROR,
    )
    sqs.send_message(QueueUrl=other.url, MessageBody="a")
    sqs.list_queues()
    with pytest.raises(ClientError):
        send()
    with pytest.raises(ClientError):
        sqs.get_queue_url(QueueName="orders")


@pytest.mark.parametrize(("named", "spared"), [("name", False), ("url", True), ("arn", True)])
def test_the_same_name_in_another_account_is_meant_by_the_name_alone(
    server, faults, sqs, queue, named, spared
):
    other = server.create_queue("orders", account_id="111111111111")
    fault = faults.add(queue=getattr(queue, named), drop_connection="after")
    try:
        sqs.send_message(QueueUrl=other.url, MessageBody="a")
    except ConnectionClosedError:
        assert not spared
    assert fault.fired == (not spared)


@pytest.mark.parametrize(
    "body", ["poison", re.compile("^poi"), lambda body: body.startswith("poison")]
)
def test_a_fault_of_a_body_spares_other_bodies(faults, send, body):
    faults.add(body=body, error=ERROR)
    send("good")
    with pytest.raises(ClientError):
        send("poison")


def test_a_fault_of_a_body_spares_requests_about_no_message(faults, sqs, queue):
    fault = faults.add(body=re.compile(""), error=ERROR)
    sqs.list_queues()
    sqs.receive_message(QueueUrl=queue.url)
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        sqs.delete_message(QueueUrl=f"{queue.url}x", ReceiptHandle="a")
    assert fault.fired == 0


def test_a_fault_of_entries_spares_batches_without_them_and_other_actions(faults, sqs, send, queue):
    fault = faults.add(fail_entries=["b"])
    send()
    entries = [{"Id": "a", "MessageBody": "a"}]
    assert "Failed" not in sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)
    assert fault.fired == 0


def test_a_fault_of_a_body_finds_it_among_the_entries_of_a_batch(faults, sqs, queue):
    faults.add(body="poison", error=ERROR)
    for bodies in (["a", "b"], ["a", "poison"]):
        entries = [{"Id": str(at), "MessageBody": body} for at, body in enumerate(bodies)]
        if "poison" in bodies:
            with pytest.raises(ClientError):
                sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)
        else:
            sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)


def test_a_fault_of_a_body_knows_what_a_receipt_handle_stands_for(faults, sqs, queue):
    queue.send("good")
    queue.send("poison")
    faults.add(action="DeleteMessage", body="poison", error=ERROR)
    good, poison = queue.receive(2)
    sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=good.receipt_handle)
    with pytest.raises(ClientError) as caught:
        sqs.delete_message(QueueUrl=queue.url, ReceiptHandle=poison.receipt_handle)
    assert caught.value.response["Error"]["Code"] == ERROR
    with pytest.raises(ClientError) as caught:
        sqs.delete_message(QueueUrl=queue.url, ReceiptHandle="none")
    assert caught.value.response["Error"]["Code"] == "ReceiptHandleIsInvalid"


def test_a_fault_of_a_received_body_comes_with_the_answer(faults, sqs, queue):
    faults.add(action="ReceiveMessage", body="poison", error=ERROR)
    queue.send("good")
    sqs.receive_message(QueueUrl=queue.url)
    queue.send("poison")
    with pytest.raises(ClientError):
        sqs.receive_message(QueueUrl=queue.url)
    queue.assert_in_flight(body="poison")


def test_a_long_poll_fails_before_it_waits(faults, sqs, queue):
    faults.add(action="ReceiveMessage", error=ERROR)
    with pytest.raises(ClientError):
        sqs.receive_message(QueueUrl=queue.url, WaitTimeSeconds=20)


@pytest.mark.parametrize("body", [None, "a"])
def test_a_long_poll_may_lose_its_answer(server, faults, sqs, queue, beside, body):
    faults.add(action="ReceiveMessage", body=body, drop_connection="after")
    poll = beside(sqs.receive_message, QueueUrl=queue.url, WaitTimeSeconds=20)
    server.wait_for_pollers(1)
    queue.send("a")
    with pytest.raises(ConnectionClosedError):
        poll.result(10)
    queue.assert_in_flight(body="a")


def test_the_first_fault_that_comes_to_pass_wins(faults, send):
    first = faults.add(error="RequestThrottled", times=1)
    second = faults.add(status=503)
    for code in ("RequestThrottled", "ServiceUnavailable"):
        with pytest.raises(ClientError) as caught:
            send()
        assert caught.value.response["Error"]["Code"] == code
    assert (first.fired, second.fired) == (1, 1)


def test_a_request_that_a_fault_lets_pass_is_left_to_those_after_it(faults, send):
    faults.add(error="RequestThrottled", sequence=("pass", "fail"))
    faults.add(status=503, times=1)
    for code in ("ServiceUnavailable", "RequestThrottled"):
        with pytest.raises(ClientError) as caught:
            send()
        assert caught.value.response["Error"]["Code"] == code


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ({}, "xxxxxx"),
        ({"times": 2}, "xx...."),
        ({"after": 2}, "..xxxx"),
        ({"after": 2, "times": 1}, "..x..."),
        ({"sequence": ("fail", "pass", "fail")}, "x.x..."),
        ({"sequence": ("fail", "pass", "fail"), "times": 1}, "x....."),
        ({"sequence": ["pass", "fail"], "after": 1}, "..x..."),
    ],
)
def test_a_fault_comes_to_pass_when_it_was_planned_to(faults, outcomes, plan, expected):
    fault = faults.add(action="SendMessage", error=ERROR, **plan)
    assert outcomes(6) == expected
    assert fault.fired == expected.count("x")


def test_a_fault_lasts_for_so_much_time_of_the_servers_clock(server, faults, outcomes):
    faults.add(error=ERROR, for_seconds=30)
    assert outcomes(1) == "x"
    server.advance(29.999)
    assert outcomes(1) == "x"
    server.advance(0.001)
    assert outcomes(2) == ".."


def test_a_fault_may_begin_later_and_lasts_from_then(server, faults, outcomes):
    faults.add(error=ERROR, after=timedelta(minutes=1), for_seconds=timedelta(seconds=5))
    assert outcomes(1) == "."
    server.advance(60)
    assert outcomes(1) == "x"
    server.advance(5)
    assert outcomes(1) == "."


def test_chances_are_the_same_under_the_same_seed(make_server):
    def luck(seed: int) -> str:
        server = make_server(seed=seed)
        queue = server.create_queue("orders")
        sqs = server.client(transport="direct", config=ONE_ATTEMPT)
        server.faults.add(error="InvalidSecurity", probability=0.5)
        server.faults.add(error="InvalidAddress", probability=0.5)
        codes = ""
        for _ in range(40):
            try:
                sqs.send_message(QueueUrl=queue.url, MessageBody="a")
                codes += "."
            except ClientError as error:
                codes += error.response["Error"]["Code"][7]
        return codes

    first = luck(1)
    assert first == luck(1)
    assert first != luck(2)
    assert set(first) == set(".SA")
    assert 10 <= first.count("S") <= 30


def test_a_seed_that_was_made_up_stands_in_the_report(make_server):
    server = make_server(seed=None)
    assert "seed" not in server.report()
    server.faults.add(error=ERROR, probability=0.5)
    sqs = server.client(transport="direct", config=ONE_ATTEMPT)
    with suppress(ClientError):
        sqs.list_queues()
    assert "\nseed: " in server.report()


def test_a_rate_is_counted_by_the_servers_clock(server, faults, outcomes):
    fault = faults.throttle(3, action="SendMessage")
    assert outcomes(5) == "...xx"
    server.advance(0.333)
    assert outcomes(1) == "x"
    server.advance(0.001)
    assert outcomes(2) == ".x"
    server.advance(60)
    assert outcomes(4) == "...x"
    assert fault.fired == 5


def test_throttling_is_what_aws_calls_it(faults, sqs, send):
    faults.throttle(1)
    send()
    with pytest.raises(sqs.exceptions.RequestThrottled):
        send()


def test_a_throttle_of_a_queue_spares_the_others(server, faults, sqs, send):
    other = server.create_queue("others")
    faults.throttle(1, queue="orders")
    for _ in range(3):
        sqs.send_message(QueueUrl=other.url, MessageBody="a")
    send()
    with pytest.raises(ClientError):
        send()
