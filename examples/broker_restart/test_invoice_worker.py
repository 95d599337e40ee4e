import threading

import pytest
from invoice_worker import InvoiceWorker, create_client

# The queues go through Redis, as they do when the broker is a process of its own.
pytestmark = pytest.mark.sqsq(clock="frozen", store="fakeredis")

# Real seconds; a passing test never waits this long.
LONG = 10


class Invoices:
    """Writes invoices, each when it may."""

    def __init__(self):
        self.written = []
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()
        self.ended = threading.Event()

    def write(self, order):
        self.begun.set()
        assert self.may_end.wait(LONG)
        self.written.append(order)
        self.ended.set()


@pytest.fixture
def invoices():
    return Invoices()


@pytest.fixture(autouse=True)
def worker(sqs_server, sqs_queue, invoices):
    worker = InvoiceWorker(create_client(), sqs_queue.url, invoices.write, pause=0.01)
    worker.start()
    sqs_server.wait_for_pollers(1, queue=sqs_queue)
    yield
    sqs_server.wait_for_pollers(1, queue=sqs_queue)
    worker.ask_to_stop()
    sqs_server.advance(20)
    worker.join(LONG)


def test_a_worker_that_waits_for_orders_outlives_a_restart(sqs_server, sqs_queue, invoices):
    sqs_server.restart()
    sqs_server.wait_for_pollers(1, queue=sqs_queue)

    sqs_queue.send("order 1")
    sqs_queue.wait_until_empty()

    assert invoices.written == ["order 1"]


def test_orders_from_before_a_restart_are_there_after_it(sqs_server, sqs_queue, invoices):
    invoices.may_end.clear()
    for number in range(3):
        sqs_queue.send(f"order {number}")
    assert invoices.begun.wait(LONG)

    sqs_server.restart()

    sqs_queue.assert_counts(visible=2, in_flight=1)
    invoices.may_end.set()
    sqs_queue.wait_until_empty()
    assert invoices.written == ["order 0", "order 1", "order 2"]


def test_an_invoice_that_is_written_while_the_broker_is_away_is_written_once(
    sqs_server, sqs_queue, invoices
):
    invoices.may_end.clear()
    sqs_queue.send("order 1")
    assert invoices.begun.wait(LONG)

    with sqs_server.outage():
        invoices.may_end.set()
        assert invoices.ended.wait(LONG)
        sqs_queue.assert_in_flight(body="order 1")

    sqs_server.wait_for_pollers(1, queue=sqs_queue)
    sqs_queue.assert_deleted(body="order 1")
    sqs_queue.assert_received(body="order 1", times=1)
    assert invoices.written == ["order 1"]


def test_a_broker_that_cannot_save_gets_the_delete_again(sqs_server, sqs_queue, invoices):
    invoices.may_end.clear()
    sqs_queue.send("order 1")
    assert invoices.begun.wait(LONG)

    with sqs_server.faults.store_down():
        invoices.may_end.set()
        sqs_server.wait_until(lambda: sqs_server.requests.calls(action="DeleteMessage"))
        sqs_queue.assert_in_flight(body="order 1")

    sqs_queue.wait_until_empty()
    assert invoices.written == ["order 1"]
