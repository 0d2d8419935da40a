"""Room that is kept for pods whose gate the queue has lifted and that have no node yet (spec 03 10)."""

from __future__ import annotations

from stromboli.api import names
from stromboli.engine.session import Session
from stromboli.model.amounts import Amounts, Vector, shift
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.model.task import Task


class Admitted:
    """By queue: what pending tasks ask for that were let through the gate, in this session or before."""

    def __init__(self, session: Session):
        self._tasks: dict[Task, Queue] = {}
        self._kept: dict[Queue, Amounts] = {}
        self._ungated = session.ungated
        self._counted = 0
        """How many of those that were let out in this session are counted."""
        for job in session.cluster.backlog:
            if job.queue is not None:
                for task in job.by_status[Status.PENDING]:
                    if asks_queue(task) and not task.gates:
                        self.add(task, job.queue)

    def add(self, task: Task, queue: Queue) -> None:
        if task not in self._tasks:
            self._tasks[task] = queue
            shift(self._kept.setdefault(queue, {}), task.request)

    def drop(self, task: Task) -> None:
        """It has a place now, or wants none any more."""
        queue = self._tasks.pop(task, None)
        if queue is not None:
            shift(self._kept[queue], task.request, -1)

    def beside(self, task: Task, queue: Queue) -> Vector:
        """What a queue keeps for others than this task."""
        for ungated in self._ungated[self._counted :]:
            if ungated.job is not None and ungated.job.queue is not None:
                self.add(ungated, ungated.job.queue)
        self._counted = len(self._ungated)
        kept = self._kept.get(queue, {})
        if self._tasks.get(task) is not queue:
            return kept
        return {dim: amount - task.request.get(dim, 0) for dim, amount in kept.items()}


def asks_queue(task: Task) -> bool:
    """Whether a pod wants to be held at a gate until its queue has room."""
    return task.annotations.get(names.QUEUE_ALLOCATION_GATE) == "true"
