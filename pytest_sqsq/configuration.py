"""Options of a test run: from the configuration, the command line, and markers."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from pytest_sqsq.options import PLUGIN_OPTIONS, Option, checked

# What `--markers` shows.
MARKER = "sqsq({}): options of the SQS server for this test".format(
    ", ".join(
        f"{name}={option.default!r}" for name, option in PLUGIN_OPTIONS.items() if option.per_test
    )
)


def add_options(parser: pytest.Parser) -> None:
    """Add every option to the ini file and the command line."""
    group = parser.getgroup("sqsq", "SQS server")
    for option in PLUGIN_OPTIONS.values():
        text = f"{option.help} (default: {option.default!r})"
        parser.addini(f"sqsq_{option.name}", text, type=_ini_type(option), default=None)
        flag = f"--sqsq-{option.name.replace('_', '-')}"
        if isinstance(option.default, bool):
            group.addoption(
                flag, action=argparse.BooleanOptionalAction, default=None, help=option.help
            )
        else:
            group.addoption(flag, default=None, metavar=option.name.upper(), help=text)


def _ini_type(option: Option) -> Any:
    if isinstance(option.default, bool):
        return "bool"
    if option.kind.from_text in (int, float):
        return option.kind.from_text.__name__
    return "string"


def given_options(config: pytest.Config) -> dict[str, Any]:
    """The options that the configuration and the command line give, the latter winning."""
    given = {}
    for name, option in PLUGIN_OPTIONS.items():
        value = config.getoption(f"sqsq_{name}")
        if value is None:
            value = _configured(config, name, option)
        if value is not None:
            try:
                given[name] = option.parse(value) if isinstance(value, str) else option.check(value)
            except (ValueError, TypeError) as error:
                raise pytest.UsageError(f"sqsq: {error}") from None
    return given


def _configured(config: pytest.Config, name: str, option: Option) -> Any:
    try:
        return config.getini(f"sqsq_{name}")
    except (ValueError, TypeError, pytest.UsageError):
        # What pytest says here differs between its versions, and may not name the option.
        raise pytest.UsageError(f"sqsq: {name} must be {option.kind.wanted}") from None


def marker_options(node: pytest.Item) -> dict[str, Any]:
    """The options of a test's markers, the closest winning; ``UsageError`` for a bad one."""
    options: dict[str, Any] = {}
    for mark in reversed(list(node.iter_markers("sqsq"))):
        try:
            if mark.args:
                raise TypeError("the marker takes keyword arguments only")
            options.update(checked(mark.kwargs, PLUGIN_OPTIONS))
            for name in mark.kwargs:
                if not PLUGIN_OPTIONS[name].per_test:
                    raise ValueError(f"{name} holds for a whole run and cannot be in a marker")
        except (ValueError, TypeError) as error:
            raise pytest.UsageError(f"{node.nodeid}: @pytest.mark.sqsq: {error}") from None
    return options
