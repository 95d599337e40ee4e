from __future__ import annotations

import os
import socket
from threading import Event

import pytest

from pytest_sqsq import SqsServer
from pytest_sqsq.shared import EarlyPort

VARIABLES = """
    import os
    NAMES = [
        "AWS_ENDPOINT_URL_SQS", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION",
        "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN", "AWS_PROFILE",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_EC2_METADATA_DISABLED", "NO_PROXY", "no_proxy",
    ]
    def seen():
        return {name: os.environ[name] for name in NAMES if name in os.environ}
    """


@pytest.fixture(autouse=True)
def surroundings(monkeypatch) -> None:
    for name in list(os.environ):
        if name.startswith("AWS_") or name.lower() == "no_proxy":
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_PROFILE", "mine")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "my key")
    monkeypatch.setenv("NO_PROXY", "intranet")


def test_a_test_with_our_fixtures_sees_the_server_and_nothing_of_mine(run) -> None:
    result = run(
        """
        import boto3
        import os
        from variables import seen

        before = seen()

        def test_with(sqs_server):
            no_proxy = "intranet,127.0.0.1,localhost"
            assert seen() == {
                "AWS_ENDPOINT_URL_SQS": sqs_server.url,
                "AWS_ACCESS_KEY_ID": "testing",
                "AWS_SECRET_ACCESS_KEY": "testing",
                "AWS_REGION": "us-east-1",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_CONFIG_FILE": os.devnull,
                "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
                "AWS_EC2_METADATA_DISABLED": "true",
                "NO_PROXY": no_proxy,
                "no_proxy": no_proxy,
            }
            boto3.client("sqs").list_queues()
            assert len(sqs_server.requests) == 1

        def test_without():
            assert seen() == before
            assert before["AWS_PROFILE"] == "mine"
        """,
        variables=VARIABLES,
    )
    result.assert_outcomes(passed=2)


def test_the_setup_of_test_classes_finds_the_server(run) -> None:
    result = run(
        """
        import unittest

        import boto3
        import pytest

        class TestPlain:
            def setup_method(self):
                self.sqs = boto3.client("sqs")

            def test_it(self, sqs_queue):
                assert self.sqs.list_queues()["QueueUrls"] == [sqs_queue.url]

        @pytest.mark.usefixtures("sqs_server")
        class TestCase(unittest.TestCase):
            def setUp(self):
                self.sqs = boto3.client("sqs")
                self.url = self.sqs.create_queue(QueueName="orders")["QueueUrl"]

            def tearDown(self):
                self.sqs.delete_queue(QueueUrl=self.url)

            def test_it(self):
                assert self.sqs.list_queues()["QueueUrls"] == [self.url]
        """
    )
    result.assert_outcomes(passed=2)


def test_the_default_session_of_boto3_is_set_aside(run) -> None:
    result = run(
        """
        import boto3
        import pytest

        mine = boto3.DEFAULT_SESSION = object()

        def test_with(sqs_server):
            assert boto3.DEFAULT_SESSION is None
            boto3.client("sqs").list_queues()

        def test_without():
            assert boto3.DEFAULT_SESSION is mine
        """
    )
    result.assert_outcomes(passed=2)


def test_endpoint_alone_leaves_other_services_alone(run) -> None:
    result = run(
        """
        from variables import seen

        def test_it(sqs_server):
            variables = seen()
            assert variables["AWS_ENDPOINT_URL_SQS"] == sqs_server.url
            assert variables["AWS_PROFILE"] == "mine"
            assert variables["AWS_ACCESS_KEY_ID"] == "my key"
            assert "AWS_REGION" not in variables
        """,
        "--sqsq-environment=endpoint",
        variables=VARIABLES,
    )
    result.assert_outcomes(passed=1)


def test_off_sets_nothing(run) -> None:
    result = run(
        """
        from variables import seen

        before = seen()

        def test_it(sqs_server):
            assert seen() == before
        """,
        "--sqsq-environment=off",
        variables=VARIABLES,
    )
    result.assert_outcomes(passed=1)


def test_session_is_set_before_collection_and_answers_clients_made_at_import(run) -> None:
    result = run(
        """
        import boto3

        client = boto3.client("sqs")
        url = client.create_queue(QueueName="orders")["QueueUrl"]

        def test_it(sqs_server):
            assert sqs_server.url == client.meta.endpoint_url
            sqs_server.queue("orders").assert_empty()
            client.send_message(QueueUrl=url, MessageBody="hello")
            sqs_server.queue("orders").assert_contains(body="hello")

        def test_without():
            assert client.meta.endpoint_url == boto3.client("sqs").meta.endpoint_url
        """,
        "--sqsq-environment=session",
    )
    result.assert_outcomes(passed=2)
    assert "AWS_ENDPOINT_URL_SQS" not in os.environ
    assert os.environ["AWS_PROFILE"] == "mine"


EARLY = """
    import boto3

    client = boto3.client("sqs")
    url = client.create_queue(QueueName="orders")["QueueUrl"]
    """
MEETS_THE_EARLY_CLIENT = """
    from early import client, url

    def test_it(sqs_server):
        sqs_server.create_queue("orders")
        client.send_message(QueueUrl=url, MessageBody="hello")
        sqs_server.queue("orders").assert_contains(body="hello")
    """


