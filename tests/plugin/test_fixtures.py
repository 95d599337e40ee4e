from __future__ import annotations

import hashlib
import socket

import pytest

LONG = f"test_{'x' * 76}"


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]


def test_the_fixtures_give_a_server_and_what_belongs_to_it(run) -> None:
    result = run(
        """
        def test_client(sqs_server, sqs_client, sqs_queue):
            sqs_client.send_message(QueueUrl=sqs_queue.url, MessageBody="hello")
            [message] = sqs_queue.messages()
            assert message.body == "hello"
            assert sqs_server.queue("test_client").key == sqs_queue.key

        def test_resource(sqs_resource, sqs_fifo_queue):
            queue = sqs_resource.Queue(sqs_fifo_queue.url)
            queue.send_message(MessageBody="hello", MessageGroupId="g")
            assert queue.url.endswith("/test_resource.fifo")
            sqs_fifo_queue.assert_contains(body="hello")

        def test_factories(make_sqs_server, sqs_server_factory, sqs_server):
            servers = [make_sqs_server(clock="frozen"), sqs_server_factory(), sqs_server]
            assert len({server.port for server in servers}) == 3
            assert [server.clock.mode for server in servers] == ["frozen", "live", "live"]
        """
    )
    result.assert_outcomes(passed=3)


def test_each_fixture_has_an_alias_for_the_same_thing(run) -> None:
    result = run(
        """
        def test_server(sqs_server, sqsq_server, sqs_endpoint, sqsq_endpoint):
            assert sqs_server is sqsq_server
            assert sqs_endpoint is sqsq_endpoint

        def test_queues(sqs_queue, sqsq_queue, sqs_fifo_queue, sqsq_fifo_queue):
            assert sqs_queue.key == sqsq_queue.key
            assert sqs_fifo_queue.key == sqsq_fifo_queue.key

        def test_clients(sqs_client, sqsq_client, sqs_resource, sqsq_resource, sqsq_queue):
            assert sqs_client.list_queues()["QueueUrls"] == [sqsq_queue.url]
            assert sqsq_client.list_queues()["QueueUrls"] == [sqsq_queue.url]
            assert [each.url for each in sqsq_resource.queues.all()] == [sqsq_queue.url]

        def test_factories(make_sqs_server, make_sqsq_server):
            assert make_sqs_server is make_sqsq_server

        def test_factories_of_the_session(sqs_server_factory, sqsq_server_factory):
            assert sqs_server_factory is sqsq_server_factory
        """
    )
    result.assert_outcomes(passed=5)


def test_the_aliases_work_where_the_plain_names_are_shadowed(run) -> None:
    result = run(
        """
        def test_it(sqs_client, sqs_queue, sqsq_client, sqsq_queue):
            assert (sqs_client, sqs_queue) == ("theirs", "theirs")
            sqsq_client.send_message(QueueUrl=sqsq_queue.url, MessageBody="hello")
            sqsq_queue.assert_contains(body="hello")
        """,
        conftest="""
        import pytest

        @pytest.fixture
        def sqs_client():
            return "theirs"

        @pytest.fixture
        def sqs_queue():
            return "theirs"
        """,
    )
    result.assert_outcomes(passed=1)


