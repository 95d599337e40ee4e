"""A whole server on each store: restarts, SIGKILL, outages, and the fixtures' namespaces."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from pytest_sqsq import JournalForgotten, ServerStartError, SqsServer, StoreInUse

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

NO_RETRIES = Config(retries={"total_max_attempts": 1})


def test_a_restart_keeps_what_the_store_holds_and_the_rest_of_the_server(open_store: Any) -> None:
    with SqsServer(clock="frozen", store=open_store.option) as server:
        orders = server.create_queue("orders", dead_letter_queue="dead", max_receive_count=2)
        orders.send("first")
        orders.send("second", DelaySeconds=60)
        orders.send("gone")
        first, gone = orders.receive(2)
        orders.delete(gone)
        server.advance(10)
        now, port = server.now, server.port

        server.restart()

        assert (server.now, server.port) == (now, port)
        orders.assert_counts(visible=0, in_flight=1, delayed=1)
        server.advance(20)
        orders.assert_contains(body="first", state="visible")
        (again,) = orders.receive()
        assert again.receive_count == 2
        orders.delete(first)
        server.advance(timedelta(days=1))
        assert [message.body for message in orders.messages()] == ["second"]


def test_dead_letter_links_work_at_once_after_a_restart(open_store: Any) -> None:
    with SqsServer(clock="frozen", store=open_store.option) as server:
        orders = server.create_queue("orders", dead_letter_queue="dead", max_receive_count=1)
        orders.send("poison")
        orders.receive()
        server.restart()
        server.advance(30)
        server.queue("dead").assert_contains(body="poison")
        orders.assert_dead_lettered(body="poison", count=None)


def test_fifo_order_sequence_numbers_and_deduplication_outlive_a_restart(open_store: Any) -> None:
    with SqsServer(clock="frozen", store=open_store.option) as server:
        orders = server.create_queue("orders.fifo")
        first = orders.send("a", MessageGroupId="g", MessageDeduplicationId="1")
        orders.send("b", MessageGroupId="g", MessageDeduplicationId="2")
        server.restart()
        client = server.client()
        repeated = client.send_message(
            QueueUrl=orders.url, MessageBody="a", MessageGroupId="g", MessageDeduplicationId="1"
        )
        assert repeated["MessageId"] == first.message_id
        third = orders.send("c", MessageGroupId="g", MessageDeduplicationId="3")
        assert int(third.sequence_number or 0) > int(first.sequence_number or 0)
        assert [message.body for message in orders.receive(10)] == ["a", "b", "c"]


def test_what_happened_before_a_restart_is_not_guessed(open_store: Any) -> None:
    with SqsServer(clock="frozen", store=open_store.option) as server:
        orders = server.create_queue("orders")
        orders.send("a")
        (message,) = orders.receive()
        orders.delete(message)
        server.restart()
        with pytest.raises(
            JournalForgotten,
            match=r"the server was restarted, and 'orders' has no history from before, which might"
            r" decide this; ask before the restart$",
        ):
            orders.assert_never_received(body="a")


def test_faults_and_request_log_stay_over_a_restart(open_store: Any) -> None:
    with SqsServer(clock="frozen", store=open_store.option) as server:
        client = server.client(config=NO_RETRIES)
        client.create_queue(QueueName="orders")
        fault = server.faults.store_down()
        server.restart()
        server.requests.assert_called("CreateQueue")
        with pytest.raises(ClientError, match="ServiceUnavailable"):
            client.create_queue(QueueName="more")
        assert fault.fired == 1
        fault.remove()
        client.create_queue(QueueName="more")


def test_stopping_and_starting_goes_on_with_the_data_of_redis(open_kept: Any) -> None:
    server = SqsServer(clock="frozen", start="2030-01-01T00:00:00Z", store=open_kept.option)
    with server:
        server.create_queue("orders", tags={"team": "a"}).send("kept")
        server.advance(timedelta(days=2))
        later = server.now
    with server:
        assert server.now == later
        server.queue("orders").assert_contains(body="kept")
        assert server.queue("orders").tags == {"team": "a"}
        server.reset()
        assert server.queues == ()
    with server:
        assert server.queues == ()


def test_a_second_server_on_a_namespace_is_refused_and_another_prefix_is_not(
    open_kept: Any,
) -> None:
    with SqsServer(store=open_kept.option):
        with pytest.raises(
            StoreInUse, match=r"'ssq:' in .* is in use by process \d+ on host .*\. Stop that server"
        ):
            SqsServer(store=open_kept.option).start()
        with SqsServer(store=open_kept.option, store_prefix="other:") as other:
            other.create_queue("orders")
    with SqsServer(store=open_kept.option) as server:
        assert server.queues == ()


def test_a_server_that_could_not_start_leaves_its_namespace_free(open_kept: Any) -> None:
    with SqsServer(store=open_kept.option) as server:
        server.create_queue("orders")
        taken = server.port
        with pytest.raises(ServerStartError, match=str(taken)):
            SqsServer(store=open_kept.option, store_prefix="other:", port=taken).start()
        SqsServer(store=open_kept.option, store_prefix="other:").start().stop()
    [key] = open_kept.client.keys("ssq:meta:*")
    meta = open_kept.client.get(key)
    open_kept.client.set(key, "{")
    with pytest.raises(ServerStartError, match="cannot be read"):
        SqsServer(store=open_kept.option).start()
    open_kept.client.set(key, meta)
    with SqsServer(store=open_kept.option) as server:
        assert [queue.name for queue in server.queues] == ["orders"]


def test_other_options_in_the_same_namespace_are_no_second_server(open_kept: Any) -> None:
    with SqsServer(clock="frozen", store=open_kept.option) as server:
        server.configure(in_flight_limit=1)
        orders = server.create_queue("orders")
        orders.send("a")
        orders.send("b")
        assert len(orders.receive(10)) == 1


def test_a_redis_that_dies_under_a_server_is_a_503_and_nothing_needs_a_restart(
    start_redis: Callable[..., Any],
) -> None:
    redis = start_redis("--appendonly", "yes", "--appendfsync", "always")
    with SqsServer(clock="frozen", store=redis.url) as server:
        client = server.client(config=NO_RETRIES)
        orders = server.create_queue("orders")
        orders.send("kept")
        redis.kill()
        with pytest.raises(ClientError) as caught:
            client.send_message(QueueUrl=orders.url, MessageBody="refused")
        assert caught.value.response["Error"]["Code"] == "ServiceUnavailable"
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
        orders.assert_counts(visible=1)
        server.advance(3600)
        redis.start()
        client.send_message(QueueUrl=orders.url, MessageBody="accepted")
        assert [m.body for m in orders.messages()] == ["kept", "accepted"]


def test_a_restart_that_finds_no_redis_fails_and_changes_nothing(
    start_redis: Callable[..., Any],
) -> None:
    redis = start_redis("--appendonly", "yes")
    with SqsServer(clock="frozen", store=redis.url) as server:
        orders = server.create_queue("orders")
        orders.send("before")
        redis.kill()
        with pytest.raises(ServerStartError, match="cannot be used as a store"):
            server.restart()
        orders.assert_contains(body="before")
        redis.start()
        orders.send("after")
        server.restart()
        assert [message.body for message in orders.messages()] == ["before", "after"]


SERVE = """
import sys
from pytest_sqsq import SqsServer
with SqsServer(store=sys.argv[1]) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


