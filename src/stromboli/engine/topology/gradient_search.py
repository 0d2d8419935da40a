"""The search for the domain of a gang: group by group, the nearest first, and the best of a group (spec 02 3.4).

Volcano tries every domain of a group and takes the best of those that serve. This search has the same result with
fewer trials: domains without capacity for enough tasks are skipped (`DomainCapacity`), and the domains of a job with
one sub-group are tried in the order of their scores, which depend only on the state before the trial.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from stromboli.engine.placement.node_fit import SlotCount, TaskSlots
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.topology.task_places import (
    find_place,
    forget_nomination,
    place_nominated,
    place_tasks,
)
from stromboli.engine.topology.topology_limits import label_key

if TYPE_CHECKING:
    from stromboli.engine.pending_tasks import PendingTasks
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job, SubJob
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


class Offer(NamedTuple):
    """A domain that may serve a sub-group, and its score."""

    domain: Domain
    score: float


class GradientSearch:
    """Places jobs with a network topology or with sub-groups."""

    def __init__(self, session: Session, purpose: Literal["allocate", "reserve"] = "allocate"):
        self._session = session
        self._purpose = purpose
        self._capacity = DomainCapacity(session)
        self._held_by_queue: Job | None = None

    def place(self, job: Job, pending: PendingTasks) -> bool:
        """Place a job in the best domain of the first group in which it can start; return whether there is one."""
        without_domain = self._session.attempts.without_domain
        without_domain.pop(job, None)
        could_start = self._search(job, pending)
        if could_start:
            without_domain.pop(job, None)  # recorded for domains that did not serve
        return could_start

    def _search(self, job: Job, pending: PendingTasks) -> bool:
        session, rules = self._session, self._session.rules
        tasks = [task for _, tasks in pending.items() for task in tasks]
        slots, needed = self._capacity.of(tasks), rules.tasks_needed(job)
        limit = session.topology.tier_limit(job)
        if limit is not None and not label_key(job) and not self._capacity.any_with(slots, needed, limit):
            session.attempts.without_domain[job] = job
            return False
        if self._nothing_fits(pending):
            return False
        gradients = session.topology.gradients(job, session.cluster.hyper_nodes.top, self._purpose)
        if self._redeem_nominations(job, pending, gradients):
            return True
        slots, self._held_by_queue = self._capacity.of_usable_nodes(tasks), None
        groups = self._capacity.large_enough(slots, needed, gradients)
        if not any(groups):
            session.attempts.without_domain[job] = job
        for large_enough in groups:
            if large_enough and self._place_in_best(job, pending, large_enough):
                return True
            if self._held_by_queue is job:
                return False
        return False

    def _nothing_fits(self, pending: PendingTasks) -> bool:
        """Whether no task fits on any node; if so, the verdicts of the tasks are recorded."""
        session, top = self._session, self._session.cluster.hyper_nodes.top
        for sub_job, tasks in pending.items():
            session.attempts.clear_failed_roles(sub_job)
            for task in reversed(tasks):
                place = find_place(session, sub_job, task, top)
                if isinstance(place, Place):
                    return False
                if place is not None:
                    session.explain(task, place)
        return True

    def _redeem_nominations(self, job: Job, pending: PendingTasks, gradients: list[list[Domain]]) -> bool:
        """Place a job on the nodes that were cleared for its sub-groups; if it cannot start there, forget them."""
        session = self._session
        nominated = {sub_job: tasks for sub_job, tasks in pending.items() if sub_job.nominated_hyper_node}
        if not nominated:
            return False
        known = [session.cluster.hyper_nodes.domain(sub_job.nominated_hyper_node) for sub_job in nominated]
        pinned = [domain for domain in known if domain is not None]
        domains = (domain for group in gradients for domain in group)
        around = (domain for domain in domains if all(domain.contains(each) for each in pinned))
        if pinned and (domain := next(around, None)) and self._settle(job, pending, domain):
            return True
        for sub_job, tasks in nominated.items():
            forget_nomination(session, sub_job, tasks)
        return False

    def _place_in_best(self, job: Job, pending: PendingTasks, domains: Sequence[Domain]) -> bool:
        if len(domains) == 1:
            return self._settle(job, pending, domains[0])
        if _ends_in_one_turn(job):
            return self._settle_best_offer(job, pending, domains)
        scores = {
            domain: score for domain in domains if (score := self._try(job, pending, domain)) is not None
        }
        return bool(scores) and self._settle(job, pending, max(scores, key=lambda domain: scores[domain]))

    # -- a job in one domain, sub-group by sub-group

    def _try(self, job: Job, pending: PendingTasks, domain: Domain) -> float | None:
        """The score of a domain for a job; none if the job cannot start there."""
        with self._session.statement() as trial:
            return self._place_in(trial, job, pending.copy(), domain, compared=True)
        return None

    def _settle(self, job: Job, pending: PendingTasks, domain: Domain) -> bool:
        """Place a job in a domain, if it can start there."""
        with self._session.statement() as trial:
            left = pending.copy()
            if self._place_in(trial, job, left, domain, compared=False) is None:
                return False
            self._session.topology.widen(job, domain)
            trial.keep()
        pending.become(left)
        return True

    def _place_in(
        self, trial: Statement, job: Job, pending: PendingTasks, domain: Domain, compared: bool
    ) -> float | None:
        """Place sub-groups until the job is ready; return the score of their domains, none if it cannot start."""
        session = self._session
        session.attempts.forget_verdicts(job)
        total = 0.0
        while pending:
            sub_job, tasks = pending.pop()
            score = self._place_sub_job(sub_job, tasks, domain, compared)
            if score is None:
                continue
            total += score
            if tasks:
                pending.push(sub_job, tasks)
            if session.rules.job_ready(job):
                break
        return total if len(trial) and self._can_start(job) else None

    def _can_start(self, job: Job) -> bool:
        return self._session.rules.job_ready(job) or self._session.rules.job_pipelined(job)

    # -- a sub-group

    def _place_sub_job(
        self, sub_job: SubJob, tasks: list[Task], root: Domain, compared: bool
    ) -> float | None:
        """Place a sub-group in the best domain for it at or below a root; return the score of that domain."""
        session = self._session
        if sub_job.nominated_hyper_node and place_nominated(session, sub_job, tasks, root):
            return 0.0
        slots = self._capacity.of_usable_nodes(tasks)
        for offer in self._offers(sub_job, tasks, root, slots, compared):
            if self._settle_sub_job(sub_job, tasks, offer.domain):
                return offer.score
        return None

    def _offers(
        self, sub_job: SubJob, tasks: list[Task], root: Domain, slots: TaskSlots, compared: bool
    ) -> Iterator[Offer]:
        """Yield domains for a sub-group, the best first; the caller takes the next one if a domain does not serve.

        Scores that are compared with those in other domains of the job are computed among the domains that serve.
        """
        session, needed = self._session, self._session.rules.tasks_needed(sub_job)
        gradients = session.topology.gradients(sub_job, root, self._purpose)
        groups = self._capacity.large_enough(slots, needed, gradients)
        if not any(groups):
            session.attempts.without_domain[sub_job.job] = sub_job
        for large_enough in groups:
            left = large_enough
            if compared and len(large_enough) > 1:
                left = [domain for domain in large_enough if self._serves(sub_job, tasks, domain)]
            while left:
                offer = self._best(sub_job, left)
                yield offer
                left.remove(offer.domain)

    def _best(self, sub_job: SubJob, domains: Sequence[Domain]) -> Offer:
        scores = self._session.topology.domain_scores(sub_job, domains)
        best = max(domains, key=lambda domain: scores.get(domain.name, 0.0))
        return Offer(best, scores.get(best.name, 0.0))

    def _serves(self, sub_job: SubJob, tasks: list[Task], domain: Domain) -> bool:
        with self._session.statement() as trial:
            return self._placed(trial, sub_job, list(tasks), domain)
        return False

    def _settle_sub_job(self, sub_job: SubJob, tasks: list[Task], domain: Domain) -> bool:
        """Place tasks in a domain, if their sub-group can start with them."""
        left = list(tasks)
        with self._session.statement() as trial:
            if not self._placed(trial, sub_job, left, domain):
                return False
            self._session.topology.widen(sub_job, domain)
            trial.keep()
        tasks[:] = left
        return True

    def _placed(self, trial: Statement, sub_job: SubJob, tasks: list[Task], domain: Domain) -> bool:
        self._session.attempts.clear_failed_roles(sub_job)
        return place_tasks(self._session, trial, sub_job, tasks, domain) and len(trial) > 0

    # -- a job with one sub-group

    def _settle_best_offer(self, job: Job, pending: PendingTasks, domains: Sequence[Domain]) -> bool:
        """Place a job in the domain with the best offer; if an offer does not serve, its domain makes the next."""
        session = self._session
        session.attempts.forget_verdicts(job)
        (sub_job, tasks), *_ = pending.items()
        slots, number = self._capacity.of_usable_nodes(tasks), count()
        alike = len({(task.shape, task.role) for task in tasks}) == 1
        waiting: list[tuple[float, int, Offer, Domain, Iterator[Offer]]] = []
        for domain in domains:
            offers = self._offers(sub_job, tasks, domain, slots, compared=True)
            if offer := next(offers, None):
                heapq.heappush(waiting, (-offer.score, next(number), offer, domain, offers))
        while waiting:
            _, order, offer, domain, offers = heapq.heappop(waiting)
            refused = session.journal.refused_moves
            with session.statement() as trial:
                if self._settle_sub_job(sub_job, tasks, offer.domain) and self._can_start(job):
                    session.topology.widen(job, domain)
                    trial.keep()
                    return True
            if (
                alike
                and not session.attempts.failed_roles(sub_job)
                and session.journal.refused_moves == refused
            ):
                # nodes accepted all tasks that the queue allows
                self._held_by_queue = job
                return False
            if following := next(offers, None):
                heapq.heappush(waiting, (-following.score, order, following, domain, offers))
        return False


def _ends_in_one_turn(job: Job) -> bool:
    """Whether trying the tasks of a job once decides what it gets in a domain (spec 01 3.3)."""
    return not job.policies and job.minimum >= sum(job.role_minimums.values())


# -- the maximum number of tasks that fit into domains, by what each node will have free


class DomainCapacity:
    """Slots for tasks of each kind, by node and summed over domains; counted again when nodes changed."""

    def __init__(self, session: Session):
        self._session = session
        self._cluster = session.cluster
        self._moment: tuple[int, int] = (-1, -1)
        self._slots: dict[Hashable, SlotCount] = {}

    def of(self, tasks: Sequence[Task]) -> TaskSlots:
        """How many of these tasks fit into each domain, at most, by what they request."""
        return self._count(tasks, [task.shape for task in tasks])

    def of_usable_nodes(self, tasks: Sequence[Task]) -> TaskSlots:
        """The same for nodes that the tasks may use; this costs more."""
        return self._count(
            tasks, [(task.shape, self._session.placement.key(task)) for task in tasks], usable=True
        )

    def _count(self, tasks: Sequence[Task], keys: Sequence[Hashable], usable: bool = False) -> TaskSlots:
        moment = (self._cluster.columns.clock, self._cluster.hyper_nodes.version)
        if moment != self._moment:
            self._moment, self._slots = moment, {}
        for key, task in dict(zip(keys, tasks, strict=True)).items():
            if key not in self._slots:
                allowed = self._session.evaluation(task).allowed if usable else None
                free = self._cluster.columns.future_idle
                self._slots[key] = SlotCount(task.shape.request, free, allowed)
        kinds = ((self._slots[key], number) for key, number in Counter(keys).items())
        return TaskSlots(kinds, _reserved(self._cluster, tasks))

    def any_with(self, slots: TaskSlots, needed: int, highest_tier: int) -> bool:
        """Whether any HyperNode up to a tier has so many slots."""
        lookup = self._cluster.hyper_nodes.lookup
        enough = np.flatnonzero(slots.within(lookup) >= needed)
        return len(enough) > 0 and lookup.domains[enough[0]].tier <= highest_tier

    def large_enough(
        self, slots: TaskSlots, needed: int, groups: Sequence[Sequence[Domain]]
    ) -> list[list[Domain]]:
        """Those domains of each group that have so many slots."""
        lookup = self._cluster.hyper_nodes.lookup
        of_known, place = slots.within(lookup), lookup.place
        return [
            [
                domain
                for domain in group
                if (of_known[place[domain]] if domain in place else slots.on(domain.rows)) >= needed
            ]
            for group in groups
        ]


def _reserved(cluster: Cluster, tasks: Sequence[Task]) -> int:
    """The number of tasks that may fit beyond the slots of nodes: all, if capacity is reserved for any of them."""
    if not cluster.reservations:
        return 0
    reserved = any(cluster.reservations.own_reservation(task) is not None for task in tasks)
    return len(tasks) if reserved else 0
