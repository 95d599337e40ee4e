"""The pytest plugin: options, fixtures, and what a report shows.

Loaded into every run of whoever has the package installed, so it imports nothing that only a
run with a server needs.  Loading it takes the reading of real time that all clocks go by.
"""

from __future__ import annotations

import argparse
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_sqsq.configuration import (
    MARKER,
    add_options,
    given_options,
    marker_options,
    raise_refused,
    refuse,
    share_seed,
)
from pytest_sqsq.fixture_order import arrange, emptying_fixture, uses_server
from pytest_sqsq.options import plugin_options
from pytest_sqsq.whole_run import Run

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient, SQSServiceResource

    from pytest_sqsq.environment import Endpoint
    from pytest_sqsq.options import PluginOptions
    from pytest_sqsq.server import MakeServer, SqsServer
    from pytest_sqsq.testing import QueueProbe

_RUN = pytest.StashKey[Run]()
_OPTIONS = pytest.StashKey["tuple[list[pytest.Mark], PluginOptions]"]()
_SERVERS = pytest.StashKey["list[SqsServer]"]()


def _options_of(node: pytest.Item) -> PluginOptions:
    marks = list(node.iter_markers("sqsq"))
    known = node.stash.get(_OPTIONS, None)
    if known is not None and known[0] == marks:  # hooks and fixtures may have added some
        return known[1]
    options = plugin_options(node.config.stash[_RUN].given, marker_options(node, marks))
    node.stash[_OPTIONS] = marks, options
    return options


# Hooks


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config,
) -> Generator[None, object, object]:
    # What conftest files import may make clients, and so may settings that other plugins load.
    with suppress(pytest.UsageError):  # told when the run is configured
        run = _run_with(early_config, early_config.known_args_namespace)
        if run.options["environment"] == "session":
            run.enter_session()
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    run = _run_with(config, config.option)
    if _only_distributes(config):
        run.leave_session()
    elif run.options["environment"] == "session":
        try:
            run.enter_session()
        except pytest.UsageError as error:
            # A worker of xdist that ended here would not be missed.
            if not hasattr(config, "workeroutput"):
                raise
            run.refused = error


def _run_with(config: pytest.Config, command_line: argparse.Namespace) -> Run:
    """The run, with the options as they are now; it ends when pytest lets go of ``config``."""
    given = given_options(config, command_line)
    run = config.stash.get(_RUN, None)
    if run is None:
        run = config.stash[_RUN] = Run(given)
        config.add_cleanup(run.close)
    else:
        run.give(given)
    if run.options["block_aws"]:
        run.install_guard()
    return run


def pytest_collection(session: pytest.Session) -> None:
    error = session.config.stash[_RUN].refused
    if error is not None:
        refuse(session.config, error)


