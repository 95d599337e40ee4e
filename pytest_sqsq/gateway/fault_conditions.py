"""Which requests and queues a planned fault is for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_sqsq.actions import ACTIONS, ActionContext
from pytest_sqsq.engine.handling import find_by_handle
from pytest_sqsq.errors import SqsError
from pytest_sqsq.models import QueueKey

Body = str | re.Pattern[str] | Callable[[str], object]

BATCHES = frozenset({"ChangeMessageVisibilityBatch", "DeleteMessageBatch", "SendMessageBatch"})

#: The actions that name messages: by their bodies, or by receipt handles.
_SENDING = frozenset({"SendMessage", "SendMessageBatch"})
_HANDLING = frozenset(
    {
        "ChangeMessageVisibility",
        "ChangeMessageVisibilityBatch",
        "DeleteMessage",
        "DeleteMessageBatch",
    }
)
_ABOUT_MESSAGES = _SENDING | _HANDLING | {"ReceiveMessage"}


class QueueChoice(NamedTuple):
    """A queue by its name and, as far as that was given, by its account and region."""

    name: str
    account_id: str | None = None
    region: str | None = None

    def covers(self, key: QueueKey) -> bool:
        return (
            key.name == self.name
            and self.account_id in {None, key.account_id}
            and self.region in {None, key.region}
        )

    def __str__(self) -> str:
        return f" on {self.name!r}"


def chosen_queue(queue: object) -> QueueChoice | None:
    """What a ``queue`` argument stands for: name, URL, ARN, or anything that has an ``arn``."""
    if queue is None:
        return None
    text = getattr(queue, "arn", queue)
    if isinstance(text, str):
        key = QueueKey.from_arn(text)
        if key is not None:
            return QueueChoice(key.name, key.account_id, key.region)
        *before, name = text.rstrip("/").split("/")
        if name and "/" not in text:
            return QueueChoice(name)
        if name and before and before[-1]:
            return QueueChoice(name, before[-1])
    raise ValueError(f"queue must be a queue or its name, URL or ARN, not {queue!r}")


def checked_action(action: object) -> str | None:
    if action is None or (isinstance(action, str) and action in ACTIONS):
        return action
    close = difflib.get_close_matches(str(action), ACTIONS, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(ACTIONS)}"
    raise ValueError(f"unknown action {action!r}{hint}")


class Candidate:
    """A request that faults may be for, before it is carried out or with its answer.

    ``key`` is the queue that it is about, if any.
    """

    __slots__ = ("_bodies", "_context", "action", "key", "parameters")

    def __init__(
        self,
        action: str,
        parameters: Mapping[str, Any],
        key: QueueKey | None,
        context: ActionContext,
    ) -> None:
        self.action = action
        self.parameters = parameters
        self.key = key
        self._context = context
        self._bodies: Sequence[str] | None = None

    def entry_ids(self) -> frozenset[str]:
        entries = self.parameters.get("Entries") or ()
        return frozenset(entry["Id"] for entry in entries if entry.get("Id") is not None)

    def bodies(self) -> Sequence[str]:
        """The bodies of the messages that the request is about, as far as they are known."""
        if self._bodies is None:
            entries = self.parameters.get("Entries") or (self.parameters,)
            if self.action in _SENDING:
                found = [entry.get("MessageBody") for entry in entries]
            elif self.action in _HANDLING:
                found = [self._body_of(entry.get("ReceiptHandle")) for entry in entries]
            else:
                found = []
            self._bodies = [body for body in found if body is not None]
        return self._bodies

    def learn_answer(self, result: Mapping[str, Any] | None) -> None:
        """Take the bodies from the messages that were received."""
        self._bodies = [message["Body"] for message in (result or {}).get("Messages", ())]

    def _body_of(self, handle: str | None) -> str | None:
        broker = self._context.broker
        queue = None if self.key is None else broker.find_queue(self.key)
        if queue is None or not handle:
            return None
        try:
            with broker.entry(queue):
                message = find_by_handle(queue, handle)
                return None if message is None else message.body
        except SqsError:
            return None


class Condition:
    """The requests that a fault is for.

    ``entry_ids`` narrows it to batches with one of these entries.  A condition on the bodies of
    received messages can only be met by an answer.
    """

    def __init__(
        self,
        action: object = None,
        queue: object = None,
        body: object = None,
        entry_ids: Collection[str] | None = None,
    ) -> None:
        self.action = checked_action(action)
        self.queue = chosen_queue(queue)
        self.body = _checked_body(body, self.action)
        self._entry_ids = None if entry_ids is None else frozenset(entry_ids)
        if entry_ids is not None and self.action is not None and self.action not in BATCHES:
            raise ValueError(
                f"fail_entries is for batches; {self.action} has no entries, there are"
                f" {', '.join(sorted(BATCHES))}"
            )

    def is_met_by(self, candidate: Candidate) -> bool:
        if self.action not in {None, candidate.action}:
            return False
        if self.queue is not None and (
            candidate.key is None or not self.queue.covers(candidate.key)
        ):
            return False
        if self._entry_ids is not None and (
            candidate.action not in BATCHES or self._entry_ids.isdisjoint(candidate.entry_ids())
        ):
            return False
        return self.body is None or any(map(self._accepts, candidate.bodies()))

    def _accepts(self, body: str) -> bool:
        if isinstance(self.body, str):
            return body == self.body
        if isinstance(self.body, re.Pattern):
            return self.body.search(body) is not None
        return self.body is None or bool(self.body(body))

    def __str__(self) -> str:
        text = f" for {self.action}" if self.action else ""
        if self.queue is not None:
            text += str(self.queue)
        if isinstance(self.body, str):
            text += f" with body {self.body!r}"
        elif isinstance(self.body, re.Pattern):
            text += f" with a body matching {self.body.pattern!r}"
        elif self.body is not None:
            name = getattr(self.body, "__name__", None) or repr(self.body)
            text += f" with a body that {name} accepts"
        return text


def _checked_body(body: Any, action: str | None) -> Body | None:
    if body is None:
        return None
    if not (isinstance(body, (str, re.Pattern)) or callable(body)):
        raise ValueError(  # noqa: TRY004 - one kind of error for everything that makes no sense
            f"body must be a text, a compiled pattern or a callable, not {body!r}"
        )
    if action is not None and action not in _ABOUT_MESSAGES:
        raise ValueError(f"{action} is about no message, so none can have a body")
    checked: Body = body
    return checked
