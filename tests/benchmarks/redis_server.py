"""A real Redis for as long as something is measured with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def redis_server() -> Iterator[str]:
    """The URL of a redis-server that the tests of the store would start; it writes no files."""
    # By its name, since the types of what only pytest loads are not checked.
    conftest = import_module("tests.store.conftest")
    with TemporaryDirectory() as folder:
        process = conftest.RedisProcess(Path(folder), "--save", "")
        try:
            yield process.url
        finally:
            process.kill()
