"""Lambda functions with a queue as event source: one batch, as AWS's event source mapping does it.

Source of the rules: AWS's pages on Lambda with Amazon SQS, on reporting batch item failures, and
the event's reference.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from pytest_sqsq import limits
from pytest_sqsq.models import MessageView, QueueKey
from pytest_sqsq.testing.acting import Received, act, receive
from pytest_sqsq.testing.awaiting import Caller
from pytest_sqsq.testing.world import World

STANDARD_BATCH_SIZE = limits.Range(1, 10_000)
FIFO_BATCH_SIZE = limits.Range(1, 10)

LambdaHandler = Callable[[Any, Any], Any]


class MalformedResponse(ValueError):
    """A handler's answer about failed items breaks Lambda's contract: the whole batch failed."""


@dataclass(frozen=True, slots=True)
class LambdaContext:
    """The context a handler is given where a test brings none."""

    function_name: str = "handler"
    function_version: str = "$LATEST"
    invoked_function_arn: str = ""
    memory_limit_in_mb: str = "128"
    aws_request_id: str = ""
    log_group_name: str = "/aws/lambda/handler"
    log_stream_name: str = ""
    identity: None = None
    client_context: None = None

    def get_remaining_time_in_millis(self) -> int:
        """As long as a function may run at most: the time of a test is its own."""
        return 900_000


@dataclass(frozen=True, slots=True)
class LambdaInvocation:
    """What one batch led to.

    ``event`` is ``None`` if there was nothing to deliver and the handler was not called.
    ``response`` is what the handler returned.  ``deleted`` and ``failed`` hold the messages as
    they were received; the failed ones come back when their visibility timeout ends.  ``error``
    is what the handler raised, or the :class:`MalformedResponse` that failed the whole batch.
    """

    event: Mapping[str, Any] | None = None
    response: Any = None
    deleted: tuple[MessageView, ...] = ()
    failed: tuple[MessageView, ...] = ()
    error: Exception | None = field(default=None, compare=False)


def invoke(
    world: World,
    key: QueueKey,
    handler: LambdaHandler,
    *,
    batch_size: int,
    context: object,
    raise_errors: bool,
    report_batch_item_failures: bool,
    caller: Caller | None = None,
) -> LambdaInvocation:
    """Receive one batch, call the handler with it, delete what it succeeded with.

    A handler that raises leaves the whole batch in flight; its exception is raised again unless
    ``raise_errors`` is false.  Raises ``ValueError`` for a batch size that AWS does not allow,
    ``TypeError`` for a handler that cannot be called.
    """
    __tracebackhide__ = True
    require_callable(handler)
    _check_batch_size(world, key, batch_size)
    batch = _receive_batch(world, key, batch_size)
    if not batch:
        return LambdaInvocation()
    views = tuple(received.view for received in batch)
    event = event_of(key, [received.wire for received in batch])
    if context is None:
        context = LambdaContext(
            invoked_function_arn=f"{_lambda_arn(key)}:function:handler",
            aws_request_id=views[0].message_id,
        )
    try:
        response = _call(world, caller, handler, event, context)
    except Exception as error:
        if raise_errors:
            raise
        return LambdaInvocation(event, None, (), views, error)
    try:
        failed_ids = (
            failed_items(response, [view.message_id for view in views])
            if report_batch_item_failures
            else frozenset()
        )
    except MalformedResponse as error:
        return LambdaInvocation(event, response, (), views, error)
    succeeded, failed = _split(key, batch, failed_ids)
    undeleted = delete_all(world, key, succeeded)
    return LambdaInvocation(
        event,
        response,
        tuple(received.view for received in succeeded if received not in undeleted),
        tuple(received.view for received in batch if received in failed or received in undeleted),
    )


def require_callable(handler: object) -> None:
    """Raise ``TypeError`` for a handler that is none, before it takes messages in vain."""
    if not callable(handler):
        raise TypeError(f"a handler is a callable, not {handler!r}")


def event_of(key: QueueKey, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The event for messages as ReceiveMessage answers them, with all attributes."""
    return {"Records": [_record(key, message) for message in messages]}


def failed_items(response: Any, message_ids: Sequence[str]) -> frozenset[str]:
    """The ids that a response reports as failed.

    Raises :class:`MalformedResponse` for everything that AWS takes as a failure of the batch.
    """
    try:
        answer = json.loads(json.dumps(response))
    except (TypeError, ValueError) as error:
        raise MalformedResponse(f"the response is not JSON: {error}") from error
    if answer is None:
        return frozenset()
    if not isinstance(answer, dict):
        raise MalformedResponse(f"the response is not an object: {answer!r}")
    items = answer.get("batchItemFailures")
    if items is None:
        return frozenset()
    if not isinstance(items, list):
        raise MalformedResponse(f"batchItemFailures is not a list: {items!r}")
    return frozenset(_item_id(item, message_ids) for item in items)


