"""The one table of options: constructor argument = marker key = ini ``sqsq_…`` = ``--sqsq-…``.

Each option is a key of a ``TypedDict``, so that a constructor that takes them is typed, and
carries what the other places need: its default, its check, its help.
"""

import datetime as dt
import math
from collections.abc import Callable, Collection, Mapping
from copy import copy
from typing import Annotated, Any, Literal, Self, TypedDict, cast, get_args, get_origin
from urllib.parse import urlsplit

from pytest_sqsq.clock import AUTOJUMP_GRACE, AUTOJUMP_THRESHOLD, ClockMode
from pytest_sqsq.timeline import instant_ms


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(cast("float", value))


def _is_instant(value: object) -> bool:
    if not isinstance(value, (str, dt.datetime)):
        return False
    instant_ms(value)
    return True


def _is_store(value: object) -> bool:
    if not isinstance(value, str):
        return hasattr(value, "connection_pool")
    if value in ("memory", "fakeredis"):
        return True
    url = urlsplit(value)
    _ = url.port  # raises ValueError for one that is none
    return url.scheme in ("redis", "rediss", "unix")


_FLAGS = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}


class Kind:
    """What values an option takes: from Python, and from the text of an ini file."""

    __slots__ = ("accepts", "from_text", "wanted")

    def __init__(
        self,
        wanted: str,
        accepts: Callable[[Any], bool],
        from_text: Callable[[str], object] = str,
    ) -> None:
        self.wanted = wanted
        self.accepts = accepts
        self.from_text = from_text


def _text(wanted: str, accepts: Callable[[str], bool] = bool) -> Kind:
    return Kind(wanted, lambda value: isinstance(value, str) and accepts(value))


def _integer(low: int, high: float = math.inf) -> Kind:
    span = f"of at least {low}" if high == math.inf else f"from {low} to {high}"
    return Kind(
        f"an integer {span}", lambda value: type(value) is int and low <= value <= high, int
    )


_BOOLEAN = Kind(
    "true or false", lambda value: isinstance(value, bool), lambda text: _FLAGS[text.lower()]
)
_SECONDS = Kind("a number above 0", lambda value: _is_number(value) and value > 0, float)
_ADDRESS = _text("a host name or address")
_NAME = _text("a text that is not empty")
_ACCOUNT = _text("12 digits", lambda text: len(text) == 12 and text.isdecimal() and text.isascii())
_ANY_INTEGER = Kind("an integer", lambda value: type(value) is int, int)
_INSTANT = Kind("an aware datetime or ISO 8601 text", _is_instant)
_STORE = Kind(
    "'memory', 'fakeredis', a URL that begins with redis://, rediss:// or unix://, or a client of"
    " the redis package",
    _is_store,
)


def _choice(choices: Collection[str]) -> Kind:
    return Kind(
        "one of " + ", ".join(map(repr, choices)),
        lambda value: isinstance(value, str) and value in choices,
    )


class Option:
    """One option.  ``kind`` and ``name`` are filled in from its place in the table.

    ``kind`` may be left to the type where that is a ``Literal``.  ``per_test`` tells whether a
    marker may set it.
    """

    __slots__ = ("default", "help", "kind", "name", "per_test")

    def __init__(
        self,
        default: object,
        help: str,  # noqa: A002 - as argparse and pytest call it
        kind: Kind | None = None,
        *,
        per_test: bool = True,
    ) -> None:
        self.name = ""
        self.default = default
        self.help = help
        self.kind = kind or _NAME
        self.per_test = per_test

    def check(self, value: object) -> object:
        """The value, if it is one; else ``ValueError``."""
        if value is None and self.default is None:
            return value
        try:
            accepted = self.kind.accepts(value)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None
        if not accepted:
            raise ValueError(f"{self.name} must be {self.kind.wanted}, not {value!r}")
        return value

    def parse(self, text: str) -> object:
        """The value that a text stands for; ``ValueError`` if it stands for none."""
        try:
            value = self.kind.from_text(text.strip())
        except (ValueError, KeyError):
            raise ValueError(f"{self.name} must be {self.kind.wanted}, not {text!r}") from None
        return self.check(value)

    @property
    def long_help(self) -> str:
        """What the option means, what it may be where that is a choice, and the default."""
        choices = f"; {self.kind.wanted}" if self.kind.wanted.startswith("one of ") else ""
        default = "" if self.default is None else f" (default: {self.default!r})"
        return f"{self.help}{choices}{default}"

    def flag(self, prefix: str = "") -> tuple[str, dict[str, Any]]:
        """What argparse and pytest make a flag of: its name and its keyword arguments.

        The value is ``None`` where the flag is not given.
        """
        import argparse

        arguments: dict[str, Any] = {"default": None, "help": self.long_help}
        if isinstance(self.default, bool):
            arguments["action"] = argparse.BooleanOptionalAction
        else:
            arguments["metavar"] = self.name.upper()
        return f"--{prefix}{self.name.replace('_', '-')}", arguments

    def with_default(self, default: object) -> Self:
        """The same option with another default."""
        changed = copy(self)
        changed.default = default
        return changed


