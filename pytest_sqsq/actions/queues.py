"""The actions on queues as a whole."""

from __future__ import annotations

from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Sequence

from pytest_sqsq import limits
from pytest_sqsq.actions.addresses import key_of_url, queue_url, resolve
from pytest_sqsq.actions.attributes import (
    changed,
    check_names,
    creates_fifo,
    first_difference,
    parse_changes,
    reported_attributes,
)
from pytest_sqsq.actions.context import ActionContext, Parameters, Result
from pytest_sqsq.actions.redrive import check_target
from pytest_sqsq.actions.tags import check_tag_count, check_tags
from pytest_sqsq.actions.validation import encoded, name_pattern, name_rule
from pytest_sqsq.errors import (
    InvalidParameterValue,
    MissingParameter,
    QueueNameExists,
)
from pytest_sqsq.models import QueueKey, QueueSettings

_STANDARD_NAME = name_pattern(limits.QUEUE_NAME_LENGTH)
_FIFO_NAME = name_pattern(limits.QUEUE_NAME_LENGTH, limits.FIFO_SUFFIX)


def create_queue(context: ActionContext, parameters: Parameters) -> Result:
    """CreateQueue.  Of an existing queue only the attributes that are passed are compared."""
    name = _queue_name(parameters)
    attributes = parameters.get("Attributes") or {}
    tags = parameters.get("tags") or {}
    fifo = creates_fifo(attributes)
    _check_queue_name(name, fifo)
    changes = parse_changes(attributes, fifo=fifo)
    check_tags(tags)
    check_tag_count(name, tags)
    key = QueueKey(context.account_id, context.region, name)
    queue = context.broker.find_queue(key)
    if queue is None:
        settings = changed(QueueSettings(fifo=fifo), changes)
        if settings.redrive_policy is not None:
            text = attributes["RedrivePolicy"]
            check_target(context.broker, key, fifo, text, settings.redrive_policy)
        queue, created = context.broker.create_queue(
            key, settings, tags, cooldown_ms=context.cooldown_ms
        )
        if created:
            return {"QueueUrl": queue_url(context, key)}
    if different := first_difference(queue.settings, changes):
        raise QueueNameExists(different)
    return {"QueueUrl": queue_url(context, key)}


def _queue_name(parameters: Parameters) -> str:
    name = parameters.get("QueueName")
    if name is None:
        raise InvalidParameterValue.for_parameter("QueueName", "Must specify a queue name.")
    if not name:
        raise InvalidParameterValue("Queue name cannot be empty")
    return str(name)


def _check_queue_name(name: str, fifo: bool) -> None:
    if fifo:
        if not _FIFO_NAME.fullmatch(name):
            raise InvalidParameterValue(
                "The name of a FIFO queue can only include alphanumeric characters, hyphens, or"
                f" underscores, must end with {limits.FIFO_SUFFIX} suffix and be"
                f" 1 to {limits.QUEUE_NAME_LENGTH} in length."
            )
    elif not _STANDARD_NAME.fullmatch(name):
        raise InvalidParameterValue(name_rule(limits.QUEUE_NAME_LENGTH))


def delete_queue(context: ActionContext, parameters: Parameters) -> Result:
    """DeleteQueue: the queue and its messages are gone at once."""
    context.broker.delete_queue(resolve(context, parameters))
    return None


def get_queue_url(context: ActionContext, parameters: Parameters) -> Result:
    """GetQueueUrl, of the caller's queue or of the account in QueueOwnerAWSAccountId."""
    name = _queue_name(parameters)
    account_id = parameters.get("QueueOwnerAWSAccountId") or context.account_id
    queue = context.broker.get_queue(QueueKey(account_id, context.region, name))
    return {"QueueUrl": queue_url(context, queue.key)}


