"""How requests and answers name a queue: by its URL."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_sqsq.actions.context import ActionContext, Parameters
from pytest_sqsq.errors import QueueDoesNotExist
from pytest_sqsq.models import QueueKey

if TYPE_CHECKING:
    from pytest_sqsq.engine import Queue


def queue_url(context: ActionContext, key: QueueKey) -> str:
    """The URL by which this caller's answers name a queue."""
    return f"{context.base_url}/{key.account_id}/{key.name}"


def key_of_url(context: ActionContext, url: str) -> QueueKey:
    """The queue that a QueueUrl names, whether it exists or not.

    The host is not looked at: the last two segments of the path are account and name, and a
    single one is the name of a queue of the caller's.  The region is the caller's.
    """
    return _key_of(url, context.account_id, context.region)


@lru_cache(maxsize=256)
def _key_of(url: str, caller: str, region: str) -> QueueKey:
    # Cached: each request asks more than once, and most requests are about the same few queues.
    _, scheme, rest = url.partition("://")
    path = rest.partition("/")[2] if scheme else url
    segments = path.strip("/").rsplit("/", 2)
    return QueueKey(segments[-2] if len(segments) > 1 else caller, region, segments[-1])


def resolve(context: ActionContext, parameters: Parameters) -> Queue:
    """The queue that the request's QueueUrl names; without one, too, QueueDoesNotExist."""
    url = parameters.get("QueueUrl")
    if not url:
        raise QueueDoesNotExist
    return context.broker.get_queue(key_of_url(context, url))
