"""What a domain must have room for, for a job or a sub-group to be tried there (spec 04 9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from stromboli.model.amounts import total_of
from stromboli.model.job import READY_STATUSES, Job, SubJob
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.amounts import Vector
    from stromboli.model.task import Task


def whole_request(unit: Job | SubJob) -> Vector:
    """What Volcano wants room for: the minimum resources of a job, all that is pending of a sub-group."""
    if isinstance(unit, Job):
        return unit.min_resources or {}
    if not unit.job.policies:
        return unit.job.pending
    return total_of(task.request for task in _pending(unit))


def minimum_request(sub_job: SubJob, needed: int) -> Vector:
    """What a sub-group requests at least, with whichever of its pending tasks it starts.

    It starts with so many of them, among which are as many of each role as the job lacks to its role minimums.
    """
    by_role: dict[str, list[Task]] = {}
    for task in _pending(sub_job):
        if not task.best_effort:
            by_role.setdefault(task.role, []).append(task)
    lacking = {role: _lacking(sub_job.job, role) for role in by_role}
    dims = {dim for tasks in by_role.values() for task in tasks for dim in task.request}
    return {dim: _least(dim, by_role, lacking, needed) for dim in dims}


def _least(dim: int, by_role: Mapping[str, list[Task]], lacking: Mapping[str, int], needed: int) -> float:
    """The least of a resource: the smallest requests of each role that lacks tasks, then those of all others."""
    total, rest = 0.0, list[float]()
    for role, tasks in by_role.items():
        requests = sorted(task.request.get(dim, 0) for task in tasks)
        total += sum(requests[: lacking[role]])
        rest += requests[lacking[role] :]
        needed -= min(lacking[role], len(requests))
    return total + sum(sorted(rest)[: max(needed, 0)])


def _lacking(job: Job, role: str) -> int:
    """How many tasks of a role must still be placed before the job can start; sub-groups may each have some."""
    if not job.role_minimums_apply or job.policies or role not in job.role_minimums:
        return 0
    counts = job.role_counts.get(role)
    have = sum(counts[status] for status in (*READY_STATUSES, Status.PIPELINED)) if counts else 0
    return max(job.role_minimums[role] - have - job.role_pending_best_effort(role), 0)


def _pending(sub_job: SubJob) -> list[Task]:
    return [task for task in sub_job.tasks if task.status is Status.PENDING]