def _only_distributes(config: pytest.Config) -> bool:
    """Whether this process of xdist neither collects nor runs tests itself."""
    return (
        config.getoption("dist", "no") != "no"
        and not config.getoption("collectonly", False)
        and not hasattr(config, "workerinput")
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    given = config.stash[_RUN].given
    return "sqsq: " + ", ".join(f"{name}={given[name]}" for name in given) if given else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    result = yield
    # Last of all, so that the markers count that others add here.
    try:
        for item in items:
            marked = item.get_closest_marker("sqsq") is not None
            if marked and _options_of(item)["block_aws"]:
                config.stash[_RUN].install_guard()
            if uses_server(item):
                arrange(item, _options_of(item))
    except pytest.UsageError as error:
        refuse(config, error)
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    share_seed(node, node.config.stash[_RUN].given)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    raise_refused(node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    run = item.config.stash[_RUN]
    if run.guard is None:
        return (yield)
    run.guard.closed = _options_of(item)["block_aws"]
    try:
        return (yield)
    finally:
        run.guard.closed = run.options["block_aws"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.excinfo is not None:
        item.config.stash[_RUN].failures += 1
    servers = item.stash.get(_SERVERS, None)
    if servers and report.when != "teardown":
        wanted = _options_of(item)["report"]
        if wanted == "always" or (wanted == "failed" and report.failed):
            report.sections += [_section(server) for server in servers]
    return report


def _section(server: SqsServer) -> tuple[str, str]:
    title = "SQS server"
    try:
        title = f"SQS server {server.url}"
        return title, server.report()
    except Exception as error:  # noqa: BLE001 - a report must never break the run
        return title, f"the report could not be made: {error!r}"


# Fixtures.  Each has a name that begins with sqsq_ beside the plain one, which other plugins
# and test suites may shadow.


@pytest.fixture
def _sqsq_environment(request: pytest.FixtureRequest) -> Iterator[None]:
    from pytest_sqsq.shared import surroundings

    with surroundings(request.config.stash[_RUN].shared, _options_of(request.node)):
        yield


@pytest.fixture
def sqsq_server(
    request: pytest.FixtureRequest,
    _sqsq_environment: None,
) -> Iterator[SqsServer]:
    """The SQS server of the run, empty at the start of the test."""
    from pytest_sqsq.making import look_for_failures

    __tracebackhide__ = True
    node: pytest.Item = request.node
    options = _options_of(node)
    run = node.config.stash[_RUN]
    failures = run.failures
    emptying = emptying_fixture(options)
    if emptying is not None:
        request.getfixturevalue(emptying)  # not there yet where this is asked for while it runs
    server = run.shared.lend(options)
    node.stash.setdefault(_SERVERS, []).append(server)
    yield server
    try:
        look_for_failures(server, options)
    finally:
        node.stash[_SERVERS].clear()  # nodes outlive their tests
        if options["reset"] == "test":
            run.shared.empty(options, failed=run.failures > failures)


@pytest.fixture
def sqs_server(sqsq_server: SqsServer) -> SqsServer:
    """The SQS server of the run, empty at the start of the test."""
    return sqsq_server


def _client(server: SqsServer, node: pytest.Item) -> Iterator[SQSClient]:
    with closing(server.client(transport=_options_of(node)["transport"])) as client:
        yield client


@pytest.fixture
def sqs_client(sqs_server: SqsServer, request: pytest.FixtureRequest) -> Iterator[SQSClient]:
    """A boto3 SQS client of the server."""
    yield from _client(sqs_server, request.node)


@pytest.fixture
def sqsq_client(sqsq_server: SqsServer, request: pytest.FixtureRequest) -> Iterator[SQSClient]:
    """A boto3 SQS client of the server."""
    yield from _client(sqsq_server, request.node)


def _resource(server: SqsServer, node: pytest.Item) -> Iterator[SQSServiceResource]:
    resource = server.resource(transport=_options_of(node)["transport"])
    with closing(resource.meta.client):
        yield resource


@pytest.fixture
def sqs_resource(
    sqs_server: SqsServer, request: pytest.FixtureRequest
) -> Iterator[SQSServiceResource]:
    """A boto3 SQS resource of the server."""
    yield from _resource(sqs_server, request.node)


@pytest.fixture
def sqsq_resource(
    sqsq_server: SqsServer, request: pytest.FixtureRequest
) -> Iterator[SQSServiceResource]:
    """A boto3 SQS resource of the server."""
    yield from _resource(sqsq_server, request.node)


def _queue(server: SqsServer, node: pytest.Item) -> QueueProbe:
    from pytest_sqsq.making import queue_name

    return server.create_queue(queue_name(node.name))


def _fifo_queue(server: SqsServer, node: pytest.Item) -> QueueProbe:
    from pytest_sqsq.making import queue_name

    return server.create_queue(
        queue_name(node.name, ".fifo"), attributes={"ContentBasedDeduplication": True}
    )


@pytest.fixture
def sqs_queue(sqs_server: SqsServer, request: pytest.FixtureRequest) -> QueueProbe:
    """A standard queue, named after the test."""
    return _queue(sqs_server, request.node)


@pytest.fixture
def sqsq_queue(sqsq_server: SqsServer, request: pytest.FixtureRequest) -> QueueProbe:
    """A standard queue, named after the test."""
    return _queue(sqsq_server, request.node)


@pytest.fixture
def sqs_fifo_queue(sqs_server: SqsServer, request: pytest.FixtureRequest) -> QueueProbe:
    """A FIFO queue with content-based deduplication, named after the test."""
    return _fifo_queue(sqs_server, request.node)


@pytest.fixture
def sqsq_fifo_queue(sqsq_server: SqsServer, request: pytest.FixtureRequest) -> QueueProbe:
    """A FIFO queue with content-based deduplication, named after the test."""
    return _fifo_queue(sqsq_server, request.node)


@pytest.fixture(scope="session")
def sqsq_endpoint(request: pytest.FixtureRequest) -> Endpoint:
    """Where the server of the run listens, for session-scoped fixtures of the application."""
    return request.config.stash[_RUN].shared.endpoint


@pytest.fixture(scope="session")
def sqs_endpoint(sqsq_endpoint: Endpoint) -> Endpoint:
    """Where the server of the run listens, for session-scoped fixtures of the application."""
    return sqsq_endpoint


@pytest.fixture
def make_sqsq_server(request: pytest.FixtureRequest) -> Iterator[MakeServer]:
    """Makes started servers of their own, which are stopped after the test."""
    from pytest_sqsq.making import server_maker

    node: pytest.Item = request.node
    run = node.config.stash[_RUN]
    yield from server_maker(run, _options_of(node), node.stash.setdefault(_SERVERS, []))


@pytest.fixture
def make_sqs_server(make_sqsq_server: MakeServer) -> MakeServer:
    """Makes started servers of their own, which are stopped after the test."""
    return make_sqsq_server


@pytest.fixture(scope="session")
def sqsq_server_factory(request: pytest.FixtureRequest) -> Iterator[MakeServer]:
    """Makes started servers of their own, which are stopped at the end of the session."""
    from pytest_sqsq.making import server_maker

    run = request.config.stash[_RUN]
    yield from server_maker(run, run.options, [])


@pytest.fixture(scope="session")
def sqs_server_factory(sqsq_server_factory: MakeServer) -> MakeServer:
    """Makes started servers of their own, which are stopped at the end of the session."""
    return sqsq_server_factory


def _end_of(scope: Literal["class", "module", "session"]) -> object:
    """A fixture that empties the server at the end of a scope."""

    @pytest.fixture(scope=scope, name=f"_sqsq_end_of_{scope}")
    def emptied(request: pytest.FixtureRequest) -> Iterator[None]:
        __tracebackhide__ = True
        run = request.config.stash[_RUN]
        failures = run.failures
        yield
        run.shared.empty(run.shared.latest, failed=run.failures > failures)

    return emptied


_end_of_class = _end_of("class")
_end_of_module = _end_of("module")
_end_of_session = _end_of("session")
