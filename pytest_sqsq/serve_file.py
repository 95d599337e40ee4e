"""The TOML file that tells ``sqsq serve`` what to begin with: options and queues."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pytest_sqsq.errors import QueueNameExists, SqsError
from pytest_sqsq.models import QueueKey
from pytest_sqsq.options import SERVER_OPTIONS, Kind, checked, unknown_text
from pytest_sqsq.server import SqsServer
from pytest_sqsq.testing.queues import key_of


class ServeFileError(Exception):
    """What a file asks for cannot be had; the text is a line that names file, table and key."""


_TEXT = Kind("a text that is not empty", lambda value: isinstance(value, str) and value != "")
_ANY_TEXT = Kind("a text", lambda value: isinstance(value, str))
_INTEGER = Kind("an integer", lambda value: type(value) is int)
_TEXT_OR_NUMBER = Kind("a text or a number", lambda value: type(value) in (str, int, float))
_TABLE = Kind("a table", lambda value: isinstance(value, dict))
_TABLES = Kind(
    "tables, each under [[queues]]",
    lambda value: isinstance(value, list) and all(isinstance(each, dict) for each in value),
)

_PARTS = {"server": _TABLE, "queues": _TABLES}

KEYS = {
    "name": _TEXT,
    "attributes": _TABLE,
    "tags": _TABLE,
    "dead_letter_queue": _TEXT,
    "max_receive_count": _INTEGER,
    "account_id": _TEXT,
    "region": _TEXT,
}

# Of those keys whose values are tables.
_VALUES = {"attributes": _TEXT_OR_NUMBER, "tags": _ANY_TEXT}


@dataclass(frozen=True)
class QueueTable:
    """One table of ``[[queues]]``: where it stands, and the arguments of ``create_queue``."""

    where: str
    arguments: Mapping[str, Any]

    def refuse(self, reason: object) -> NoReturn:
        raise ServeFileError(f"{self.where}: {reason}")


@dataclass(frozen=True)
class ServeFile:
    """What a file asks for: options of the server, and queues in the order of the file."""

    options: Mapping[str, Any]
    queues: Sequence[QueueTable]


def read(path: str) -> ServeFile:
    """What the file at ``path`` asks for, as far as that can be told without a server.

    Raises ``ServeFileError``.
    """
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ServeFileError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ServeFileError(f"{path} is no TOML file: {error}") from error
    _check(path, document, "table", _PARTS)
    try:
        options = checked(document.get("server", {}), SERVER_OPTIONS)
    except (TypeError, ValueError) as error:
        raise ServeFileError(f"{path}: [server]: {error}") from error
    tables = enumerate(document.get("queues", []), 1)
    return ServeFile(options, [_queue_table(path, number, table) for number, table in tables])


def _queue_table(path: str, number: int, table: dict[str, Any]) -> QueueTable:
    where = f"{path}: [[queues]] {number}"
    if "name" in table:
        where += f", name {table['name']!r:.100}"
    _check(where, table, "key", KEYS)
    if "name" not in table:
        raise ServeFileError(f"{where}: name is missing")
    for key, kind in _VALUES.items():
        for name, value in table.get(key, {}).items():
            _require(where, f"{key}.{name}", value, kind)
    return QueueTable(where, table)


def _check(where: str, table: Mapping[str, Any], what: str, kinds: Mapping[str, Kind]) -> None:
    for name, value in table.items():
        if name not in kinds:
            raise ServeFileError(f"{where}: {unknown_text(what, name, kinds)}")
        _require(where, name, value, kinds[name])


def _require(where: str, name: str, value: object, kind: Kind) -> None:
    if not kind.accepts(value):
        raise ServeFileError(f"{where}: {name} must be {kind.wanted}, not {value!r:.200}")


def create_queues(server: SqsServer, tables: Sequence[QueueTable]) -> None:
    """Create queues on a started server: in the order of the file, dead-letter queues first.

    Those that a store has kept are compared.  Raises ``ServeFileError``.
    """
    waiting = _by_key(server, tables)
    while waiting:
        chain = _dead_letter_chain(server, waiting)
        for key in reversed(chain):
            _create(server, key, waiting.pop(key))


def _by_key(server: SqsServer, tables: Sequence[QueueTable]) -> dict[QueueKey, QueueTable]:
    options = server.options
    found: dict[QueueKey, QueueTable] = {}
    for table in tables:
        account_id, region = (
            table.arguments.get(name, options[name]) for name in ("account_id", "region")
        )
        first = found.setdefault(QueueKey(account_id, region, table.arguments["name"]), table)
        if first is not table:
            number = tables.index(first) + 1
            table.refuse(f"the queue of this name is told of in [[queues]] {number} already")
    return found


def _dead_letter_chain(server: SqsServer, waiting: Mapping[QueueKey, QueueTable]) -> list[QueueKey]:
    """The first queue that waits, its dead-letter queue if that waits too, and so on."""
    chain: list[QueueKey] = []
    key: QueueKey | None = next(iter(waiting))
    while key is not None and key in waiting:
        if key in chain:
            names = " → ".join(repr(each.name) for each in [*chain[chain.index(key) :], key])
            waiting[key].refuse(
                f"dead_letter_queue leads back to where it began: {names}; leave one of them out,"
                " and set its RedrivePolicy with SetQueueAttributes"
            )
        chain.append(key)
        key = _dead_letter_key(server, key, waiting[key])
    return chain


def _dead_letter_key(server: SqsServer, key: QueueKey, table: QueueTable) -> QueueKey | None:
    name = table.arguments.get("dead_letter_queue")
    if name is None:
        return None
    try:
        return key_of(server, name, key.account_id, key.region)
    except ValueError as error:
        table.refuse(f"dead_letter_queue: {error}")


def _create(server: SqsServer, key: QueueKey, table: QueueTable) -> None:
    home = {"account_id": key.account_id, "region": key.region}
    try:
        queue = server.create_queue(**{**table.arguments, **home})
    except QueueNameExists as error:
        kept = server.queue(key.name, **home).attributes.get(error.attribute)
        _refuse_difference(table, error.attribute, kept)
    except (SqsError, ValueError) as error:
        table.refuse(error)
    if not table.arguments.get("tags", {}).items() <= queue.tags.items():
        _refuse_difference(table, "tags", queue.tags)


def _refuse_difference(table: QueueTable, what: str, kept: object) -> NoReturn:
    table.refuse(
        f"the queue exists already, and has another value for {what}: {kept!r:.500}; write that"
        " into the file, or change the queue there, or delete it"
    )
