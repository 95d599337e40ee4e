"""Options of a test run: from the configuration, the command line, and markers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, NoReturn

import pytest

from pytest_sqsq.options import PLUGIN_OPTIONS, Option, checked

# What goes to and from workers of xdist.
_SEED = "sqsq_seed"
_REFUSED = "sqsq_refused"

_MARKER_OPTIONS = {name: option for name, option in PLUGIN_OPTIONS.items() if option.per_test}

# What `--markers` shows.
MARKER = "sqsq({}): options of the SQS server for this test".format(
    ", ".join(f"{name}={option.default!r}" for name, option in _MARKER_OPTIONS.items())
)


def add_options(parser: pytest.Parser) -> None:
    """Add every option to the ini file and the command line."""
    group = parser.getgroup("sqsq", "SQS server")
    for option in PLUGIN_OPTIONS.values():
        parser.addini(f"sqsq_{option.name}", option.long_help, type=_ini_type(option), default=None)
        flag, arguments = option.flag("sqsq-")
        group.addoption(flag, **arguments)


def _ini_type(option: Option) -> Any:
    if isinstance(option.default, bool):
        return "bool"
    if option.kind.from_text in (int, float):
        return option.kind.from_text.__name__
    return "string"


def given_options(config: pytest.Config, command_line: argparse.Namespace) -> dict[str, Any]:
    """The options that the configuration and the command line give, the latter winning."""
    given = {}
    for name, option in PLUGIN_OPTIONS.items():
        value = getattr(command_line, f"sqsq_{name}")
        if value is None:
            value = _configured(config, name, option)
        if value is not None:
            try:
                given[name] = option.parse(value) if isinstance(value, str) else option.check(value)
            except (ValueError, TypeError) as error:
                raise pytest.UsageError(f"sqsq: {error}") from None
    if given.get("delivery") == "realistic" and "seed" not in given:
        # Told in the header, so that the run can be repeated.
        given["seed"] = getattr(config, "workerinput", {}).get(_SEED) or Random().getrandbits(32)
    return given


def share_seed(node: Any, options: Mapping[str, Any]) -> None:
    """Give the seed of this run, which may be made up, to a worker of xdist that is to start."""
    node.workerinput[_SEED] = options.get("seed")


def _configured(config: pytest.Config, name: str, option: Option) -> Any:
    try:
        return config.getini(f"sqsq_{name}")
    except (ValueError, TypeError, pytest.UsageError) as error:
        # What pytest says here differs between its versions; it names the value, at least.
        raise pytest.UsageError(f"sqsq: {name} must be {option.kind.wanted}: {error}") from None


def marker_options(node: pytest.Item, marks: Iterable[pytest.Mark]) -> dict[str, Any]:
    """The options of a test's markers, closest first, which wins; ``UsageError`` for a bad one."""
    options: dict[str, Any] = {}
    for mark in reversed(list(marks)):
        try:
            options.update(_options_in(mark))
        except (ValueError, TypeError) as error:
            raise pytest.UsageError(f"{node.nodeid}: @pytest.mark.sqsq: {error}") from None
    return options


def _options_in(mark: pytest.Mark) -> dict[str, Any]:
    if mark.args:
        raise TypeError(
            "the marker takes keyword arguments only, such as clock='frozen', not"
            f" {', '.join(map(repr, mark.args))}"
        )
    for name in mark.kwargs:
        if name in PLUGIN_OPTIONS and name not in _MARKER_OPTIONS:
            raise ValueError(
                f"{name} holds for a whole run and cannot be in a marker; use sqsq_{name} in the"
                f" configuration of pytest, or --sqsq-{name}"
            )
    return checked(mark.kwargs, _MARKER_OPTIONS)


def refuse(config: pytest.Config, error: pytest.UsageError) -> NoReturn:
    """End the run with a usage error that is told in workers of xdist as well.

    Nobody would see what they raise: they leave it to the process that started them.
    """
    if hasattr(config, "workeroutput"):
        config.workeroutput[_REFUSED] = str(error)
    raise error


def raise_refused(node: Any) -> None:
    """Raise what a worker of xdist, which has ended, has left to this process."""
    text = getattr(node, "workeroutput", {}).get(_REFUSED)
    if text is not None:
        raise pytest.UsageError(text)
