"""Transactions that only the holder of the lease can carry out.

The lease is watched, so that Redis itself refuses a transaction once somebody else has taken it.
Arming the connection for the next transaction costs no round trip: it travels with the one before.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pytest_sqsq.errors import OutcomeUnknown, StoreError
from pytest_sqsq.store.codec import decode_key
from pytest_sqsq.store.lease import HOLDERS, LEASE_MS, Holder
from pytest_sqsq.store.link import Link, LinkBroken
from pytest_sqsq.store.schema import VERSION, Command, Keys

ATTEMPTS = 5
"""How often a transaction is tried whose lease was touched meanwhile."""

IF_HELD = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
for i = 2, #ARGV do redis.call(unpack(cjson.decode(ARGV[i]))) end
return 1
"""
"""A script that carries out commands, given as JSON, if the lease is still the same."""

RESTLESS = "its lease changes all the time"


class Fence:
    """The lease of one holder on a namespace, and a connection that watches it.

    ``ends`` tells whether the lease ends by itself; ``lost`` why it is not ours any more, and
    ``emptied`` how often data was found lost.  Transactions are counted in the schema, so that a
    Redis that has forgotten some of them is found out.  For one thread at a time.
    """

    def __init__(self, link: Link, keys: Keys, holder: Holder, creator: str, *, ends: bool) -> None:
        self.lost: str | None = None
        self.emptied = 0
        self.opening = 1
        self._link = link
        self._keys = keys
        self._holder = holder
        self._mine = holder.text.encode()
        self._creator = creator
        self._ends = ends
        self._armed = False
        self._written = 0
        self._uncounted = False

    def take(self) -> Command:
        """Takes the lease."""
        ends: tuple[str | int, ...] = ("PX", LEASE_MS) if self._ends else ()
        return ("SET", self._keys.lease, self._holder.text, *ends)

    def _renewal(self) -> Command:
        # It touches the lease, and needs no memory.
        return ("PEXPIRE", self._keys.lease, LEASE_MS) if self._ends else self.take()

    def transact(self, commands: Sequence[Command], *, only_removes: bool = False) -> None:
        """Carry out all commands or none.

        Raises ``StoreError`` where Redis refuses them or the lease is lost, ``OutcomeUnknown``
        where it does not say, ``LinkBroken`` where it cannot be reached.
        """
        count = ("HINCRBY", self._keys.schema, "writes", 1)
        try:
            self._written = int(self._carry_out([*commands, count])[-1])
        except StoreError as error:
            if not only_removes or not _is_full(error):
                raise
            self._run_script(commands)
            self._uncounted = True

    def renew(self) -> None:
        """Renew the lease; raises as :meth:`transact`.

        A full Redis does renew it, and is no store to write to all the same.
        """
        try:
            self._carry_out([self._renewal()])
        except StoreError as error:
            if not _is_full(error):
                raise
            self._run_script([self._renewal()])
            raise

    def give_back(self) -> None:
        """Give up the lease; raises as :meth:`transact`."""
        self._carry_out([("DEL", self._keys.lease)])

    def _carry_out(self, commands: Sequence[Command]) -> list[Any]:
        for _ in range(ATTEMPTS):
            self.arm()
            results = self.execute(commands)
            if results is not None:
                return results
        raise StoreError(RESTLESS)

    def _run_script(self, commands: Sequence[Command]) -> None:
        """Carry out what needs no memory where Redis is full, which refuses transactions."""
        texts = [json.dumps([str(part) for part in command]) for command in commands]
        script: Command = ("EVAL", IF_HELD, 1, self._keys.lease, self._holder.text, *texts)
        try:
            [done] = self._link.call(script)
        except LinkBroken as broken:
            raise OutcomeUnknown(str(broken)) from broken
        if isinstance(done, Exception):
            raise OutcomeUnknown(str(done)) from done
        if not done:
            raise StoreError("its lease could not be renewed, since it is full")

    def arm(self) -> None:
        """Have a connection that watches our lease.

        On a new connection the lease is touched first: what an old one has sent and Redis has
        not carried out yet, it will refuse.  A lease that ended is taken again, unless somebody
        else has written meanwhile.
        """
        if self._link.ensure():
            self._armed = False
        for _ in range(ATTEMPTS):
            if self._armed:
                return
            try:
                self._arm_anew()
            except OutcomeUnknown as error:
                raise StoreError(str(error)) from error
        if not self._armed:
            raise StoreError(RESTLESS)

    def _arm_anew(self) -> None:
        keys = self._keys
        _, lease, *mark = self.ask(
            ("WATCH", keys.lease),
            ("GET", keys.lease),
            *(("HGET", keys.schema, field) for field in ("writer", "openings", "writes")),
        )
        if lease not in {None, self._mine} and not _is_left_behind(lease):
            self._lose(f"its lease was taken by {_told(lease)}")
        elif self._is_set_back(*mark):
            self._begin_anew()
        elif mark[0] != self._holder.token.encode():
            self._lose("somebody else has written to it while it could not be reached")
        else:
            self.execute([self._renewal() if lease == self._mine else self.take()])

    def _lose(self, why: str) -> None:
        self.lost = why
        raise StoreError(why)

    def _is_set_back(
        self, writer: bytes | None, openings: bytes | None, writes: bytes | None
    ) -> bool:
        """Whether the data is older than what we have written, or gone.

        So it is after a Redis that keeps its data in memory, or snapshots of it, was restarted.
        """
        if writer != self._holder.token.encode():
            return int(openings or 0) < self.opening
        return int(writes or 0) < self._written or self._uncounted

    def _begin_anew(self) -> None:
        """Empty the namespace, for everything to be written anew; raises ``StoreError``."""
        keys = self._keys
        [names] = self.ask(("SMEMBERS", keys.queues))
        mark = ("version", VERSION, "writer", self._holder.token, "openings", self.opening)
        begin: list[Command] = [
            self.take(),
            keys.without(*(decode_key(name.decode()) for name in names)),
            ("HSETNX", keys.schema, "creator", self._creator),
            ("HSET", keys.schema, *mark, "writes", 0),
        ]
        if self.execute(begin) is not None:
            self._written, self._uncounted = 0, False
            self.emptied += 1
            raise StoreError("it had lost data, which is written anew from memory")

    def execute(self, commands: Sequence[Command]) -> list[Any] | None:
        """Carry out commands if the lease is as it was when watched, else ``None``."""
        lease = self._keys.lease
        self._armed = False
        try:
            begun, *queued, done, _, held = self._link.call(
                ("MULTI",), *commands, ("EXEC",), ("WATCH", lease), ("GET", lease)
            )
        except LinkBroken as broken:
            raise OutcomeUnknown(str(broken)) from broken
        self._armed = held == self._mine
        if done is None:
            return None
        if isinstance(begun, Exception):
            raise OutcomeUnknown(str(begun)) from begun
        if isinstance(done, Exception):
            refusals = [reply for reply in queued if isinstance(reply, Exception)]
            raise StoreError(str((refusals or [done])[0])) from done
        failures = [reply for reply in done if isinstance(reply, Exception)]
        if failures:
            raise OutcomeUnknown(str(failures[0])) from failures[0]
        results: list[Any] = done
        return results

    def ask(self, *commands: Command) -> list[Any]:
        """The replies to commands outside a transaction; ``StoreError`` where one is an error."""
        replies = self._link.call(*commands)
        for reply in replies:
            if isinstance(reply, Exception):
                raise StoreError(str(reply)) from reply
        return replies


def _is_full(error: StoreError) -> bool:
    return not isinstance(error, OutcomeUnknown) and "maxmemory" in str(error)


def _is_left_behind(lease: bytes) -> bool:
    try:
        return HOLDERS.is_gone(Holder.from_text(lease))
    except ValueError:
        return False


def _told(lease: bytes) -> str:
    try:
        return str(Holder.from_text(lease))
    except ValueError:
        return "somebody unknown"
