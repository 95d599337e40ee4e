"""The three actions on message move tasks, by which a dead-letter queue is emptied."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

from pytest_sqsq import limits
from pytest_sqsq.actions.context import ActionContext, Parameters, Result
from pytest_sqsq.actions.redrive import is_arn
from pytest_sqsq.actions.validation import (
    compact_json,
    encoded,
    json_object,
    require,
)
from pytest_sqsq.errors import (
    InvalidParameterValue,
    OverLimit,
    QueueDoesNotExist,
    ResourceNotFoundException,
)

if TYPE_CHECKING:
    from pytest_sqsq.engine import Broker, Queue
    from pytest_sqsq.engine.move_tasks import MoveTask


def start_message_move_task(context: ActionContext, parameters: Parameters) -> Result:
    """StartMessageMoveTask: to a destination, or each message to the queue it came from."""
    source_arn = require(parameters, "SourceArn")
    destination_arn = parameters.get("DestinationArn")
    rate = parameters.get("MaxNumberOfMessagesPerSecond")
    _check_arn("SourceArn", source_arn)
    if destination_arn is not None:
        _check_arn("DestinationArn", destination_arn)
    if rate is not None:
        _check_number("MaxNumberOfMessagesPerSecond", rate, limits.MOVE_TASK_RATE)
    broker = context.broker
    source = _find(broker, "SourceArn", source_arn)
    if destination_arn is not None:
        _check_destination(source, _find(broker, "DestinationArn", destination_arn))
    if not broker.sources_of(source):
        raise InvalidParameterValue("Source queue must be configured as a Dead Letter Queue.")
    _check_active_tasks(broker, source)
    task = broker.start_move_task(source, destination_arn, rate)
    return {"TaskHandle": _handle(task)}


def cancel_message_move_task(context: ActionContext, parameters: Parameters) -> Result:
    """CancelMessageMoveTask: what was moved stays moved."""
    task_id, source_arn = _read_handle(require(parameters, "TaskHandle"))
    broker = context.broker
    source = _find(broker, "SourceArn", source_arn)
    with broker.entry(source):
        task = broker.find_move_task(task_id)
    if task is None or task.source != source.key:
        raise ResourceNotFoundException("Task does not exist.")
    if not task.is_running:
        raise InvalidParameterValue("Only active tasks can be cancelled.")
    broker.cancel_move_task(task)
    return {"ApproximateNumberOfMessagesMoved": task.moved}


def list_message_move_tasks(context: ActionContext, parameters: Parameters) -> Result:
    """ListMessageMoveTasks: the newest of a source queue first, one unless more are asked for."""
    source_arn = require(parameters, "SourceArn")
    count = parameters.get("MaxResults")
    _check_arn("SourceArn", source_arn)
    if count is not None:
        _check_number("MaxResults", count, limits.MOVE_TASKS_PER_LIST)
    broker = context.broker
    source = _find(broker, "SourceArn", source_arn)
    tasks = broker.move_tasks(source)[: count or limits.MOVE_TASKS_PER_LIST.low]
    results = [_listed(task, source_arn) for task in tasks]
    return {"Results": results} if results else {}


def _check_arn(parameter: str, arn: str) -> None:
    if not is_arn(arn):
        raise InvalidParameterValue(
            f"You must use this format to specify the {parameter}:"
            " arn:<partition>:<service>:<region>:<account-id>:<resource-id>"
        )


def _check_number(parameter: str, number: int, allowed: limits.Range) -> None:
    if number not in allowed:
        raise InvalidParameterValue.for_parameter(
            parameter,
            f"You must enter a number that's between {allowed.low} and {allowed.high}.",
        )


def _find(broker: Broker, parameter: str, arn: str) -> Queue:
    queue = broker.find_arn(arn)
    if queue is None:
        raise ResourceNotFoundException.for_parameter(parameter)
    return queue


def _check_destination(source: Queue, destination: Queue) -> None:
    if destination.key == source.key:
        raise InvalidParameterValue(
            "Source queue arn and destination queue arn cannot be the same."
        )
    if destination.settings.fifo != source.settings.fifo:
        raise InvalidParameterValue(
            "The source queue and destination queue must be of the same queue type."
        )


def _check_active_tasks(broker: Broker, source: Queue) -> None:
    queues = broker.list_queues(source.key.account_id, source.key.region)
    running = sum(_running_tasks(broker, queue) for queue in queues)
    if running >= limits.ACTIVE_MOVE_TASKS:
        # The limit is documented; AWS's words for it are not known.
        raise OverLimit(
            f"An account can have at most {limits.ACTIVE_MOVE_TASKS} active message move tasks."
        )


def _running_tasks(broker: Broker, queue: Queue) -> int:
    try:
        return sum(task.is_running for task in broker.move_tasks(queue))
    except QueueDoesNotExist:
        return 0


def _handle(task: MoveTask) -> str:
    text = compact_json({"taskId": task.task_id, "sourceArn": task.source.arn})
    return b64encode(text.encode()).decode()


def _read_handle(handle: str) -> tuple[str, str]:
    """The task id and the source's ARN in a task handle."""
    try:
        members = json_object(b64decode(encoded(handle), validate=True).decode())
    except ValueError:
        members = None
    task_id, source_arn = (members or {}).get("taskId"), (members or {}).get("sourceArn")
    if not isinstance(task_id, str) or not isinstance(source_arn, str):
        raise InvalidParameterValue.for_parameter("TaskHandle")
    return task_id, source_arn


def _listed(task: MoveTask, source_arn: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "SourceArn": source_arn,
        "Status": task.status,
        "StartedTimestamp": task.started_ms,
        "ApproximateNumberOfMessagesMoved": task.moved,
        "ApproximateNumberOfMessagesToMove": task.to_move,
    }
    if task.is_running:
        entry["TaskHandle"] = _handle(task)
    optional = {
        "DestinationArn": task.destination_arn,
        "MaxNumberOfMessagesPerSecond": task.rate,
        "FailureReason": task.failure_reason,
    }
    return entry | {name: value for name, value in optional.items() if value is not None}
