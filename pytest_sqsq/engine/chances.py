"""Chances that a seed repeats."""

from __future__ import annotations

from hashlib import blake2b
from random import Random

_SCALE = 1 << 64


class Chances:
    """Numbers that look random and depend on nothing but the seed and what they are drawn for.

    Without a seed one is made up; ``seed`` tells which, so that a run can be repeated.
    ``drawn`` tells whether anything was ever left to chance.
    """

    def __init__(self, seed: int | None) -> None:
        # A generator of its own: the one that ``random.seed`` reaches belongs to the test.
        self.seed = Random().getrandbits(32) if seed is None else seed
        self.drawn = False

    def draw(self, *purpose: object) -> float:
        """A number from 0 up to, not including, 1; always the same for the same purpose."""
        self.drawn = True
        text = "\0".join(map(str, (self.seed, *purpose)))
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") / _SCALE
