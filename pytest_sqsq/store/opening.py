"""From what a user asks for to a store."""

from __future__ import annotations

from typing import Literal

from pytest_sqsq.store.base import Store
from pytest_sqsq.store.memory import MemoryStore

Creator = Literal["server", "plugin"]
"""Who makes a namespace; nobody else erases it."""

SERVER_PREFIX = "ssq:"
"""Under which keys a server keeps its data unless told otherwise."""


def plugin_prefix(worker: str) -> str:
    """Under which keys the fixtures of one xdist worker keep theirs; ``main`` without xdist."""
    return f"ssq:test:{worker}:"


def make_store(
    option: object,
    *,
    prefix: str = SERVER_PREFIX,
    timeout: float = 3.0,
    creator: Creator = "server",
) -> Store:
    """The store that ``option`` names: ``"memory"``, ``"fakeredis"``, a URL, or a client.

    A URL begins with ``redis://``, ``rediss://`` or ``unix://``; of a client of the redis package
    only the address is used.  ``"fakeredis"`` is a new and empty one each time: for another store
    with the same data, ask the first one with ``reopened``.  ``timeout`` is in real seconds, for
    each write.  ``creator`` is noted in a new namespace, and erases only what it made.

    Raises ``ValueError`` for an option that names no store, ``StoreInUse`` where another server
    uses the namespace, and ``StoreRefused`` where the store cannot be reached or read.
    """
    if option == "memory":
        return MemoryStore()
    from pytest_sqsq.store.link import Address
    from pytest_sqsq.store.redis import RedisStore

    if option == "fakeredis":
        import fakeredis

        option = fakeredis.FakeRedis(server=fakeredis.FakeServer())
    return RedisStore(Address(option, timeout), prefix, timeout, creator)
