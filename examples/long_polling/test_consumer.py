import pytest
from consumer import Consumer

pytestmark = pytest.mark.sqsq(clock="frozen")


@pytest.fixture
def start_consumer(sqs_server, sqs_client, sqs_queue):
    """Start a consumer that is stopped after the test, without waiting for its last poll."""
    started = []

    def start(handle):
        consumer = Consumer(sqs_client, sqs_queue.url, handle)
        started.append(consumer)
        consumer.start()
        sqs_server.wait_for_pollers(1, queue=sqs_queue)

    yield start
    for consumer in started:
        sqs_server.wait_for_pollers(1, queue=sqs_queue)
        consumer.ask_to_stop()
        sqs_server.advance(20)
        consumer.stop(timeout=5)


def test_a_message_wakes_the_consumer(start_consumer, sqs_queue):
    handled = []
    start_consumer(handled.append)

    sqs_queue.send("hello")
    sqs_queue.wait_until_empty()

    assert handled == ["hello"]


def test_a_failed_message_is_handled_again_thirty_seconds_later(
    start_consumer, sqs_server, sqs_queue
):
    attempts = []

    def fails_once(body):
        attempts.append(sqs_server.now)
        if len(attempts) == 1:
            raise ConnectionError

    start_consumer(fails_once)
    sqs_queue.send("hello")
    sqs_server.wait_until(lambda: len(attempts) == 1)
    sqs_server.wait_for_pollers(1, queue=sqs_queue)

    sqs_server.advance(30)
    sqs_queue.wait_until_empty()

    assert (attempts[1] - attempts[0]).total_seconds() == 30
