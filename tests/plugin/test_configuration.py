from __future__ import annotations

import pytest

SHOW = """
    def test_it(sqs_server):
        options = sqs_server.options
        print("in force:", options["clock"], options["seed"], options["cooldowns"])
    """


def test_options_come_from_the_configuration(run, pytester) -> None:
    pytester.makeini("[pytest]\nsqsq_clock = frozen\nsqsq_seed = 7\nsqsq_cooldowns = true\n")
    result = run(SHOW, "-s")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["sqsq: clock=frozen, cooldowns=True, seed=7", "*in force: frozen 7 True*"]
    )


def test_options_come_from_pyproject_in_toml(run, pytester) -> None:
    pytester.makepyprojecttoml(
        '[tool.pytest.ini_options]\nsqsq_clock = "frozen"\nsqsq_seed = "7"\nsqsq_cooldowns = true\n'
    )
    run(SHOW, "-s").stdout.fnmatch_lines(["*in force: frozen 7 True*"])


def test_the_command_line_wins_over_the_configuration(run, pytester) -> None:
    pytester.makeini("[pytest]\nsqsq_clock = frozen\nsqsq_seed = 7\nsqsq_cooldowns = true\n")
    result = run(SHOW, "-s", "--sqsq-clock", "live", "--no-sqsq-cooldowns")

    result.stdout.fnmatch_lines(["*in force: live 7 False*"])


def test_the_closest_marker_wins_option_by_option(run) -> None:
    result = run(
        """
        import pytest

        pytestmark = pytest.mark.sqsq(clock="frozen", seed=1)

        @pytest.mark.sqsq(seed=2, cooldowns=True)
        class TestIt:
            @pytest.mark.sqsq(seed=3)
            def test_it(self, sqs_server):
                options = sqs_server.options
                print("in force:", options["clock"], options["seed"], options["cooldowns"])
        """,
        "-s",
        "--sqsq-seed=9",
    )
    result.stdout.fnmatch_lines(["*in force: frozen 3 True*"])


@pytest.mark.parametrize(
    ("marker", "text"),
    [
        ("seed='x'", "seed must be an integer, not 'x'"),
        ("colour='red'", "unknown option 'colour'; there are host, port, *"),
        ("sede=1", "unknown option 'sede'; did you mean 'seed'[?]"),
        ("'frozen'", "the marker takes keyword arguments only"),
        ("host='::1'", "host holds for a whole run and cannot be in a marker"),
        ("port=80", "port holds for a whole run and cannot be in a marker"),
        ("environment='off'", "environment holds for a whole run and cannot be in a marker"),
    ],
)
def test_a_bad_marker_is_a_usage_error_at_collection(run, marker, text) -> None:
    result = run(
        f"""
        import pytest

        @pytest.mark.sqsq({marker})
        def test_it():
            raise AssertionError("was run")
        """
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: test_it.py::test_it: @pytest.mark.sqsq: {text}"])


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ("--sqsq-port=many", "port must be an integer from 0 to 65535, not 'many'"),
        ("--sqsq-clock=stopped", "clock must be one of *, not 'stopped'"),
        ("--sqsq-autojump-grace=0", "autojump_grace must be a number above 0, not 0.0"),
    ],
)
def test_a_bad_option_of_the_command_line_is_a_usage_error(run, argument, text) -> None:
    result = run("def test_it(): pass", argument)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: sqsq: {text}"])


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("sqsq_seed = x", "seed must be an integer*"),
        ("sqsq_cooldowns = perhaps", "cooldowns must be true or false*"),
        ("sqsq_report = sometimes", "report must be one of 'failed', 'always', 'off', not *"),
    ],
)
def test_a_bad_option_of_the_configuration_is_a_usage_error(run, pytester, line, text) -> None:
    pytester.makeini(f"[pytest]\n{line}\n")
    result = run("def test_it(): pass")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: sqsq: {text}"])


def test_markers_shows_the_signature(run) -> None:
    result = run("def test_it(): pass", "--markers")

    result.stdout.fnmatch_lines(
        ["@pytest.mark.sqsq(clock='live', start=None, *report='failed'*): options of the SQS*"]
    )


def test_help_shows_every_option(run) -> None:
    result = run("def test_it(): pass", "--help")

    result.stdout.fnmatch_lines(
        [
            "SQS server:",
            "*--sqsq-port*PORT*",
            "*--sqsq-in-flight-limit*",
            "*--sqsq-strict, --no-sqsq-strict*",
        ]
    )
    result.stdout.fnmatch_lines(["*sqsq_in_flight_limit*"])


def test_a_run_without_options_has_no_header_line(run) -> None:
    assert "sqsq:" not in run("def test_it(): pass").stdout.str()
