from datetime import timedelta

import pytest
from alarm_queues import create_queues

pytestmark = pytest.mark.sqsq(clock="frozen")


@pytest.fixture(autouse=True)
def urls(sqs_client):
    return create_queues(sqs_client)


@pytest.fixture
def alarms(sqs_server):
    return sqs_server.queue("alarms")


@pytest.fixture
def dead_alarms(sqs_server):
    return sqs_server.queue("dead-alarms")


def test_nobody_hears_of_an_alarm_after_four_days(sqs_server, alarms):
    alarms.send("water in the cellar")

    sqs_server.advance(timedelta(days=4) - timedelta(milliseconds=1))
    alarms.assert_counts(visible=1)

    sqs_server.advance(timedelta(milliseconds=1))
    alarms.assert_empty()
    alarms.assert_never_received(body="water in the cellar")
    assert [event.kind for event in alarms.history(body="water in the cellar")][-1] == "expired"


def test_a_dead_alarm_is_there_after_a_long_weekend(sqs_server, alarms, dead_alarms):
    alarms.send("water in the cellar")
    sqs_server.advance(timedelta(days=3))
    alarms.receive()
    sqs_server.advance(30)
    dead_alarms.assert_contains(body="water in the cellar")

    sqs_server.advance(timedelta(days=4))

    dead_alarms.assert_contains(body="water in the cellar")


def test_a_dead_alarm_is_counted_from_when_it_was_first_sent(sqs_server, alarms, dead_alarms):
    alarms.send("water in the cellar")
    sqs_server.advance(timedelta(days=3))
    alarms.receive()
    sqs_server.advance(30)

    sqs_server.advance(timedelta(days=11) - timedelta(seconds=31))
    dead_alarms.assert_counts(visible=1)
    sqs_server.advance(1)
    dead_alarms.assert_empty()
