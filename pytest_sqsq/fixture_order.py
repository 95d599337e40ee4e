"""When, among the fixtures of a test, those of the plugin are set up that it did not name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

    from pytest_sqsq.options import PluginOptions

_ENVIRONMENT = "_sqsq_environment"
_SERVER = "sqsq_server"

_SHARED_FIXTURES = frozenset(
    f"{prefix}_{what}"
    for prefix in ("sqs", "sqsq")
    for what in ("server", "client", "resource", "queue", "fifo_queue", "endpoint")
)


def uses_server(item: pytest.Item) -> bool:
    """Whether a test uses the server of the run, as far as its fixtures tell beforehand."""
    return not _SHARED_FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def emptying_fixture(options: PluginOptions) -> str | None:
    """What empties the server, where that is not done at the end of each test."""
    reset = options["reset"]
    return None if reset in ("test", "never") else f"_sqsq_end_of_{reset}"


def arrange(item: Any, options: PluginOptions) -> None:
    """Give a test that uses the server the fixtures that belong to that, in their places."""
    names: list[str] = item.fixturenames
    if _SERVER not in names:
        names.append(_SERVER)
    # The environment first of all that is made for each test: what a test changes of it by
    # another fixture is undone before.
    if _ENVIRONMENT in names:
        names.remove(_ENVIRONMENT)
    # pytest has no public way, and items of other plugins not even this one.
    definitions = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    scopes = [definitions[name][-1].scope if name in definitions else None for name in names]
    place = scopes.index("function") if "function" in scopes else names.index(_SERVER)
    names.insert(place, _ENVIRONMENT)
    # What empties the server at the end of a class or module is set up before anything that
    # might use the server there, so that it comes last at the end.
    emptying = emptying_fixture(options)
    if emptying is not None:
        names.insert(0, emptying)
