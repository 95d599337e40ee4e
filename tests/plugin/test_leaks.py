"""A long run holds no more than a short one."""

from __future__ import annotations

COUNTING = """
    import gc
    import threading
    from collections import Counter
    from pathlib import Path

    WATCHED = ("pytest_sqsq", "botocore", "boto3", "urllib3", "werkzeug", "socket", "threading")
    # botocore remembers the latest endpoints, the server what the latest queue URLs mean.
    BOUNDED = {"botocore.endpoint_provider.RuleSetEndpoint", "pytest_sqsq.models.QueueKey"}
    DESCRIPTORS = Path("/proc/self/fd")

    def held():
        gc.collect()
        counts = Counter(
            f"{type(each).__module__}.{type(each).__qualname__}"
            for each in gc.get_objects()
            if type(each).__module__.partition(".")[0] in WATCHED
        )
        for name in BOUNDED:
            del counts[name]
        counts["threads"] = threading.active_count()
        if DESCRIPTORS.exists():
            counts["descriptors"] = len(list(DESCRIPTORS.iterdir()))
        return counts

    at = {}

    def pytest_runtest_logfinish(nodeid):
        at["tests"] = at.get("tests", 0) + 1
        # Each kind of test has run twice.
        if at["tests"] == 10:
            at["begin"] = held()

    def pytest_sessionfinish(session):
        at["end"] = held()
        grown = at["end"] - at["begin"]
        # Each kind of test has run 98 times more.  A few threads and connections come and go.
        leaks = {name: count for name, count in grown.items() if count > 20}
        print(f"leaks between 10 and {at['tests']} tests: {leaks}")
    """
TINY = """
    import pytest

    KINDS = ["client", "frozen", "direct", "made", "faulty"]

    @pytest.mark.parametrize("n", range(500))
    def test_tiny(request, n):
        request.getfixturevalue(KINDS[n % len(KINDS)])

    @pytest.fixture
    def queue(sqs_server):
        return sqs_server.create_queue("orders")

    @pytest.fixture
    def client(sqs_client, queue):
        sqs_client.send_message(QueueUrl=queue.url, MessageBody="hello")
        sqs_client.receive_message(QueueUrl=queue.url)

    @pytest.fixture
    def frozen(request, make_sqs_server):
        with make_sqs_server(clock="frozen").track() as session:
            pass
        assert not session.sent

    @pytest.fixture
    def direct(sqs_server, queue):
        client = sqs_server.client(transport="direct")
        client.send_message(QueueUrl=queue.url, MessageBody="hello", DelaySeconds=60)
        sqs_server.advance(60)
        client.close()

    @pytest.fixture
    def made(make_sqs_server):
        server = make_sqs_server(seed=1)
        server.create_queue("orders").send("hello", MessageGroupId="g")
        server.tick()

    @pytest.fixture
    def faulty(sqs_server, sqs_resource):
        queue = sqs_server.create_queue("orders.fifo")
        with sqs_server.faults.add(action="SendMessage", latency=0.001):
            sqs_resource.Queue(queue.url).send_message(
                MessageBody="hello", MessageGroupId="g", MessageDeduplicationId="d"
            )
    """


def test_five_hundred_tests_hold_no_more_than_a_few(pytester, monkeypatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(COUNTING)
    pytester.makepyfile(TINY)
    result = pytester.runpytest_subprocess("-p", "pytest_sqsq.plugin", "-W", "error", "-q", "-s")

    result.assert_outcomes(passed=500)
    result.stdout.fnmatch_lines(["*leaks between 10 and 500 tests: {}"])
