from datetime import timedelta

import pytest
from reminders import remind, work_on_reminders

pytestmark = pytest.mark.sqsq(clock="frozen")


def test_a_reminder_stays_hidden_until_it_is_due(sqs_server, sqs_client, sqs_queue):
    notes = []
    remind(sqs_client, sqs_queue.url, "stand up", timedelta(minutes=10))

    sqs_queue.assert_delayed(body=lambda text: "stand up" in text, for_seconds=600)
    sqs_server.advance(timedelta(minutes=10) - timedelta(milliseconds=1))
    work_on_reminders(sqs_client, sqs_queue.url, notes.append)
    assert notes == []

    sqs_server.advance(timedelta(milliseconds=1))
    work_on_reminders(sqs_client, sqs_queue.url, notes.append)
    assert notes == ["stand up"]


def test_a_reminder_for_tomorrow_is_on_time(sqs_server, sqs_client, sqs_queue):
    notes = []
    start = sqs_server.now
    remind(sqs_client, sqs_queue.url, "pay the rent", timedelta(days=1))

    while not notes:
        sqs_server.clock.advance_to_next_event()
        work_on_reminders(sqs_client, sqs_queue.url, notes.append)

    assert notes == ["pay the rent"]
    assert sqs_server.now - start == timedelta(days=1)
    sqs_queue.assert_empty()
