"""What jobs and tasks met when they were tried in a session; none of it is undone with the moves of the attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from stromboli.engine.placement.verdict import Verdict
    from stromboli.model.amounts import Amounts
    from stromboli.model.job import Job, SubJob
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.queue import Queue
    from stromboli.model.status import Status
    from stromboli.model.task import Task


class TentativePlacement(NamedTuple):
    """Where a task stood when its last statement was undone."""

    status: Status
    node: Node
    nominated: bool


class Uncommitted(NamedTuple):
    """What tasks held without being bound when the actions had run; it was undone when the session closed."""

    pipelined: Mapping[str, str] = {}
    """Pods that were assigned to a node on which resources are still being released, with the node."""
    idle: Ints | None = None
    """What was free on each node, less what waiting gangs had been given."""
    promised: Mapping[Job, int] = {}
    """How many tasks of a job were allocated or pipelined."""
    held: Mapping[Queue, Amounts] = {}
    """What the queues of those jobs held."""


class Attempts:
    """The result of the last attempt for each job and task of a session."""

    def __init__(self) -> None:
        self.verdicts: dict[Job, dict[Task, Verdict]] = {}
        """Why tasks were not placed."""
        self.tentative: dict[Task, TentativePlacement] = {}
        """Where tasks stood before they were undone."""
        self.without_domain: dict[Job, Job | SubJob] = {}
        """Jobs that found no domain with enough capacity: the job itself, or its sub-group that found none."""
        self.had_room: dict[Job, int] = {}
        """How many tasks of a job were allocated at once in the last statement that allocated any and was undone."""
        self.uncommitted = Uncommitted()
        self._failed_roles: dict[SubJob, set[str]] = {}

    def explain(self, task: Task, verdict: Verdict) -> None:
        """Record why a task was not placed; its role counts as failed in its sub-group."""
        if task.job is not None:
            self.verdicts.setdefault(task.job, {})[task] = verdict
        if task.sub_job is not None:
            self._failed_roles.setdefault(task.sub_job, set()).add(task.role)

    def failed_roles(self, sub_job: SubJob) -> set[str]:
        """Roles with a task for which no node was found."""
        return self._failed_roles.get(sub_job, set())

    def clear_failed_roles(self, sub_job: SubJob) -> None:
        """Before another attempt: what tasks of a sub-group met no longer counts against their roles."""
        self._failed_roles.pop(sub_job, None)

    def forget_verdicts(self, job: Job) -> None:
        """Before an attempt in another domain: forget why tasks of a job were not placed."""
        self.verdicts.pop(job, None)
        for sub_job in job.sub_jobs.values():
            self.clear_failed_roles(sub_job)

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """Within this context nothing is known of earlier attempts; what it records is dropped at its end."""
        kept = self.verdicts, self.tentative, self.without_domain, self.had_room, self._failed_roles
        self.verdicts, self.tentative, self.without_domain = {}, {}, {}
        self.had_room, self._failed_roles = {}, {}
        try:
            yield
        finally:
            self.verdicts, self.tentative, self.without_domain, self.had_room, self._failed_roles = kept
