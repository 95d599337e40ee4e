"""What an action is given: who asks, where, and what it may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_sqsq.limits import COOLDOWN_MS

if TYPE_CHECKING:
    from pytest_sqsq.engine import Broker, Waiter
    from pytest_sqsq.errors import SqsError

Parameters = Mapping[str, Any]
Result = dict[str, Any] | None


@dataclass(slots=True)
class ActionContext:
    """One caller's view of the service.

    ``account_id`` and ``region`` are the caller's.  ``base_url`` begins the queue URLs of the
    answers and has no trailing slash.  ``park`` blocks until the waiter it is given is resolved,
    ``is_alive`` says whether the client still wants its answer.  ``cooldowns`` turns the
    60-second pauses after PurgeQueue and DeleteQueue on.  ``protocol`` chooses between the two
    names that a few texts have for a parameter.  ``failing`` tells by their Ids which entries of
    a batch fail, whatever is right with them.
    """

    broker: Broker
    account_id: str
    region: str
    base_url: str
    park: Callable[[Waiter], None]
    is_alive: Callable[[], bool]
    trace_header: str | None = None
    cooldowns: bool = False
    protocol: str = "json"
    failing: Mapping[str, SqsError] | None = None

    def failure_of(self, entry: Mapping[str, Any]) -> SqsError | None:
        """Why an entry of a batch fails, whatever is right with it; ``None`` if it does not."""
        return None if self.failing is None else self.failing.get(entry["Id"])

    @property
    def cooldown_ms(self) -> int:
        """How long PurgeQueue, and CreateQueue after DeleteQueue, refuse to be repeated."""
        return COOLDOWN_MS if self.cooldowns else 0
