"""What a test leaves behind: counted, warned of, or an error."""

from __future__ import annotations

import pytest

STRICT = "--sqsq-strict"

IN_FLIGHT = """
    def test_it(sqs_server, sqs_client, sqs_queue):
        sqs_queue.send("hello")
        sqs_client.receive_message(QueueUrl=sqs_queue.url)
    """
ASTRAY = """
    import pytest

    def test_it(sqs_server, sqs_client, sqs_queue):
        url = sqs_queue.url.replace("test_it", "nowhere")
        with pytest.raises(sqs_client.exceptions.QueueDoesNotExist):
            sqs_client.receive_message(QueueUrl=url)
    """
UNUSED = """
    def test_it(sqs_server):
        sqs_server.faults.add(action="SendMessage", error="InternalFailure")
    """
BUSY = """
    import threading

    import pytest

    @pytest.mark.sqsq(clock="frozen", autojump_threshold=0.001, autojump_grace=0.001)
    def test_it(sqs_server, sqs_client, sqs_queue):
        sqs_server.clock.call_every(1, lambda: None)
        go_on = threading.Event()

        def consume():
            sqs_client.receive_message(QueueUrl=sqs_queue.url, WaitTimeSeconds=1)
            go_on.wait(10)

        thread = threading.Thread(target=consume)
        thread.start()
        sqs_server.wait_for_pollers(1)
        sqs_server.run_for(2)
        go_on.set()
        thread.join()
    """


@pytest.mark.parametrize("source", [IN_FLIGHT, ASTRAY, BUSY])
def test_what_only_strict_minds_is_fine_without(run, source) -> None:
    run(source).assert_outcomes(passed=1)


def test_strict_minds_messages_in_flight(run) -> None:
    result = run(IN_FLIGHT, STRICT)

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "E * AssertionError: expected no message in flight; there is 1",
            "* clock: *",
            "* on test_it:",
            "*'hello' in flight until +*, received once",
        ]
    )
    result.stdout.no_fnmatch_line("*def look_back*")  # no source of the plugin's is in the way


def test_strict_minds_requests_for_queues_that_are_not_there(run) -> None:
    result = run(ASTRAY, STRICT)

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "E * AssertionError: a request for a queue that was not there:",
            (
                "*ReceiveMessage of http://127.0.0.1:*/000000000000/nowhere (stale, not handed"
                " out since the last reset) from 127.0.0.1:*"
            ),
        ]
    )


def test_strict_minds_queue_urls_of_an_earlier_test(run) -> None:
    result = run(
        """
        import pytest

        urls = []

        def test_one(sqs_queue):
            urls.append(sqs_queue.url)

        def test_two(sqs_client):
            with pytest.raises(sqs_client.exceptions.QueueDoesNotExist):
                sqs_client.purge_queue(QueueUrl=urls[0])
        """,
        STRICT,
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*PurgeQueue of http://*/test_one (stale, *"])


def test_strict_allows_to_ask_whether_a_queue_exists(run) -> None:
    result = run(
        """
        import pytest

        def test_it(sqs_client):
            with pytest.raises(sqs_client.exceptions.QueueDoesNotExist):
                sqs_client.get_queue_url(QueueName="orders")
            sqs_client.create_queue(QueueName="orders")
        """,
        STRICT,
    )
    result.assert_outcomes(passed=1)


def test_a_fault_that_never_fired_is_a_warning(run) -> None:
    result = run(UNUSED, "-W", "default::pytest_sqsq.UnusedFaultWarning")

    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(
        ["*UnusedFaultWarning: a planned fault never fired: InternalFailure for SendMessage"]
    )


def test_a_fault_that_never_fired_is_an_error_where_strict(run) -> None:
    result = run(UNUSED, STRICT)

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["E * pytest_sqsq.*UnusedFaultWarning: a planned fault never fired: InternalFailure for *"]
    )


def test_strict_minds_jumps_while_a_consumer_was_busy(run) -> None:
    result = run(BUSY, STRICT)

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            (
                "E * AssertionError: * while a consumer was busy: hold() the clock while it works,"
                " or give it a longer grace"
            )
        ]
    )


LEFTOVER = """
    import threading

    def test_it(sqs_server, sqs_queue):
        client = sqs_server.client()
        def consume():
            try:
                client.receive_message(QueueUrl=sqs_queue.url, WaitTimeSeconds=20)
            except client.exceptions.QueueDoesNotExist:
                pass
        threading.Thread(target=consume).start()
        sqs_server.wait_for_pollers(1)
    """


