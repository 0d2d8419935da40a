"""What jobs need to start, what they lack, and whether the nodes could ever hold it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from heapq import nsmallest
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.engine.attribution import take_attribution
from stromboli.engine.node_sizes import NodeSizes, OpenNodeSizes, SelectedNodeSizes
from stromboli.engine.placement.node_fit import TaskSlots, asked_amounts
from stromboli.engine.queue_limits import capabilities
from stromboli.engine.topology.topology_limits import highest_tier
from stromboli.model.amounts import Amounts, excess, lacking, times, total_of
from stromboli.model.cluster import SUM_OF
from stromboli.model.constraints.node_selection import barred_nodes
from stromboli.model.constraints.pod_affinity import required_anti_affinity, slots_apart
from stromboli.model.devices.task_claims import claimed_amounts
from stromboli.model.dimensions import PODS
from stromboli.model.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stromboli.engine.rules import Rules
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task

_HOLDING = tuple(status for status in Status if SUM_OF[status] in ("allocated", "pipelined"))
_PLACEABLE = (*_HOLDING, Status.PENDING)
"""Statuses of tasks that hold capacity or may still be placed."""


class JobNeeds:
    """What jobs need to start, for admission and for the order of jobs.

    With `reserves_minimum` a job without minResources needs what its pods request, and a running job below its minimum
    comes before new jobs.
    """

    def __init__(self, cluster: Cluster, rules: Rules, reserves_minimum: bool) -> None:
        self.cluster = cluster
        self._rules = rules
        # quirk: without the option, capacity is kept for jobs that select no node, as by Volcano
        by_labels = reserves_minimum and not rules.ignores_node_labels
        self._sizes_type = SelectedNodeSizes if by_labels else NodeSizes
        self.reserves_minimum = reserves_minimum
        """The option `reserveMinimum` of the action enqueue."""
        self._keeps_off = by_labels and rules.keeps_off_barred_nodes
        self._keeps_apart = reserves_minimum and rules.keeps_pods_apart
        self._hopeless: dict[Job, bool] = {}
        self._scattered: dict[Job, bool] = {}
        self._barred: dict[Job, bool] = {}
        self.kept_apart: dict[Job, None] = {}
        """Jobs that have pods with anti-affinity: what they need depends on all labels of nodes."""
        self._domain_sizes: Ints | None = None

    @property
    def sizes(self) -> NodeSizes:
        """The sizes of all nodes."""
        return self.cluster.columns.derived(self._sizes_type)

    def least(self, job: Job) -> Amounts | None:
        """What a job needs to start: its minResources, or what its pods request; None if neither is known."""
        if job.min_resources is not None or not self.reserves_minimum or job.group is None:
            return job.min_resources
        return _least_of_pods(job)

    def claimed(self, *tasks: Task) -> Amounts:
        """What claimed devices of tasks count against the limits of queues."""
        return claimed_amounts(self.cluster.devices, self.cluster.dims, *tasks)

    def elastic(self, job: Job) -> Amounts:
        """What a job holds above what it needs."""
        return job.elastic if job.min_resources is not None else excess(job.allocated, self.least(job) or {})

    def reserved(self, job: Job, in_full: bool = False) -> Amounts:
        """What is reserved for an admitted job that does not hold it yet.

        `in_full`: until a job runs, all that it needs is reserved, whatever its pods hold.
        """
        is_inqueue = job.phase == names.GROUP_INQUEUE
        if not is_inqueue:
            started = job.phase == names.GROUP_RUNNING and job.allocated_count >= job.minimum
            if not started and not self.runs_short(job):
                return {}
        least = self.least(job)
        if least is None:
            return {}
        if is_inqueue and in_full:
            missing = least
        else:
            missing = job.shortfall() if job.min_resources is not None else excess(least, job.allocated)
        if not missing or self._exceeds_cluster(job, least) or self.is_barred(job):
            return {}
        return job.without_gated(missing, names.QUEUE_ALLOCATION_GATE)

    def reserved_on_admission(self, job: Job) -> Amounts:
        """What admitting a job reserves for it."""
        # quirk: a hopeless job too, for the rest of this session, as its admission in Volcano
        return job.without_gated(self.least(job) or {}, names.QUEUE_ALLOCATION_GATE)

    def runs_short(self, job: Job) -> bool:
        """Whether a job comes before new jobs: it runs with less than the minimum with which it was admitted."""
        return self.reserves_minimum and (_lost_pods(job) or _waits_for_min_resources(job))

    def is_hopeless(self, job: Job) -> bool:
        """Whether a job could not start even if all nodes were empty, since those are too small or too few."""
        known = self._hopeless.get(job)
        if known is None:
            known = self._hopeless[job] = self._is_too_large(job)
        return known

    def could_never_start(self, job: Job) -> bool:
        """Whether a job is hopeless, or larger than each HyperNode that it may use if the minimum is reserved."""
        hopeless = self._hopeless.get(job)
        if hopeless is None:
            hopeless = self.is_hopeless(job)
        if hopeless or not self.reserves_minimum:
            return hopeless
        known = self._scattered.get(job)
        if known is None:
            known = self._scattered[job] = self._exceeds_hyper_nodes(job)
        return known

    def is_barred(self, job: Job) -> bool:
        """Whether nothing is reserved for a job because it cannot start even if all other jobs end.

        It could never start or, if the minimum is reserved, only after a node is added or uncordoned, a taint is
        removed, or the capability of a queue is raised.
        """
        if not self.reserves_minimum:
            return self.is_hopeless(job)
        if self.could_never_start(job):
            return True
        known = self._barred.get(job)
        if known is None:
            reasons = (self.exceeds_capability, self.exceeds_open_nodes, self.exceeds_hosts_apart)
            known = self._barred[job] = not job.has_started and any(reason(job) for reason in reasons)
        return known

    def exceeds_capability(self, job: Job) -> bool:
        """Whether the pods that must start together request more than a queue may hold."""
        queue, queues = job.queue, self.cluster.queues
        limits = capabilities(queue, self._rules, queues) if queue is not None else []
        most = [(dim, amount) for limit in limits for dim, amount in limit.items() if dim != PODS]
        if not most:
            return False
        if not job.complete:
            least = self.least(job) or {}
            return any(least.get(dim, 0) > amount for dim, amount in most)
        if (spare := self._spare(job)) is None:
            return False
        tasks = list(_tasks(job, _PLACEABLE))
        return any(_least_requested(tasks, len(tasks) - spare, dim) > amount for dim, amount in most)

    def exceeds_open_nodes(self, job: Job) -> bool:
        """Whether cordons and taints leave too few nodes for its pods, even if all nodes were empty."""
        if not self._keeps_off or not job.complete or job.has_started:
            return False
        if not barred_nodes(self.cluster.columns):
            return False
        if (spare := self._spare(job)) is None:
            return False
        sizes = self.cluster.columns.derived(OpenNodeSizes)
        return sizes.cannot_hold(list(_tasks(job, _PLACEABLE)), spare)

    def exceeds_hosts_apart(self, job: Job) -> bool:
        """Whether there are too few hosts or zones for pods that have anti-affinity to each other."""
        if not self._keeps_apart or not job.complete or job.has_started:
            return False
        if (spare := self._spare(job)) is None:
            return False
        by_shape: dict[Shape, list[Task]] = {}
        for task in _tasks(job, _PLACEABLE):
            if not task.best_effort and required_anti_affinity(task.shape.spec):
                by_shape.setdefault(task.shape, []).append(task)
        if by_shape:
            self.kept_apart[job] = None
        too_many = 0
        for shape, tasks in by_shape.items():
            slots = self.sizes.slots(shape).by_row
            too_many += max(len(tasks) - slots_apart(self.cluster, tasks, slots), 0)
        return too_many > spare

    def _spare(self, job: Job) -> int | None:
        """How many of its pending tasks need not start with the others; None if a plugin fails."""
        try:
            needed = self._rules.tasks_needed(job)
        except Exception as error:
            take_attribution(error)
            return None  # the failure is reported when the job is placed
        return max(job.counts[Status.PENDING] - job.pending_best_effort - needed, 0)

    def _exceeds_hyper_nodes(self, job: Job) -> bool:
        """Whether a job that has not started fits into no HyperNode up to its tier, even on empty nodes."""
        if (
            job.has_started
            or job.native is not None
            or (tier := highest_tier(self.cluster.hyper_nodes, job)) is None
        ):
            return False
        tree = self.cluster.hyper_nodes
        if not tree or tier >= tree.top.tier:
            return False
        allowed = bisect_right(tree.lookup.domains, tier, key=lambda domain: domain.tier)
        if not job.complete:
            asked = {
                dim: amount for dim, amount in (self.least(job) or {}).items() if amount > 0 and dim != PODS
            }
            return bool(asked) and not self._holds(asked, allowed)
        tasks = list(_tasks(job, _PLACEABLE))
        try:
            needed = self._rules.tasks_needed(job) + len(tasks) - job.counts[Status.PENDING]
        except Exception as error:
            take_attribution(error)
            return False  # as in `_spare`
        counts = Counter(task.shape for task in tasks)
        anywhere = sum(count for shape, count in counts.items() if not asked_amounts(shape))
        kinds = [(self.sizes.slots(shape), count) for shape, count in counts.items() if asked_amounts(shape)]
        most = TaskSlots(kinds, anywhere).within(tree.lookup)
        return not bool((most[:allowed] >= needed).any())

    def _holds(self, asked: Mapping[int, float], allowed: int) -> bool:
        """Whether any of the first HyperNodes has these amounts."""
        if self._domain_sizes is None:
            self._domain_sizes = self.cluster.hyper_nodes.lookup.sums(self.sizes.allocatable)
        if max(asked) >= len(self._domain_sizes):
            return False
        enough = [self._domain_sizes[dim, :allowed] >= amount for dim, amount in asked.items()]
        return bool(np.logical_and.reduce(enough).any())

    def _exceeds_cluster(self, job: Job, least: Amounts) -> bool:
        """Whether all nodes together have less than a job needs to start, or than a started job lacks."""
        needed = least if job.min_resources is None else job.reservable
        total = self.cluster.total
        for dim, amount in needed.items():
            if amount > total.get(dim, 0) and dim != PODS:
                break
        else:
            return False
        lacked = excess(needed, job.held)
        return not job.has_started or bool(lacking(lacked, self._beside(job).total, lacked))

    def _is_too_large(self, job: Job) -> bool:
        if job.ready_count >= max(job.minimum, 1):
            return False
        if not job.complete:
            if self._exceeds_cluster(job, self.least(job) or {}):
                return True
        elif self._holds_each(job):
            return False
        if (spare := self._spare(job)) is None:
            return False
        if not self.sizes.cannot_hold(list(_tasks(job, _PLACEABLE)), spare):
            return False
        return not job.has_started or self._beside(job).cannot_hold(
            list(job.by_status[Status.PENDING]), spare
        )

    def _holds_each(self, job: Job) -> bool:
        """Whether all tasks of a job have one shape and the nodes have slots for all: a quick check."""
        tasks = list(_tasks(job, _PLACEABLE))
        if not tasks or any(task.shape is not tasks[0].shape for task in tasks):
            return False
        return self.sizes.total_slots(tasks[0].shape) >= len(tasks)

    def _beside(self, job: Job) -> NodeSizes:
        """What nodes hold besides the tasks of a started job, which stay even if their nodes changed."""
        return self._sizes_type(self.cluster.columns, _tasks(job, _HOLDING))


def _tasks(job: Job, statuses: Iterable[Status]) -> Iterator[Task]:
    return chain.from_iterable(map(job.by_status.__getitem__, statuses))


def _least_requested(tasks: list[Task], count: int, dim: int) -> float:
    """What any `count` of some tasks request of a resource, at least."""
    return sum(nsmallest(count, (task.request.get(dim, 0) for task in tasks)))


def _least_of_pods(job: Job) -> Amounts | None:
    """The requests of the pods that must start together: those that hold capacity, then the first pending ones."""
    count = max(job.minimum, 1) - job.counts[Status.SUCCEEDED]
    tasks = list(_tasks(job, _PLACEABLE))
    if not tasks or count <= 0:
        return None
    shape = tasks[0].shape
    if all(task.shape is shape for task in tasks):
        return None if shape.best_effort else times(shape.request, min(count, len(tasks)))
    first = nsmallest(
        count, tasks, key=lambda task: (task.status is Status.PENDING, -task.priority, task.order)
    )
    return total_of(task.request for task in first)


def _lost_pods(job: Job) -> bool:
    """Whether a running job lost pods that are or will be replaced; failed pods do not count until they are."""
    return job.below_minimum and (job.counts[Status.PENDING] > 0 or not job.counts[Status.FAILED])


def _waits_for_min_resources(job: Job) -> bool:
    """Whether a running job has pending pods that its minResources include."""
    if not job.has_started or not job.counts[Status.PENDING]:
        return False
    return any(dim != PODS and job.pending.get(dim, 0) > 0 for dim in job.shortfall())
