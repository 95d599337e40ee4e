from __future__ import annotations

import pytest

from pytest_sqsq import SqsServer

SHOW = """
    def test_it(sqs_server):
        options = sqs_server.options
        print("in force:", options["clock"], options["seed"], options["cooldowns"])
    """

WHOLE_RUN = (
    "{0} holds for a whole run and cannot be in a marker; use sqsq_{0} in the configuration of"
    " pytest, or --sqsq-{0}"
)
STORES = (
    "'memory', 'fakeredis', a URL that begins with redis://, rediss:// or unix://, or a client of"
    " the redis package"
)


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
        ("colour='red'", "unknown option 'colour'; there are clock, start, store, *"),
        ("sede=1", "unknown option 'sede'; did you mean 'seed'[?]"),
        (
            "'frozen', 1",
            "the marker takes keyword arguments only, such as clock='frozen', not 'frozen', 1",
        ),
        ("host='::1'", WHOLE_RUN.format("host")),
        ("port=80", WHOLE_RUN.format("port")),
        ("environment='off'", WHOLE_RUN.format("environment")),
        ("store='postgres'", f"store must be {STORES}, not 'postgres'"),
        ("store=5", f"store must be {STORES}, not 5"),
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
        ("--sqsq-store=postgres", f"store must be {STORES}, not 'postgres'"),
        ("--sqsq-store=redis://localhost:many", "store: Port could not be cast to *'many'*"),
        ("--sqsq-region=", "region must be a text that is not empty, not ''"),
    ],
)
def test_a_bad_option_of_the_command_line_is_a_usage_error(run, argument, text) -> None:
    result = run("def test_it(): pass", argument)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: sqsq: {text}"])


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("sqsq_seed = x", "seed must be an integer: *'x'*"),
        ("sqsq_cooldowns = perhaps", "cooldowns must be true or false: *'perhaps'*"),
        ("sqsq_report = sometimes", "report must be one of 'failed', 'always', 'off', not *"),
    ],
)
def test_a_bad_option_of_the_configuration_is_a_usage_error(run, pytester, line, text) -> None:
    pytester.makeini(f"[pytest]\n{line}\n")
    result = run("def test_it(): pass")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: sqsq: {text}"])


def test_a_bad_marker_is_a_usage_error_in_parallel_runs_too(run) -> None:
    result = run(
        """
        import pytest

        @pytest.mark.sqsq(clock="stopped")
        @pytest.mark.parametrize("n", range(4))
        def test_it(n):
            raise AssertionError("was run")
        """,
        *("-p", "xdist.plugin", "-n", "2"),
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: test_it.py::test_it?0?: @pytest.mark.sqsq: clock must *"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_markers_count_that_hooks_and_fixtures_add(run) -> None:
    result = run(
        """
        import pytest

        @pytest.fixture
        def seeded(request):
            request.applymarker(pytest.mark.sqsq(seed=5))

        def test_it(seeded, sqs_server):
            options = sqs_server.options
            print("in force:", options["clock"], options["seed"], options["cooldowns"])
        """,
        "-s",
        conftest="""
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker(pytest.mark.sqsq(clock="frozen"))
        """,
    )
    result.stdout.fnmatch_lines(["*in force: frozen 5 False*"])


def test_the_options_of_a_run_are_none_of_a_server() -> None:
    with pytest.raises(TypeError) as of_test:
        SqsServer(strict=True)
    assert str(of_test.value) == (
        "strict is an option of a test run, not of a server; use sqsq_strict in the configuration"
        " of pytest, or @pytest.mark.sqsq(strict=…)"
    )
    with pytest.raises(TypeError) as of_run:
        SqsServer(environment="off")
    assert str(of_run.value) == (
        "environment is an option of a test run, not of a server; use sqsq_environment in the"
        " configuration of pytest"
    )


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
            "*--sqsq-clock*CLOCK* how time passes; one of 'live', 'frozen', 'autojump',",
            "* 'system' (default: 'live')",
            "*--sqsq-in-flight-limit*",
            "*--sqsq-strict, --no-sqsq-strict*",
        ]
    )
    result.stdout.fnmatch_lines(["*sqsq_in_flight_limit (int):*", "*(default: 120000)"])


def test_a_run_without_options_has_no_header_line(run) -> None:
    assert "sqsq:" not in run("def test_it(): pass").stdout.str()
