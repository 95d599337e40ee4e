"""Tags of queues."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pytest_sqsq import limits
from pytest_sqsq.actions.addresses import resolve
from pytest_sqsq.actions.context import ActionContext, Parameters, Result
from pytest_sqsq.actions.validation import require
from pytest_sqsq.errors import InvalidParameterValue, MissingParameter

_CHARACTERS = re.compile(r"[\w\s.:/=+\-@]*")
_RESERVED_PREFIX = "aws:"


def check_tags(tags: Mapping[str, str]) -> None:
    """Raises InvalidParameterValue for a tag that no queue can have."""
    _check_keys(tags)
    for key, value in tags.items():
        _check_characters("keys", key)
        if key.lower().startswith(_RESERVED_PREFIX):
            # Documented as reserved; AWS's words for it are not known.
            raise InvalidParameterValue(f"Tag keys may not begin with {_RESERVED_PREFIX}")
        if len(value) > limits.TAG_VALUE_LENGTH:
            raise InvalidParameterValue(
                f"Tag values must be between 0 and {limits.TAG_VALUE_LENGTH} characters in length."
            )
        _check_characters("values", value)


def check_tag_count(queue_name: str, tags: Mapping[str, str]) -> None:
    """Raises InvalidParameterValue where these are more than one queue can have."""
    if len(tags) > limits.TAGS:
        raise InvalidParameterValue(f"Too many tags added for queue {queue_name}.")


def _check_keys(keys: Iterable[str]) -> None:
    if not all(1 <= len(key) <= limits.TAG_KEY_LENGTH for key in keys):
        raise InvalidParameterValue(
            f"Tag keys must be between 1 and {limits.TAG_KEY_LENGTH} characters in length."
        )


def _check_characters(what: str, text: str) -> None:
    if not _CHARACTERS.fullmatch(text):
        raise InvalidParameterValue(
            f"Tag {what} may only contain unicode letters, digits, whitespace, or one of these"
            " symbols: _ . : / = + - @"
        )


def tag_queue(context: ActionContext, parameters: Parameters) -> Result:
    """TagQueue: adds tags, and overwrites those of the same key."""
    tags = parameters.get("Tags")
    if not tags:
        raise MissingParameter("Tags")
    queue = resolve(context, parameters)
    check_tags(tags)

    def merge(present: Mapping[str, str]) -> dict[str, str]:
        merged = {**present, **tags}
        check_tag_count(queue.key.name, merged)
        return merged

    context.broker.change_tags(queue, merge)
    return None


def untag_queue(context: ActionContext, parameters: Parameters) -> Result:
    """UntagQueue: removes tags by key; a key that the queue does not have is no fault."""
    keys = require(parameters, "TagKeys")
    queue = resolve(context, parameters)
    _check_keys(keys or [""])

    def without(present: Mapping[str, str]) -> dict[str, str]:
        return {key: value for key, value in present.items() if key not in keys}

    context.broker.change_tags(queue, without)
    return None


def list_queue_tags(context: ActionContext, parameters: Parameters) -> Result:
    """ListQueueTags."""
    tags = resolve(context, parameters).tags
    return {"Tags": dict(tags)} if tags else {}
