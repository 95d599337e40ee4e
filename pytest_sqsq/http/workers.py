"""Threads that serve connections, re-used from one connection to the next."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread, current_thread

from pytest_sqsq.clock import monotonic

Job = Callable[[], None]


class WorkerPool:
    """At most ``limit`` daemon threads, which may change; one is started whenever none is idle.

    The standard executor queues what is beyond its bound, and its threads keep the interpreter
    from exiting; this one refuses.  ``_lock`` guards all other fields.
    """

    def __init__(self, limit: int, name: str) -> None:
        self.limit = limit
        self._name = name
        self._lock = Lock()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads: set[Thread] = set()
        self._idle = 0
        self._stopped = False

    def submit(self, job: Job) -> bool:
        """Run ``job``, which must not raise, on a thread of its own; False if all are taken."""
        with self._lock:
            if self._stopped:
                return False
            if self._idle:
                self._idle -= 1
                self._jobs.put(job)
                return True
            if len(self._threads) >= self.limit:
                return False
            thread = Thread(target=self._work, args=(job,), name=self._name, daemon=True)
            self._threads.add(thread)
            try:
                thread.start()
            except RuntimeError:  # the system gives no more threads
                self._threads.discard(thread)
                return False
            return True

    def stop(self, deadline: float) -> None:
        """Let the threads end, and wait for them until ``deadline`` (monotonic seconds)."""
        with self._lock:
            self._stopped = True
            threads = list(self._threads)
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            if thread is not current_thread():
                thread.join(max(0.0, deadline - monotonic()))

    def _work(self, job: Job | None) -> None:
        while job is not None:
            job()
            job = None  # an idle thread keeps no connection alive
            with self._lock:
                if self._stopped:
                    break
                self._idle += 1
            job = self._jobs.get()
        with self._lock:
            self._threads.discard(current_thread())
