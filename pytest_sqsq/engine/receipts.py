"""Receipt handles: opaque to clients, readable to the engine.

A handle encodes the queue, the message, the number of the receive and a checksum, so that
garbage, a handle of another queue and a stale handle can be told apart without keeping any.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from hashlib import blake2b
from typing import NamedTuple
from zlib import crc32

from pytest_sqsq.models import QueueKey

_PREFIX = b"\x01\x01\x01"
"""Reads ``AQEB`` in base64, as the handles of Amazon SQS begin."""

_QUEUE = slice(3, 11)
_MESSAGE = slice(11, 27)
_NUMBER = slice(27, 32)
_CHECKSUM = slice(32, 36)
_LENGTH = 36


class Receipt(NamedTuple):
    """What a handle says."""

    queue_token: bytes
    message_id: str
    number: int


def queue_token(key: QueueKey) -> bytes:
    """Eight bytes that stand for a queue in its handles."""
    return blake2b(str(key).encode(), digest_size=8).digest()


def make_handle(token: bytes, message_id: str, number: int) -> str:
    """The handle of the ``number``-th receive of a message; free of ``-``."""
    payload = (
        _PREFIX + token + bytes.fromhex(message_id.replace("-", "")) + number.to_bytes(5, "big")
    )
    return b64encode(payload + crc32(payload).to_bytes(4, "big")).decode()


def read_handle(handle: str) -> Receipt | None:
    """What the handle says, or ``None`` where it is none of ours."""
    try:
        raw = b64decode(handle, validate=True)
    except (Base64Error, ValueError):
        return None
    if len(raw) != _LENGTH or not raw.startswith(_PREFIX):
        return None
    if crc32(raw[:32]) != int.from_bytes(raw[_CHECKSUM], "big"):
        return None
    digits = raw[_MESSAGE].hex()
    message_id = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return Receipt(raw[_QUEUE], message_id, int.from_bytes(raw[_NUMBER], "big"))
