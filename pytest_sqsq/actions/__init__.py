"""The 23 actions of Amazon SQS: its rules, texts and codes, apart from bytes and from time.

An action takes the members of its input by wire name, with their types already checked, and
gives the members of its output, or ``None`` where it has none.  Order of checks: required
parameters, the queue, the request as a whole, each entry; within a step, in the order of the
API's own tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_sqsq.actions import batches, messages, move_tasks, permissions, queues, tags
from pytest_sqsq.actions.context import ActionContext, Parameters, Result
from pytest_sqsq.errors import UnknownOperation

__all__ = ["ACTIONS", "ActionContext", "perform"]

#: Every action by its wire name.
ACTIONS: Mapping[str, Callable[[ActionContext, Parameters], Result]] = {
    "AddPermission": permissions.add_permission,
    "CancelMessageMoveTask": move_tasks.cancel_message_move_task,
    "ChangeMessageVisibility": messages.change_message_visibility,
    "ChangeMessageVisibilityBatch": batches.change_message_visibility_batch,
    "CreateQueue": queues.create_queue,
    "DeleteMessage": messages.delete_message,
    "DeleteMessageBatch": batches.delete_message_batch,
    "DeleteQueue": queues.delete_queue,
    "GetQueueAttributes": queues.get_queue_attributes,
    "GetQueueUrl": queues.get_queue_url,
    "ListDeadLetterSourceQueues": queues.list_dead_letter_source_queues,
    "ListMessageMoveTasks": move_tasks.list_message_move_tasks,
    "ListQueueTags": tags.list_queue_tags,
    "ListQueues": queues.list_queues,
    "PurgeQueue": queues.purge_queue,
    "ReceiveMessage": messages.receive_message,
    "RemovePermission": permissions.remove_permission,
    "SendMessage": messages.send_message,
    "SendMessageBatch": batches.send_message_batch,
    "SetQueueAttributes": queues.set_queue_attributes,
    "StartMessageMoveTask": move_tasks.start_message_move_task,
    "TagQueue": tags.tag_queue,
    "UntagQueue": tags.untag_queue,
}


def perform(
    context: ActionContext, action: str, parameters: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Carries out an action; raises the SqsError that the service answers with.

    An unknown action raises UnknownOperation.  A long ReceiveMessage blocks in ``context.park``.
    """
    try:
        act = ACTIONS[action]
    except KeyError:
        raise UnknownOperation.action(action) from None
    return act(context, parameters)
