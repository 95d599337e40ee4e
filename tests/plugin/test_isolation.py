from __future__ import annotations

import pytest


def test_each_test_has_an_empty_server_on_the_same_port(run) -> None:
    result = run(
        """
        import boto3

        ports = set()
        clients = []

        def test_one(sqs_server, sqs_queue):
            ports.add(sqs_server.port)
            clients.append(boto3.client("sqs"))
            clients[0].send_message(QueueUrl=sqs_queue.url, MessageBody="hello")
            sqs_server.advance(60)

        def test_two(sqs_server):
            ports.add(sqs_server.port)
            assert len(ports) == 1
            assert sqs_server.queues == ()
            assert len(sqs_server.requests) == 0
            assert "QueueUrls" not in clients[0].list_queues()
        """
    )
    result.assert_outcomes(passed=2)


def test_other_options_exchange_the_world_behind_the_port(run) -> None:
    result = run(
        """
        import pytest

        ports = set()

        @pytest.mark.parametrize("n", range(3))
        @pytest.mark.sqsq(clock="frozen", start="2031-01-01")
        def test_frozen(sqs_server, n):
            ports.add(sqs_server.port)
            assert sqs_server.now.isoformat() == "2031-01-01T00:00:00+00:00"
            sqs_server.advance(60)

        def test_live(sqs_server, sqs_queue):
            ports.add(sqs_server.port)
            assert sqs_server.clock.mode == "live"
            assert len(ports) == 1
        """
    )
    result.assert_outcomes(passed=4)


RHYTHM = """
    import pytest

    class TestFirst:
        def test_a(self, sqs_queue):
            pass
        def test_b(self, sqs_server):
            print("b sees", [queue.name for queue in sqs_server.queues])

    class TestSecond:
        def test_c(self, sqs_server):
            print("c sees", [queue.name for queue in sqs_server.queues])
    """
OTHER_MODULE = """
    def test_d(sqs_server):
        print("d sees", [queue.name for queue in sqs_server.queues])
    """


@pytest.mark.parametrize(
    ("reset", "seeing"),
    [("test", ""), ("class", "b"), ("module", "bc"), ("session", "bcd"), ("never", "bcd")],
)
def test_the_server_is_emptied_at_the_end_of_the_chosen_scope(run, reset, seeing) -> None:
    result = run(RHYTHM, f"--sqsq-reset={reset}", "-s", test_other=OTHER_MODULE)

    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            f"*{test} sees {['test_a'] if test in seeing else []}*".replace("[", "[[]")
            for test in "bcd"
        ]
    )


@pytest.mark.parametrize("reset", ["class", "module", "session"])
def test_a_server_that_is_asked_for_while_a_test_runs_is_emptied_too(run, reset) -> None:
    result = run(
        """
        def test_asking(request, record_property):
            request.getfixturevalue("sqs_queue").send("hello")
            assert len(request.getfixturevalue("sqs_server").queues) == 1
        """,
        "--setup-show",
        f"--sqsq-reset={reset}",
    )
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"*TEARDOWN * _sqsq_end_of_{reset}"])


def test_consumers_of_a_module_end_before_the_server_is_emptied(run) -> None:
    result = run(
        """
        import threading
        import pytest

        @pytest.fixture(scope="module")
        def consumer(sqs_endpoint):
            import boto3
            stop = threading.Event()
            client = boto3.client(
                "sqs", endpoint_url=sqs_endpoint.url, region_name="us-east-1",
                aws_access_key_id="x", aws_secret_access_key="x",
            )
            url = client.create_queue(QueueName="orders")["QueueUrl"]

            def consume():
                while not stop.is_set():
                    client.receive_message(QueueUrl=url, WaitTimeSeconds=20)

            thread = threading.Thread(target=consume)
            thread.start()
            yield url
            stop.set()
            client.send_message(QueueUrl=url, MessageBody="stop")
            thread.join()

        def test_it(sqs_server, consumer):
            sqs_server.wait_for_pollers(1)
        """,
        "--sqsq-reset=module",
    )
    result.assert_outcomes(passed=1)


LEFTOVER = """
    import threading

    threads = []
    answers = []

    def test_it(sqs_server, sqs_queue):
        client = sqs_server.client()
        def consume():
            try:
                client.receive_message(QueueUrl=sqs_queue.url, WaitTimeSeconds=20)
            except client.exceptions.QueueDoesNotExist:
                answers.append("your queue is gone")
        threads.append(threading.Thread(target=consume))
        threads[0].start()
        sqs_server.wait_for_pollers(1)

    def test_next(sqs_server):
        assert sqs_server.queues == ()
        threads[0].join(10)
        assert answers == ["your queue is gone"]
    """


def test_a_consumer_that_polls_on_is_reported_with_queue_and_address(run) -> None:
    result = run(LEFTOVER, "-W", "default::pytest_sqsq.LeftoverConsumerWarning")

    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.fnmatch_lines(
        [
            "*LeftoverConsumerWarning: a consumer is still polling 'test_it'*(127.0.0.1:*",
        ]
    )


def test_a_leftover_consumer_can_be_an_error(run) -> None:
    result = run(LEFTOVER, "--sqsq-leftover=error")

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*LeftoverConsumerWarning: a consumer is still polling*"])


def test_a_leftover_consumer_can_be_ignored(run) -> None:
    run(LEFTOVER, "--sqsq-leftover=ignore").assert_outcomes(passed=2)


def test_a_poll_whose_client_has_gone_is_no_leftover(run) -> None:
    result = run(
        """
        import json
        import socket

        def test_it(sqs_server, sqs_queue):
            body = json.dumps({"QueueUrl": sqs_queue.url, "WaitTimeSeconds": 20}).encode()
            with socket.create_connection(("127.0.0.1", sqs_server.port)) as connection:
                connection.sendall(
                    b"POST / HTTP/1.1\\r\\nHost: sqs\\r\\n"
                    b"X-Amz-Target: AmazonSQS.ReceiveMessage\\r\\n"
                    b"Content-Type: application/x-amz-json-1.0\\r\\n"
                    b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body)
                )
                sqs_server.wait_for_pollers(1)
        """,
        "--sqsq-leftover=error",
    )
    result.assert_outcomes(passed=1)


def test_a_server_that_a_test_has_stopped_is_there_for_the_next(run) -> None:
    result = run(
        """
        ports = set()

        def test_one(sqs_server):
            ports.add(sqs_server.port)
            sqs_server.stop()

        def test_two(sqs_server, sqs_client):
            assert sqs_client.list_queues()["ResponseMetadata"]["HTTPStatusCode"] == 200
            assert ports == {sqs_server.port}
        """
    )
    result.assert_outcomes(passed=2)


def test_each_xdist_worker_has_a_server_of_its_own(pytester, monkeypatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("n", range(6))
        def test_it(sqs_client, sqs_server, n):
            sqs_client.create_queue(QueueName="orders")
            assert len(sqs_server.queues) == 1
        """
    )
    result = pytester.runpytest_subprocess(
        "-p", "xdist.plugin", "-p", "pytest_sqsq.plugin", "-n", "2"
    )
    result.assert_outcomes(passed=6)