def test_the_client_follows_a_server_of_the_test_suite(run) -> None:
    result = run(
        """
        def test_it(sqs_server, sqs_client, sqs_queue):
            assert sqs_client.meta.endpoint_url == sqs_server.url
            assert sqs_server.now.year == 2040
            assert [queue.name for queue in sqs_server.queues] == ["test_it"]
        """,
        conftest="""
        import pytest

        @pytest.fixture
        def sqs_server(make_sqs_server):
            return make_sqs_server(clock="frozen", start="2040-01-01")
        """,
    )
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("test", "fixture", "name"),
    [
        ("test_it", "sqs_queue", "test_it"),
        ("test_it[a b.c/d]", "sqs_queue", "test_it-a-b-c-d"),
        ("test_été", "sqs_queue", "test_-t"),
        (f"test_{'x' * 75}", "sqs_queue", f"test_{'x' * 75}"),
        (LONG, "sqs_queue", f"{LONG[:71]}-{digest(LONG)}"),
        (LONG, "sqs_fifo_queue", f"{LONG[:66]}-{digest(LONG)}.fifo"),
    ],
)
def test_queues_are_named_after_the_test(run, test, fixture, name) -> None:
    function, _, parameter = test.partition("[")
    mark = f"@pytest.mark.parametrize('p', [1], ids=[{parameter[:-1]!r}])" if parameter else ""
    arguments = f"p, {fixture}" if parameter else fixture
    result = run(
        f"""
        import pytest

        {mark}
        def {function}({arguments}):
            assert {fixture}.name == {name!r}
            assert len({fixture}.name) <= 80
        """
    )
    result.assert_outcomes(passed=1)


def test_the_transport_of_the_fixtures_is_an_option(run) -> None:
    result = run(
        """
        import pytest

        def test_by_the_command_line(sqs_client, sqs_resource, sqs_server):
            sqs_client.list_queues()
            list(sqs_resource.queues.all())
            assert [each.transport for each in sqs_server.requests] == ["direct", "direct"]

        @pytest.mark.sqsq(transport="http")
        def test_by_the_marker(sqs_client, sqs_server):
            sqs_client.list_queues()
            assert [each.transport for each in sqs_server.requests] == ["http"]
        """,
        "--sqsq-transport=direct",
    )
    result.assert_outcomes(passed=2)


def test_made_servers_are_stopped_after_the_test_and_their_failures_raised(run) -> None:
    result = run(
        """
        import threading

        servers = []

        def test_making(make_sqs_server):
            server = make_sqs_server(clock="live")
            servers.append(server)
            failed = threading.Event()
            def fail():
                raise ZeroDivisionError
            server.clock.call_at(server.now, fail)
            server.clock.call_at(server.now, failed.set)
            assert failed.wait(10)

        def test_afterwards():
            assert not servers[0].is_running
        """
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ZeroDivisionError*"])


def test_failures_inside_the_server_are_raised_at_the_end_of_the_test(run) -> None:
    result = run(
        """
        import pytest
        from botocore.config import Config
        from botocore.exceptions import ClientError

        def test_one(sqs_server):
            def fail(*_):
                raise ZeroDivisionError
            sqs_server.broker.list_queues = fail
            client = sqs_server.client(config=Config(retries={"total_max_attempts": 1}))
            with pytest.raises(ClientError):
                client.list_queues()

        def test_two(sqs_client):
            assert "QueueUrls" not in sqs_client.list_queues()
        """
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ZeroDivisionError*"])


def test_queues_are_verified_after_each_test_if_asked_for(run) -> None:
    source = """
        def test_it(sqs_queue):
            sqs_queue.send("hello")
            sqs_queue.internals.log.dead_count += 1
        """
    run(source).assert_outcomes(passed=1)
    run(source, "--sqsq-check").assert_outcomes(passed=1, errors=1)


def test_tests_of_other_kinds_may_name_fixtures_in_their_own_way(run, pytester) -> None:
    pytester.makefile(".story", "once upon a time")
    result = run(
        "",
        conftest="""
        import pytest

        class Story(pytest.Item):
            fixturenames = ["sqs_server"]

            def runtest(self):
                pass

        class Stories(pytest.File):
            def collect(self):
                yield Story.from_parent(self, name="story")

        def pytest_collect_file(file_path, parent):
            if file_path.suffix == ".story":
                return Stories.from_parent(parent, path=file_path)
        """,
    )
    result.assert_outcomes(passed=1)


def test_a_taken_port_fails_the_tests_that_need_the_server(run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run(
            """
            def test_with(sqs_server):
                pass

            def test_without():
                pass
            """,
            f"--sqsq-port={port}",
        )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([f"*ServerStartError: cannot listen on 127.0.0.1:{port}*"])
