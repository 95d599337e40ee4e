"""Requests that would reach AWS.  None of these tests lets one out: no name is ever looked up."""

from __future__ import annotations

import sys

import pytest

from pytest_sqsq.guard import Guard, is_aws

BLOCK = "--sqsq-block-aws"

# Where a request would go if it were let through: an error that tells it got that far.
NO_NETWORK = """
    import pytest
    import urllib3.connection
    from urllib3.exceptions import NewConnectionError

    @pytest.fixture(autouse=True)
    def no_network(monkeypatch):
        def refuse(connection):
            raise NewConnectionError(connection, "the network was reached")
        monkeypatch.setattr(urllib3.connection.HTTPConnection, "_new_conn", refuse)
    """


def test_a_request_to_aws_fails_at_once_and_says_what_and_how_to_allow_it(run) -> None:
    result = run(
        """
        import boto3
        import pytest

        from pytest_sqsq import AwsBlocked

        def test_it():
            client = boto3.client(
                "sqs", region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x"
            )
            with pytest.raises(AwsBlocked) as caught:
                client.list_queues()
            assert str(caught.value) == (
                "sqs ListQueues would have reached AWS at https://sqs.eu-west-1.amazonaws.com/,"
                " which sqsq_block_aws forbids; lead the client to a server of the tests (the"
                " fixtures set AWS_ENDPOINT_URL_SQS for clients made while a test runs), or allow"
                " it with @pytest.mark.sqsq(block_aws=False)"
            )
        """,
        BLOCK,
        conftest=NO_NETWORK,
    )
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
def test_a_blocked_request_is_not_retried(run, mode) -> None:
    result = run(
        f"""
        import boto3
        import pytest
        from botocore.config import Config

        from pytest_sqsq import AwsBlocked

        def test_it():
            client = boto3.client(
                "s3", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x",
                config=Config(retries={{"mode": {mode!r}, "max_attempts": 3}}),
            )
            attempts = []
            client.meta.events.register("before-send", lambda **_: attempts.append(None))
            with pytest.raises(AwsBlocked, match="^s3 ListBuckets would have reached AWS at"):
                client.list_buckets()
            assert len(attempts) == 1
        """,
        BLOCK,
        conftest=NO_NETWORK,
    )
    result.assert_outcomes(passed=1)


def test_servers_of_the_tests_and_other_hosts_are_reached(run) -> None:
    result = run(
        """
        import boto3
        import pytest
        from botocore.exceptions import EndpointConnectionError

        def test_ours(sqs_client, sqs_queue):
            sqs_client.send_message(QueueUrl=sqs_queue.url, MessageBody="hello")
            boto3.client("sqs").list_queues()
            sqs_queue.assert_contains(body="hello")

        @pytest.mark.sqsq(transport="direct")
        def test_direct(sqs_client, sqs_queue):
            sqs_client.send_message(QueueUrl=sqs_queue.url, MessageBody="hello")

        def test_a_stranger(sqs_server):
            client = boto3.client("s3", endpoint_url="http://127.0.0.1:1")
            with pytest.raises(EndpointConnectionError):
                client.list_buckets()
        """,
        BLOCK,
    )
    result.assert_outcomes(passed=3)


def test_markers_allow_and_forbid(run) -> None:
    source = """
        import boto3
        import pytest
        from botocore.exceptions import EndpointConnectionError

        from pytest_sqsq import AwsBlocked

        @pytest.fixture
        def s3():
            return boto3.client(
                "s3", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
            )

        @pytest.mark.sqsq(block_aws=False)
        def test_allowed(s3):
            with pytest.raises(EndpointConnectionError):
                s3.list_buckets()

        @pytest.mark.sqsq(block_aws=True)
        def test_forbidden(s3):
            with pytest.raises(AwsBlocked):
                s3.list_buckets()

        def test_of_the_run(s3):
            with pytest.raises({error}):
                s3.list_buckets()
        """
    forbidden = run(source.format(error="AwsBlocked"), BLOCK, conftest=NO_NETWORK)
    forbidden.assert_outcomes(passed=3)
    allowed = run(source.format(error="EndpointConnectionError"), conftest=NO_NETWORK)
    allowed.assert_outcomes(passed=3)


TOO_EARLY = """
    import boto3

    boto3.client(
        "sqs", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    ).list_queues()
    """


def test_a_request_while_conftest_files_are_read_is_blocked(run) -> None:
    result = run("def test_it(): pass", BLOCK, conftest=TOO_EARLY)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["E *AwsBlocked: sqs ListQueues would have reached AWS at *"])


def test_a_request_while_tests_are_collected_is_blocked(run) -> None:
    result = run(TOO_EARLY, BLOCK)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["E *AwsBlocked: sqs ListQueues would have reached AWS at *"])


def test_the_run_puts_everything_back(run) -> None:
    from botocore.endpoint import Endpoint

    before = dict(vars(Endpoint))
    finders = list(sys.meta_path)
    run("def test_it(): pass", BLOCK).assert_outcomes(passed=1)
    assert dict(vars(Endpoint)) == before
    assert sys.meta_path == finders


def test_what_another_has_patched_meanwhile_is_left_alone(monkeypatch) -> None:
    from botocore.endpoint import Endpoint

    guard = Guard(closed=True)
    original = Endpoint._send
    guard.install()

    def theirs(endpoint, request):
        raise NotImplementedError

    monkeypatch.setattr(Endpoint, "_send", theirs)
    guard.remove()
    assert Endpoint._send is theirs
    monkeypatch.undo()
    Endpoint._send = original


def test_botocore_is_patched_when_it_is_imported_and_not_before(pytester, monkeypatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import sys

        import pytest

        from pytest_sqsq import AwsBlocked

        def test_nothing_is_imported():
            assert "botocore" not in sys.modules

        def test_it():
            import boto3
            import botocore.endpoint

            loader = botocore.endpoint.__spec__.loader
            assert type(loader).__module__.startswith(("importlib", "_frozen_importlib"))
            assert botocore.endpoint.__loader__ is loader
            client = boto3.client(
                "sns", region_name="cn-north-1", aws_access_key_id="x", aws_secret_access_key="x"
            )
            with pytest.raises(AwsBlocked, match="sns ListTopics .*amazonaws.com.cn/"):
                client.list_topics()
        """
    )
    result = pytester.runpytest_subprocess("-p", "pytest_sqsq.plugin", BLOCK)
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize(
    "url",
    [
        "https://sqs.us-east-1.amazonaws.com/",
        "https://bucket.s3.amazonaws.com/key?a=b",
        "https://queue.amazonaws.com",
        "https://sqs.cn-north-1.amazonaws.com.cn:443/",
        "https://sqs.us-east-1.api.aws/",
        "https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/",
    ],
)
def test_the_endpoints_of_aws_are_known(url) -> None:
    assert is_aws(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9324/",
        "http://localhost:4566/000000000000/amazonaws.com",
        "http://sqs.us-east-1.localhost.localstack.cloud:4566/",
        "https://notamazonaws.com/",
        "https://amazonaws.com.example.org/",
        "http://[::1]:9324/",
    ],
)
def test_other_hosts_are_not_aws(url) -> None:
    assert not is_aws(url)
