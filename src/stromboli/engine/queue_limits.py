"""The admission to a queue, as far as plugins that limit queues share it (spec 03 6.1).

The resources of its tasks, and those reserved for admitted jobs, count against the limits of a queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.api.resources.resource_lists import resource_list
from stromboli.engine.plugin import DESERVED
from stromboli.model.amounts import (
    UNLIMITED,
    Amounts,
    Vector,
    minimum_or_unlimited,
    minus,
    plus,
    shift,
    total_of,
)
from stromboli.model.constraints.node_selection import barred_nodes
from stromboli.model.dimensions import CPU, MEMORY, PODS, Dimensions
from stromboli.model.queue import Queue, lineage
from stromboli.model.remedy import Why

if TYPE_CHECKING:
    from stromboli.engine.job_needs import JobNeeds
    from stromboli.engine.node_sizes import NodeSizes
    from stromboli.engine.rules import Rules
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Dirty
    from stromboli.model.constraints.node_selection import Taints
    from stromboli.model.job import Job

_TOLERANCE = 1e-9
"""The part of the cluster below which a change does not count."""


class AdmittedJobs:
    """The jobs that a plugin with sums of reservations checks again in a session, and what is reserved for jobs."""

    def __init__(self) -> None:
        self._admitted: dict[Job, None] = {}
        self._sizes: NodeSizes | None = None
        self._tree_version = -1
        self._barred_nodes: Mapping[str, Taints] = {}
        self._kept_apart: dict[Job, None] = {}
        """Jobs with anti-affinity, which are checked again when nodes change."""
        self._found_apart: dict[Job, None] = {}
        """Such jobs that the last session found."""
        self._reserves_minimum = False
        self._owed: dict[tuple[Queue | None, int | None], Amounts] = {}
        """What is reserved for jobs with minResources and for running jobs, by queue and priority; with None as queue,
        for those of all queues, and with None as priority for other jobs. Empty unless the minimum is reserved.
        """
        self._parts: dict[Job, tuple[Queue | None, int | None, Amounts]] = {}
        self._priorities: Counter[int] = Counter()
        """How many jobs of each priority are owed something."""

    def opening(self, needs: JobNeeds, dirty: Dirty) -> Iterable[Job]:
        """Return the jobs to check: those that changed or were admitted.

        If nodes or HyperNodes changed, also jobs with pending pods or without all their minimum resources: other jobs
        than before may be hopeless.
        """
        self._reserves_minimum = needs.reserves_minimum
        self._kept_apart |= self._found_apart
        self._found_apart = needs.kept_apart
        jobs = dict.fromkeys(needs.cluster.jobs.values()) if dirty.everything else dirty.jobs | self._admitted
        tree_version = needs.cluster.hyper_nodes.version
        if dirty.everything or dirty.nodes or tree_version != self._tree_version:
            barred = barred_nodes(needs.cluster.columns) if needs.reserves_minimum else {}
            changed = tree_version != self._tree_version or barred != self._barred_nodes
            if not dirty.everything and (needs.sizes.differs(self._sizes) or changed):
                jobs |= dict.fromkeys(filter(_is_short, needs.cluster.jobs.values())) | needs.cluster.backlog
            self._sizes, self._tree_version, self._barred_nodes = needs.sizes, tree_version, barred
            jobs |= self._kept_apart
        if dirty.everything:
            self._owed, self._parts, self._priorities, self._kept_apart = {}, {}, Counter(), {}
        self._admitted = {}
        if self._kept_apart:
            self._kept_apart = {job: None for job in self._kept_apart if job not in jobs}
        if needs.reserves_minimum:
            for job in jobs:
                self._owe(job, needs.reserved(job) if job.visible else {})
        return jobs

    def add(self, job: Job, reserved: Amounts) -> None:
        """A job was admitted in this session."""
        self._admitted[job] = None
        if self._reserves_minimum:
            self._owe(job, reserved)

    def holds_back(self, job: Job, short: Sequence[int], queue: Queue | None = None) -> bool:
        """Whether the gate refuses a job for want of these resources.

        A job without minResources only if others (of the queue) of the same or higher priority are owed any of them.
        """
        if job.min_resources is not None:
            return bool(short)
        owed = [
            self._owed.get((queue, priority), {}) for priority in self._priorities if priority >= job.priority
        ]
        return any(amounts.get(dim, 0) > 0 for dim in short for amounts in owed)

    def yielded_to(self, job: Job, queue: Queue | None = None) -> Amounts:
        """What is reserved for jobs (of a queue) of lower priority, which does not keep the job out.

        What is reserved for new jobs without minResources, which the gate hardly limits, keeps out only their like.
        """
        if not self._owed:
            return {}
        below: list[int | None] = [priority for priority in self._priorities if priority < job.priority]
        if job.min_resources is not None:
            below.append(None)
        return total_of(self._owed.get((queue, priority), {}) for priority in below)

    def _owe(self, job: Job, amounts: Amounts) -> None:
        """Replace what is reserved for a job."""
        if job in self._parts:
            self._count(*self._parts.pop(job), -1)
        if amounts:
            is_owed = job.min_resources is not None or job.has_started
            self._parts[job] = job.queue, job.priority if is_owed else None, amounts
            self._count(*self._parts[job], 1)

    def _count(self, queue: Queue | None, priority: int | None, amounts: Amounts, sign: int) -> None:
        for key in {queue, None}:
            owed = self._owed.setdefault((key, priority), {})
            shift(owed, amounts, sign)
            if not owed:
                del self._owed[key, priority]
        if priority is not None:
            self._priorities[priority] += sign
            if not self._priorities[priority]:
                del self._priorities[priority]


def _is_short(job: Job) -> bool:
    """Whether a job was admitted and lacks any of its minimum resources."""
    return job.visible and not job.waits_for_queue and bool(job.shortfall())


class InqueueResources:
    """Per queue, what is reserved for its jobs beyond what they hold, less what they hold beyond their minimum.

    It is kept by job, so that a session checks only changed jobs.
    """

    __slots__ = ("_below_minimum", "_by_job", "_by_queue", "_hopeless", "_jobs", "_needs")

    def __init__(self) -> None:
        self._by_job: dict[Job, tuple[Queue, Amounts]] = {}
        self._by_queue: dict[Queue, Amounts] = {}
        self._hopeless: dict[Queue, dict[Job, None]] = {}
        self._below_minimum: dict[Queue, dict[Job, None]] = {}
        self._jobs = AdmittedJobs()
        self._needs: JobNeeds

    def opening(self, needs: JobNeeds, dirty: Dirty) -> None:
        """Check the jobs that changed or were admitted."""
        self._needs = needs
        if dirty.everything:
            self._by_job, self._by_queue, self._hopeless, self._below_minimum = {}, {}, {}, {}
        for job in self._jobs.opening(needs, dirty):
            self._forget(job)
            queue = job.queue
            if queue is not None and job.visible:
                if job.pending and needs.is_barred(job):
                    self._hopeless.setdefault(queue, {})[job] = None
                if needs.reserves_minimum and job.below_minimum:
                    self._below_minimum.setdefault(queue, {})[job] = None
                self._pledge(job, minus(needs.reserved(job), needs.elastic(job)))

    def of(self, queue: Queue) -> Amounts:
        """What counts against a queue besides what it holds; negative where jobs hold more than their minimum."""
        return self._by_queue.get(queue, _NOTHING)

    def beside(self, job: Job, queue: Queue) -> Amounts:
        """What counts against a queue when it decides on the admission of a job."""
        inqueue, yielded = self.of(queue), self._jobs.yielded_to(job, queue)
        return minus(inqueue, yielded) if yielded else inqueue

    def demand(self, queue: Queue) -> Amounts:
        """What the jobs of a queue hold and could still use, without the requests of hopeless jobs."""
        wanted = plus(plus(queue.allocated, queue.pending), queue.expected)
        for job in self._hopeless.get(queue, ()):
            shift(wanted, job.pending, -1)
        return wanted

    def has_gangs_below_minimum(self, queue: Queue) -> bool:
        """Whether gangs of a queue lost pods that will be replaced."""
        return any(job.below_minimum for job in self._below_minimum.get(queue, ()))

    def admit(self, job: Job) -> Amounts:
        """Count a job that is admitted now; return what that adds to its queue."""
        promised = self._needs.reserved_on_admission(job)
        if promised:
            self._pledge(job, plus(self._forget(job), promised))
        self._jobs.add(job, promised)
        return promised

    def holds_back(self, job: Job, queue: Queue | None, short: list[int]) -> bool:
        """Whether the queue does not admit a job because these resources are short."""
        return self._jobs.holds_back(job, short, queue)

    def _pledge(self, job: Job, pledge: Amounts) -> None:
        if job.queue is not None:
            self._by_job[job] = (job.queue, pledge)
            self._add(job.queue, pledge)

    def _forget(self, job: Job) -> Amounts:
        """Subtract the part of a job from the sum of its queue; return that part."""
        if job not in self._by_job:
            return {}
        queue, pledge = self._by_job.pop(job)
        if queue in self._hopeless:
            self._hopeless[queue].pop(job, None)
        if queue in self._below_minimum:
            self._below_minimum[queue].pop(job, None)
        self._add(queue, pledge, -1)
        return pledge

    def _add(self, queue: Queue, pledge: Amounts, sign: int = 1) -> None:
        total = self._by_queue.setdefault(queue, {})
        shift(total, pledge, sign)
        if not total:
            del self._by_queue[queue]


_NOTHING: Amounts = {}


def ceiling(queue: Queue, unpromised: Amounts) -> Amounts:
    """The most that a queue could have: all that is not guaranteed to others, and no more than its own limit."""
    most = plus(unpromised, queue.guarantee)
    for dim in queue.guarantee:
        most.setdefault(dim, 0)  # a guarantee of zero is a limit too
    if not queue.capability:
        return most
    limit = dict(queue.capability)
    for dim in (CPU, MEMORY):
        limit[dim] = limit.get(dim, 0) if limit.get(dim, 0) > 0 else UNLIMITED
    return minimum_or_unlimited(most, limit)


def own_capability(queue: Queue) -> Amounts:
    """The limits of `spec.capability`; zero cpu or memory is no limit."""
    return {dim: most for dim, most in queue.capability.items() if most > 0 or dim not in (CPU, MEMORY)}


def capabilities(queue: Queue, rules: Rules, queues: dict[str, Queue]) -> list[Amounts]:
    """The capability of a queue, and those of its ancestors, where plugins enforce them."""
    if rules.limits_queue_trees:
        return [own_capability(each) for each in lineage(queue, queues)]
    return [own_capability(queue)] if rules.limits_queues else []


def own_limits(session: Session, queue: Queue) -> dict[str, Amounts]:
    """The limits that plugins set for a queue itself, by their codes."""
    limits = (limit for limit in session.rules.queue_limits(queue) if limit.queue is queue)
    return {limit.code or limit.name: limit.most for limit in limits}


def deserved_share(queue: Queue, limits: dict[str, Amounts]) -> Amounts:
    """The deserved share of a queue: that of a plugin which divides the cluster, or else `spec.deserved`."""
    return limits.get(DESERVED, queue.deserved)


class ShareUse(NamedTuple):
    """What a queue holds after a reclaim, and what it deserves."""

    held: Vector
    deserved: Vector

    def excess_of(self, dim: int, amount: float, beside: float) -> float:
        """How much of an amount is above the share if the queue holds `beside` too."""
        share = self.deserved.get(dim, 0)
        return max(beside + amount - share, 0) - max(beside - share, 0)


def comes_closer(
    taker: Sequence[ShareUse],
    gained: Vector,
    losers: Sequence[tuple[Vector, Sequence[ShareUse]]],
    total: Vector,
) -> bool:
    """Whether a reclaim reduces what queues hold above their shares, as a part of the cluster for each resource.

    Only what passed from the losers to the taker counts, not what was free before or afterwards. A resource of which
    none of the queues deserves anything does not count.
    """
    change = 0.0
    uses = [*taker, *(use for _, shares in losers for use in shares)]
    for dim, amount in gained.items():
        lost = sum(loss.get(dim, 0) for loss, _ in losers)
        passed = min(amount, lost)
        if dim == PODS or passed <= 0 or not any(use.deserved.get(dim, 0) > 0 for use in uses):
            continue
        more = sum(use.excess_of(dim, passed, use.held.get(dim, 0) - amount) for use in taker)
        for loss, shares in losers:
            part, unused = loss.get(dim, 0) * passed / lost, loss.get(dim, 0) * (1 - passed / lost)
            more -= sum(use.excess_of(dim, part, use.held.get(dim, 0) + unused) for use in shares)
        change += more / max(total.get(dim, 0), passed)
    return change < -_TOLERANCE


def refuse_for_quota(
    session: Session, job: Job, plugin: str, limits: Mapping[Queue, Amounts], missing: list[int]
) -> None:
    """Do not admit a job because a queue may have too little of some resources.

    `limits`: the most that the queue may have and, where queues form a tree, the most that its ancestors may have.
    """
    dims, least = session.cluster.dims, session.needs.least(job) or {}
    queue, most = next(iter(limits.items()))
    remedies = _limits_to_raise(dims, limits, missing)
    if all(least.get(dim, 0) <= most.get(dim, 0) for dim in missing):
        remedies.insert(0, f'wait for jobs of queue "{queue.name}" to end')
    *others, last = remedies
    remedy = f"{', '.join(others)} or {last}" if others else last
    session.refuse(job, plugin, too_little_quota([dims.names[dim] for dim in dims.ordered(missing)], remedy))


def too_little_quota(resources: Sequence[str], remedy: str) -> Why:
    """Why a queue does not admit a job: it may have too little of these resources."""
    listed = ", ".join(names.INSUFFICIENT_IN_QUEUE.format(resource=name) for name in resources)
    text = names.QUEUE_QUOTA_INSUFFICIENT.format(resources=listed)
    return Why(text, remedy, "QueueQuotaInsufficient", title=names.QUEUE_QUOTA_TITLE)


def _limits_to_raise(dims: Dimensions, limits: Mapping[Queue, Amounts], missing: list[int]) -> list[str]:
    """Remedies that raise the first limit: the nearest capability that bounds it, or else more nodes."""
    least_most = next(iter(limits.values()))
    for queue, most in limits.items():
        own = own_capability(queue)
        if all(dim in own and own[dim] <= most.get(dim, 0) for dim in missing):
            amounts = resource_list(dims.named({dim: int(own[dim]) for dim in missing}))
            now = ", ".join(f"{name} {amounts[name]}" for name in (dims.names[dim] for dim in missing))
            raised = [f'raise the capability of queue "{queue.name}" ({now})']
            if all(own[dim] <= least_most.get(dim, 0) for dim in missing):
                return raised
            return [*raised, _LOWER_GUARANTEES]
    return ["add nodes", _LOWER_GUARANTEES]


_LOWER_GUARANTEES = "lower the guarantees of other queues"
