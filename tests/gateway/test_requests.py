from __future__ import annotations

from threading import Thread
from types import SimpleNamespace

import pytest

from pytest_sqsq.errors import JournalForgotten
from pytest_sqsq.gateway import requests
from pytest_sqsq.gateway.requests import RequestLog, RequestRecord

INSTANT_MS = 1_893_456_000_000  # 2030-01-01T00:00:00Z


def record(action: str | None = "SendMessage", queue: str | None = "orders", **fields):
    values = {
        "action": action,
        "queue": queue,
        "account_id": "000000000000",
        "region": "us-east-1",
        "protocol": "json",
        "parameters": {"MessageBody": "a"},
        "status": 200,
        "error_code": None,
        "at_ms": INSTANT_MS,
        "duration_ms": 0.5,
        "client_address": "127.0.0.1:5000",
        "transport": "http",
        "stale": False,
    }
    return RequestRecord(**(values | fields))


def log_of(*records: RequestRecord, size: int = 100) -> RequestLog:
    log = RequestLog(size)
    for each in records:
        log.append(each, 10)
    return log


def test_keeps_records_in_order():
    first, second = record("CreateQueue"), record("SendMessage")
    log = log_of(first, second)
    assert list(log) == [first, second]
    assert len(log) == 2


def test_records_cannot_be_changed():
    with pytest.raises(AttributeError):
        record().status = 500


def test_forgets_the_oldest_beyond_its_size():
    log = log_of(record("CreateQueue"), record("SendMessage"), record("DeleteQueue"), size=2)
    assert [each.action for each in log] == ["SendMessage", "DeleteQueue"]
    assert log.forgotten == 1


def test_forgets_the_oldest_beyond_its_entries_of_batches(monkeypatch):
    monkeypatch.setattr(requests, "KEPT_ENTRIES", 5)
    two, three = ({"Entries": [{"Id": str(n)} for n in range(count)]} for count in (2, 3))
    log = log_of(
        record("DeleteMessageBatch", parameters=two),
        record("SendMessage"),
        record("SendMessageBatch", parameters=three),
        record("SendMessageBatch", parameters=two),
    )
    assert [each.action for each in log] == ["SendMessage", "SendMessageBatch", "SendMessageBatch"]
    log.clear()
    log.append(record("SendMessageBatch", parameters=three), 10)
    assert log.forgotten == 0


def test_forgets_the_oldest_beyond_its_bytes(monkeypatch):
    monkeypatch.setattr(requests, "KEPT_BYTES", 25)
    log = log_of(record("CreateQueue"), record("SendMessage"), record("DeleteQueue"))
    assert [each.action for each in log] == ["SendMessage", "DeleteQueue"]


def test_a_log_holds_at_least_one_record():
    with pytest.raises(ValueError, match="cannot hold one"):
        RequestLog(0)


def test_clear_forgets_everything():
    log = log_of(record(), record(), size=1)
    log.clear()
    assert (len(log), log.forgotten) == (0, 0)


def test_calls_filters_by_action_and_queue():
    wanted = record("SendMessage", "orders")
    log = log_of(wanted, record("SendMessage", "mails"), record("DeleteMessage", "orders"))
    assert log.calls("SendMessage", queue="orders") == (wanted,)
    assert len(log.calls("SendMessage")) == 2
    assert len(log.calls(queue="orders")) == 2
    assert len(log.calls()) == 3


@pytest.mark.parametrize(
    "queue",
    [
        "http://localhost/000000000000/orders",
        "arn:aws:sqs:us-east-1:000000000000:orders",
    ],
)
def test_a_queue_may_be_given_by_url_or_arn(queue):
    assert len(log_of(record(), record(queue="mails")).calls(queue=queue)) == 1


def test_a_queue_given_by_url_or_arn_is_that_of_its_account_and_region():
    log = log_of(
        record(),
        record(account_id="111122223333"),
        record(region="eu-west-1"),
        record(queue=None),
    )
    assert len(log.calls(queue="orders")) == 3
    assert len(log.calls(queue="http://127.0.0.1:9324/111122223333/orders")) == 1
    assert log.calls(queue="arn:aws:sqs:eu-west-1:000000000000:orders") == (list(log)[2],)


def test_a_queue_may_be_given_as_anything_that_has_an_arn():
    probe = SimpleNamespace(arn="arn:aws:sqs:us-east-1:000000000000:orders")
    log = log_of(record(), record(region="eu-west-1"))
    assert log.assert_called("SendMessage", queue=probe) == (next(iter(log)),)
    with pytest.raises(AssertionError, match=r"^expected no request of SendMessage on 'orders',"):
        log.assert_not_called("SendMessage", queue=probe)


def test_an_action_that_there_is_not_is_refused():
    for assertion in (log_of().assert_called, log_of().assert_not_called):
        with pytest.raises(ValueError, match=r"^unknown action 'DeleteMesage'; did you mean 'Dele"):
            assertion("DeleteMesage")


def test_assert_called_returns_the_records():
    wanted = record()
    log = log_of(wanted, record("CreateQueue"))
    assert log.assert_called("SendMessage") == (wanted,)
    assert log.assert_called("SendMessage", times=1, queue="orders") == (wanted,)
    assert log.assert_called("DeleteMessage", times=0) == ()