def delete_all(world: World, key: QueueKey, batch: Sequence[Received]) -> tuple[Received, ...]:
    """Delete messages by the handles they were received with; returns those that refused.

    A FIFO queue refuses once the visibility timeout is over.
    """
    undeleted = []
    for start in range(0, len(batch), limits.BATCH_ENTRIES):
        part = batch[start : start + limits.BATCH_ENTRIES]
        entries = [
            {"Id": str(position), "ReceiptHandle": received.wire["ReceiptHandle"]}
            for position, received in enumerate(part)
        ]
        answer = act(world, key, "DeleteMessageBatch", Entries=entries)
        undeleted += [part[int(entry["Id"])] for entry in answer.get("Failed", [])]
    return tuple(undeleted)


def _record(key: QueueKey, message: Mapping[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": dict(message.get("Attributes", {})),
        "messageAttributes": {
            name: _record_attribute(attribute)
            for name, attribute in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": message["MD5OfBody"],
    }
    if "MD5OfMessageAttributes" in message:
        record["md5OfMessageAttributes"] = message["MD5OfMessageAttributes"]
    record["eventSource"] = "aws:sqs"
    record["eventSourceARN"] = key.arn
    record["awsRegion"] = key.region
    return record


def _record_attribute(attribute: Mapping[str, Any]) -> dict[str, Any]:
    if "BinaryValue" in attribute:
        value = {"binaryValue": b64encode(attribute["BinaryValue"]).decode()}
    else:
        value = {"stringValue": attribute["StringValue"]}
    return {
        **value,
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": attribute["DataType"],
    }


def _check_batch_size(world: World, key: QueueKey, batch_size: int) -> None:
    fifo = world.broker.get_queue(key).settings.fifo
    allowed = FIFO_BATCH_SIZE if fifo else STANDARD_BATCH_SIZE
    if type(batch_size) is not int or batch_size not in allowed:
        raise ValueError(
            f"batch_size is {batch_size!r}; Lambda takes {allowed.low} to {allowed.high} messages"
            f" of a {'FIFO' if fifo else 'standard'} queue at once"
        )


def _receive_batch(world: World, key: QueueKey, batch_size: int) -> tuple[Received, ...]:
    batch: tuple[Received, ...] = ()
    while len(batch) < batch_size:
        at_once = min(batch_size - len(batch), limits.MAX_NUMBER_OF_MESSAGES.high)
        more = receive(world, key, at_once)
        batch += more
        if len(more) < at_once:
            break
    return batch


def _call(
    world: World, caller: Caller | None, handler: LambdaHandler, event: Any, context: Any
) -> Any:
    __tracebackhide__ = True
    # Others may be polling: a clock that jumps while they wait must not jump under the handler.
    with world.clock.hold(), Caller() if caller is None else nullcontext(caller) as call:
        return call.call(handler, event, context)


def _item_id(item: Any, message_ids: Sequence[str]) -> str:
    if not isinstance(item, dict) or "itemIdentifier" not in item:
        raise MalformedResponse(f"an item has no itemIdentifier: {item!r}")
    identifier = item["itemIdentifier"]
    if identifier is not None and not isinstance(identifier, str):
        raise MalformedResponse(f"an itemIdentifier is no text: {item!r}")
    if not identifier:
        raise MalformedResponse(f"an itemIdentifier is null or empty: {item!r}")
    if identifier not in message_ids:
        raise MalformedResponse(f"an itemIdentifier is not in the batch: {identifier!r}")
    return identifier


def _split(
    key: QueueKey, batch: Sequence[Received], failed_ids: frozenset[str]
) -> tuple[list[Received], list[Received]]:
    # Behind a failed message of its group none may be deleted, or the order would be broken.
    succeeded: list[Received] = []
    failed: list[Received] = []
    broken_groups: set[str | None] = set()
    fifo = key.name.endswith(limits.FIFO_SUFFIX)
    for received in batch:
        group = received.view.message_group_id
        if received.view.message_id in failed_ids or (fifo and group in broken_groups):
            failed.append(received)
            broken_groups.add(group)
        else:
            succeeded.append(received)
    return succeeded, failed


def _lambda_arn(key: QueueKey) -> str:
    partition = key.arn.split(":")[1]
    return f"arn:{partition}:lambda:{key.region}:{key.account_id}"
