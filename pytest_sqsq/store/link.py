"""One connection to Redis, without any retry: what goes wrong is told at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from pytest_sqsq.clock import monotonic
from pytest_sqsq.options import SERVER_OPTIONS
from pytest_sqsq.store.schema import Command


class LinkBroken(Exception):
    """The connection could not be made, or broke; ``slow`` after a timeout.

    ``sent`` tells whether commands may have reached Redis.
    """

    def __init__(self, text: str, *, sent: bool, slow: bool) -> None:
        super().__init__(text)
        self.sent = sent
        self.slow = slow


class Connection(Protocol):
    """What is used of a connection of the redis package; fakeredis has the same."""

    def connect(self) -> None: ...

    def disconnect(self) -> None: ...

    def can_read(self, timeout: float) -> bool: ...

    def pack_commands(self, commands: Sequence[Command]) -> list[bytes]: ...

    def send_packed_command(self, command: list[bytes], check_health: bool) -> None: ...

    def read_response(self) -> Any: ...


class Address:
    """Where a Redis is, and how to get there; made from a URL or from a client.

    Raises ``ValueError`` for anything else.
    """

    def __init__(self, option: object, timeout: float) -> None:
        pool = _pool_of(option)
        settings = {
            name: value
            for name, value in pool.connection_kwargs.items()
            # These belong to the pool that the connection would come from.
            if not name.startswith(("maint_notifications_", "orig_"))
        }
        settings |= {
            "socket_timeout": timeout,
            "retry": Retry(NoBackoff(), 0),
            "retry_on_timeout": False,
            "retry_on_error": [],
            "health_check_interval": 0,
            "decode_responses": False,
            "encoding": "utf-8",
            # Half a surrogate pair is text too, if hardly of any use.
            "encoding_errors": "surrogatepass",
            "protocol": 2,
        }
        if "path" not in settings:
            settings["socket_connect_timeout"] = timeout
        self._class = pool.connection_class
        self._settings = settings
        self.is_fake = self._class.__module__.partition(".")[0] == "fakeredis"

    def __str__(self) -> str:
        if self.is_fake:
            return "fakeredis"
        place = self._settings.get("path")
        if place is None:
            place = f"{self._settings.get('host')}:{self._settings.get('port', 6379)}"
        return f"the Redis at {place}, database {self._settings.get('db', 0)}"

    def connection(self) -> Connection:
        made: Connection = self._class(**self._settings)
        return made


def _pool_of(option: object) -> redis.ConnectionPool:
    SERVER_OPTIONS["store"].check(option)
    if isinstance(option, str):
        return redis.ConnectionPool.from_url(option)
    pool = getattr(option, "connection_pool", None)
    if not isinstance(pool, redis.ConnectionPool):
        raise ValueError(  # noqa: TRY004 - a bad option is a ValueError, whatever its type
            f"store={option!r} is not a client of one Redis server"
        )
    return pool


class Link:
    """A connection that is made when it is needed.  For one thread at a time.

    No answer takes longer than ``timeout`` real seconds, and no new one is waited for when so many
    have passed since ``begin``.
    """

    def __init__(self, connection: Callable[[], Connection], timeout: float) -> None:
        self._make = connection
        self._timeout = timeout
        self._connection: Connection | None = None
        self.begin()

    def begin(self) -> None:
        """From now on the time is running."""
        self._deadline = monotonic() + self._timeout

    def ensure(self) -> bool:
        """Have a connection that was alive a moment ago; whether it is a new one.

        A connection that died while nobody used it is replaced, once.  Raises ``LinkBroken``.
        """
        if self._connection is not None:
            if not self._has_died(self._connection):
                return False
            self.close()
        connection = self._make()
        try:
            connection.connect()
        except redis.RedisError as error:
            connection.disconnect()
            slow = isinstance(error, redis.TimeoutError)
            raise LinkBroken(str(error), sent=False, slow=slow) from error
        self._connection = connection
        return True

    def _has_died(self, connection: Connection) -> bool:
        # Nothing is awaited between two calls: whatever can be read is the end.
        try:
            return connection.can_read(0)
        except (redis.RedisError, OSError):
            return True

    def call(self, *commands: Command) -> list[Any]:
        """Send commands at once; one reply for each, errors as values.  Raises ``LinkBroken``."""
        connection = self._connection
        assert connection is not None, "ensure() comes first"
        try:
            connection.send_packed_command(connection.pack_commands(commands), check_health=False)
            return [self._reply(connection) for _ in commands]
        except (redis.RedisError, OSError) as error:
            self.close()
            slow = isinstance(error, redis.TimeoutError)
            raise LinkBroken(str(error), sent=True, slow=slow) from error
        except BaseException:
            # Half a conversation cannot be gone on with.
            self.close()
            raise

    def _reply(self, connection: Connection) -> Any:
        if monotonic() > self._deadline:
            raise redis.TimeoutError(f"no complete answer within {self._timeout:g} s")
        try:
            return connection.read_response()
        except redis.ResponseError as error:
            return error

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.disconnect()
