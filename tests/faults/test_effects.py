"""What a client sees of a request that fails, and what the queue sees."""

from __future__ import annotations

import inspect
from contextlib import closing
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, HTTPClientError

from pytest_sqsq import errors
from pytest_sqsq.errors import SqsError

ONE_ATTEMPT = Config(retries={"total_max_attempts": 1})
BATCH = [{"Id": letter, "MessageBody": letter} for letter in "abc"]
KINDS = [
    kind
    for kind in vars(errors).values()
    if inspect.isclass(kind) and issubclass(kind, SqsError) and kind is not SqsError
]


def code_of(caught) -> str:
    return caught.value.response["Error"]["Code"]


def status_of(caught) -> int:
    return caught.value.response["ResponseMetadata"]["HTTPStatusCode"]


def test_a_throttled_request_raises_what_boto3_raises_and_changes_nothing(faults, sqs, send, queue):
    faults.add(action="SendMessage", error="RequestThrottled")
    with pytest.raises(sqs.exceptions.RequestThrottled) as caught:
        send()
    assert status_of(caught) == 403
    assert caught.value.response["Error"]["Message"] == (
        "Planned by the test: RequestThrottled for SendMessage"
    )
    queue.assert_nothing_sent()


@pytest.mark.parametrize("name", ["KmsThrottled", "KMS.ThrottlingException"])
def test_errors_go_by_their_shape_or_their_query_code(faults, sqs, send, name):
    faults.add(error=name)
    with pytest.raises(sqs.exceptions.KmsThrottled) as caught:
        send()
    assert code_of(caught) == "KMS.ThrottlingException"


def test_an_error_that_has_one_text_only_keeps_it(faults, sqs, send):
    faults.add(error="QueueDoesNotExist")
    with pytest.raises(sqs.exceptions.QueueDoesNotExist) as caught:
        send()
    assert caught.value.response["Error"]["Message"] == "The specified queue does not exist."


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.shape)
def test_every_error_can_be_planned(server, queue, kind):
    server.faults.add(error=kind.shape)
    with (
        closing(server.client(transport="direct", config=ONE_ATTEMPT)) as sqs,
        pytest.raises(ClientError) as caught,
    ):
        sqs.send_message(QueueUrl=queue.url, MessageBody="a")
    assert (code_of(caught), status_of(caught)) == (kind.query_code, kind.status)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (500, "InternalFailure"),
        (503, "ServiceUnavailable"),
        (429, "TooManyRequests"),
        (502, "BadGateway"),
        (599, "Status599"),
    ],
)
def test_a_status_comes_with_an_error_in_the_shape_of_the_protocol(
    faults, send, queue, status, code
):
    faults.add(status=status)
    with pytest.raises(ClientError) as caught:
        send()
    assert (status_of(caught), code_of(caught)) == (status, code)
    assert caught.value.response["Error"]["Message"] == f"Planned by the test: status {status}"
    queue.assert_nothing_sent()


def test_query_clients_get_the_error_in_xml(server, queue):
    server.faults.add(status=503)
    with pytest.raises(HTTPError) as caught:
        urlopen(f"{queue.url}?Action=PurgeQueue")
    with caught.value as answer:
        assert answer.code == 503
        text = answer.read()
    assert b"<Type>Receiver</Type><Code>ServiceUnavailable</Code>" in text


def test_a_planned_failure_is_none_of_the_servers_own(server, send):
    server.faults.add(error="InternalFailure")
    with pytest.raises(ClientError):
        send()
    server.check()


def test_a_connection_dropped_before_the_effect_leaves_nothing_behind(faults, send, queue):
    faults.add(drop_connection="before", times=1)
    with pytest.raises(ConnectionClosedError):
        send("lost")
    queue.assert_nothing_sent()
    send("next")
    queue.assert_contains(body="next")


def test_a_connection_dropped_after_the_effect_leaves_it_done(faults, send, queue):
    faults.add(drop_connection="after", times=1)
    with pytest.raises(ConnectionClosedError):
        send("done")
    queue.assert_contains(body="done")


def test_an_error_is_lost_as_well_with_a_connection_dropped_after(faults, sqs):
    faults.add(drop_connection="after")
    with pytest.raises(ConnectionClosedError):
        sqs.get_queue_url(QueueName="missing")


def test_a_truncated_answer_lacks_what_was_in_it(faults, send, queue):
    faults.add(truncate=True)
    try:
        answer = send()
    except HTTPClientError:  # from a botocore that compares lengths
        answer = {}
    assert "MessageId" not in answer
    queue.assert_contains(body="a")


def test_of_a_truncated_answer_without_a_body_nothing_is_left(faults, sqs, queue):
    faults.add(truncate=True)
    with pytest.raises(HTTPClientError):
        sqs.purge_queue(QueueUrl=queue.url)


def test_some_entries_of_a_batch_fail_and_the_others_are_carried_out(faults, sqs, queue):
    faults.add(action="SendMessageBatch", fail_entries=["c", "a", "unknown"])
    answer = sqs.send_message_batch(QueueUrl=queue.url, Entries=BATCH)
    assert [entry["Id"] for entry in answer["Successful"]] == ["b"]
    message = "Planned by the test: failure of the entries 'c', 'a', 'unknown' for SendMessageBatch"
    assert answer["Failed"] == [
        {"Id": name, "SenderFault": False, "Code": "InternalFailure", "Message": message}
        for name in "ac"
    ]
    assert [view.body for view in queue.messages()] == ["b"]


