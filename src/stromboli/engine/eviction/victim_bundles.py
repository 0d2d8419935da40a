"""Victims in bundles: the surplus of a gang, or the rest of it as a whole (spec 02 7.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from stromboli.model.amounts import Amounts, total_of
from stromboli.model.job import READY_STATUSES

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job, SubJob
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task


@dataclass(frozen=True, slots=True)
class Bundle:
    """Tasks of one job that go together: its surplus (safe), or all the rest of it (whole)."""

    job: Job
    tasks: tuple[Task, ...]
    """Those inside the domain in which room is wanted."""
    safe: bool
    outside: tuple[Task, ...] = ()
    """Those elsewhere that go along, so that no part of the gang is left behind."""

    @property
    def victims(self) -> tuple[Task, ...]:
        return self.tasks + self.outside

    @property
    def frees(self) -> Amounts:
        """What becomes free inside the domain."""
        return total_of(task.request for task in self.tasks)

    def efficiency(self, need: Amounts) -> float:
        """How much of the need it meets for what its job loses; a surplus costs its job nothing."""
        if self.safe:
            return float("inf")
        dims = [dim for dim, amount in need.items() if amount > 0]
        freed, total = self.frees, self.job.total
        met = sum(min(freed.get(dim, 0), need[dim]) / need[dim] for dim in dims)
        cost = sum(total.get(dim, 0) / need[dim] for dim in dims)
        return met / cost if cost else float("inf")


def bundles_of(job: Job, tasks: Iterable[Task], outside: Iterable[Task] = ()) -> list[Bundle]:
    """Split a job's tasks in a domain into its surplus and the rest, with which those outside of the domain go along.

    A group that goes as a whole has no surplus.
    """
    ordered, along = _by_priority(tasks), tuple(_by_priority(outside))
    if job.disrupted_as_group:
        complete = bool(ordered) and len(ordered) + len(along) == job.allocated_count
        return [Bundle(job, tuple(ordered), safe=False, outside=along)] if complete else []
    if ordered and job.ready_count < job.minimum:
        return [Bundle(job, tuple(ordered), safe=True)]
    surplus = Surplus(job)
    safe = [task for task in ordered if surplus.take(task)]
    rest = tuple(task for task in ordered if task not in set(safe))
    whole = [Bundle(job, rest, safe=False, outside=along)] if rest else []
    # Of a native group each task of the surplus goes by itself.
    parts = [(task,) for task in safe] if job.native is not None else [tuple(safe)] if safe else []
    return [*(Bundle(job, part, safe=True) for part in parts), *whole]


def _by_priority(tasks: Iterable[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: (task.priority, task.uid))


def is_complete(job: Job) -> bool:
    """Whether a gang has its minimum of members, roles and sub-groups."""
    return job.ready_count >= job.minimum and job.roles_ready and job.sub_groups_ready


class Surplus:
    """What a gang can lose without falling below any of its minimums."""

    def __init__(self, job: Job):
        self._left = job.ready_count - job.minimum
        self._roles = {
            role: sum(job.role_counts.get(role, ())[status] for status in READY_STATUSES) - minimum
            if role in job.role_counts
            else -minimum
            for role, minimum in (job.role_minimums.items() if job.role_minimums_apply else ())
        }
        self._spare_groups = {
            policy.name: sum(
                sub.policy is not None and sub.policy.name == policy.name and sub.enough_ready
                for sub in job.sub_jobs.values()
            )
            - policy.min_sub_groups
            for policy in job.policies
            if policy.min_sub_groups > 0
        }
        self._broken: set[SubJob] = {sub for sub in job.sub_jobs.values() if not sub.enough_ready}

    def take(self, task: Task) -> bool:
        """Take a task out of the surplus; false if the job cannot spare it too."""
        if self._left <= 0 or self._roles.get(task.role, 1) <= 0 or not self._group_can_spare(task):
            return False
        self._left -= 1
        if task.role in self._roles:
            self._roles[task.role] -= 1
        self._break(task)
        return True

    def _group_can_spare(self, task: Task) -> bool:
        group = task.sub_job
        if group is None or group in self._broken or group.policy is None:
            return True
        return self._spare_groups.get(group.policy.name, 1) > 0

    def _break(self, task: Task) -> None:
        """The first task taken from a ready sub-group costs the job that sub-group."""
        group = task.sub_job
        if group is not None and group.policy is not None and group not in self._broken:
            self._broken.add(group)
            if group.policy.name in self._spare_groups:
                self._spare_groups[group.policy.name] -= 1


def allowed_bundles(bundles: Iterable[Bundle], allowed: set[Task], whole_too: bool) -> list[Bundle]:
    """The bundles reduced to tasks that plugins allow: a surplus may shrink, a whole bundle goes only as a whole."""
    kept = []
    for bundle in bundles:
        if not bundle.safe:
            if whole_too and all(task in allowed for task in bundle.victims):
                kept.append(bundle)
        elif tasks := tuple(task for task in bundle.tasks if task in allowed):
            kept.append(replace(bundle, tasks=tasks))
    return kept


def only_complete_gangs(bundles: list[Bundle]) -> list[Bundle]:
    """Leave out whole bundles of gangs that would not go completely, as some of their tasks are in no bundle."""
    counts: Counter[Job] = Counter()
    for bundle in bundles:
        counts[bundle.job] += len(bundle.victims)
    return [bundle for bundle in bundles if bundle.safe or counts[bundle.job] == bundle.job.allocated_count]


def order_by_job(session: Session, bundles: Iterable[Bundle]) -> list[Bundle]:
    """Surplus first; then by job, the last one first."""
    ordered = sorted(bundles, key=_tie_break)
    ordered.sort(key=lambda bundle: session.job_key(bundle.job), reverse=True)
    return sorted(ordered, key=lambda bundle: not bundle.safe)


def order_by_queue(
    session: Session, bundles: Iterable[Bundle], preemptor: Queue, need: Amounts
) -> list[Bundle]:
    """Surplus first; then by the queue that loses first, then by efficiency."""

    def compare(left: Bundle, right: Bundle) -> int:
        first, second = left.job.queue, right.job.queue
        if first is None or second is None or first is second:
            return 0
        return session.compare_victim_queues(first, second, preemptor)

    ordered = sorted(bundles, key=lambda bundle: (-bundle.efficiency(need), *_tie_break(bundle)))
    ordered.sort(key=cmp_to_key(compare))
    return sorted(ordered, key=lambda bundle: not bundle.safe)


def _tie_break(bundle: Bundle) -> tuple[Any, ...]:
    return (bundle.job.id, bundle.tasks[0].uid, len(bundle.tasks))
