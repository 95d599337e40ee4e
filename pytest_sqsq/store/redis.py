"""The store that keeps everything in Redis, or in fakeredis.  Each write is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

from pytest_sqsq.errors import StoreError, StoreInUse, StoreRefused
from pytest_sqsq.store.fence import ATTEMPTS, RESTLESS, Fence
from pytest_sqsq.store.keeper import Keeper
from pytest_sqsq.store.lease import HOLDERS, LEASE_MS, Holder
from pytest_sqsq.store.link import Address, Link, LinkBroken
from pytest_sqsq.store.reading import Reader
from pytest_sqsq.store.records import PutClock, Record
from pytest_sqsq.store.schema import VERSION, Command, Keys


class RedisStore:
    """See :class:`~pytest_sqsq.store.base.Store`.  Opened when it is made.

    Raises ``StoreInUse`` where another server than ``predecessor`` holds the namespace, and
    ``StoreRefused`` where Redis cannot be reached or holds data of a newer schema.

    ``_lock`` guards the connection and what is known about it.  While a store ``_hangs``, which
    may be read without the lock, only the keeper waits for it.
    """

    keeps = True

    def __init__(
        self,
        address: Address,
        prefix: str,
        timeout: float,
        creator: str,
        *,
        predecessor: Holder | None = None,
    ) -> None:
        self.on_back: Callable[[], None] | None = None
        self.settled_ms: int | None = None
        self.trouble: str | None = None
        self.made_by = creator
        self._address = address
        self._keys = Keys(prefix)
        self._timeout = timeout
        self._creator = creator
        self._holder = Holder.myself()
        self._predecessor = predecessor
        self._link = Link(address.connection, timeout)
        self._fence = Fence(self._link, self._keys, self._holder, creator, ends=not address.is_fake)
        self._lock = Lock()
        self._hangs = self._came_back = self._closed = False
        self._latest_ms = 0
        self._erased_at = 1
        self._keeper = None if address.is_fake else Keeper(self.beat)
        try:
            self._open()
        except (LinkBroken, StoreError) as error:
            self._link.close()
            raise StoreRefused(f"{address} cannot be used as a store: {error}") from error
        except BaseException:
            self._link.close()
            raise
        HOLDERS.add(self._holder, self)
        if self._keeper is not None:
            self._keeper.start()

    def __repr__(self) -> str:
        return f"<RedisStore {self._keys.prefix!r} in {self._address}>"

    @property
    def opening(self) -> int:
        return self._fence.opening - self._erased_at + 1

    @property
    def emptied(self) -> int:
        return self._fence.emptied

    # Opening

    def _open(self) -> None:
        """Take the lease, and leave our mark in the schema."""
        keys, fence = self._keys, self._fence
        self._link.ensure()
        for _ in range(ATTEMPTS):
            lease, clock = self._look()
            if lease is not None:
                self._require_gone(lease)
            mark: list[Command] = [
                ("HSETNX", keys.schema, "creator", self._creator),
                (
                    *("HSET", keys.schema, "version", VERSION),
                    *("writer", self._holder.token, "writes", 0),
                ),
                ("HINCRBY", keys.schema, "openings", 1),
            ]
            if fence.execute([fence.take(), *mark]) is not None:
                opening, erased_at, made_by = fence.ask(
                    *(("HGET", keys.schema, name) for name in ("openings", "erased_at", "creator"))
                )
                fence.opening = int(opening)
                self._erased_at = int(erased_at or 1)
                self.made_by = made_by.decode()
                self.settled_ms = None if clock is None else int(clock)
                self._latest_ms = self.settled_ms or 0
                return
        raise StoreError(RESTLESS)

    def _look(self) -> tuple[bytes | None, bytes | None]:
        """Watch the namespace, if it is one for us; its lease and its clock."""
        keys, ask = self._keys, self._fence.ask
        _, kind, lease, clock = ask(
            ("WATCH", keys.lease, keys.schema),
            ("TYPE", keys.schema),
            ("GET", keys.lease),
            ("GET", keys.clock),
        )
        if kind == b"none":
            self._require_nothing()
        else:
            field = ("HGET", keys.schema, "version") if kind == b"hash" else ("GET", keys.schema)
            [version] = ask(field)
            if version is None or version != str(VERSION).encode():
                raise self._foreign(version)
        return lease, clock

    def _require_nothing(self) -> None:
        """Without a schema there is nothing of ours; what is there is somebody else's."""
        keys = self._keys
        for key in (keys.queues, keys.tasks, keys.clock):
            if self._fence.ask(("EXISTS", key)) != [0]:
                raise StoreRefused(
                    f"the key {key!r} in {self._address} is not from pytest-sqsq: there is no"
                    f" {keys.schema!r} beside it. Choose another store_prefix"
                )

    def _foreign(self, version: bytes | None) -> StoreRefused:
        told = "nothing" if version is None else version.decode("utf-8", "replace")
        return StoreRefused(
            f"the schema of {self._keys.prefix!r} in {self._address} is {told}, and this version of"
            f" pytest-sqsq knows schema {VERSION}: it does not touch what a newer one has written."
            " Use a newer version, or another store_prefix"
        )

    def _require_gone(self, lease: bytes) -> None:
        try:
            holder = Holder.from_text(lease)
        except ValueError as error:
            raise StoreRefused(f"{self._keys.lease!r} in {self._address} is {error}") from None
        if HOLDERS.is_gone(holder) or holder == self._predecessor:
            return
        wait = "" if self._address.is_fake else f" (if it has died, wait {LEASE_MS // 1000} s)"
        raise StoreInUse(
            f"the namespace {self._keys.prefix!r} in {self._address} is in use by {holder}."
            f" Stop that server{wait}, or choose another store_prefix"
        )

    # Writing

    @contextmanager
    def _alone(self) -> Iterator[Fence]:
        """Use the connection; ``StoreError`` at once where it is known to be of no use."""
        self._require_hope()
        if not self._lock.acquire(timeout=self._timeout):
            raise StoreError(f"{self._address} is too slow")
        try:
            self._require_hope()
            self._link.begin()
            yield self._fence
        except (LinkBroken, StoreError) as error:
            self._note_trouble(error)
            if isinstance(error, LinkBroken):
                raise StoreError(str(error)) from error
            raise
        finally:
            self._lock.release()

    def _require_hope(self) -> None:
        hopeless = "it is closed" if self._closed else self._fence.lost
        if hopeless is None and self._hangs:
            hopeless = self.trouble
        if hopeless is not None:
            raise StoreError(f"{self._address} cannot be used: {hopeless}")

    def _note_trouble(self, error: LinkBroken | StoreError) -> None:
        self.trouble = str(error)
        broken = error if isinstance(error, LinkBroken) else error.__cause__
        if isinstance(broken, LinkBroken) and self._keeper is not None:
            # Whoever would have to wait is told at once, from now on, that it cannot be done.
            self._hangs = broken.slow
            self._keeper.wake()

    def write(self, records: Sequence[Record]) -> None:
        times = [record.now_ms for record in records if isinstance(record, PutClock)]
        commands = self._keys.commands(r for r in records if not isinstance(r, PutClock))
        with self._alone() as fence:
            if times:
                self._latest_ms = max(self._latest_ms, *times)
                commands += self._keys.commands([PutClock(self._latest_ms)])
            fence.transact(commands, only_removes=not times)
            self._came_back |= self.trouble is not None
            self.trouble = None
        if self._came_back and self._keeper is not None:
            self._keeper.wake()

    def beat(self) -> bool:
        """Renew the lease and see whether the store can be written; tells so.

        To be called each few real seconds, from a thread that may wait.
        """
        with self._lock:
            if self._closed or self._fence.lost is not None:
                return True
            emptied = self._fence.emptied
            self._link.begin()
            try:
                self._fence.renew()
            except (LinkBroken, StoreError) as error:
                if self._fence.emptied == emptied:
                    self._note_trouble(error)
                    return False
                self._came_back = True
            self._hangs = False
            is_back = self._came_back or self.trouble is not None
            self.trouble, self._came_back = None, False
        if is_back and self.on_back is not None:
            self.on_back()
        return self.trouble is None

    # Everything at once

    def load(self) -> Iterator[Record]:
        return self._reader().records()

    def _reader(self) -> Reader:
        return Reader(self._ask, self._keys)

    def _ask(self, command: Command) -> Any:
        with self._alone() as fence:
            fence.arm()
            return fence.ask(command)[0]

    def erase(self) -> None:
        if self.made_by != self._creator:
            raise StoreRefused(
                f"the namespace {self._keys.prefix!r} in {self._address} was made by the"
                f" {self.made_by}, and the {self._creator} empties only what it made itself."
                " Choose another store_prefix"
            )
        try:
            self._erase()
        except StoreError as error:
            raise StoreError(
                f"the namespace {self._keys.prefix!r} in {self._address} could not be emptied:"
                f" {error}"
            ) from error

    def _erase(self) -> None:
        queues = self._reader().queue_keys()
        with self._alone() as fence:
            mark: Command = ("HSET", self._keys.schema, "erased_at", fence.opening)
            fence.transact([self._keys.without(*queues), mark])
            self._latest_ms, self.settled_ms = 0, None
            self._erased_at = fence.opening

    def close(self) -> None:
        """Give the lease back, unless Redis hangs: then it ends by itself."""
        if self._keeper is not None:
            self._keeper.stop(self._timeout)
        try:
            with self._alone() as fence:
                fence.give_back()
        except StoreError as error:
            self.trouble = str(error)
        with self._lock:
            self._closed = True
            self._link.close()
        HOLDERS.remove(self._holder)

    def reopened(self, contents: Callable[[], Iterable[Record]]) -> RedisStore:
        if self.trouble is not None:
            # Perhaps it is back, and can be told what it missed.
            self.beat()
        # Where it cannot be opened anew just now, this one is still there to go on with.
        successor = RedisStore(
            self._address,
            self._keys.prefix,
            self._timeout,
            self._creator,
            predecessor=self._holder,
        )
        self.close()
        return successor