def test_all_entries_of_a_batch_may_fail(faults, sqs, queue):
    faults.add(fail_entries=["a", "b", "c"])
    answer = sqs.send_message_batch(QueueUrl=queue.url, Entries=BATCH)
    assert "Successful" not in answer
    assert [entry["Id"] for entry in answer["Failed"]] == ["a", "b", "c"]
    queue.assert_nothing_sent()


def test_entries_that_fail_by_themselves_keep_their_place(faults, sqs, queue):
    faults.add(fail_entries=["x", "z"])
    entries = [{"Id": name, "ReceiptHandle": "?"} for name in "xyz"]
    answer = sqs.delete_message_batch(QueueUrl=queue.url, Entries=entries)
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [
        ("x", "InternalFailure"),
        ("y", "ReceiptHandleIsInvalid"),
        ("z", "InternalFailure"),
    ]


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([{"Id": "a", "MessageBody": "?"}] * 2, "BatchEntryIdsNotDistinct"),
        ([{"Id": f"{n}", "MessageBody": "?"} for n in range(11)], "TooManyEntriesInBatchRequest"),
        ([{"Id": name, "MessageBody": "?" * 600_000} for name in "ab"], "BatchRequestTooLong"),
    ],
)
def test_a_batch_that_is_wrong_as_a_whole_is_refused_all_the_same(
    faults, sqs, queue, entries, code
):
    faults.add(fail_entries=["a", "0"])
    with pytest.raises(ClientError) as refused:
        sqs.send_message_batch(QueueUrl=queue.url, Entries=entries)
    assert code_of(refused) == f"AWS.SimpleQueueService.{code}"
    queue.assert_nothing_sent()


def test_entries_of_a_batch_of_visibilities_fail(faults, sqs, queue):
    for body in "ab":
        queue.send(body)
    messages = sqs.receive_message(QueueUrl=queue.url, MaxNumberOfMessages=2)["Messages"]
    faults.add(action="ChangeMessageVisibilityBatch", fail_entries=["a"])
    answer = sqs.change_message_visibility_batch(
        QueueUrl=queue.url,
        Entries=[
            {
                "Id": message["Body"],
                "ReceiptHandle": message["ReceiptHandle"],
                "VisibilityTimeout": 0,
            }
            for message in messages
        ],
    )
    assert [entry["Id"] for entry in answer["Failed"]] == ["a"]
    queue.assert_in_flight(body="a")
    assert queue.message(body="b").state == "visible"


def test_the_entries_that_failed_pass_when_they_are_sent_again(faults, sqs, queue):
    fault = faults.add(fail_entries=["b"], times=1)
    failed = sqs.send_message_batch(QueueUrl=queue.url, Entries=BATCH)["Failed"]
    again = [entry for entry in BATCH if entry["Id"] == failed[0]["Id"]]
    assert "Failed" not in sqs.send_message_batch(QueueUrl=queue.url, Entries=again)
    assert sorted(view.body for view in queue.messages()) == ["a", "b", "c"]
    assert fault.fired == 1


def test_each_attempt_of_botocores_own_retries_is_counted_and_logged(server, transport, queue):
    fault = server.faults.add(action="SendMessage", status=503, times=2)
    with closing(
        server.client(
            transport=transport, config=Config(retries={"mode": "standard", "max_attempts": 3})
        )
    ) as sqs:
        # Not the pause between attempts is tested, but what the server sees of them.
        sqs.meta.events.register_first(
            "needs-retry.sqs", lambda **arguments: 0 if failed(arguments) else None
        )
        answer = sqs.send_message(QueueUrl=queue.url, MessageBody="a")
    assert answer["ResponseMetadata"]["RetryAttempts"] == 2
    assert fault.fired == 2
    records = server.requests.assert_called("SendMessage", times=3)
    assert [record.status for record in records] == [503, 503, 200]
    queue.assert_contains(body="a", count=1)


def failed(arguments) -> bool:
    response = arguments["response"]
    return response is None or response[0].status_code >= 500


def test_botocore_throttled_once_tries_again(server, transport, queue):
    fault = server.faults.add(action="SendMessage", error="RequestThrottled", times=1)
    with closing(
        server.client(
            transport=transport, config=Config(retries={"mode": "legacy", "max_attempts": 1})
        )
    ) as sqs:
        sqs.meta.events.register_first(
            "needs-retry.sqs",
            lambda **arguments: 0 if arguments["response"][0].status_code == 403 else None,
        )
        sqs.send_message(QueueUrl=queue.url, MessageBody="a")
    assert fault.fired == 1
    server.requests.assert_called("SendMessage", times=2)


def test_a_request_without_an_answer_is_logged_as_such(server, faults, send, transport):
    faults.add(drop_connection="after", times=1)
    with pytest.raises(ConnectionClosedError):
        send()
    (record,) = server.requests.assert_called("SendMessage", times=1)
    assert (record.status, record.error_code) == (0, None)
    assert f"SendMessage on 'orders': no answer ({transport}, json" in str(record)
