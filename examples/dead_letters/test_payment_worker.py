import json

import pytest
from payment_worker import PaymentWorker, try_failed_payments_again

pytestmark = pytest.mark.sqsq(clock="frozen")

PAYMENT = json.dumps({"card": "4242", "cents": 1999})


class Bank:
    """Stands in for the real one."""

    def __init__(self):
        self.is_open = True
        self.charged = []

    def charge(self, card, cents):
        if not self.is_open:
            raise ConnectionError("the bank does not answer")
        self.charged.append((card, cents))


@pytest.fixture
def bank():
    return Bank()


@pytest.fixture
def payments(sqs_server):
    return sqs_server.create_queue(
        "payments",
        dead_letter_queue="failed-payments",
        max_receive_count=3,
        attributes={"VisibilityTimeout": "30"},
    )


@pytest.fixture
def failed_payments(sqs_server, payments):
    return sqs_server.queue("failed-payments")


@pytest.fixture
def worker(sqs_client, payments, bank):
    return PaymentWorker(sqs_client, payments.url, bank.charge)


def test_a_payment_that_failed_three_times_is_a_dead_letter(
    worker, bank, sqs_server, payments, failed_payments
):
    bank.is_open = False
    payments.send(PAYMENT)

    for _ in range(3):
        failed_payments.assert_empty()
        worker.run_once()
        payments.assert_in_flight(body=PAYMENT, for_seconds=30)
        sqs_server.advance(30)

    payments.assert_empty()
    payments.assert_dead_lettered(body=PAYMENT)
    letter = failed_payments.assert_contains(body=PAYMENT, state="visible")
    assert letter.receive_count == 3
    assert letter.dead_letter_source_arn == payments.arn


def test_two_failures_are_not_enough(worker, bank, sqs_server, payments, failed_payments):
    bank.is_open = False
    payments.send(PAYMENT)
    for _ in range(2):
        worker.run_once()
        sqs_server.advance(30)

    bank.is_open = True
    worker.run_once()

    assert bank.charged == [("4242", 1999)]
    payments.assert_received(body=PAYMENT, times=3)
    payments.assert_deleted(body=PAYMENT)
    failed_payments.assert_empty()


def test_dead_letters_can_be_tried_again(
    worker, bank, sqs_server, sqs_client, payments, failed_payments
):
    bank.is_open = False
    payments.send(PAYMENT)
    for _ in range(3):
        worker.run_once()
        sqs_server.advance(30)

    bank.is_open = True
    try_failed_payments_again(sqs_client, failed_payments.arn)
    worker.run_once()

    assert bank.charged == [("4242", 1999)]
    failed_payments.assert_empty()
    payments.assert_empty()
