"""Where a broker's state outlives it: records and the stores that keep them."""

from __future__ import annotations

from pytest_sqsq.store.base import Store
from pytest_sqsq.store.memory import MemoryStore
from pytest_sqsq.store.opening import SERVER_PREFIX, Creator, make_store, plugin_prefix
from pytest_sqsq.store.records import Record

__all__ = [
    "SERVER_PREFIX",
    "Creator",
    "MemoryStore",
    "Record",
    "Store",
    "make_store",
    "plugin_prefix",
]