@pytest.mark.parametrize("arguments", [[], ["-p", "xdist.plugin", "-n", "1"]])
def test_session_answers_clients_that_a_conftest_file_imports(run, arguments) -> None:
    with SqsServer() as server:
        port = server.port
    result = run(
        MEETS_THE_EARLY_CLIENT,
        *("--sqsq-environment=session", f"--sqsq-port={port}", *arguments),
        early=EARLY,
        conftest="import early",
    )
    result.assert_outcomes(passed=1)
    assert "AWS_ENDPOINT_URL_SQS" not in os.environ


def test_session_answers_clients_of_settings_that_another_plugin_loads_first(run, pytester) -> None:
    pytester.syspathinsert()
    result = run(
        MEETS_THE_EARLY_CLIENT,
        *("--sqsq-environment=session", "-p", "settings"),
        early=EARLY,
        settings="""
            import pytest

            @pytest.hookimpl(tryfirst=True)
            def pytest_load_initial_conftests():
                import early
            """,
    )
    result.assert_outcomes(passed=1)


def test_what_session_sets_is_put_back_where_a_conftest_file_fails(run) -> None:
    result = run(
        "def test_it(): pass",
        "--sqsq-environment=session",
        conftest="""
            import os
            raise RuntimeError(os.environ["AWS_ENDPOINT_URL_SQS"])
            """,
    )
    result.stderr.fnmatch_lines(["*RuntimeError: http://127.0.0.1:*"])
    assert "AWS_ENDPOINT_URL_SQS" not in os.environ
    assert os.environ["AWS_PROFILE"] == "mine"


def test_session_is_set_for_a_parallel_run_that_only_collects(run) -> None:
    result = run(
        """
        import os

        assert os.environ["AWS_ENDPOINT_URL_SQS"].startswith("http://127.0.0.1:")

        def test_it():
            pass
        """,
        *("-p", "xdist.plugin", "-n", "2", "--collect-only", "--sqsq-environment=session"),
    )
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*<Function test_it>"])


@pytest.mark.parametrize("arguments", [[], ["-p", "xdist.plugin", "-n", "1"]])
def test_a_taken_port_is_a_usage_error_where_it_is_needed_for_the_session(run, arguments) -> None:
    with SqsServer() as other:
        result = run(
            "def test_it(): pass",
            *("--sqsq-environment=session", f"--sqsq-port={other.port}", *arguments),
        )
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"ERROR: sqsq: cannot listen on 127.0.0.1:{other.port}: *"])


def test_session_loads_nothing_until_somebody_connects(pytester, monkeypatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import os
        import sys

        def test_it():
            assert os.environ["AWS_ENDPOINT_URL_SQS"].startswith("http://127.0.0.1:")
            assert not {"werkzeug", "botocore", "redis"} & sys.modules.keys()
        """
    )
    result = pytester.runpytest_subprocess("-p", "pytest_sqsq.plugin", "--sqsq-environment=session")
    result.assert_outcomes(passed=1)


def test_an_early_port_is_handed_over_while_its_first_client_is_dealt_with() -> None:
    dealing, handed_over, dealt_with = Event(), Event(), Event()

    def deal() -> None:
        dealing.set()
        if handed_over.wait(10):
            dealt_with.set()

    early = EarlyPort("127.0.0.1", 0, deal)
    with socket.create_connection(("127.0.0.1", early.port.number)):
        assert dealing.wait(10)
        port = early.hand_over()
        handed_over.set()
        assert dealt_with.wait(10)
    port.release()


def test_what_a_test_changes_by_a_fixture_of_before_is_undone_to_what_was_mine(run) -> None:
    result = run(
        """
        import os
        from unittest import mock

        import pytest
        from variables import seen

        before = seen()

        @pytest.fixture
        def patch():
            patchers = []
            yield patchers.append
            for patcher in patchers:
                patcher.stop()

        def test_with_monkeypatch(monkeypatch, sqs_server):
            monkeypatch.setenv("AWS_REGION", "eu-west-1")
            monkeypatch.delenv("AWS_ENDPOINT_URL_SQS")

        def test_with_a_whole_dictionary(patch, sqs_server):
            patcher = mock.patch.dict(os.environ, AWS_REGION="eu-west-1")
            patcher.start()
            patch(patcher)

        def test_without():
            assert seen() == before
        """,
        variables=VARIABLES,
    )
    result.assert_outcomes(passed=3)


def test_session_fixtures_of_an_application_get_the_endpoint(run) -> None:
    result = run(
        """
        import os
        import subprocess
        import sys
        import pytest

        @pytest.fixture(scope="session")
        def application(sqs_endpoint):
            code = "import boto3; boto3.client('sqs').list_queues()"
            environment = {**os.environ, **sqs_endpoint.environment}
            environment.pop("AWS_PROFILE")
            return lambda: subprocess.run([sys.executable, "-c", code], check=True, env=environment)

        def test_one(application, sqs_server, sqs_endpoint):
            application()
            sqs_server.requests.assert_called("ListQueues", times=1)
            assert (sqs_endpoint.url, sqs_endpoint.port) == (sqs_server.url, sqs_server.port)

        def test_two(application):
            assert os.environ["AWS_ENDPOINT_URL_SQS"]
            application()

        def test_three(sqs_server):
            assert len(sqs_server.requests) == 0
        """
    )
    result.assert_outcomes(passed=3)
