"""The command ``sqsq``: the server in a process of its own, for programs in any language."""

from __future__ import annotations

import argparse
import logging
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from pytest_sqsq.environment import variables
from pytest_sqsq.errors import ServerStartError, StoreInUse
from pytest_sqsq.options import SERVER_OPTIONS, Option
from pytest_sqsq.serve_file import ServeFile, ServeFileError, create_queues, read
from pytest_sqsq.server import SqsServer

PORT = 9324

OPTIONS = {**SERVER_OPTIONS, "port": SERVER_OPTIONS["port"].with_default(PORT)}

_NAME_AND_VERSION = f"pytest-sqsq {version('pytest-sqsq')}"

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_log = logging.getLogger("pytest_sqsq")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status.  Raises ``SystemExit`` for bad arguments."""
    parser = argparse.ArgumentParser(
        "sqsq", description="An SQS server for tests and development.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=_NAME_AND_VERSION)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_serve(commands)
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help(sys.stderr)
        return 2
    return _serve(given)


def _add_serve(commands: Any) -> None:
    text = "start a server, and serve until SIGINT (Ctrl-C) or SIGTERM"
    serve = commands.add_parser("serve", help=text, description=text, allow_abbrev=False)
    serve.add_argument("--config", metavar="FILE", help="TOML file of options and queues")
    serve.add_argument(
        "--print-env",
        action="store_true",
        help="print first what leads a shell, and what it starts, to the server",
    )
    serve.add_argument(
        "--verbose", action="store_true", help="tell of each request, on standard error"
    )
    options = serve.add_argument_group("options of the server")
    for option in OPTIONS.values():
        flag, arguments = option.flag()
        if "action" not in arguments:
            arguments["type"] = _parser_of(option)
        options.add_argument(flag, **arguments)


def _parser_of(option: Option) -> Callable[[str], object]:
    def parse(text: str) -> object:
        try:
            return option.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def _serve(given: argparse.Namespace) -> int:
    with _signals() as wait_for_one, _logged_on_stderr():
        try:
            server = _started(given)
        except (ServeFileError, ServerStartError, StoreInUse) as error:
            print(f"sqsq: {error}", file=sys.stderr)
            return 1
        try:
            _announce(server, with_environment=given.print_env)
            wait_for_one()
        finally:
            server.stop()
        server.raise_failures()
    return 0


def _started(given: argparse.Namespace) -> SqsServer:
    """A server that has all its queues before it answers anyone."""
    file = ServeFile({}, ()) if given.config is None else read(given.config)
    flags = {name: getattr(given, name) for name in OPTIONS}
    server = SqsServer(
        **{
            "port": PORT,
            **file.options,
            **{name: value for name, value in flags.items() if value is not None},
        }
    )
    try:
        with server.traffic.closed():
            server.start()
            create_queues(server, file.queues)
            if given.verbose:
                server.requests.on_append = _tell
    except BaseException:
        server.stop()
        raise
    return server


def _tell(record: object) -> None:
    # Action and queue are whatever a client has sent.
    _log.info("%s", " ".join(str(record).split()))


def _announce(server: SqsServer, *, with_environment: bool) -> None:
    options = server.options
    if with_environment:
        for name, value in variables(server.url, options["region"]).items():
            print(f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}")
    place = f"clock {options['clock']}, store {_without_secrets(str(options['store']))}"
    print(f"{_NAME_AND_VERSION} listens on {server.url} ({place})", flush=True)


def _without_secrets(store: str) -> str:
    """The name or URL of a store without user, password and parameters."""
    url = urlsplit(store)
    return url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()


@contextmanager
def _signals() -> Iterator[Callable[[], object]]:
    """A context in which the first SIGINT or SIGTERM is noted, and the next ends the process.

    Yields what waits for the first one.
    """

    def note(*_: object) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)

    # A lock that is waited for is not sure to be interrupted: the signal may come just before,
    # and on Windows it never is.  A socket keeps the byte that a signal writes.
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    before = {number: signal.signal(number, note) for number in _SIGNALS}
    woken_before = signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    try:
        yield lambda: woken.recv(1)
    finally:
        signal.set_wakeup_fd(woken_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        woken.close()
        waker.close()


@contextmanager
def _logged_on_stderr() -> Iterator[None]:
    """A context in which what the package logs is told on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("sqsq: %(message)s"))
    level = _log.level
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    try:
        yield
    finally:
        _log.removeHandler(handler)
        _log.setLevel(level)
