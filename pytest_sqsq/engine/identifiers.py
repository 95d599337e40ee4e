"""Message and task ids: random, or digests of a seed so that a run can be repeated."""

from __future__ import annotations

from hashlib import blake2b
from random import Random
from threading import Lock

from pytest_sqsq.models import QueueKey

_FREE_BITS = (1 << 128) - 1 & ~(0xF << 76) & ~(0b11 << 62)
_VERSION_4 = 0x4 << 76 | 0b10 << 62
"""Where the version and the variant of a UUID stand, and what they are."""


class Identifiers:
    """Gives ids shaped as version 4 UUIDs.

    With a seed, the n-th id for a purpose and queue is always the same, whatever other queues
    do.  Without one they are random, from a generator that ``random.seed`` does not reach.
    ``opening`` counts how often the data that the ids are for was opened: what was given before a
    restart is not given again.
    """

    def __init__(self, seed: int | None, opening: int = 1) -> None:
        self._seed = seed
        self._opening = f"\0{opening}" if opening > 1 else ""
        self._random = Random()
        self._lock = Lock()
        self._counters: dict[tuple[str, QueueKey], int] = {}

    def new(self, purpose: str, key: QueueKey) -> str:
        """A new id; ``purpose`` and ``key`` matter under a seed only."""
        if self._seed is None:
            number = self._random.getrandbits(128)
        else:
            number = self._seeded(purpose, key)
        digits = f"{number & _FREE_BITS | _VERSION_4:032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"

    def _seeded(self, purpose: str, key: QueueKey) -> int:
        with self._lock:
            count = self._counters[purpose, key] = self._counters.get((purpose, key), 0) + 1
        text = f"{self._seed}\0{purpose}\0{key}\0{count}{self._opening}"
        return int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "big")
