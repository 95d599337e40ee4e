"""Which keys there are in Redis, and what each record does to them.

``docs/reference/store.md`` shows the same as a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, groupby

from pytest_sqsq.models import QueueKey
from pytest_sqsq.store.codec import (
    deduplication_field,
    encode_deduplication,
    encode_message,
    encode_queue,
    encode_task,
)
from pytest_sqsq.store.records import (
    ClearMessages,
    PutClock,
    PutDeduplication,
    PutMessage,
    PutMoveTask,
    PutQueue,
    Record,
    RemoveDeduplication,
    RemoveMessage,
    RemoveMoveTask,
    RemoveQueue,
)

VERSION = 1
"""The schema described here.  Data of a newer one is not touched."""

Command = tuple[str | int, ...]
"""A command of Redis and its arguments."""


class Keys:
    """The keys under one prefix.  Account, region and name of a queue are literal text."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.queues = f"{prefix}queues"
        self.tasks = f"{prefix}tasks"
        self.clock = f"{prefix}clock"
        self.lease = f"{prefix}lease"
        self.schema = f"{prefix}schema"

    def meta(self, queue: QueueKey) -> str:
        return f"{self.prefix}meta:{queue}"

    def messages(self, queue: QueueKey) -> str:
        return f"{self.prefix}msg:{queue}"

    def deduplication(self, queue: QueueKey) -> str:
        return f"{self.prefix}dedup:{queue}"

    def commands(self, records: Iterable[Record]) -> list[Command]:
        """What records do, as commands for a MULTI.

        What neighbours do to fields of one hash is one command: each costs as much as many fields.
        """
        commands: list[Command] = []
        each = chain.from_iterable(map(self._commands, records))
        for (verb, key), run in groupby(each, lambda command: command[:2]):
            if verb in {"HSET", "HDEL"}:
                fields = chain.from_iterable(command[2:] for command in run)
                commands.append((verb, key, *fields))
            else:
                commands += run
        return commands

    def _commands(self, record: Record) -> list[Command]:
        match record:
            case PutQueue(queue, queue_record):
                return [
                    ("SET", self.meta(queue), encode_queue(queue_record)),
                    ("SADD", self.queues, str(queue)),
                ]
            case RemoveQueue(queue):
                return [("SREM", self.queues, str(queue)), ("UNLINK", *self._of(queue))]
            case _:
                return [self._command(record)]

    def _command(
        self,
        record: PutMessage
        | RemoveMessage
        | PutDeduplication
        | RemoveDeduplication
        | ClearMessages
        | PutMoveTask
        | RemoveMoveTask
        | PutClock,
    ) -> Command:
        command: Command
        match record:
            case PutMessage(queue, message):
                text = encode_message(message)
                command = ("HSET", self.messages(queue), message.message_id, text)
            case RemoveMessage(queue, message_id):
                command = ("HDEL", self.messages(queue), message_id)
            case PutDeduplication(queue, group, deduplication_id):
                field = deduplication_field(group, deduplication_id)
                text = encode_deduplication(record)
                command = ("HSET", self.deduplication(queue), field, text)
            case RemoveDeduplication(queue, group, deduplication_id):
                field = deduplication_field(group, deduplication_id)
                command = ("HDEL", self.deduplication(queue), field)
            case ClearMessages(queue):
                command = ("UNLINK", self.messages(queue), self.deduplication(queue))
            case PutMoveTask(task):
                command = ("HSET", self.tasks, task.task_id, encode_task(task))
            case RemoveMoveTask(_, task_id):
                command = ("HDEL", self.tasks, task_id)
            case PutClock(now_ms):
                command = ("SET", self.clock, now_ms)
        return command

    def _of(self, queue: QueueKey) -> tuple[str, ...]:
        return self.meta(queue), self.messages(queue), self.deduplication(queue)

    def without(self, *queues: QueueKey) -> Command:
        """Removes the data of the namespace, of which these are all the queues."""
        keys = [key for queue in queues for key in self._of(queue)]
        return ("UNLINK", self.queues, self.tasks, self.clock, *keys)
