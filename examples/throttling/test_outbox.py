import pytest
from botocore.exceptions import ClientError
from outbox import Outbox, create_client

pytestmark = pytest.mark.sqsq(clock="frozen")


@pytest.fixture
def outbox(sqs_queue):
    return Outbox(create_client(), sqs_queue.url)


def test_what_is_throttled_is_sent_a_second_later(outbox, sqs_server, sqs_queue):
    sqs_server.faults.throttle(2, action="SendMessageBatch")
    texts = [f"event {number}" for number in range(50)]
    for text in texts:
        outbox.put(text)

    assert not outbox.flush()
    sqs_queue.assert_counts(visible=20)

    sqs_server.advance(1)
    assert not outbox.flush()
    sqs_queue.assert_counts(visible=40)

    sqs_server.advance(1)
    assert outbox.flush()
    assert [view.body for view in sqs_queue.messages()] == texts


def test_what_fails_in_a_batch_is_sent_with_the_next(outbox, sqs_server, sqs_queue):
    sqs_server.faults.add(action="SendMessageBatch", fail_entries=["1"], times=1)
    for text in ("a", "b", "c"):
        outbox.put(text)

    assert not outbox.flush()
    assert outbox.waiting == ["b"]

    assert outbox.flush()
    sqs_queue.assert_order(["a", "c", "b"])


def test_nothing_is_lost_while_nobody_answers(outbox, sqs_server, sqs_queue):
    outbox.put("a")

    with sqs_server.outage():
        assert not outbox.flush()

    assert outbox.flush()
    sqs_queue.assert_contains(body="a", count=1)


def test_a_lost_answer_makes_a_duplicate(outbox, sqs_server, sqs_queue):
    sqs_server.faults.add(action="SendMessageBatch", drop_connection="after", times=1)
    outbox.put("a")

    assert not outbox.flush()
    assert outbox.flush()

    sqs_queue.assert_contains(body="a", count=2)


def test_what_repeating_would_not_cure_is_raised(outbox, sqs_server):
    sqs_server.faults.add(action="SendMessageBatch", error="AccessDenied")
    outbox.put("a")

    with pytest.raises(ClientError, match="AccessDenied"):
        outbox.flush()

    assert outbox.waiting == ["a"]
