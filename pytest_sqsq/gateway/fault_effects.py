"""What a planned fault does to a request."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from inspect import isclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pytest_sqsq import errors
from pytest_sqsq.actions.attributes import READ_ONLY
from pytest_sqsq.errors import CORAL, InternalFailure, ServiceUnavailable, SqsError
from pytest_sqsq.gateway.fault_turns import checked_span, listed, span_text
from pytest_sqsq.models import QueueKey

if TYPE_CHECKING:
    from pytest_sqsq.gateway.delays import Delays

Parameters = Mapping[str, Any]
Result = Mapping[str, Any] | None


class Attempt:
    """One request on its way: ``carry_out`` does what it is there for.

    The entries of a batch whose Ids are in ``failing`` then fail with that error.  ``cut`` says
    afterwards how the connection is to be broken off, if at all.  ``reason`` is the text of the
    fault.
    """

    __slots__ = ("action", "carry_out", "cut", "failing", "is_alive", "key", "parameters", "reason")

    def __init__(
        self,
        action: str,
        parameters: Parameters,
        key: QueueKey | None,
        carry_out: Callable[[], Result],
        is_alive: Callable[[], bool],
    ) -> None:
        self.action = action
        self.parameters = parameters
        self.key = key
        self.carry_out = carry_out
        self.is_alive = is_alive
        self.cut: Literal["unanswered", "truncated"] | None = None
        self.reason = ""
        self.failing: dict[str, SqsError] = {}


class Effect(Protocol):
    """What happens to a request instead of, before or after what it asked for."""

    def meet(self, attempt: Attempt) -> Result:
        """The result to answer with; may raise the ``SqsError`` to answer with."""


class Refusal:
    """The request is answered with an error, and nothing of it is carried out."""

    def __init__(self, kind: type[SqsError], text: str) -> None:
        self._kind = kind
        self._text = text

    def meet(self, attempt: Attempt) -> Result:
        raise _error(self._kind, f"Planned by the test: {attempt.reason}")

    def __str__(self) -> str:
        return self._text


class Latency:
    """The request waits before it is carried out; if its client gives up first, it is not."""

    def __init__(self, milliseconds: int, delays: Delays, *, virtual: bool) -> None:
        self._milliseconds = milliseconds
        self._delays = delays
        self._virtual = virtual

    def meet(self, attempt: Attempt) -> Result:
        if self._virtual:
            label = f"end of the latency of {attempt.action}"
            waited = self._delays.virtual(self._milliseconds, attempt.is_alive, label)
        else:
            waited = self._delays.real(self._milliseconds / 1000, attempt.is_alive)
        if waited:
            return attempt.carry_out()
        attempt.cut = "unanswered"
        return None

    def __str__(self) -> str:
        by = " by the server's clock" if self._virtual else ""
        return f"latency of {span_text(self._milliseconds)}{by}"


class Drop:
    """The connection ends without an answer, before the request is carried out or after it."""

    def __init__(self, when: Literal["before", "after"]) -> None:
        self._when = when

    def meet(self, attempt: Attempt) -> Result:
        attempt.cut = "unanswered"
        return None if self._when == "before" else attempt.carry_out()

    def __str__(self) -> str:
        return f"connection dropped {self._when} the effect"


class Truncation:
    """The request is carried out and its answer broken off in the middle."""

    def meet(self, attempt: Attempt) -> Result:
        attempt.cut = "truncated"
        return attempt.carry_out()

    def __str__(self) -> str:
        return "truncated answer"


class EntryFailures:
    """Some entries of a batch fail; the others are carried out."""

    def __init__(self, entry_ids: Collection[str]) -> None:
        self._entry_ids = tuple(entry_ids)

    def meet(self, attempt: Attempt) -> Result:
        error = InternalFailure(f"Planned by the test: {attempt.reason}")
        attempt.failing.update(dict.fromkeys(self._entry_ids, error))
        return attempt.carry_out()

    def __str__(self) -> str:
        return f"failure of the entries {', '.join(map(repr, self._entry_ids))}"


#: The attributes that AWS calls approximate.
COUNTS = tuple(name for name in READ_ONLY if name.startswith("Approximate"))


class StaleCounts:
    """GetQueueAttributes shows counts as they were; of queues made since then, zeros."""

    def __init__(self, counts: Mapping[QueueKey, Mapping[str, str]]) -> None:
        self._counts = counts

    def meet(self, attempt: Attempt) -> Result:
        result = attempt.carry_out() or {}
        shown = dict(result.get("Attributes", {}))
        known = {} if attempt.key is None else self._counts.get(attempt.key, {})
        shown.update({name: known.get(name, "0") for name in COUNTS if name in shown})
        return {**result, "Attributes": shown} if shown else result

    def __str__(self) -> str:
        return "stale counts"


def make_effect(
    delays: Delays,
    *,
    error: object = None,
    status: object = None,
    latency: object = None,
    clock: object = "real",
    drop_connection: object = None,
    truncate: object = False,
    fail_entries: object = None,
) -> Effect:
    """The one effect that was asked for; ``ValueError`` where it is none, several, or no sense."""
    given = {
        "error": error,
        "status": status,
        "latency": latency,
        "drop_connection": drop_connection,
        "truncate": _checked_flag("truncate", truncate) or None,
        "fail_entries": fail_entries,
    }
    names = [name for name, value in given.items() if value is not None]
    if not names:
        raise ValueError(f"a fault needs an effect, one of {', '.join(given)}")
    if len(names) > 1:
        raise ValueError(f"a fault has one effect, not {' and '.join(names)}; add two faults")
    if clock not in ("real", "virtual"):
        raise ValueError(f"clock must be 'real' or 'virtual', not {clock!r}")
    if clock == "virtual" and latency is None:
        raise ValueError("clock='virtual' is for latency; other effects take no time")
    match names[0]:
        case "error":
            return Refusal(error_kind(error), str(error))
        case "status":
            return Refusal(_status_kind(status), f"status {status}")
        case "latency":
            return Latency(checked_span("latency", latency), delays, virtual=clock == "virtual")
        case "drop_connection":
            return Drop(_checked_moment(drop_connection))
        case "truncate":
            return Truncation()
        case _:
            return EntryFailures(checked_entry_ids(fail_entries))


def error_kind(name: object) -> type[SqsError]:
    """The error of a name: the one of the shape, or the code of the Query protocol."""
    kinds = _error_kinds()
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        close = difflib.get_close_matches(str(name), kinds, n=1)
        shapes = sorted({each.shape for each in kinds.values()})
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(shapes)}"
        raise ValueError(f"unknown error {name!r}; {hint}")
    return kind


def _error_kinds() -> dict[str, type[SqsError]]:
    kinds: dict[str, type[SqsError]] = {"InternalError": InternalFailure}
    for name, kind in vars(errors).items():
        if isclass(kind) and issubclass(kind, SqsError) and kind is not SqsError:
            kinds.update(dict.fromkeys((name, kind.shape, kind.query_code), kind))
    return kinds


def _error(kind: type[SqsError], text: str) -> SqsError:
    """An error with its only text where it has one, else with ``text``."""
    try:
        return kind()  # type: ignore[call-arg]
    except TypeError:
        error = kind.__new__(kind)
        SqsError.__init__(error, text)
        return error


def _status_kind(status: object) -> type[SqsError]:
    if type(status) is not int or not 400 <= status <= 599:
        raise ValueError(f"status must be an HTTP status from 400 to 599, not {status!r}")
    for known in (InternalFailure, ServiceUnavailable):
        if known.status == status:
            return known
    try:
        name = "".join(word.capitalize() for word in HTTPStatus(status).phrase.split())
    except ValueError:
        name = f"Status{status}"
    name = "".join(filter(str.isalnum, name))
    members = {
        "shape": name,
        "query_code": name,
        "status": status,
        "namespace": CORAL,
        "fault": "Receiver" if status >= 500 else "Sender",
    }
    return type(name, (SqsError,), members)


def _checked_flag(name: str, value: object) -> bool:
    if value is True or value is False:
        return value
    raise ValueError(f"{name} must be True or False, not {value!r}")


def _checked_moment(moment: object) -> Literal["before", "after"]:
    if moment == "before":
        return "before"
    if moment == "after":
        return "after"
    raise ValueError(f"drop_connection must be 'before' or 'after', not {moment!r}")


def checked_entry_ids(entry_ids: Any) -> tuple[str, ...]:
    ids = listed(entry_ids)
    if not ids or not all(isinstance(each, str) and each for each in ids):
        raise ValueError(f"fail_entries must be the ids of some entries, not {entry_ids!r}")
    return ids
