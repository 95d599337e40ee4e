"""The MD5 digests by which SDKs verify that a message travelled whole.

They guard against damage, not against anybody, so that a FIPS build of OpenSSL must allow them.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5

from pytest_sqsq.models import MessageAttribute

_TEXT = b"\x01"
_BINARY = b"\x02"


def md5_hex(data: bytes) -> str:
    """The digest of some bytes, as lower-case hexadecimal."""
    return md5(data, usedforsecurity=False).hexdigest()


def md5_of_body(text: str) -> str:
    """``MD5OfMessageBody`` and ``MD5OfBody``: the digest of the body's UTF-8 bytes."""
    return md5_hex(text.encode())


def md5_of_attributes(attributes: Mapping[str, MessageAttribute]) -> str:
    """``MD5OfMessageAttributes`` and ``MD5OfMessageSystemAttributes``.

    The digest of the attributes sorted by name, each as name, full data type, a byte for the
    transport type, and value, with lengths in front of the three.  Sorting by code points is
    sorting by UTF-8 bytes.
    """
    parts: list[bytes] = []
    for name in sorted(attributes):
        data_type, value = attributes[name]
        parts += _with_length(name.encode())
        parts += _with_length(data_type.encode())
        if isinstance(value, str):
            parts.append(_TEXT)
            parts += _with_length(value.encode())
        else:
            parts.append(_BINARY)
            parts += _with_length(value)
    return md5_hex(b"".join(parts))


def _with_length(data: bytes) -> tuple[bytes, bytes]:
    return len(data).to_bytes(4, "big"), data
