"""Weighted shares of the cluster between queues (spec 03 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stromboli.engine.plugin import CAPABILITY, DESERVED, Bound, Plugin, QueueLimit
from stromboli.engine.points import Vote, in_turn
from stromboli.engine.queue_limits import (
    InqueueResources,
    ShareUse,
    ceiling,
    comes_closer,
    own_capability,
    refuse_for_quota,
)
from stromboli.engine.session import Session
from stromboli.model.amounts import (
    Amounts,
    Vector,
    dominant_share,
    excess,
    fits,
    fits_added,
    is_empty,
    lacking,
    less_equal,
    maximum,
    minimum_or_unlimited,
    minimum_or_zero,
    minus,
    plus,
    same,
    shift,
    times,
    total_of,
)
from stromboli.model.cluster import Dirty
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.task import Task

MAX_PASSES = 1000
NOTHING: Vector = {}


class Share:
    """What a queue may have."""

    __slots__ = ("capability", "deserved", "guarantee", "request", "weight")

    def __init__(self, queue: Queue, unguaranteed: Amounts, request: Amounts):
        self.weight = queue.weight
        self.guarantee = queue.guarantee
        self.request = request
        self.capability = ceiling(queue, unguaranteed)
        self.deserved: Amounts = {}


class Proportion(Plugin):
    """Divides the cluster among queues by weight and redistributes what a queue does not need."""

    name = "proportion"
    limits_queues = True

    def __init__(self, arguments: object, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._shares: dict[Queue, Share] = {}
        self._divided: Amounts = {}
        """The total of which the shares were computed."""
        self._shares_with_gate: dict[Queue, Share] | None = None
        """The shares if the pods of all jobs at the gate existed; computed on demand."""
        self._inqueue = InqueueResources()
        self._restores = False
        """Whether a gang that lost pods may exceed the share of its queue."""
        self._bound = Bound(
            None, lambda job: job.queue is not None and self._is_over(job.queue), self._is_over
        )

    def opening(self, session: Session, dirty: Dirty) -> None:
        self._inqueue.opening(session.needs, dirty)
        self._restores = session.needs.reserves_minimum
        self._shares_with_gate = None
        if dirty or session.sharable != self._divided:
            self._divided = session.sharable
            self._shares = self._divide(session, {})

    def _divide(self, session: Session, more: Mapping[Queue, Vector]) -> dict[Queue, Share]:
        """Divide the cluster; `more` is what queues request beside their pods."""
        known = session.cluster.queues
        queues = [known[name] for name in sorted(known) if known[name].exists]
        guaranteed = total_of(queue.guarantee for queue in queues)
        unguaranteed = excess(session.sharable, guaranteed)
        shares = {
            queue: Share(queue, unguaranteed, plus(self._inqueue.demand(queue), more.get(queue, NOTHING)))
            for queue in queues
            if queue.jobs
        }
        fill(list(shares.values()), session.sharable)
        return shares

    def _limit(self, share: Share, job: Job | None) -> Amounts:
        """What a queue may hold with another task of a job: its share, or its capability for a gang that lost pods."""
        # what a gang holds is of no use without the pods that it lost
        if self._restores and job is not None and job.below_minimum:
            return share.capability
        return share.deserved

    # -- orders and limits

    def queue_order(self, queue: Queue) -> tuple[int, float]:
        share = self._shares.get(queue)
        return (-queue.priority, dominant_share(queue.held, share.deserved) if share else 0.0)

    def overused(self, queue: Queue) -> bool:
        share = self._shares.get(queue)
        if share is None or not less_equal(share.deserved, queue.held):
            return False
        return not self._inqueue.has_gangs_below_minimum(queue) and not queue.reserved

    def allocatable(self, queue: Queue, task: Task) -> bool:
        share = self._shares.get(queue)
        if share is None or not queue.open:
            return False
        # shares change while pods that were evicted for a task leave; what they held is the task's all the same
        if queue.reserved and task.uid in self.session.cluster.reservations:
            limit = share.capability
        else:
            limit = self._limit(share, task.job)
        return fits_added(queue.unavailable_to(task.job), task.request, limit)

    def may_allocate(self, queue: Queue, task: Task, count: int) -> bool:
        share = self._shares.get(queue)
        if share is None:
            return False
        return fits_added(queue.held, times(task.request, count), self._limit(share, task.job))

    def queue_limits(self, queue: Queue) -> Iterable[QueueLimit]:
        share = self._shares.get(queue)
        if share is not None:
            held, dims = queue.held, range(len(self.session.cluster.dims))
            deserved = {dim: share.deserved.get(dim, 0) for dim in dims}
            capability = own_capability(queue)
            yield QueueLimit(queue, "capability", capability, held, "raise its capability", code=CAPABILITY)
            most, remedy = share.capability, "raise its weight"
            yield QueueLimit(queue, "deserved share", deserved, held, remedy, most, DESERVED)

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        share = self._shares.get(queue)
        if share is None or not queue.open:
            return False
        request = total_of(task.request for task in tasks)
        unavailable = queue.unavailable_to(tasks[0].job if tasks else None)
        return not lacking(plus(unavailable, request), share.deserved, request)

    def may_reclaim_for(self, job: Job) -> bool:
        queue, request = job.queue, self.session.needs.least(job) or {}
        if self._shares_with_gate is None:
            self._shares_with_gate = self._divide(self.session, self._wanted_at_gate())
        share = self._shares_with_gate.get(queue) if queue else None
        if queue is None or share is None or not queue.open:
            return False
        promised = excess(self._inqueue.of(queue), {})
        return fits(total_of((queue.held, promised, request)), share.deserved, request)

    def brings_closer_to_shares(self, taker: Queue, gained: Vector, losses: Mapping[Queue, Vector]) -> bool:
        share = self._shares.get(taker)
        if share is None or less_equal(taker.held, share.deserved):
            return True
        losers = [
            (lost, [ShareUse(queue.held, self._shares[queue].deserved)])
            for queue, lost in losses.items()
            if queue in self._shares
        ]
        return comes_closer([ShareUse(taker.held, share.deserved)], gained, losers, self.session.total)

    def _wanted_at_gate(self) -> dict[Queue, Amounts]:
        """What jobs at the gate request, less what those of their pods request that exist already."""
        wanted: dict[Queue, Amounts] = {}
        for job in self.session.cluster.waiting:
            if job.queue is None or job.min_resources is None:
                continue
            if not self.session.needs.is_barred(job):
                shift(wanted.setdefault(job.queue, {}), minus(job.min_resources, job.pending))
        return wanted

    @in_turn
    def reclaimable(self, task: Task, candidates: list[Task]) -> list[Task]:
        left: dict[Queue, Amounts] = {}
        victims = []
        for candidate in candidates:
            queue = candidate.job.queue if candidate.job else None
            share = self._shares.get(queue) if queue else None
            if queue is not None and share is not None:
                held = left.setdefault(queue, dict(queue.held))
                if not less_equal(held, share.deserved):
                    shift(held, candidate.request, -1)
                    victims.append(candidate)
        return victims

    def why_spared(self, task: Task, candidates: Sequence[Task]) -> str:
        queue = self.session.queue_of(candidates[0])
        return f'its queue "{queue.name if queue else ""}" is within its deserved share'

    def victim_bound(self, point: str, task: Task) -> Bound | None:
        return self._bound

    def _is_over(self, queue: Queue) -> bool:
        share = self._shares.get(queue)
        return share is not None and not less_equal(queue.held, share.deserved)

    # -- the gate

    def job_enqueueable(self, job: Job) -> Vote:
        queue = job.queue
        share = self._shares.get(queue) if queue else None
        if queue is None or share is None or not queue.open:
            return Vote.REJECT
        least = self.session.needs.least(job)
        if least is None:
            return Vote.PERMIT
        wanted = plus(plus(least, queue.held), self._inqueue.beside(job, queue))
        missing = lacking(wanted, share.capability, least)
        if not missing or not self._inqueue.holds_back(job, queue, missing):
            return Vote.PERMIT
        refuse_for_quota(self.session, job, self.name, {queue: share.capability}, missing)
        return Vote.REJECT

    def job_enqueued(self, job: Job) -> None:
        self._inqueue.admit(job)


def fill(shares: list[Share], total: Amounts) -> None:
    """Divide the total by weight until all requests are met or nothing is left (spec 03 6.2)."""
    remaining, unmet = total, list(shares)
    for _ in range(MAX_PASSES):
        weight = sum(share.weight for share in unmet)
        if not weight:
            return
        before, gained, lost = remaining, Amounts(), Amounts()
        still = []
        for share in unmet:
            previous = share.deserved
            part = plus(previous, times(remaining, share.weight / weight))
            part = minimum_or_zero(minimum_or_unlimited(part, share.capability), share.request)
            share.deserved = maximum(part, share.guarantee)
            if not less_equal(share.request, share.deserved) and not same(share.deserved, previous):
                still.append(share)
            shift(gained, excess(share.deserved, previous))
            shift(lost, excess(previous, share.deserved))
        unmet = still
        remaining = excess(plus(remaining, lost), gained)
        if is_empty(remaining) or same(remaining, before):
            return
