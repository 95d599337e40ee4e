"""The part of the broker that starts, ends and lists message move tasks."""

from __future__ import annotations

from pytest_sqsq.engine.broker_state import BrokerState
from pytest_sqsq.engine.move_tasks import MoveTask
from pytest_sqsq.engine.queue import Queue
from pytest_sqsq.errors import InvalidParameterValue
from pytest_sqsq.models import QueueKey
from pytest_sqsq.store.records import PutMoveTask, Record, RemoveMoveTask


class Moving(BrokerState):
    """Message move tasks; their steps are the settler's."""

    def start_move_task(
        self, source: Queue, destination_arn: str | None, rate: int | None
    ) -> MoveTask:
        """Start moving a queue's visible messages; without a rate all are moved on return.

        ``rate`` is in messages a second.  Whether ``destination_arn`` names a queue is looked at
        when a message is to move there; ``None`` sends each message to where it came from.
        Raises ``InvalidParameterValue`` while another task of this source is running.
        """
        tasks = self._settler.tasks
        with self.entry(source) as now_ms:
            with self._settler.task_lock:
                if any(task.is_running for task in tasks.of_source(source.key)):
                    raise InvalidParameterValue(
                        "There is already a task running. Only one active task is allowed"
                        " for a source queue arn at a given time."
                    )
                place = tasks.next_place()
            task_id = self._identifiers.new("task", source.key)
            task = MoveTask(
                task_id, place, source.key, destination_arn, rate, now_ms, source.visible_count
            )
            if not task.to_move:
                task.status = "COMPLETED"
            records: list[Record] = [PutMoveTask(task.record())]
            with self._settler.task_lock:
                outlived = tasks.outlived(source.key)
            records += [RemoveMoveTask(source.key, other.task_id) for other in outlived]
            self._writer.write(records, source)
            with self._settler.task_lock:
                tasks.add(task)
        if rate is None:
            self._settler.run_whole_task(task, now_ms)
        self._settler.task_changed()
        return task

    def cancel_move_task(self, task: MoveTask) -> None:
        """End a running task; what was moved stays moved.  One that has ended stays as it is."""
        source = self.get_queue(task.source)
        with self.entry(source):
            if not task.is_running:
                return
            cancelled = PutMoveTask(task.record()._replace(status="CANCELLED"))
            self._writer.write([cancelled], source)
            task.status = "CANCELLED"
        self._settler.task_changed()

    def move_tasks(self, source: Queue) -> list[MoveTask]:
        """The tasks of a source, newest first, at most ten ended ones."""
        with self.entry(source), self._settler.task_lock:
            return self._settler.tasks.of_source(source.key)

    def find_move_task(self, task_id: str) -> MoveTask | None:
        """The task with this id, of whatever source; ``None`` for a forgotten one.  O(tasks)."""
        with self._settler.task_lock:
            return self._settler.tasks.find(task_id)

    def move_task_ids(self, source: QueueKey) -> list[str]:
        """The ids of the tasks of a source."""
        with self._settler.task_lock:
            return [task.task_id for task in self._settler.tasks.of_source(source)]

    def running_move_tasks(self) -> list[MoveTask]:
        """The running tasks of all sources.  O(tasks)."""
        with self._settler.task_lock:
            return self._settler.tasks.running()
