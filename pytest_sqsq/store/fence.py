"""Transactions that only the holder of the lease can carry out.

The lease is watched, so that Redis itself refuses a transaction once somebody else has taken it.
Arming the connection for the next transaction costs no round trip: it travels with the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_sqsq.errors import OutcomeUnknown, StoreError
from pytest_sqsq.store.lease import LEASE_MS, Holder
from pytest_sqsq.store.link import Link, LinkBroken
from pytest_sqsq.store.schema import VERSION, Command, Keys

ATTEMPTS = 5
"""How often a transaction is tried whose lease was touched meanwhile."""

RESTLESS = "its lease changes all the time"


class Fence:
    """The lease of one holder on a namespace, and a connection that watches it.

    ``ends`` tells whether the lease ends by itself; ``lost`` why it is not ours any more, and
    ``emptied`` how often the namespace was found empty.  For one thread at a time.
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

    def take(self) -> Command:
        """Takes the lease."""
        ends: tuple[str | int, ...] = ("PX", LEASE_MS) if self._ends else ()
        return ("SET", self._keys.lease, self._holder.text, *ends)

    def renew(self) -> Command:
        """Renews the lease, and touches it.  Needs no memory: Redis may be full meanwhile."""
        return ("PEXPIRE", self._keys.lease, LEASE_MS) if self._ends else self.take()

    def give_back(self) -> Command:
        return ("DEL", self._keys.lease)

    def transact(self, commands: Sequence[Command]) -> None:
        """Carry out all commands or none.

        Raises ``StoreError`` where Redis refuses them or the lease is lost, ``OutcomeUnknown``
        where it does not say, ``LinkBroken`` where it cannot be reached.
        """
        for _ in range(ATTEMPTS):
            self.arm()
            if self.execute(commands):
                return
        raise StoreError(RESTLESS)

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
        _, lease, version, writer = self.ask(
            ("WATCH", keys.lease),
            ("GET", keys.lease),
            ("HGET", keys.schema, "version"),
            ("HGET", keys.schema, "writer"),
        )
        if lease not in {None, self._mine}:
            self._lose(f"its lease was taken by {_told(lease)}")
        elif version is None:
            self._begin_anew()
        elif writer != self._holder.token.encode():
            self._lose("somebody else has written to it while it could not be reached")
        else:
            self.execute([self.take() if lease is None else self.renew()])

    def _lose(self, why: str) -> None:
        self.lost = why
        raise StoreError(why)

    def _begin_anew(self) -> None:
        """The data is gone; raises ``StoreError``."""
        stamp = ("version", VERSION, "creator", self._creator, "writer", self._holder.token)
        opening = ("openings", self.opening)
        if self.execute([self.take(), ("HSET", self._keys.schema, *stamp, *opening)]):
            self.emptied += 1
            raise StoreError("its data was gone, and is written anew from memory")

    def execute(self, commands: Sequence[Command]) -> bool:
        """Carry out commands if the lease has not changed since the last call; whether so."""
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
            return False
        if isinstance(begun, Exception):
            raise OutcomeUnknown(str(begun)) from begun
        if isinstance(done, Exception):
            refusals = [reply for reply in queued if isinstance(reply, Exception)]
            raise StoreError(str((refusals or [done])[0])) from done
        failures = [reply for reply in done if isinstance(reply, Exception)]
        if failures:
            raise OutcomeUnknown(str(failures[0])) from failures[0]
        return True

    def ask(self, *commands: Command) -> list[Any]:
        """The replies to commands outside a transaction; ``StoreError`` where one is an error."""
        replies = self._link.call(*commands)
        for reply in replies:
            if isinstance(reply, Exception):
                raise StoreError(str(reply)) from reply
        return replies


def _told(lease: bytes) -> str:
    try:
        return str(Holder.from_text(lease))
    except ValueError:
        return "somebody unknown"
