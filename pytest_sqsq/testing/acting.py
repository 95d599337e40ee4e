"""What a test arranges by itself: the actions of the API, without a client and a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from pytest_sqsq.actions import perform
from pytest_sqsq.models import MessageView, QueueKey
from pytest_sqsq.testing.stories import stories_of
from pytest_sqsq.testing.views import gone_view, live_view
from pytest_sqsq.testing.world import World


class SendOptions(TypedDict, total=False):
    """The optional parameters of SendMessage, by the names and in the shapes of boto3."""

    DelaySeconds: int
    MessageAttributes: Mapping[str, Mapping[str, Any]]
    MessageSystemAttributes: Mapping[str, Mapping[str, Any]]
    MessageDeduplicationId: str
    MessageGroupId: str


@dataclass(frozen=True, slots=True)
class Received:
    """A received message: as ReceiveMessage answers it, and as tests see it."""

    wire: Mapping[str, Any]
    view: MessageView


def act(world: World, key: QueueKey, action: str, **parameters: Any) -> dict[str, Any]:
    """Carry out an action on a queue as its owner; raises the ``SqsError`` the API answers with.

    Parameters go by wire name; those that are ``None`` are left out.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    context = world.context(key.account_id, key.region)
    return perform(context, action, {"QueueUrl": world.queue_url(key), **given}) or {}


def send(world: World, key: QueueKey, body: str, options: Mapping[str, Any]) -> MessageView:
    """SendMessage; the message as it stands right after, the original one of a duplicate."""
    unknown = options.keys() - SendOptions.__annotations__
    if unknown:
        raise TypeError(
            f"unknown parameter {', '.join(sorted(unknown))}: SendMessage takes"
            f" {', '.join(SendOptions.__annotations__)}"
        )
    if not isinstance(body, str):
        raise TypeError(f"a message's body is text, not {body!r}; json.dumps makes it of objects")
    answer = act(world, key, "SendMessage", MessageBody=body, **options)
    (view,) = views_by_id(world, key, [answer["MessageId"]])
    return view


def receive(
    world: World, key: QueueKey, max_messages: int, visibility_timeout: int | None = None
) -> tuple[Received, ...]:
    """ReceiveMessage as a short poll, with all attributes."""
    answer = act(
        world,
        key,
        "ReceiveMessage",
        MaxNumberOfMessages=max_messages,
        VisibilityTimeout=visibility_timeout,
        WaitTimeSeconds=0,
        MessageSystemAttributeNames=["All"],
        MessageAttributeNames=["All"],
    )
    messages = answer.get("Messages", [])
    views = views_by_id(world, key, [message["MessageId"] for message in messages])
    return tuple(
        Received(message, replace(view, receipt_handle=message["ReceiptHandle"]))
        for message, view in zip(messages, views, strict=True)
    )


def views_by_id(world: World, key: QueueKey, message_ids: Sequence[str]) -> list[MessageView]:
    """The messages with these ids, as they stand or as they last stood."""
    if not message_ids:
        return []
    queue = world.broker.get_queue(key)
    with world.broker.entry(queue):
        found = {
            message_id: live_view(queue, message)
            for message_id in message_ids
            if (message := queue.log.find_uuid(message_id)) is not None
        }
        gone = [message_id for message_id in message_ids if message_id not in found]
        events = queue.journal.events if gone else ()
        contents = queue.journal.contents if gone else {}
        retention_seconds = queue.settings.message_retention_period
    stories = stories_of(events)
    for message_id in gone:
        found[message_id] = gone_view(
            key.name, retention_seconds, stories[message_id], contents.get(message_id)
        )
    return [found[message_id] for message_id in message_ids]
