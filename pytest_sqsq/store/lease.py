"""Who may write to a namespace: one server at a time.

The lease is a key that says who holds it.  In a real Redis it ends by itself unless it is
renewed, so that a namespace becomes free when its server is gone.  fakeredis lives and dies with
its process, and its expiry follows a patched clock: there the lease does not end by itself.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import NamedTuple, Self
from uuid import uuid4
from weakref import WeakValueDictionary

LEASE_MS = 10_000
"""How long a lease lasts that is not renewed; real time, kept by Redis."""

RENEWAL_SECONDS = 3.0
"""Real seconds between two renewals."""


class Holder(NamedTuple):
    """Who holds a lease."""

    token: str
    host: str
    pid: int

    @classmethod
    def myself(cls) -> Self:
        """A new holder in this process."""
        return cls(str(uuid4()), socket.gethostname(), os.getpid())

    @classmethod
    def from_text(cls, text: bytes) -> Self:
        """Raises ``ValueError`` for a text that names no holder."""
        try:
            document = json.loads(text)
            return cls(str(document["token"]), str(document["host"]), int(document["pid"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no holder of a lease: {text!r}") from error

    @property
    def text(self) -> str:
        return json.dumps(self._asdict())

    def __str__(self) -> str:
        return f"process {self.pid} on host {self.host}"


class Holders:
    """The holders alive in this process.  An object that is gone holds nothing any more."""

    def __init__(self) -> None:
        self._owners: WeakValueDictionary[str, object] = WeakValueDictionary()

    def add(self, holder: Holder, owner: object) -> None:
        self._owners[holder.token] = owner

    def remove(self, holder: Holder) -> None:
        self._owners.pop(holder.token, None)

    def is_gone(self, holder: Holder) -> bool:
        """Whether a holder certainly does not live any more.

        Told only of this host.  A holder with our own process id that nobody here knows is a
        process before us: in containers ids repeat.
        """
        if holder.host != socket.gethostname():
            return False
        if holder.pid == os.getpid():
            return holder.token not in self._owners
        return not _is_running(holder.pid)


HOLDERS = Holders()


def _is_running(pid: int) -> bool:
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _has_ended(pid)


def _has_ended(pid: int) -> bool:
    """Whether a process is over and its parent has just not asked for its end yet; on Linux."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    # The state stands behind the name, which may hold anything.
    return status.rpartition(")")[2].split()[0] in {"Z", "X"}