def test_strict_makes_an_error_of_a_leftover_consumer(run) -> None:
    result = run(LEFTOVER, STRICT)

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            (
                "E * pytest_sqsq.*LeftoverConsumerWarning: a consumer is still polling 'test_it'"
                " after its test ended (127.0.0.1:*); stop it before the test ends, or set *"
            )
        ]
    )


def test_strict_ignores_a_leftover_consumer_if_told_to(run) -> None:
    run(LEFTOVER, STRICT, "--sqsq-leftover=ignore").assert_outcomes(passed=1)


def test_several_things_left_behind_are_told_together(run) -> None:
    result = run(
        """
        def test_it(sqs_server, sqs_queue):
            sqs_queue.send("hello")
            sqs_queue.receive()
            sqs_server.faults.add(action="SendMessage", error="InternalFailure")
        """,
        STRICT,
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ExceptionGroup: the test has left several things behind (2 sub-exceptions)",
            "*UnusedFaultWarning: a planned fault never fired: *",
            "*AssertionError: expected no message in flight; there is 1",
        ]
    )


def test_a_failed_test_is_not_told_what_it_did_not_come_to_do(run) -> None:
    result = run(
        """
        import pytest

        def test_failing(sqs_server, sqs_queue):
            sqs_queue.send("hello")
            sqs_queue.receive()
            sqs_server.faults.add(action="SendMessage", error="InternalFailure")
            raise ZeroDivisionError

        def test_skipping(sqs_server, sqs_queue):
            sqs_queue.send("hello")
            sqs_queue.receive()
            pytest.skip("not today")

        @pytest.mark.xfail(strict=True)
        def test_failing_as_expected(sqs_server, sqs_queue):
            sqs_queue.send("hello")
            sqs_queue.receive()
            raise ZeroDivisionError

        def test_passing(sqs_server, sqs_queue):
            sqs_queue.send("hello")
            sqs_queue.receive()
        """,
        STRICT,
    )
    result.assert_outcomes(failed=1, skipped=1, xfailed=1, passed=1, errors=1)
    result.stdout.fnmatch_lines(["ERROR test_it.py::test_passing - *"])


def test_a_marker_exempts_a_test(run) -> None:
    result = run(
        """
        import pytest

        @pytest.mark.sqsq(strict=False)
        def test_exempt(sqs_queue):
            sqs_queue.send("hello")
            sqs_queue.receive()

        @pytest.mark.sqsq(strict=True)
        def test_strict(sqs_queue):
            sqs_queue.send("hello")
            sqs_queue.receive()
        """
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["ERROR test_it.py::test_strict - *"])


def test_servers_that_a_test_makes_are_looked_at_too(run) -> None:
    result = run(
        """
        def test_it(make_sqs_server):
            queue = make_sqs_server().create_queue("orders")
            queue.send("hello")
            queue.receive()
        """,
        STRICT,
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E *expected no message in flight; there is 1"])


def test_strict_looks_when_the_server_is_emptied(run) -> None:
    result = run(
        """
        handles = []

        def test_receiving(sqs_server):
            queue = sqs_server.create_queue("orders")
            queue.send("hello")
            handles.append(queue.receive()[0])

        def test_deleting(sqs_server):
            sqs_server.queue("orders").delete(handles[0])

        def test_receiving_again(sqs_server):
            sqs_server.queue("orders").send("hello")
            sqs_server.queue("orders").receive()
        """,
        STRICT,
        "--sqsq-reset=module",
    )
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["E *expected no message in flight; there is 1"])


def test_a_marker_makes_a_module_strict_that_is_emptied_at_its_end(run) -> None:
    result = run(
        """
        import pytest

        pytestmark = pytest.mark.sqsq(reset="module", strict=True)

        def test_receiving(sqs_server):
            sqs_server.create_queue("orders").send("hello")
            sqs_server.queue("orders").receive()
        """
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E *expected no message in flight; there is 1"])


def test_a_report_names_the_queue_urls_that_led_nowhere(run) -> None:
    result = run(ASTRAY + "\n        raise ZeroDivisionError")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*SQS server http://127.0.0.1:*",
            "a request for a queue that was not there:",
            "  ReceiveMessage of http://*/nowhere (stale, not handed out since the last reset)*",
        ]
    )
