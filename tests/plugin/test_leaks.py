"""A long run holds no more than a short one."""

from __future__ import annotations

COUNTING = """
    import gc
    import threading
    from collections import Counter
    from pathlib import Path

    WATCHED = ("pytest_sqsq", "botocore", "boto3", "urllib3", "fakeredis", "redis", "socket",
               "threading")
    # botocore remembers the latest endpoints, the server what the latest queue URLs mean.
    BOUNDED = {"botocore.endpoint_provider.RuleSetEndpoint", "pytest_sqsq.models.QueueKey"}
    DESCRIPTORS = Path("/proc/self/fd")

    # Each kind of test has run three times before the early tests and twice in them, as in the
    # late ones.
    EARLY = range(21, 35)
    LATE = range(486, 500)
    samples = {EARLY: [], LATE: []}
    finished = Counter()

    def held():
        gc.collect()
        objects = gc.get_objects()
        types = Counter(map(type, objects))
        counts = Counter({
            f"{each.__module__}.{each.__qualname__}": count
            for each, count in types.items()
            if each.__module__.partition(".")[0] in WATCHED
        })
        for name in BOUNDED:
            del counts[name]
        counts["objects of all kinds"] = len(objects)
        counts["threads"] = threading.active_count()
        if DESCRIPTORS.exists():
            counts["descriptors"] = len(list(DESCRIPTORS.iterdir()))
        return counts

    def pytest_runtest_logfinish(nodeid):
        number = finished.total()
        finished["all"] += 1
        for window, found in samples.items():
            if number in window:
                found.append(held())

    def pytest_sessionfinish(session):
        # What comes and goes is at times not there. What leaks is there for good: so the fewest
        # of late count, and the most of before.
        early = Counter()
        for sample in samples[EARLY]:
            early |= sample
        late = samples[LATE][0]
        for sample in samples[LATE]:
            late &= sample
        grown = late - early
        # The server keeps threads for as many connections as there ever were at once, so a few
        # more may be chance; pytest itself keeps an object or two of each of the 465 tests in
        # between, and one of our worlds has thousands.
        bounds = {"objects of all kinds": 2 * 465}
        leaks = {name: count for name, count in grown.items() if count > bounds.get(name, 10)}
        print(f"failed: {session.testsfailed}; leaks in {finished.total()} tests: {leaks}")
    """
TINY = """
    import threading

    import pytest
    from botocore.exceptions import BotoCoreError, ClientError

    KINDS = ["client", "frozen", "direct", "made", "faulty", "parked", "kept"]
    OPTIONS = {"parked": {"leftover": "ignore"}, "kept": {"store": "fakeredis"}}

    @pytest.mark.parametrize("kind", [
        pytest.param(kind, marks=pytest.mark.sqsq(**OPTIONS.get(kind, {})), id=f"{kind}-{n}")
        for n in range(500)
        for kind in [KINDS[n % len(KINDS)]]
    ])
    def test_tiny(request, kind):
        request.getfixturevalue(kind)

    @pytest.fixture
    def queue(sqs_server):
        return sqs_server.create_queue("orders")

    @pytest.fixture
    def client(sqs_client, queue):
        sqs_client.send_message(QueueUrl=queue.url, MessageBody="hello")
        sqs_client.receive_message(QueueUrl=queue.url)

    kept = client

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
        server = make_sqs_server(seed=1, store="fakeredis")
        server.create_queue("orders").send("hello", MessageGroupId="g")
        server.tick()

    @pytest.fixture
    def faulty(sqs_server, sqs_resource):
        queue = sqs_server.create_queue("orders.fifo")
        with sqs_server.faults.add(action="SendMessage", latency=0.001):
            sqs_resource.Queue(queue.url).send_message(
                MessageBody="hello", MessageGroupId="g", MessageDeduplicationId="d"
            )

    @pytest.fixture
    def parked(sqs_server, sqs_client, queue):
        def consume():
            try:
                sqs_client.receive_message(QueueUrl=queue.url, WaitTimeSeconds=20)
            except (BotoCoreError, ClientError):
                pass

        threading.Thread(target=consume).start()
        sqs_server.wait_for_pollers(1, timeout=60)
    """


def test_five_hundred_tests_hold_no_more_than_a_few(pytester, monkeypatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(COUNTING)
    pytester.makepyfile(TINY)
    # The terminal keeps a report of each test.
    result = pytester.runpytest_subprocess(
        *("-p", "pytest_sqsq.plugin", "-p", "no:terminal", "-W", "error", "-s")
    )

    assert result.outlines == ["failed: 0; leaks in 500 tests: {}"], result.outlines
    assert result.ret == 0
