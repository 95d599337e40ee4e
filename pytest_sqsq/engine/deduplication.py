"""What a FIFO queue remembers of the deduplication ids it accepted.

The window of an id counts from the first accepted send; a duplicate does not extend it, nor does
the end of the message's life end it.
"""

from __future__ import annotations

from typing import NamedTuple

DeduplicationKey = tuple[str | None, str]
"""Message group (``None`` where the scope is the queue) and deduplication id."""


class Accepted(NamedTuple):
    """The first send under a deduplication id; ``accepted_ms`` begins its five minutes."""

    message_id: str
    sequence_number: int
    accepted_ms: int