def list_queues(context: ActionContext, parameters: Parameters) -> Result:
    """ListQueues: the caller's queues by name, a page of them if MaxResults is given."""
    prefix = parameters.get("QueueNamePrefix") or ""
    queues = context.broker.list_queues(context.account_id, context.region)
    keys = [queue.key for queue in queues if queue.key.name.startswith(prefix)]
    return _page(context, parameters, keys, "QueueUrls", owner=context.account_id, prefix=prefix)


def list_dead_letter_source_queues(context: ActionContext, parameters: Parameters) -> Result:
    """ListDeadLetterSourceQueues: the queues whose RedrivePolicy names this one, by name."""
    queue = resolve(context, parameters)
    keys = [source.key for source in context.broker.sources_of(queue)]
    return _page(context, parameters, keys, "queueUrls", owner=queue.key.account_id)


def _page(
    context: ActionContext,
    parameters: Parameters,
    keys: Sequence[QueueKey],
    member: str,
    *,
    owner: str,
    prefix: str = "",
) -> Result:
    """One page of the URLs of an account's queues.  Only who asks for pages gets a NextToken.

    A token names the last queue of its page, so that pages stay right where queues come and go
    between them.
    """
    token, size = parameters.get("NextToken"), parameters.get("MaxResults")
    allowed = limits.LIST_PAGE_SIZE
    if size is not None and size not in allowed:
        raise InvalidParameterValue.for_parameter(
            "MaxResults",
            f"MaxResults must be an integer between {allowed.low} and {allowed.high}.",
        )
    if token is not None:
        if size is None:
            raise InvalidParameterValue(
                "MaxResults is a mandatory parameter when you provide a value for NextToken."
            )
        last = _last_of_page(context, token, owner, prefix)
        keys = keys[bisect_right(keys, last.name, key=lambda key: key.name) :]
    page = keys[: size or allowed.high]
    result: dict[str, object] = {}
    if page:
        result[member] = [queue_url(context, key) for key in page]
    if size is not None and len(page) < len(keys):
        result["NextToken"] = b64encode(queue_url(context, page[-1]).encode()).decode()
    return result


def _last_of_page(context: ActionContext, token: str, owner: str, prefix: str) -> QueueKey:
    try:
        url = b64decode(encoded(token), validate=True).decode()
    except ValueError as error:
        raise InvalidParameterValue("Invalid or expired next token.") from error
    last = key_of_url(context, url)
    if last.account_id != owner or not last.name.startswith(prefix):
        raise InvalidParameterValue(
            "Invalid NextToken value. If you are passing in NextToken, you must not change the"
            " other request parameters."
        )
    return last


def get_queue_attributes(context: ActionContext, parameters: Parameters) -> Result:
    """GetQueueAttributes: of the names asked for, those that the queue shows."""
    queue = resolve(context, parameters)
    names = parameters.get("AttributeNames") or []
    check_names(names)
    if not names:
        return {}
    reported = reported_attributes(context.broker, queue)
    if "All" not in names:
        reported = {name: text for name, text in reported.items() if name in names}
    return {"Attributes": reported} if reported else {}


def set_queue_attributes(context: ActionContext, parameters: Parameters) -> Result:
    """SetQueueAttributes: changes what is passed, all of it or nothing."""
    attributes = parameters.get("Attributes")
    if not attributes:
        raise MissingParameter("Attribute.Name")
    queue = resolve(context, parameters)
    fifo = queue.settings.fifo
    changes = parse_changes(attributes, fifo=fifo)
    policy = changes.get("redrive_policy")
    if policy is not None:
        check_target(context.broker, queue.key, fifo, attributes["RedrivePolicy"], policy)
    context.broker.change_settings(queue, lambda settings: changed(settings, changes))
    return None


def purge_queue(context: ActionContext, parameters: Parameters) -> Result:
    """PurgeQueue: every message of the queue goes, and the deduplication memory with them."""
    queue = resolve(context, parameters)
    context.broker.purge(queue, cooldown_ms=context.cooldown_ms)
    return None
