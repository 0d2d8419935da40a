"""Series of queues, after a cycle: what changed is counted at once, and limits of other queues some seconds later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import NamedTuple

from stromboli.daemon.metric_types import OWN_PREFIX, MetricSet, forget
from stromboli.engine.plugin import LIMIT
from stromboli.engine.queue_limits import deserved_share, own_limits
from stromboli.engine.session import Session
from stromboli.model.amounts import Amounts, dominant_share, plus, shift
from stromboli.model.cluster import Cluster
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.status import Status

PAUSE = 5.0
"""Seconds between two updates of all queues: a change in one queue may change the limits of every other."""
QUEUE = ("queue_name",)
SPARE_MOMENTS = 64
"""So many moments more than twice those of pending jobs are remembered before the others are forgotten."""


class PendingJob(NamedTuple):
    """What a pending job adds to the figures of its queue."""

    queue: str
    tasks: int
    created: float
    inqueue: Amounts
    """Its minimum resources, if it was admitted."""

    @classmethod
    def of(cls, cluster: Cluster, job: Job) -> PendingJob | None:
        """None if the job is not pending. A Job gets its pods when it is admitted, so it may have none yet."""
        podless = job in cluster.waiting and job.group is not None and not job.tasks
        if job.queue is None or not (podless or job in cluster.backlog):
            return None
        inqueue = job.min_resources if job.phase == "Inqueue" else None
        return cls(job.queue.name, job.counts[Status.PENDING], job.created, inqueue or {})


@dataclass(slots=True)
class Backlog:
    """The pending jobs of a queue, in sums."""

    jobs: int = 0
    tasks: int = 0
    inqueue: Amounts = field(default_factory=dict)
    _created: Counter[float] = field(default_factory=Counter)
    """How many jobs were created at each moment."""
    _moments: list[float] = field(default_factory=list)
    """These moments as a heap, and some at which no job was created that is still pending."""

    def count(self, job: PendingJob, sign: int) -> None:
        self.jobs += sign
        self.tasks += sign * job.tasks
        shift(self.inqueue, job.inqueue, sign)
        if job.created not in self._created:
            heappush(self._moments, job.created)
        self._created[job.created] += sign
        if not self._created[job.created]:
            del self._created[job.created]
            if len(self._moments) > 2 * len(self._created) + SPARE_MOMENTS:
                self._moments = sorted(self._created)

    def oldest(self) -> float | None:
        """When the oldest job was created."""
        while self._moments and self._moments[0] not in self._created:
            heappop(self._moments)
        return self._moments[0] if self._moments else None


class QueueMetrics:
    """What queues hold, request and may have, and how many jobs are pending in them."""

    def __init__(self, metrics: MetricSet, wall: Callable[[], float]):
        self._guard = metrics.guard
        self._wall = wall
        families = ("allocated", "request", "deserved", "inqueue", "capacity", "real_capacity")
        self._amounts = {family: QueueAmounts(family, metrics) for family in families}
        gauge, own = metrics.gauge, OWN_PREFIX
        self._share = gauge("queue_share", "What a queue has of what it deserves", QUEUE)
        self._weight = gauge("queue_weight", "A queue's weight", QUEUE)
        self._overused = gauge("queue_overused", "Whether a queue has more than it deserves", QUEUE)
        self._pending_jobs = gauge(
            "queue_pending_jobs", "Jobs that wait for admission or placement", QUEUE, own
        )
        self._pending_tasks = gauge("queue_pending_tasks", "Pending tasks", QUEUE, own)
        self._age = gauge("queue_oldest_pending_seconds", "Age of the oldest pending job", QUEUE, own)
        self._shown: set[str] = set()
        """The queues that have series."""
        self._pending: dict[Job, PendingJob] = {}
        self._backlogs: dict[str, Backlog] = {}
        self._oldest: dict[str, float | None] = {}
        self._updated = float("-inf")
        """When all queues were last updated."""
        self._is_stale = False
        """Whether limits of any queue may have changed since."""

    def update(self, session: Session, changed: bool) -> None:
        """A cycle ended, in which something changed or nothing did."""
        cluster, dirty = session.cluster, session.changed
        self._is_stale |= changed
        if not self._is_stale:
            return
        if dirty.everything:
            self._pending.clear()
            self._backlogs.clear()
        jobs = cluster.jobs.values() if dirty.everything else {**dirty.jobs, **cluster.dirty.jobs}
        self._count_pending(cluster, jobs)
        changed_queues = [*dirty.queues, *cluster.dirty.queues, *(job.queue for job in jobs if job.queue)]
        names = [queue.name for queue in changed_queues]
        now = self._wall()
        if dirty.everything or dirty.nodes or abs(now - self._updated) >= PAUSE:
            self._updated, self._is_stale = now, False
            names = [*cluster.queues, *self._shown]
        for name in dict.fromkeys(names):
            queue = cluster.queues.get(name)
            if queue is not None and queue.exists:
                self._show(session, queue)
            else:
                self._forget(name)

    def _count_pending(self, cluster: Cluster, jobs: Iterable[Job]) -> None:
        """Count the pending jobs among those that changed anew; a queue that one of them left has changed too."""
        for job in jobs:
            before = self._pending.pop(job, None)
            if before is not None:
                self._backlogs[before.queue].count(before, -1)
                if not self._backlogs[before.queue].jobs:
                    del self._backlogs[before.queue]
            after = PendingJob.of(cluster, job)
            if after is not None:
                self._pending[job] = after
                self._backlogs.setdefault(after.queue, Backlog()).count(after, 1)

    def _show(self, session: Session, queue: Queue) -> None:
        name = queue.name
        backlog = self._backlogs.get(name, Backlog())
        with self._guard("queue metrics"):
            self._show_amounts(session, queue, backlog.inqueue)
        self._pending_jobs.labels(name).set(backlog.jobs)
        self._pending_tasks.labels(name).set(backlog.tasks)
        self._oldest[name] = backlog.oldest()
        if name not in self._shown:
            self._age.labels(name).set_function(partial(self._age_of, name))
            self._shown.add(name)

    def _age_of(self, queue: str) -> float:
        since = self._oldest.get(queue)
        return 0.0 if since is None else max(self._wall() - since, 0.0)

    def _show_amounts(self, session: Session, queue: Queue, inqueue: Amounts) -> None:
        """An amount without limit, such as what the root passes on in a tree, is shown as `+Inf`."""
        name, dims = queue.name, session.cluster.dims
        limits = own_limits(session, queue)
        deserved = deserved_share(queue, limits)
        families: dict[str, Amounts | None] = {
            "allocated": queue.allocated,
            "request": plus(queue.allocated, queue.pending),
            "inqueue": inqueue,
            "deserved": deserved,
            "capacity": queue.capability or None,
            "real_capacity": limits.get(LIMIT),
        }
        for family, amounts in families.items():
            if amounts is not None:
                named = {dims.names[dim]: float(amount) for dim, amount in amounts.items()}
                self._amounts[family].set(name, named)
            else:
                self._amounts[family].remove(name)
        share = dominant_share(queue.allocated, deserved)
        self._share.labels(name).set(share)
        self._weight.labels(name).set(queue.weight)
        self._overused.labels(name).set(1.0 if share > 1 else 0.0)

    def _forget(self, name: str) -> None:
        if name not in self._shown:
            return
        self._shown.discard(name)
        for amounts in self._amounts.values():
            amounts.remove(name)
        for metric in (
            self._share,
            self._weight,
            self._overused,
            self._pending_jobs,
            self._pending_tasks,
            self._age,
        ):
            forget(metric, name)


class QueueAmounts:
    """The gauges of one family of amounts of a queue: CPU, memory, other resources."""

    def __init__(self, family: str, metrics: MetricSet):
        name, text = f"queue_{family}", f"What a queue has: {family.replace('_', ' ')}"
        self._cpu = metrics.gauge(f"{name}_milli_cpu", f"{text}, in thousandths of a core", QUEUE)
        self._memory = metrics.gauge(f"{name}_memory_bytes", f"{text}, in bytes", QUEUE)
        self._others = metrics.gauge(
            f"{name}_scalar_resources", f"{text}, other resources", (*QUEUE, "resource")
        )
        self._seen: dict[str, set[str]] = {}

    def set(self, queue: str, amounts: dict[str, float]) -> None:
        """Show these amounts; a resource once seen and now absent is zero."""
        self._cpu.labels(queue).set(amounts.get("cpu", 0.0))
        self._memory.labels(queue).set(amounts.get("memory", 0.0))
        seen = self._seen.setdefault(queue, set())
        seen |= amounts.keys() - {"cpu", "memory"}
        for resource in seen:
            self._others.labels(queue, resource).set(amounts.get(resource, 0.0))

    def remove(self, queue: str) -> None:
        """The queue is gone, or has no such amounts any more."""
        if queue not in self._seen:
            return
        for gauge in (self._cpu, self._memory):
            forget(gauge, queue)
        for resource in self._seen.pop(queue):
            forget(self._others, queue, resource)
