"""A TCP port of our own: listened on, or held while nobody listens."""

from __future__ import annotations

import errno
import os
import socket
from typing import Any
from weakref import WeakSet

from pytest_sqsq.errors import ServerStartError

BACKLOG = 1024


class Port:
    """An address that stays ours from construction to ``release``.

    Where the system has SO_REUSEPORT, a second socket is bound to the port and never listens:
    while it is suspended, clients are refused and nobody else gets the port.  Without
    SO_REUSEPORT, or where connections of an earlier owner still linger on the port, it is free
    while suspended.  A forked child lets go of it.

    Raises :class:`ServerStartError`, naming the address and the reason.
    """

    def __init__(self, host: str, port: int) -> None:
        self._shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._holder: socket.socket | None = None
        try:
            self.family, self._address = _resolved(host, port)
            if port:
                self._require_free()
            self._holder = self._hold()
            if self._holder is not None:
                self._address = self._holder.getsockname()
            self.listener = self._listen()
        except (OSError, OverflowError) as error:
            if self._holder is not None:
                self._holder.close()
            raise self._failure(error) from error
        self._address = self.listener.getsockname()
        _ports.add(self)

    @property
    def number(self) -> int:
        """The port's number."""
        return int(self._address[1])

    def suspend(self) -> None:
        """Stop listening: clients are refused; those in the backlog are reset."""
        self.listener.close()

    def resume(self) -> socket.socket:
        """A new listening socket in place of the suspended one; raises as the constructor does."""
        try:
            self.listener = self._listen()
        except OSError as error:
            raise self._failure(error) from error
        return self.listener

    def release(self) -> None:
        """Close everything; does not touch other processes' copies of the sockets."""
        self.listener.close()
        if self._holder is not None:
            self._holder.close()

    def _failure(self, error: Exception) -> ServerStartError:
        reason = getattr(error, "strerror", None) or str(error)
        taken = getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES)
        hint = "; choose another port, or 0 for a free one" if taken else ""
        return ServerStartError(f"cannot listen on {self._shown}: {reason}{hint}")

    def _listen(self) -> socket.socket:
        listener = socket.socket(self.family, socket.SOCK_STREAM)
        try:
            _allow_early_return(listener)
            if self._holder is not None:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind(self._address)
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
        return listener

    def _require_free(self) -> None:
        # SO_REUSEPORT alone would let a second server share the port of a first.
        with socket.socket(self.family, socket.SOCK_STREAM) as probe:
            _allow_early_return(probe)
            probe.bind(self._address)

    def _hold(self) -> socket.socket | None:
        if not hasattr(socket, "SO_REUSEPORT"):
            return None
        holder = socket.socket(self.family, socket.SOCK_STREAM)
        try:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind(self._address)
        except OSError:
            holder.close()
            return None
        return holder


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    # The port is left out: the resolver takes any number, modulo 65536.
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = found[0]
    return family, (address[0], port, *address[2:])


def _allow_early_return(listener: socket.socket) -> None:
    """Let a port be bound again at once after its server stopped, but never shared."""
    if os.name == "nt":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


_ports: WeakSet[Port] = WeakSet()


def _release_all() -> None:
    for port in list(_ports):
        port.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_all)
