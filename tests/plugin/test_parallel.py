"""Runs in several processes, in random order, and with children that are forked."""

from __future__ import annotations

import os
import socket

import pytest

SUITE = """
    import os
    import boto3
    import pytest

    seen = set()

    @pytest.fixture(scope="session")
    def application(sqs_endpoint):
        return sqs_endpoint.url

    class TestFirst:
        @pytest.mark.parametrize("n", range(5))
        def test_alone(self, sqs_server, application, n):
            seen.add(sqs_server.port)
            assert len(seen) == 1
            assert sqs_server.url == application
            assert sqs_server.queues == ()
            boto3.client("sqs").create_queue(QueueName="orders")
            assert [queue.name for queue in sqs_server.queues] == ["orders"]

    class TestSecond:
        @pytest.mark.parametrize("n", range(5))
        @pytest.mark.sqsq(clock="frozen", start="2031-01-01")
        def test_frozen(self, sqs_queue, sqs_server, n):
            sqs_queue.send("hello", DelaySeconds=60)
            sqs_server.advance(60)
            assert sqs_queue.messages("visible")
            assert sqs_server.now.isoformat() == "2031-01-01T00:01:00+00:00"
    """


@pytest.fixture
def run_apart(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Runs the files of the test in a process of its own."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(*arguments: str) -> pytest.RunResult:
        return pytester.runpytest_subprocess(
            "-p", "pytest_sqsq.plugin", "-W", "error", "-p", "no:cacheprovider", *arguments
        )

    return run


@pytest.mark.parametrize("environment", ["test", "session"])
@pytest.mark.parametrize("dist", ["load", "loadscope", "loadfile", "loadgroup", "worksteal"])
def test_each_worker_has_a_server_of_its_own(pytester, run_apart, dist, environment) -> None:
    pytester.makepyfile(test_one=SUITE, test_two=SUITE)
    result = run_apart(
        *("-p", "xdist.plugin", "-n", "2", "--dist", dist),
        *("--sqsq-reset", "test", "--sqsq-environment", environment, "--sqsq-strict"),
    )
    result.assert_outcomes(passed=20)


def test_each_of_several_workers_may_run_all_tests(pytester, run_apart) -> None:
    pytester.makepyfile(test_one=SUITE)
    result = run_apart(*("-p", "xdist.plugin", "--dist", "each", "--tx", "2*popen"))
    result.assert_outcomes(passed=20)


@pytest.mark.parametrize("reset", ["test", "class", "module", "session", "never"])
def test_the_order_of_tests_makes_no_difference(pytester, run_apart, reset) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("n", range(8))
        class TestIt:
            def test_probe(self, sqs_server, n):
                queue = sqs_server.create_queue(f"probe-{n}")
                queue.send("hello")
                queue.assert_counts(visible=1)

            def test_client(self, sqs_client, n):
                url = sqs_client.create_queue(QueueName=f"client-{n}")["QueueUrl"]
                assert "Messages" not in sqs_client.receive_message(QueueUrl=url)
        """
    )
    for seed in (1, 2):
        result = run_apart(
            *("-p", "pytest_randomly", f"--randomly-seed={seed}", "--sqsq-reset", reset)
        )
        result.assert_outcomes(passed=16)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("environment", ["test", "session"])
def test_a_forked_child_may_use_the_server_and_does_not_hold_its_port(
    pytester, run_apart, environment
) -> None:
    pytester.makepyfile(
        """
        import os
        import signal
        import warnings

        import boto3

        def fork():
            with warnings.catch_warnings():
                # Newer Pythons warn of forks beside threads, which is what this is about.
                warnings.simplefilter("ignore", DeprecationWarning)
                return os.fork()

        def test_it():
            child = fork()
            if child == 0:
                signal.pause()
            with open("child", "w") as file:
                file.write(str(child))

        def test_forking_beside_the_server(sqs_server, sqs_queue):
            child = fork()
            if child == 0:
                try:
                    client = boto3.client("sqs")
                    client.send_message(QueueUrl=sqs_queue.url, MessageBody="from the child")
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            sqs_queue.assert_contains(body="from the child")
            child = fork()
            if child == 0:
                signal.pause()
            with open("child", "a") as file:
                file.write(f" {child} {sqs_server.port}")
        """
    )
    result = run_apart("--sqsq-environment", environment)
    *children, port = map(int, (pytester.path / "child").read_text().split())
    try:
        result.assert_outcomes(passed=2)
        with socket.socket() as connection:
            assert connection.connect_ex(("127.0.0.1", port)) != 0
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            listener.listen()
    finally:
        for child in children:
            os.kill(child, 9)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_direct_client_in_a_forked_child_reaches_the_server_of_its_parent(
    pytester, run_apart
) -> None:
    pytester.makepyfile(
        """
        import os
        import warnings

        def test_it(sqs_server, sqs_client, sqs_queue):
            sqs_client.list_queues()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                try:
                    sqs_client.send_message(QueueUrl=sqs_queue.url, MessageBody="from the child")
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            sqs_queue.assert_contains(body="from the child")
            records = sqs_server.requests
            assert [record.transport for record in records] == ["direct", "http"]
        """
    )
    run_apart("--sqsq-transport=direct").assert_outcomes(passed=1)


def test_a_teardown_that_fails_leaves_an_empty_server_to_the_next_test(run) -> None:
    result = run(
        """
        import pytest

        @pytest.fixture
        def application(sqs_queue):
            yield sqs_queue
            raise ZeroDivisionError

        def test_one(application):
            application.send("hello")

        def test_two(sqs_server):
            assert sqs_server.queues == ()
        """
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["ERROR test_it.py::test_one - ZeroDivisionError"])


def test_what_was_left_behind_is_told_beside_a_failed_teardown(run) -> None:
    result = run(
        """
        import pytest

        @pytest.fixture
        def application(sqs_queue):
            yield sqs_queue
            raise ZeroDivisionError

        def test_one(application):
            application.send("hello")
            application.receive()

        def test_two(sqs_server):
            assert sqs_server.queues == ()
        """,
        "--sqsq-strict",
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines_random(["*ZeroDivisionError*", "*expected no message in flight*"])


def test_a_session_that_ends_early_stops_the_server(pytester, run_apart) -> None:
    pytester.makepyfile(
        """
        import threading

        def test_one(sqs_server, sqs_queue):
            client = sqs_server.client()
            def consume():
                try:
                    client.receive_message(QueueUrl=sqs_queue.url, WaitTimeSeconds=20)
                except Exception:
                    pass
            threading.Thread(target=consume).start()
            sqs_server.wait_for_pollers(1)
            raise KeyboardInterrupt

        def test_two():
            pass
        """
    )
    result = run_apart("--sqsq-leftover=ignore")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*KeyboardInterrupt*"])
