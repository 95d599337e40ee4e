"""The threads of this process that may be consumers of a server."""

from __future__ import annotations

import threading
from collections.abc import Collection

OWN_THREADS = "sqsq-"
"""How the names of a server's own threads begin."""


def count_others(bystanders: Collection[threading.Thread]) -> int:
    """How many threads run beside this one, the server's own and ``bystanders``.  O(threads)."""
    here = threading.current_thread()
    return sum(
        thread is not here and thread not in bystanders and not thread.name.startswith(OWN_THREADS)
        for thread in threading.enumerate()
    )
