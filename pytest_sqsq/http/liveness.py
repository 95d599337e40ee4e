"""Whether the other side of a connection is still there."""

from __future__ import annotations

import select
import socket


def is_alive(sock: socket.socket) -> bool:
    """Whether the peer has not closed its side; takes nothing from the socket, never blocks."""
    try:
        return _peek(sock) != b""
    except BlockingIOError:
        return True
    except (OSError, ValueError):  # ValueError: select was given a closed socket
        return False


if hasattr(socket, "MSG_DONTWAIT"):

    def _peek(sock: socket.socket) -> bytes:
        return sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)

else:

    def _peek(sock: socket.socket) -> bytes:
        # Windows, whose select has no limit on the numbers of its sockets.
        readable, _, _ = select.select([sock], [], [], 0)
        if not readable:
            raise BlockingIOError
        return sock.recv(1, socket.MSG_PEEK)