def test_assert_called_lists_what_was_requested_instead():
    log = log_of(
        record("CreateQueue"),
        record(
            "SendMessage",
            status=400,
            error_code="AWS.SimpleQueueService.NonExistentQueue",
            protocol="query",
            stale=True,
        ),
        record(None, None, status=404, transport="direct", client_address=""),
    )
    with pytest.raises(AssertionError) as caught:
        log.assert_called("SendMessage", times=2, queue="orders")
    assert str(caught.value) == (
        "expected SendMessage on 'orders' to be requested twice, but it was requested once\n"
        "3 requests were logged:\n"
        "  2030-01-01T00:00:00.000Z CreateQueue on 'orders': 200"
        " (http, json from 127.0.0.1:5000)\n"
        "  2030-01-01T00:00:00.000Z SendMessage on 'orders': 400"
        " AWS.SimpleQueueService.NonExistentQueue"
        " (http, query from 127.0.0.1:5000, stale queue URL)\n"
        "  2030-01-01T00:00:00.000Z no action: 404 (direct, json)"
    )


def test_assert_called_says_so_where_nothing_was_requested():
    with pytest.raises(AssertionError) as caught:
        log_of().assert_called("SendMessage")
    assert str(caught.value) == (
        "expected SendMessage to be requested, but it was not requested\nno request was logged"
    )


def test_a_listing_shows_the_latest_requests_only():
    log = log_of(*(record(queue=f"q{number}") for number in range(30)))
    with pytest.raises(AssertionError, match="30 requests were logged, the last 20 of which are:"):
        log.assert_called("CreateQueue")
    with pytest.raises(AssertionError) as caught:
        log.assert_called("CreateQueue")
    assert "'q9'" not in str(caught.value)
    assert "'q10'" in str(caught.value)


def test_assert_not_called_passes_where_nobody_called():
    log_of(record("CreateQueue")).assert_not_called("SendMessage")
    log_of(record("SendMessage", "mails")).assert_not_called("SendMessage", queue="orders")


def test_assert_not_called_lists_what_was_requested():
    with pytest.raises(AssertionError) as caught:
        log_of(record()).assert_not_called("SendMessage")
    assert str(caught.value) == (
        "expected no request of SendMessage, but it was requested once\n"
        "1 request was logged:\n"
        "  2030-01-01T00:00:00.000Z SendMessage on 'orders': 200"
        " (http, json from 127.0.0.1:5000)"
    )


def test_neither_passes_nor_fails_by_what_was_forgotten():
    log = log_of(record("CreateQueue"), record("SendMessage"), size=1)
    with pytest.raises(JournalForgotten, match="raise request_log_size"):
        log.assert_not_called("CreateQueue")
    with pytest.raises(JournalForgotten):
        log.assert_called("CreateQueue")
    with pytest.raises(JournalForgotten):
        log.assert_called("SendMessage", times=1)


def test_decides_where_what_was_forgotten_cannot_matter():
    log = log_of(record("CreateQueue"), record("SendMessage"), size=1)
    log.assert_called("SendMessage")
    with pytest.raises(AssertionError, match="expected no request"):
        log.assert_not_called("SendMessage")
    with pytest.raises(AssertionError, match="expected SendMessage to be requested 0 times"):
        log.assert_called("SendMessage", times=0)


def test_threads_may_log_and_look_at_once():
    log = RequestLog(50)
    each = record()

    def append() -> None:
        for _ in range(2_000):
            log.append(each, 1)

    writers = [Thread(target=append) for _ in range(4)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert len(list(log)) <= 50
    for writer in writers:
        writer.join()
    assert len(log) == 50
    assert log.forgotten == 4 * 2_000 - 50


URL = "http://127.0.0.1:9324/000000000000/orders"
MISSING = "AWS.SimpleQueueService.NonExistentQueue"


def astray(action: str = "ReceiveMessage", **fields):
    values = {"parameters": {"QueueUrl": URL}, "status": 400, "error_code": MISSING}
    return record(action, **(values | fields))


@pytest.mark.parametrize(
    "right",
    [
        record(parameters={"QueueUrl": URL}),
        record("GetQueueUrl", parameters={"QueueName": "orders"}, error_code=MISSING),
        record("ListQueues", parameters={}),
        record(parameters={"QueueUrl": URL}, status=400, error_code="InvalidMessageContents"),
    ],
    ids=["answered", "asked whether it exists", "without a queue", "refused"],
)
def test_names_nothing_where_every_queue_url_was_right(right):
    assert log_of(right).astray_text() is None


def test_names_the_queue_urls_that_led_nowhere_and_who_used_them():
    log = log_of(
        astray(stale=True),
        astray(stale=True),
        record(),
        astray("SendMessage", client_address="", transport="direct"),
    )
    assert log.astray_text() == (
        "3 requests for a queue that was not there:\n"
        f"  ReceiveMessage of {URL} (stale, not handed out since the last reset)"
        " from 127.0.0.1:5000, twice\n"
        f"  SendMessage of {URL} (deleted)"
    )
    assert log_of(astray()).astray_text() == (
        "a request for a queue that was not there:\n"
        f"  ReceiveMessage of {URL} (deleted) from 127.0.0.1:5000"
    )


def test_names_a_bounded_number_of_queue_urls():
    log = log_of(*(astray(parameters={"QueueUrl": f"{URL}{number}"}) for number in range(25)))
    lines = log.astray_text().splitlines()
    assert len(lines) == 22
    assert lines[-1] == "  … and 5 more kinds"
