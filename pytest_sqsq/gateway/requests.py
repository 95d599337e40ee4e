"""The log of the requests that clients made."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any, NamedTuple, Protocol

from pytest_sqsq.errors import JournalForgotten, QueueDoesNotExist
from pytest_sqsq.gateway.fault_conditions import QueueChoice, checked_action, chosen_queue
from pytest_sqsq.models import QueueKey, instant_text

# Bytes of request bodies that the log keeps at most: its count alone would let ten thousand
# batches of large messages hold gigabytes.
KEPT_BYTES = 64 * 1024 * 1024

# Entries of batches that the log keeps at most: each weighs as much as a message in a queue.
KEPT_ENTRIES = 10_000

# Requests that a failure text lists.
LISTED = 20


class HasArn(Protocol):
    """What a queue can be given by: a probe is one."""

    @property
    def arn(self) -> str: ...


class RequestRecord(NamedTuple):
    """One answered request.

    ``action`` is ``None`` if the request named none; ``queue`` is the name of the queue it was
    about, else ``None``; ``account_id`` is the queue's as far as the request names it, else the
    caller's.  ``parameters`` go by wire name, alike in both protocols.  ``error_code`` is the
    code that boto3 shows.  ``at_ms`` is the server's clock when the request came;
    ``duration_ms`` is real time.  ``status`` is 0 where a planned fault left the request without
    an answer.  ``stale`` marks a queue URL that was not handed out since the last reset.
    """

    action: str | None
    queue: str | None
    account_id: str
    region: str
    protocol: str
    parameters: Mapping[str, Any]
    status: int
    error_code: str | None
    at_ms: int
    duration_ms: float
    client_address: str
    transport: str
    stale: bool

    @property
    def is_astray(self) -> bool:
        """Whether it used the URL of a queue that was not there."""
        missed = self.error_code == QueueDoesNotExist.query_code and "QueueUrl" in self.parameters
        return self.stale or missed

    def __str__(self) -> str:
        where = f" on {self.queue!r}" if self.queue is not None else ""
        answer = f"{self.status}" if self.error_code is None else f"{self.status} {self.error_code}"
        if not self.status:
            answer = "no answer"
        stale = ", stale queue URL" if self.stale else ""
        sender = f" from {self.client_address}" if self.client_address else ""
        return (
            f"{instant_text(self.at_ms)} {self.action or 'no action'}{where}: {answer}"
            f" ({self.transport}, {self.protocol}{sender}{stale})"
        )


class RequestLog:
    """The latest requests, oldest first: at most ``size``.

    At most 64 MiB of request bodies, and 10,000 entries of batches, are kept among them.
    Safe to use from any thread; ``_lock`` guards the records.  Iterating goes over a snapshot.
    ``on_append``, to be set before requests come, is called with each record by the thread of
    its request; it must not raise.
    """

    def __init__(self, size: int = 10_000) -> None:
        if size < 1:
            raise ValueError(f"a request log of {size} records cannot hold one")
        self._size = size
        self._lock = Lock()
        self._records: deque[RequestRecord] = deque()
        self._sizes: deque[tuple[int, int]] = deque()  # body bytes and entries of each record
        self._bytes = self._entries = 0
        self._forgotten = 0
        self.on_append: Callable[[RequestRecord], None] | None = None

    def append(self, record: RequestRecord, body_bytes: int) -> None:
        """Add a record of a request with a body of ``body_bytes``.  O(1) amortised."""
        entries = len(record.parameters.get("Entries", ()))
        with self._lock:
            self._records.append(record)
            self._sizes.append((body_bytes, entries))
            self._bytes += body_bytes
            self._entries += entries
            while (
                len(self._records) > self._size
                or self._bytes > KEPT_BYTES
                or self._entries > KEPT_ENTRIES
            ):
                self._forget_oldest()
        if self.on_append is not None:
            self.on_append(record)

    def _forget_oldest(self) -> None:
        self._records.popleft()
        body_bytes, entries = self._sizes.popleft()
        self._bytes -= body_bytes
        self._entries -= entries
        self._forgotten += 1

    @property
    def forgotten(self) -> int:
        """How many records were dropped since the log was last cleared."""
        return self._forgotten

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[RequestRecord]:
        with self._lock:
            return iter(list(self._records))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._records.clear()
            self._sizes.clear()
            self._bytes = self._entries = 0
            self._forgotten = 0

    def calls(
        self, action: str | None = None, queue: str | HasArn | None = None
    ) -> tuple[RequestRecord, ...]:
        """The requests of ``action`` and about ``queue``, oldest first.

        ``queue`` is a probe, URL or ARN, or a name, of whatever account and region.
        """
        choice = chosen_queue(queue)
        return tuple(
            record
            for record in self
            if (action is None or record.action == action)
            and (choice is None or _is_about(record, choice))
        )

    def assert_called(
        self, action: str, times: int | None = None, queue: str | HasArn | None = None
    ) -> tuple[RequestRecord, ...]:
        """Assert that ``action`` was requested, exactly ``times`` if given; returns the requests.

        Failed requests and retries count as any other.  Raises ``AssertionError`` listing what
        was requested, :class:`JournalForgotten` if dropped records could change the outcome, and
        ``ValueError`` for an action that SQS has not.
        """
        __tracebackhide__ = True
        checked_action(action)
        found = self.calls(action, queue)
        wanted = bool(found) if times is None else len(found) == times
        if self._forgotten and not (times is None and wanted) and not _exceeds(found, times):
            raise self._forgotten_error(action)
        if not wanted:
            expected = "" if times is None else f" {_times(times)}"
            raise AssertionError(
                f"expected {action}{_on(queue)} to be requested{expected},"
                f" but it was {_requested(len(found))}\n{self._listing()}"
            )
        return found

    def assert_not_called(self, action: str, queue: str | HasArn | None = None) -> None:
        """Assert that ``action`` was never requested; raises as :meth:`assert_called` does."""
        __tracebackhide__ = True
        checked_action(action)
        found = self.calls(action, queue)
        if found:
            raise AssertionError(
                f"expected no request of {action}{_on(queue)},"
                f" but it was {_requested(len(found))}\n{self._listing()}"
            )
        if self._forgotten:
            raise self._forgotten_error(action)

    def astray_text(self) -> str | None:
        """Names the queue URLs that led nowhere, and who used them; ``None`` if all were right.

        O(requests).
        """
        astray = [record for record in self if record.is_astray]
        if not astray:
            return None
        count = "a request" if len(astray) == 1 else f"{len(astray)} requests"
        lines = [f"{count} for a queue that was not there:"]
        kinds = Counter(_astray_line(record) for record in astray)
        lines += (
            f"  {line}" + (f", {_times(number)}" if number > 1 else "")
            for line, number in list(kinds.items())[:LISTED]
        )
        if len(kinds) > LISTED:
            lines.append(f"  … and {len(kinds) - LISTED} more kinds")
        return "\n".join(lines)

    def _forgotten_error(self, action: str) -> JournalForgotten:
        return JournalForgotten(
            f"cannot tell how often {action} was requested: the request log has dropped its"
            f" {self._forgotten} oldest records; raise request_log_size, or clear() the log"
            " before the part that matters"
        )

    def _listing(self) -> str:
        records = list(self)
        if not records:
            return "no request was logged"
        shown = records[-LISTED:]
        which = "" if len(shown) == len(records) else f", the last {len(shown)} of which are"
        count = "1 request was" if len(records) == 1 else f"{len(records)} requests were"
        return f"{count} logged{which}:\n" + "\n".join(f"  {record}" for record in shown)


def _is_about(record: RequestRecord, choice: QueueChoice) -> bool:
    return record.queue is not None and choice.covers(
        QueueKey(record.account_id, record.region, record.queue)
    )


def _astray_line(record: RequestRecord) -> str:
    sender = f" from {record.client_address}" if record.client_address else ""
    reason = "stale, not handed out since the last reset" if record.stale else "deleted"
    return f"{record.action} of {record.parameters['QueueUrl']} ({reason}){sender}"


def _exceeds(found: tuple[RequestRecord, ...], times: int | None) -> bool:
    return times is not None and len(found) > times


def _on(queue: str | HasArn | None) -> str:
    return str(chosen_queue(queue) or "")


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _requested(count: int) -> str:
    return "not requested" if count == 0 else f"requested {_times(count)}"