def test_a_server_process_that_is_killed_goes_on_where_it_was(
    start_redis: Callable[..., Any], start_python: Callable[..., subprocess.Popen[str]]
) -> None:
    redis = start_redis("--save", "")

    def serve() -> tuple[subprocess.Popen[str], Any]:
        process = start_python("-c", SERVE, redis.url)
        assert process.stdout is not None
        client = boto3.client(
            "sqs",
            endpoint_url=process.stdout.readline().strip(),
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        return process, client

    process, client = serve()
    url = client.create_queue(QueueName="orders")["QueueUrl"]
    for body in ("a", "b", "c"):
        client.send_message(QueueUrl=url, MessageBody=body)
    received = client.receive_message(QueueUrl=url, VisibilityTimeout=600)["Messages"][0]
    deleted = client.receive_message(QueueUrl=url, VisibilityTimeout=600)["Messages"][0]
    client.delete_message(QueueUrl=url, ReceiptHandle=deleted["ReceiptHandle"])
    process.send_signal(signal.SIGKILL)
    process.wait(30)

    process, client = serve()
    counts = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessages"] == "1"
    assert counts["ApproximateNumberOfMessagesNotVisible"] == "1"
    client.change_message_visibility(
        QueueUrl=url, ReceiptHandle=received["ReceiptHandle"], VisibilityTimeout=0
    )
    bodies = [client.receive_message(QueueUrl=url)["Messages"][0]["Body"] for _ in range(2)]
    assert sorted(bodies) == ["a", "c"]


# In the fixtures


def test_the_marker_gives_a_test_a_store_that_keeps(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.sqsq(store="fakeredis", clock="frozen")
        def test_kept(sqs_server, sqs_queue):
            sqs_queue.send("a")
            sqs_server.restart()
            sqs_queue.assert_contains(body="a")

        def test_next(sqs_server):
            assert sqs_server.queues == ()
            assert sqs_server.options["store"] == "memory"
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=2)


def test_the_fixtures_keep_to_their_namespace_and_leave_nothing_behind(
    pytester: pytest.Pytester, shared_redis: Any
) -> None:
    shared_redis.client.flushall()
    with SqsServer(store=shared_redis.url) as server:
        server.create_queue("mine").send("untouched")
    pytester.makepyfile(
        """
        def test_one(sqs_server, sqs_queue, make_sqs_server):
            sqs_queue.send("a")
            make_sqs_server().create_queue("beside").send("b")
            assert [queue.name for queue in sqs_server.queues] == ["test_one"]

        def test_two(sqs_server):
            assert sqs_server.queues == ()
        """
    )
    pytester.runpytest_subprocess(f"--sqsq-store={shared_redis.url}").assert_outcomes(passed=2)
    left = [key for key in shared_redis.client.keys("ssq:test:*") if ":msg:" in key]
    assert left == []
    with SqsServer(store=shared_redis.url) as server:
        server.queue("mine").assert_contains(body="untouched")


def test_a_test_that_stops_the_server_leaves_nothing_behind_either(
    pytester: pytest.Pytester, shared_redis: Any
) -> None:
    shared_redis.client.flushall()
    pytester.makepyfile(
        """
        def test_it(sqs_server, sqs_queue, make_sqs_server):
            sqs_queue.send("a")
            sqs_server.stop()
            other = make_sqs_server()
            other.create_queue("orders").send("b")
            other.stop()
        """
    )
    pytester.runpytest_subprocess(f"--sqsq-store={shared_redis.url}").assert_outcomes(passed=1)
    assert [key for key in shared_redis.client.scan_iter() if ":msg:" in key] == []


def test_what_could_not_be_emptied_after_a_test_is_emptied_before_the_next(
    pytester: pytest.Pytester, start_redis: Callable[..., Any]
) -> None:
    url = start_redis("--save", "").url
    client = f"redis.Redis.from_url({url!r})"
    pytester.makeconftest(
        f"""
        import redis

        def pytest_runtest_setup(item):
            {client}.replicaof("NO", "ONE")
        """
    )
    pytester.makepyfile(
        f"""
        import redis

        def test_one(sqs_queue):
            sqs_queue.send("a")
            {client}.replicaof("127.0.0.1", "1")

        def test_two(sqs_server):
            assert sqs_server.queues == ()
        """
    )
    result = pytester.runpytest_subprocess(f"--sqsq-store={url}", "-p", "no:randomly")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["*StoreError: the namespace 'ssq:test:*:' in * could not be emptied: *read only*"]
    )


def test_the_fixtures_refuse_to_empty_what_a_server_has_made(
    pytester: pytest.Pytester, shared_redis: Any
) -> None:
    shared_redis.client.flushall()
    with SqsServer(store=shared_redis.url) as server:
        server.create_queue("mine")
    pytester.makepyfile("def test_it(sqs_server): pass")
    result = pytester.runpytest_subprocess(
        f"--sqsq-store={shared_redis.url}", "--sqsq-store-prefix=ssq:"
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*StoreRefused: the namespace 'ssq:' in * was made by the server, and the plugin empties*"]
    )
    with SqsServer(store=shared_redis.url) as server:
        assert [queue.name for queue in server.queues] == ["mine"]
