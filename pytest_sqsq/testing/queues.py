"""Making queues in a line, and finding them by whatever names them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pytest_sqsq.actions import perform
from pytest_sqsq.actions.addresses import key_of_url
from pytest_sqsq.errors import QueueNotFound
from pytest_sqsq.limits import FIFO_SUFFIX
from pytest_sqsq.models import QueueKey
from pytest_sqsq.testing.report import queue_names
from pytest_sqsq.testing.world import World

LISTED_QUEUES = 10

# What AWS's documentation calls the default of maxReceiveCount, which its API insists on.
DEFAULT_MAX_RECEIVE_COUNT = 10


def create_queue(
    world: World,
    key: QueueKey,
    *,
    dead_letter_queue: str | None = None,
    max_receive_count: int | None = None,
    attributes: Mapping[str, Any] | None = None,
    tags: Mapping[str, str] | None = None,
) -> None:
    """CreateQueue, with FifoQueue for a name that ends in ``.fifo``.

    ``dead_letter_queue`` is a name, URL or ARN; it is made, of the right kind, if it is missing.
    Values of ``attributes`` may be numbers, booleans and, for policies, mappings.  Raises
    ``ValueError`` for a dead-letter queue of the wrong kind, named twice or not to be made, and
    the ``SqsError`` that the API answers with.
    """
    _require_home(key)
    given = {name: _attribute_text(value) for name, value in (attributes or {}).items()}
    if key.name.endswith(FIFO_SUFFIX):
        given.setdefault("FifoQueue", "true")
    if dead_letter_queue is not None:
        if "RedrivePolicy" in given:
            raise ValueError("give dead_letter_queue or the attribute RedrivePolicy, not both")
        target = key_of(world, dead_letter_queue, key.account_id, key.region)
        if target.name.endswith(FIFO_SUFFIX) != key.name.endswith(FIFO_SUFFIX):
            raise ValueError(
                f"the dead-letter queue of {key.name!r} cannot be {target.name!r}: both are FIFO"
                f" queues, with names that end in {FIFO_SUFFIX}, or neither is"
            )
        if world.broker.find_queue(target) is None:
            if target == key:
                raise ValueError(
                    f"{key.name!r} cannot be its own dead-letter queue before it is there: create"
                    " it, then set its RedrivePolicy by SetQueueAttributes"
                )
            create_queue(world, target)
        given["RedrivePolicy"] = _attribute_text(
            {
                "deadLetterTargetArn": target.arn,
                "maxReceiveCount": (
                    DEFAULT_MAX_RECEIVE_COUNT if max_receive_count is None else max_receive_count
                ),
            }
        )
    elif max_receive_count is not None:
        raise ValueError("max_receive_count needs a dead_letter_queue")
    parameters: dict[str, Any] = {"QueueName": key.name, "Attributes": given}
    if tags:
        parameters["tags"] = dict(tags)
    perform(world.context(key.account_id, key.region), "CreateQueue", parameters)


def _attribute_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return json.dumps(value, separators=(",", ":"))
    return str(value)


def key_of(world: World, name: str, account_id: str, region: str) -> QueueKey:
    """The key that a name, a URL or an ARN stands for, whether or not there is such a queue."""
    if not isinstance(name, str):
        raise TypeError(f"a queue goes by its name, URL or ARN, not by {name!r}")
    if name.startswith("arn:"):
        key = QueueKey.from_arn(name)
        if key is None:
            raise ValueError(f"{name!r} is no ARN of an SQS queue")
        return key
    if "/" in name:
        return key_of_url(world.context(account_id, region), name)
    return QueueKey(account_id, region, name)


def find_key(world: World, name: str, account_id: str, region: str) -> QueueKey:
    """The key of an existing queue.

    Raises ``QueueNotFound``, naming close matches and where else the name exists.
    """
    key = key_of(world, name, account_id, region)
    if world.broker.find_queue(key) is None:
        raise QueueNotFound(_not_found_text(world, key))
    return key


def _not_found_text(world: World, key: QueueKey) -> str:
    keys = [queue.key for queue in world.broker.queues]
    text = f"no queue {key.name!r} in account {key.account_id}, region {key.region}"
    elsewhere = [other for other in keys if other.name == key.name]
    if elsewhere:
        places = ", ".join(f"account {other.account_id} {other.region}" for other in elsewhere)
        return f"{text}; it exists in {places}"
    close = get_close_matches(key.name, {other.name for other in keys}, n=3)
    if close:
        return f"{text}; did you mean {' or '.join(map(repr, close))}?"
    if not keys:
        return f"{text}; there are no queues"
    names = queue_names(keys)
    listed = ", ".join(repr(names[other]) for other in keys[:LISTED_QUEUES])
    more = f" and {len(keys) - LISTED_QUEUES} more" if len(keys) > LISTED_QUEUES else ""
    return f"{text}; there are {listed}{more}"


def _require_home(key: QueueKey) -> None:
    if not re.fullmatch("[0-9]{12}", key.account_id):
        raise ValueError(f"account_id is {key.account_id!r}; an account has 12 digits")
    if not key.region:
        raise ValueError("region is ''; a region has a name, such as 'eu-west-1'")
