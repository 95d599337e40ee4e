import pytest
from order_worker import OrderWorker, place_order

pytestmark = pytest.mark.sqsq(clock="frozen")


class Books:
    """Stands in for the database; refuses the customers it cannot reach."""

    def __init__(self):
        self.entries = []
        self.unreachable = set()

    def apply(self, customer, number, action):
        if customer in self.unreachable:
            raise ConnectionError(customer)
        self.entries.append((customer, number, action))


@pytest.fixture
def books():
    return Books()


@pytest.fixture
def orders(sqs_server):
    return sqs_server.create_queue("orders.fifo")


@pytest.fixture
def worker(sqs_client, orders, books):
    return OrderWorker(sqs_client, orders.url, books.apply)


def test_steps_of_a_customer_keep_their_order(worker, books, sqs_client, orders):
    for action in ("open", "pay", "ship"):
        place_order(sqs_client, orders.url, "ann", 1, action)

    while worker.run_once():
        pass

    assert [action for _, _, action in books.entries] == ["open", "pay", "ship"]


def test_a_failing_customer_holds_up_nobody_else(worker, books, sqs_server, sqs_client, orders):
    place_order(sqs_client, orders.url, "ann", 1, "open")
    place_order(sqs_client, orders.url, "ann", 1, "pay")
    place_order(sqs_client, orders.url, "bob", 7, "open")
    books.unreachable.add("ann")

    while worker.run_once():
        pass

    assert books.entries == [("bob", 7, "open")]
    waiting = orders.message(body=lambda text: '"pay"' in text)
    assert waiting.state == "visible"
    assert waiting.why_not_deliverable is not None

    books.unreachable.clear()
    sqs_server.advance(30)
    while worker.run_once():
        pass

    assert books.entries[1:] == [("ann", 1, "open"), ("ann", 1, "pay")]
    orders.assert_empty()


def test_a_repeated_web_request_places_the_order_once(sqs_server, sqs_client, orders):
    first = place_order(sqs_client, orders.url, "ann", 1, "open")
    sqs_server.advance(299)
    again = place_order(sqs_client, orders.url, "ann", 1, "open")

    assert again == first
    orders.assert_counts(visible=1)


def test_after_five_minutes_a_repeated_request_is_a_new_one(sqs_server, sqs_client, orders):
    first = place_order(sqs_client, orders.url, "ann", 1, "open")
    sqs_server.advance(300)
    again = place_order(sqs_client, orders.url, "ann", 1, "open")

    assert again != first
    orders.assert_counts(visible=2)