class ServerOptions(TypedDict, total=False):
    """The keyword arguments of ``SqsServer``."""

    host: Annotated[str, Option("127.0.0.1", "address to listen on", _ADDRESS, per_test=False)]
    port: Annotated[
        int, Option(0, "port to listen on; 0 takes a free one", _integer(0, 65_535), per_test=False)
    ]
    clock: Annotated[ClockMode, Option("live", "how time passes")]
    start: Annotated[
        dt.datetime | str | None,
        Option(None, "first instant; default: now, or 2030-01-01 with a seed and frozen", _INSTANT),
    ]
    store: Annotated[
        object,
        Option("memory", "where messages are kept: memory, fakeredis, redis://…", _STORE),
    ]
    store_prefix: Annotated[
        str | None,
        Option(None, "beginning of the store's keys; default: ssq:, or ssq:test:WORKER:", _NAME),
    ]
    store_timeout: Annotated[float, Option(3.0, "real seconds to wait for the store", _SECONDS)]
    region: Annotated[str, Option("us-east-1", "region of callers that name none", _NAME)]
    account_id: Annotated[
        str, Option("000000000000", "account of callers that name none", _ACCOUNT)
    ]
    dead_letter_on: Annotated[
        Literal["tick", "receive"],
        Option("tick", "when a used-up message is dead-lettered"),
    ]
    cooldowns: Annotated[
        bool, Option(False, "the 60 seconds after PurgeQueue and DeleteQueue", _BOOLEAN)
    ]
    in_flight_limit: Annotated[
        int, Option(120_000, "most messages in flight per queue", _integer(1))
    ]
    delivery: Annotated[
        Literal["ordered", "realistic"],
        Option("ordered", "how loosely standard queues deliver"),
    ]
    seed: Annotated[int | None, Option(None, "makes ids and chances repeatable", _ANY_INTEGER)]
    signatures: Annotated[
        Literal["ignore", "check"],
        Option("ignore", "whether requests must be signed with the dummy secret key"),
    ]
    journal_size: Annotated[int, Option(10_000, "events remembered per queue", _integer(1))]
    request_log_size: Annotated[int, Option(10_000, "requests remembered", _integer(1))]
    max_connections: Annotated[int, Option(2048, "most connections at once", _integer(1))]
    control: Annotated[
        Literal["loopback", "anywhere", "off"],
        Option("loopback", "whose requests the control API at /_sqsq/ answers"),
    ]
    autojump_threshold: Annotated[
        float, Option(AUTOJUMP_THRESHOLD, "real seconds of quiet before a jump", _SECONDS)
    ]
    autojump_grace: Annotated[
        float, Option(AUTOJUMP_GRACE, "real seconds to wait for a busy consumer", _SECONDS)
    ]


class PluginOptions(ServerOptions, total=False):
    """What can be set in a pytest run: the server's options and these."""

    environment: Annotated[
        Literal["test", "endpoint", "session", "off"],
        Option("test", "which environment variables are set, and for how long", per_test=False),
    ]
    reset: Annotated[
        Literal["test", "class", "module", "session", "never"],
        Option("test", "at whose end the server is emptied"),
    ]
    transport: Annotated[
        Literal["http", "direct"], Option("http", "how the clients of the fixtures connect")
    ]
    strict: Annotated[
        bool,
        Option(False, "make errors of what is only counted or warned of", _BOOLEAN),
    ]
    block_aws: Annotated[bool, Option(False, "fail requests that would reach AWS", _BOOLEAN)]
    leftover: Annotated[
        Literal["warn", "error", "ignore"],
        Option("warn", "what a consumer that polls beyond its test is"),
    ]
    report: Annotated[
        Literal["failed", "always", "off"], Option("failed", "when a report shows the queues")
    ]
    check: Annotated[bool, Option(False, "verify every queue after each test", _BOOLEAN)]
    timeout_factor: Annotated[
        float, Option(1.0, "what timeouts in real seconds are multiplied by", _SECONDS)
    ]


def _table(options: type) -> dict[str, Option]:
    table: dict[str, Option] = {}
    for name, hint in options.__annotations__.items():
        value_type, option = get_args(hint)
        if get_origin(value_type) is Literal:
            option.kind = _choice(get_args(value_type))
        option.name = name
        table[name] = option
    return table


SERVER_OPTIONS: Mapping[str, Option] = _table(ServerOptions)
PLUGIN_OPTIONS: Mapping[str, Option] = _table(PluginOptions)


# Where a server listens, which it does not change while it runs.
ADDRESS_OPTIONS = ("host", "port")


def checked(options: Mapping[str, Any], table: Mapping[str, Option]) -> dict[str, Any]:
    """The given options, each one checked.

    Raises ``TypeError`` for a name that is none, with the closest that is one, and ``ValueError``
    for a bad value.
    """
    for name in options:
        if name not in table:
            raise TypeError(_unknown_text(name, table))
    return {name: table[name].check(value) for name, value in options.items()}


def _unknown_text(name: str, table: Mapping[str, Option]) -> str:
    if name in PLUGIN_OPTIONS and name not in SERVER_OPTIONS:
        where = f"sqsq_{name} in the configuration of pytest"
        if PLUGIN_OPTIONS[name].per_test:
            where += f", or @pytest.mark.sqsq({name}=…)"
        return f"{name} is an option of a test run, not of a server; use {where}"
    return unknown_text("option", name, table)


def unknown_text(kind: str, name: str, known: Collection[str]) -> str:
    """Says that ``name`` is none of the ``known`` ones, and which is closest."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
    return f"unknown {kind} {name!r}; {hint}"


def server_options(options: Mapping[str, Any]) -> ServerOptions:
    """All options of a server, checked, defaults filled in.  Raises as :func:`checked`."""
    defaults = {name: option.default for name, option in SERVER_OPTIONS.items()}
    return cast("ServerOptions", {**defaults, **checked(options, SERVER_OPTIONS)})


def plugin_options(*sources: Mapping[str, Any]) -> PluginOptions:
    """All options of a test run, from checked sources of which a later one wins."""
    merged = {name: option.default for name, option in PLUGIN_OPTIONS.items()}
    for source in sources:
        merged.update(source)
    return cast("PluginOptions", merged)
