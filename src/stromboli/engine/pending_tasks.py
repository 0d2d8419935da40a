"""The tasks of a job that are still to be placed, sub-job by sub-job (spec 02 3.1)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from stromboli.api import names
from stromboli.model.job import READY_STATUSES
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job, SubJob
    from stromboli.model.task import Task


class PendingTasks:
    """The tasks still to place by sub-job, in order; the next one last."""

    def __init__(self, session: Session, tasks: dict[SubJob, list[Task]], required: set[SubJob]):
        self._session = session
        self._required = required
        """Sub-jobs without which the job could not start at the outset: they always come first."""
        self._order = sorted((self._key(sub_job), sub_job) for sub_job in tasks)
        """The sub-jobs by their keys, as a heap."""
        self._tasks = {sub_job: tasks[sub_job] for _, sub_job in self._order}

    def __bool__(self) -> bool:
        return any(self._tasks.values())

    def copy(self) -> PendingTasks:
        """The same tasks, for an attempt that may fail."""
        tasks = {sub_job: list(tasks) for sub_job, tasks in self._tasks.items()}
        return PendingTasks(self._session, tasks, self._required)

    def become(self, other: PendingTasks) -> None:
        """Take over what an attempt left."""
        self._tasks, self._order = other._tasks, other._order

    def items(self) -> Iterable[tuple[SubJob, list[Task]]]:
        return self._tasks.items()

    def pop(self) -> tuple[SubJob, list[Task]]:
        """The sub-job whose turn it is, with its tasks: required ones first, then by the order of the policy."""
        _, sub_job = heapq.heappop(self._order)
        return sub_job, self._tasks.pop(sub_job)

    def push(self, sub_job: SubJob, tasks: list[Task]) -> None:
        """Add a sub-job, or add it again, to wait for its turn."""
        self._tasks[sub_job] = tasks
        heapq.heappush(self._order, (self._key(sub_job), sub_job))

    def _key(self, sub_job: SubJob) -> tuple[Any, ...]:
        return (sub_job not in self._required, *self._session.sub_job_key(sub_job))


def pending_tasks(session: Session, job: Job) -> PendingTasks:
    """The pending tasks of a job that request resources and have no scheduling gates of other components."""
    by_group: dict[SubJob, list[Task]] = {}
    for task in job.by_status[Status.PENDING]:
        if task.sub_job is not None and not task.best_effort and not _foreign_gate(task):
            by_group.setdefault(task.sub_job, []).append(task)
    for tasks in by_group.values():
        tasks.sort(key=session.task_key, reverse=True)
    return PendingTasks(session, by_group, _required(session, job))


def _foreign_gate(task: Task) -> bool:
    return bool(task.gates) and task.gates != (names.QUEUE_ALLOCATION_GATE,)


def _required(session: Session, job: Job) -> set[SubJob]:
    """The sub-jobs that must become ready so that each policy has as many as it requires."""
    required: set[SubJob] = set()
    for policy in job.policies:
        mine = sorted(job.sub_jobs_of(policy), key=session.sub_job_key)
        waiting = [sub_job for sub_job in mine if not session.sub_job_ready(sub_job)]
        missing = policy.min_sub_groups - (len(mine) - len(waiting))
        required.update(waiting[: max(missing, 0)])
    return required


def worth_going_on(session: Session, sub_job: SubJob) -> bool:
    """Whether the job may still start after one task found no node (spec 01 3.3)."""
    job = sub_job.job
    if job.minimum == len(job.tasks) or sub_job.minimum >= len(sub_job.tasks):
        return False
    if job.policies:
        return True
    failed = session.attempts.failed_roles(sub_job)
    if job.minimum < sum(job.role_minimums.values()):
        hopeful = sum(task.role not in failed for task in job.by_status[Status.PENDING])
        return job.ready_count + hopeful >= job.minimum
    return all(_role_has_enough(job, role) for role in failed if role in job.role_minimums)


def _role_has_enough(job: Job, role: str) -> bool:
    counts = job.role_counts.get(role)
    have = sum(counts[status] for status in READY_STATUSES) if counts else 0
    return have + job.role_pending_best_effort(role) >= job.role_minimums[role]
