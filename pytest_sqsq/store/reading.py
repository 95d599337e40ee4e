"""Everything that a namespace holds, as records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_sqsq.errors import StoreRefused
from pytest_sqsq.models import QueueKey
from pytest_sqsq.store.codec import (
    decode_deduplication,
    decode_key,
    decode_message,
    decode_queue,
    decode_task,
)
from pytest_sqsq.store.records import (
    PutClock,
    PutDeduplication,
    PutMessage,
    PutMoveTask,
    PutQueue,
    Record,
)
from pytest_sqsq.store.schema import Command, Keys

FIELDS_AT_ONCE = 2_000
"""How many fields of a hash are asked for at once: none of the answers takes long."""


class Reader:
    """Reads a namespace; ``ask`` gives the reply to a command.

    ``_key`` is the key that was read last.
    """

    def __init__(self, ask: Callable[[Command], Any], keys: Keys) -> None:
        self._ask = ask
        self._keys = keys
        self._key = keys.prefix

    def queue_keys(self) -> list[QueueKey]:
        names = self._read("SMEMBERS", self._keys.queues)
        return sorted(decode_key(name.decode()) for name in names)

    def records(self) -> Iterator[Record]:
        """In the order that :meth:`Store.load` promises.  Raises ``StoreRefused``."""
        try:
            for key in self.queue_keys():
                yield from self._queue(key)
            tasks = [
                decode_task(field.decode(), text)
                for field, text in self._fields(self._keys.tasks).items()
            ]
            yield from map(PutMoveTask, sorted(tasks, key=lambda task: task.place))
            clock = self._read("GET", self._keys.clock)
            if clock is not None:
                yield PutClock(int(clock))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StoreRefused(
                f"what is in {self._key!r} cannot be read: {error!r}. Remove or mend it, or choose"
                " another store_prefix"
            ) from error

    def _queue(self, key: QueueKey) -> Iterator[Record]:
        meta = self._read("GET", self._keys.meta(key))
        if meta is None:
            return
        yield PutQueue(key, decode_queue(meta))
        remembered: list[PutDeduplication] = [
            decode_deduplication(key, field, text)
            for field, text in self._fields(self._keys.deduplication(key)).items()
        ]
        yield from sorted(remembered, key=lambda record: record.accepted_ms)
        messages = [
            decode_message(field.decode(), text)
            for field, text in self._fields(self._keys.messages(key)).items()
        ]
        messages.sort(key=lambda message: message.arrival)
        for message in messages:
            yield PutMessage(key, message)

    def _read(self, verb: str, key: str, *arguments: str | int) -> Any:
        self._key = key
        return self._ask((verb, key, *arguments))

    def _fields(self, key: str) -> dict[bytes, bytes]:
        """A hash, piece by piece; nobody changes it meanwhile."""
        found: dict[bytes, bytes] = {}
        cursor = "0"
        while True:
            reply, flat = self._read("HSCAN", key, cursor, "COUNT", FIELDS_AT_ONCE)
            found.update(zip(flat[::2], flat[1::2], strict=True))
            cursor = str(int(reply))
            if cursor == "0":
                return found
