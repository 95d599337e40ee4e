from __future__ import annotations

import pytest

FAILING = """
    def test_it(sqs_server, sqs_client, sqs_queue):
        sqs_client.send_message(QueueUrl=sqs_queue.url, MessageBody="hello")
        assert sqs_queue.messages() == ()
    """
PASSING = """
    def test_it(sqs_queue):
        sqs_queue.send("hello")
    """
SHOWN = ["*SQS server http://127.0.0.1:*", "clock: *", "queue *visible *", "  'hello' visible, *"]


def test_a_failing_test_shows_its_server(run) -> None:
    result = run(FAILING)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([*SHOWN, "requests:", "  * SendMessage on 'test_it': 200 *"])


def test_a_failing_setup_shows_the_server_too(run) -> None:
    result = run(
        """
        import pytest

        @pytest.fixture
        def application(sqs_queue):
            sqs_queue.send("hello")
            raise ZeroDivisionError

        def test_it(application):
            pass
        """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(SHOWN)


def test_servers_that_the_test_has_made_are_shown(run) -> None:
    result = run(
        """
        def test_it(make_sqs_server):
            make_sqs_server().create_queue("first").send("hello")
            make_sqs_server().create_queue("second").send("hello")
            raise ZeroDivisionError
        """
    )
    result.stdout.fnmatch_lines([*SHOWN[:2], "first *", *SHOWN[:2], "second *"])


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        (FAILING, ["--sqsq-report=off"]),
        (PASSING, ["-rP"]),
        ("def test_it(): raise ZeroDivisionError", []),
    ],
)
def test_nothing_is_shown_where_nothing_is_wanted(run, source, arguments) -> None:
    assert "SQS server" not in run(source, *arguments).stdout.str()


def test_a_passing_test_can_show_its_server(run) -> None:
    run(PASSING, "-rP", "--sqsq-report=always").stdout.fnmatch_lines(SHOWN)


def test_a_report_that_cannot_be_made_does_not_break_the_run(run) -> None:
    result = run(
        """
        def test_it(sqs_server, monkeypatch):
            def report():
                raise ZeroDivisionError("no report")
            sqs_server.report = report
            assert False
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the report could not be made: ZeroDivisionError('no report')"])


def test_the_seed_is_shown(run) -> None:
    result = run(FAILING, "--sqsq-seed=7")

    result.stdout.fnmatch_lines(["sqsq: seed=7", "seed: 7"])


def test_a_run_of_loose_delivery_makes_up_a_seed_and_shows_it(run) -> None:
    result = run(FAILING, "--sqsq-delivery=realistic")

    [header] = [line for line in result.outlines if line.startswith("sqsq: ")]
    seed = header.removeprefix("sqsq: delivery=realistic, seed=")
    assert int(seed) >= 0
    result.stdout.fnmatch_lines([f"seed: {seed}"])


def test_the_workers_of_a_parallel_run_share_the_seed_that_was_made_up(run) -> None:
    result = run(
        """
        import pytest

        @pytest.mark.parametrize("n", range(4))
        def test_it(sqs_server, n):
            print("seed in force:", sqs_server.options["seed"])
        """,
        *("-p", "xdist.plugin", "-n", "2", "-rP", "--sqsq-delivery=realistic"),
    )
    result.assert_outcomes(passed=4)
    seeds = [line for line in result.outlines if line.startswith("seed in force: ")]
    [header] = [line for line in result.outlines if line.startswith("sqsq: ")]
    assert seeds == [f"seed in force: {header.rpartition('=')[2]}"] * 4
