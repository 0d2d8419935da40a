"""Victims in bundles: the surplus of a gang, or the rest of it as a whole (spec 02 7.2)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from stromboli.engine.eviction.victim_candidates import NO_BOUND, VictimIndex, queue_ranks
from stromboli.model.amounts import Amounts, dominant_share, total_of
from stromboli.model.job import READY_STATUSES

if TYPE_CHECKING:
    from stromboli.engine.eviction.victim_candidates import JobVictims, VictimCandidates
    from stromboli.engine.plugin import Bound
    from stromboli.engine.session import Session
    from stromboli.model.job import Job, SubJob
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task


@dataclass(frozen=True, slots=True)
class Bundle:
    """Tasks of one job that are evicted together: its surplus (safe), or all others of it (whole)."""

    job: Job
    tasks: tuple[Task, ...]
    """Those inside the domain in which capacity is needed."""
    safe: bool
    outside: tuple[Task, ...] = ()
    """Those elsewhere that are evicted too, so that no part of the gang is left."""

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
    """Split a job's tasks in a domain into its surplus and the rest, which includes those outside of the domain.

    A group that is evicted as a whole has no surplus.
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
    # Of a native group each task of the surplus is evicted by itself.
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
    """The bundles reduced to tasks that plugins allow: a surplus may shrink, a whole bundle may not."""
    kept = []
    for bundle in bundles:
        if not bundle.safe:
            if whole_too and all(task in allowed for task in bundle.victims):
                kept.append(bundle)
        elif tasks := tuple(task for task in bundle.tasks if task in allowed):
            kept.append(replace(bundle, tasks=tasks))
    return kept


def only_complete_gangs(bundles: list[Bundle]) -> list[Bundle]:
    """Leave out whole bundles of gangs that would not be evicted completely: some of their tasks are in no bundle."""
    counts: Counter[Job] = Counter()
    for bundle in bundles:
        counts[bundle.job] += len(bundle.victims)
    return [bundle for bundle in bundles if bundle.safe or counts[bundle.job] == bundle.job.allocated_count]


class BundleIndex(VictimIndex):
    """Possible victims with their bundles, sorted if `ordered`; only bundles of jobs that changed are made again."""

    def __init__(
        self,
        session: Session,
        candidates: VictimCandidates,
        scope: Queue | Job | None,
        ordered: bool = True,
    ):
        super().__init__(session, candidates, scope)
        self._ordered = ordered
        self._stale: dict[Job, None] = {}
        self._bundles: dict[Job, list[Bundle]] = {}
        self._losses: dict[Job, tuple[int, float]] = {}
        self._keys: dict[Job, tuple[Any, ...]] = {}
        self._with_surplus: list[tuple[tuple[Any, ...], Job]] = []
        """Jobs with bundles that are safe, by their keys; then jobs with others."""
        self._others: list[tuple[tuple[Any, ...], Job]] = []

    def update(self, task: Task, bound: Bound = NO_BOUND) -> list[Job]:
        changed = super().update(task, bound)
        self._stale.update(dict.fromkeys(changed))
        return changed

    def losses(self, jobs: Mapping[Job, JobVictims]) -> set[tuple[int, float]]:
        """The priorities of jobs, each with the share of the cluster that such a job may lose at most."""
        self._refresh()
        for job, victims in jobs.items():
            if job not in self._losses:
                held = total_of(task.request for task in victims.tasks)
                self._losses[job] = (job.priority, dominant_share(held, self._session.total))
        return {self._losses[job] for job in jobs}

    def bundles(self, jobs: Iterable[Job]) -> list[Bundle]:
        """The bundles of jobs, in no particular order."""
        self._refresh()
        return [bundle for job in jobs for bundle in self._bundles[job]]

    def in_order(self) -> Iterator[Bundle]:
        """All bundles as `order_by_job` has them, as far as they are looked at."""
        self._refresh()
        for jobs, safe in ((self._with_surplus, True), (self._others, False)):
            for _, job in reversed(jobs):
                yield from (bundle for bundle in self._bundles[job] if bundle.safe is safe)

    def _refresh(self) -> None:
        """Make the bundles of jobs again whose victims were listed again."""
        if self._ordered and self._session.rules.job_order_follows_all:
            self._clear()
        try:
            for job in list(self._stale):
                self._remove(job)
                if job in self.by_job:
                    self._add(job, sorted(bundles_of(job, self.by_job[job].tasks), key=_tie_break))
                del self._stale[job]
        except BaseException:  # a plugin failed over a key
            self._clear()
            raise

    def _clear(self) -> None:
        for known in (self._bundles, self._losses, self._keys, self._with_surplus, self._others):
            known.clear()
        self._stale = dict.fromkeys(self.by_job)

    def _add(self, job: Job, bundles: list[Bundle]) -> None:
        self._bundles[job] = bundles
        if not self._ordered:
            return
        key = self._keys[job] = self._session.job_key(job)
        for jobs, safe in ((self._with_surplus, True), (self._others, False)):
            if any(bundle.safe is safe for bundle in bundles):
                insort(jobs, (key, job))

    def _remove(self, job: Job) -> None:
        bundles, key = self._bundles.pop(job, ()), self._keys.pop(job, ())
        self._losses.pop(job, None)
        if not self._ordered:
            return
        for jobs, safe in ((self._with_surplus, True), (self._others, False)):
            if any(bundle.safe is safe for bundle in bundles):
                del jobs[bisect_left(jobs, key, key=itemgetter(0))]


def order_by_job(session: Session, bundles: Iterable[Bundle]) -> list[Bundle]:
    """Surplus first; then by job, the last one first."""
    ordered = sorted(bundles, key=_tie_break)
    ordered.sort(key=lambda bundle: session.job_key(bundle.job), reverse=True)
    return sorted(ordered, key=lambda bundle: not bundle.safe)


def order_by_queue(
    session: Session, bundles: Iterable[Bundle], preemptor: Queue, need: Amounts
) -> list[Bundle]:
    """Surplus first; then by the queue that loses first, then by efficiency."""

    ordered = sorted(bundles, key=lambda bundle: (-bundle.efficiency(need), *_tie_break(bundle)))
    ranks = queue_ranks(session, (bundle.job.queue for bundle in ordered), preemptor)
    ordered.sort(key=lambda bundle: ranks[bundle.job.queue])
    return sorted(ordered, key=lambda bundle: not bundle.safe)


def _tie_break(bundle: Bundle) -> tuple[Any, ...]:
    return (bundle.job.id, bundle.tasks[0].uid, len(bundle.tasks))
