"""Quota reserved for pods whose scheduling gate was removed and that have no node yet (spec 03 10)."""

from __future__ import annotations

from stromboli.api import names
from stromboli.engine.session import Session
from stromboli.model.amounts import Amounts, Vector, shift
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.model.task import Task


class AdmittedPods:
    """By queue: the requests of pending tasks whose gate was removed, in this session or before."""

    def __init__(self, session: Session):
        self._tasks: dict[Task, Queue] = {}
        self._reserved: dict[Queue, Amounts] = {}
        self._ungated = session.ungated
        self._counted = 0
        """How many of the tasks that were ungated in this session are counted."""
        for job in session.cluster.backlog:
            if job.queue is not None:
                for task in job.by_status[Status.PENDING]:
                    if is_queue_gated(task) and not task.gates:
                        self.add(task, job.queue)

    def add(self, task: Task, queue: Queue) -> None:
        if task not in self._tasks:
            self._tasks[task] = queue
            shift(self._reserved.setdefault(queue, {}), task.request)

    def drop(self, task: Task) -> None:
        """A task is no longer pending."""
        queue = self._tasks.pop(task, None)
        if queue is not None:
            shift(self._reserved[queue], task.request, -1)

    def reserved_for_others(self, task: Task, queue: Queue) -> Vector:
        """What is reserved in a queue for others than this task."""
        for ungated in self._ungated[self._counted :]:
            if ungated.job is not None and ungated.job.queue is not None:
                self.add(ungated, ungated.job.queue)
        self._counted = len(self._ungated)
        reserved = self._reserved.get(queue, {})
        if self._tasks.get(task) is not queue:
            return reserved
        return {dim: amount - task.request.get(dim, 0) for dim, amount in reserved.items()}


def is_queue_gated(task: Task) -> bool:
    """Whether a pod asks to be gated until its queue has room."""
    return task.annotations.get(names.QUEUE_ALLOCATION_GATE) == "true"
