from __future__ import annotations

import socket
from datetime import timedelta

import pytest
import time_machine
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError

# Longer than any test: a request that waits for so long waits until it is let go.
FOR_EVER = 3600.0
LONG = 10.0


@pytest.fixture
def slow_send(sqs, queue, beside):
    return lambda: beside(sqs.send_message, QueueUrl=queue.url, MessageBody="a")


def wait_for(gate, condition) -> None:
    changes = gate.changes
    while not condition():
        changed = gate.wait_for_change(changes, LONG)
        assert changed != changes, "nothing happens"
        changes = changed


def test_a_request_is_carried_out_after_a_real_latency(faults, send, queue):
    fault = faults.add(action="SendMessage", latency=0.01)
    send()
    queue.assert_contains(body="a")
    assert fault.fired == 1


def test_a_request_that_is_held_up_in_real_time_is_open(server, faults, slow_send):
    faults.add(latency=FOR_EVER)
    sending = slow_send()
    wait_for(server.traffic, lambda: server.traffic.open_count == 1)
    assert server.traffic.parked_count == 0
    server.faults.hurry()
    sending.result(LONG)


@pytest.mark.parametrize("clock", ["real", "virtual"])
@pytest.mark.parametrize("how", ["stop", "reset"])
def test_whoever_stops_or_empties_the_server_does_not_wait_for_latencies(
    server, faults, slow_send, clock, how
):
    fault = faults.add(latency=FOR_EVER, clock=clock)
    sending = slow_send()
    server.wait_until(lambda: fault.fired)
    getattr(server, how)()
    sending.exception(LONG)
    assert server.traffic.open_count == 0


@pytest.mark.parametrize("clock", ["real", "virtual"])
def test_nobody_begins_to_wait_while_the_server_stops(faults, send, queue, clock):
    faults.add(action="SendMessage", latency=FOR_EVER, clock=clock)
    with faults.hurried():
        send()
    queue.assert_contains(body="a")


def test_an_outage_does_not_wait_for_latencies_and_keeps_the_fault(
    server, faults, slow_send, transport
):
    fault = faults.add(latency=FOR_EVER)
    sending = slow_send()
    server.wait_until(lambda: fault.fired)
    server.restart()
    sending.exception(LONG)
    assert list(server.faults) == [fault]


def test_a_virtual_latency_ends_at_its_instant(server, faults, slow_send, queue):
    faults.add(action="SendMessage", latency=timedelta(minutes=5), clock="virtual")
    started_ms = server.clock.now_ms
    sending = slow_send()
    wait_for(server.traffic, lambda: server.traffic.parked_count == 1)
    server.advance(299.999)
    assert not sending.done()
    queue.assert_nothing_sent()

    events = server.advance(600)

    # The answer was written while the clock stood at the instant.
    assert queue.message(body="a").sent_ms == started_ms + 300_000
    assert [event.detail for event in events if event.kind == "callback"] == [
        {"function": "end of the latency of SendMessage"}
    ]
    assert "MessageId" in sending.result(LONG)


def test_a_virtual_latency_takes_no_longer_than_so_much_real_time(send, faults, queue):
    faults.add(action="SendMessage", latency=0.01, clock="virtual")
    send()
    queue.assert_contains(body="a")


def test_a_request_parked_for_virtual_time_is_in_nobodys_way(server, faults, slow_send):
    faults.add(action="SendMessage", latency=FOR_EVER, clock="virtual")
    sending = slow_send()
    wait_for(server.traffic, lambda: server.traffic.parked_count == 1)
    server.advance(60)
    assert server.traffic.open_count == 0
    server.advance(FOR_EVER)
    sending.result(LONG)


def test_latencies_of_one_instant_end_in_the_order_of_their_requests(
    server, faults, sqs, queue, beside
):
    faults.add(action="SendMessage", latency=60, clock="virtual")
    sendings = []
    for count, body in enumerate("abc", 1):
        sendings.append(beside(sqs.send_message, QueueUrl=queue.url, MessageBody=body))
        wait_for(server.traffic, lambda count=count: server.traffic.parked_count == count)
    server.advance(60)
    for sending in sendings:
        sending.result(LONG)
    assert [view.body for view in queue.messages()] == ["a", "b", "c"]


def test_a_live_clock_ends_a_virtual_latency_when_it_is_advanced(make_server, beside):
    server = make_server(clock="live", seed=None)
    queue = server.create_queue("orders")
    sqs = server.client()
    fault = server.faults.add(action="SendMessage", latency=FOR_EVER, clock="virtual")
    sending = beside(sqs.send_message, QueueUrl=queue.url, MessageBody="a")
    wait_for(server.traffic, lambda: server.traffic.parked_count == 1)
    server.advance(FOR_EVER)
    sending.result(LONG)
    assert fault.fired == 1


def test_a_request_whose_client_gives_up_is_not_carried_out(server, queue):
    fault = server.faults.add(action="SendMessage", latency=FOR_EVER)
    impatient = Config(read_timeout=0.05, retries={"total_max_attempts": 1})
    sqs = server.client(config=impatient)
    with pytest.raises(ReadTimeoutError):
        sqs.send_message(QueueUrl=queue.url, MessageBody="a")
    wait_for(server.traffic, lambda: server.traffic.open_count == 0)
    assert fault.fired == 1
    queue.assert_nothing_sent()
    (record,) = server.requests.assert_called("SendMessage", times=1)
    assert record.status == 0


def test_a_request_whose_client_has_gone_waits_for_no_virtual_time(server, queue):
    server.faults.add(latency=FOR_EVER, clock="virtual")
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"GET /?Action=ListQueues HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for(server.traffic, lambda: server.traffic.parked_count == 1)
    wait_for(
        server.traffic,
        lambda: server.traffic.parked_count == 0 and server.traffic.open_count == 0,
    )
    assert server.faults.waiting == 0


def test_a_system_clock_ends_a_virtual_latency(make_server, beside):

    with time_machine.travel("2030-01-01T00:00:00Z", tick=False) as traveller:
        server = make_server(clock="system", seed=None)
        queue = server.create_queue("orders")
        sqs = server.client()
        server.faults.add(action="SendMessage", latency=FOR_EVER, clock="virtual")
        sending = beside(sqs.send_message, QueueUrl=queue.url, MessageBody="a")
        wait_for(server.traffic, lambda: server.traffic.parked_count == 1)
        traveller.shift(FOR_EVER)
        sending.result(LONG)
    queue.assert_contains(body="a")
