"""The search for victims: on which nodes it is worthwhile, and which victims plugins allow there (spec 02 0.4, 5, 6).

What a node could free at most is kept as a column, and a node on which a task would not fit even then is never
visited. What failed for one task is not tried for the next of its kind until something moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from math import ceil, inf, log2
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stromboli.engine.attribution import plugin_of
from stromboli.engine.eviction.queue_guarantees import QueueGuarantees
from stromboli.engine.eviction.victim_bundles import Surplus, is_complete
from stromboli.engine.eviction.victim_candidates import (
    FreeableCapacity,
    JobRanks,
    JobVictims,
    VictimCandidates,
    VictimIndex,
    in_victim_order,
    jobs_within,
    remember,
)
from stromboli.engine.placement.node_fit import SlotCount, TaskSlots, fits
from stromboli.engine.placement.node_placement import own_nodes_first
from stromboli.engine.points import Choice, answers, tier_intersection, votes_in_turn
from stromboli.model.amounts import Vector, dominant_share, plus, total_of
from stromboli.model.feed import TouchedJobs
from stromboli.model.topology.domain_sums import RowGroups

if TYPE_CHECKING:
    from stromboli.engine.attribution import Method
    from stromboli.engine.eviction.eviction_options import EvictionOptions
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.engine.plugin import Bound
    from stromboli.engine.rules import Rules
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.capacity_waits import WaitGroup
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain

OUT_OF_PROPORTION = 4
"""A job that would lose more times what is needed stays as long as a higher priority may lose less."""
SIZE_STEPS = 4
"""How many sizes are distinguished between one and its double."""


class Limits(NamedTuple):
    """Which of the candidates a search considers."""

    priority: float = inf
    """The highest priority that their jobs may have."""
    loss: float = inf
    """The largest share of the cluster that a job may lose."""
    last_tier: int | None = None
    """The last tier of plugins that is asked, where not all are."""


class _Shared:
    """What a search and its parts share."""

    def __init__(self, session: Session, candidates: VictimCandidates):
        self.guarantees = QueueGuarantees(session)
        self.ranks = JobRanks(session)
        self.votes = VictimVotes(session.rules, candidates.point)
        self.first_tier = session.rules.first_tier(candidates.point)
        self.searches: dict[Limits, VictimSelection] = {}
        self.indexes: dict[Hashable, VictimIndex] = {}
        self.least_losses: dict[Job, tuple[int, float]] = {}
        """By job, with how many tasks of it were ready."""
        self.losses = LossesByQueue(session)


class LossesByQueue:
    """What the jobs of each queue would lose, rounded up, by their priority; kept up by the jobs that moves touch."""

    def __init__(self, session: Session):
        self._touched = TouchedJobs(session.cluster.feed)
        self._of_job: dict[Job, set[float]] = {}
        self._counts: dict[Queue | None, dict[int, Counter[float]]] = {}
        """By queue and priority, how many jobs have each loss; of queues that were asked for."""

    def of_queue(
        self, queue: Queue, priority: float, losses_of: Callable[[Job], set[float]]
    ) -> Iterator[float]:
        """What the jobs of a queue up to some priority would lose."""
        for job in self._touched.take():
            if job in self._of_job:
                self._count(job, losses_of(job))
        if queue not in self._counts:
            self._counts[queue] = {}
            for job in queue.jobs:
                self._count(job, losses_of(job))
        for of_jobs, counts in self._counts[queue].items():
            if of_jobs <= priority:
                yield from counts

    def _count(self, job: Job, losses: set[float]) -> None:
        before, self._of_job[job] = self._of_job.get(job, set()), losses
        if losses == before:
            return
        counts = self._counts[job.queue].setdefault(job.priority, Counter())
        counts.update(losses - before)
        for loss in before - losses:
            counts[loss] -= 1
            if not counts[loss]:
                del counts[loss]


class VictimSelection:
    """The search for victims in one run of an action: among all candidates or, as a part of it, within limits."""

    def __init__(
        self,
        session: Session,
        candidates: VictimCandidates,
        options: EvictionOptions,
        limits: Limits | None = None,
        shared: _Shared | None = None,
    ):
        self.session = session
        self.options = options
        self._candidates = candidates
        self._limits = limits or Limits()
        self._is_whole = limits is None
        if shared is None:
            session.attempts.consider(session.action, candidates.of_job)
        self._shared = shared or _Shared(session, candidates)
        self._shared.searches[self._limits] = self
        self.guarantees = self._shared.guarantees
        self._capacities: dict[Hashable, FreeableCapacity] = {}
        self._failed: dict[Hashable, tuple[int, int]] = {}
        self._distinct_losses: dict[Hashable, set[float]] = {}
        """What jobs lose at least and as a whole, for tasks of one kind; as they were when it was first asked."""
        self._priorities_for: dict[Job | None, list[int]] = {}
        self._jobs_by_priority: dict[Queue | Job | None, dict[int, list[Job]]] = {}
        """By the scope of candidates, its jobs by priority, the lowest first."""

    def searches(self, task: Task, within: Domain | None = None) -> Iterator[VictimSelection]:
        """The parts of this search to try for a task one after the other; none if a like task failed before.

        `within` is the domain to which they keep, if any. If no part clears a node, the task has failed.
        """
        if self._failed and self._failed.get(self._failure_key(task, within)) == self._state_version():
            return
        yield from self._narrowest_first(task, within)
        if self.session.refused(task) is None:  # else only this task is known to fail
            self._failed[self._failure_key(task, within)] = self._state_version()

    def _narrowest_first(self, task: Task, within: Domain | None) -> Iterator[VictimSelection]:
        """The searches among some of the candidates, the best victims first; last the one among all of them.

        With `fewestVictims`, victims that the first tier allows are looked for on every node, those of the lowest
        priority first, before any others. Among them, jobs that would lose many times what is needed come last,
        whatever their priority. Among the others, smaller jobs come first, and among those of a size the lowest
        priority.
        """
        if not self.options.fewest_victims:
            yield self
            return
        priorities = self._priorities(task)
        parts = [self._part(priority=each, last_tier=self._shared.first_tier) for each in priorities]
        need = self._need(task)
        for is_large in (False, True):
            for part in parts:
                for loss, search in part._by_size(task):
                    if is_out_of_proportion(loss, need) is is_large:
                        yield search
        for _, search in self._by_size(task):
            if len(priorities) < 2 or search._nodes(task, within).any():
                for priority in priorities[:-1]:
                    yield search._part(priority=priority)
                yield search

    def _part(self, **limits: Any) -> VictimSelection:
        """The same search within further limits."""
        narrower = self._limits._replace(**limits)
        known = self._shared.searches.get(narrower)
        if known is not None:
            return known
        return VictimSelection(self.session, self._candidates, self.options, narrower, self._shared)

    def _by_size(self, task: Task) -> Iterator[tuple[float, VictimSelection]]:
        """First among jobs in proportion to what the task's job needs; then among larger ones, and among all.

        With the largest share of the cluster that a job would lose.
        """
        losses = self._losses(task)
        for loss in loss_limits(self._need(task), losses):
            yield loss, self._part(loss=loss)
        yield max(losses, default=0.0), self

    def _need(self, task: Task) -> float:
        return self._share(task.job.pending) if task.job is not None else 0.0

    def _losses(self, task: Task) -> set[float]:
        """What jobs lose at least and as a whole, rounded up."""
        key = (self.session.queue_of(task), self._candidates.key(task))
        losses = self._distinct_losses.get(key)
        if losses is None:
            losses = self._distinct_losses[key] = self._losses_for(task)
        return losses

    def _losses_for(self, task: Task) -> set[float]:
        """What jobs lose from which a task may take, at least and as a whole."""
        scope, known = self._candidates.scope(task), self._shared.losses
        if scope is not None:
            within = self._jobs_for(task, jobs_within(self.session, scope))
            return {loss for job in within for loss in self._losses_of(job)}
        losses: set[float] = set()
        for queue in self.session.cluster.queues.values():
            answer = self._candidates.may_take_from_queue(task, queue)
            if answer is None:
                losses.update(*map(self._losses_of, self._jobs_for(task, queue.jobs)))
            elif answer:
                losses.update(known.of_queue(queue, self._limits.priority, self._losses_of))
        return losses

    def _losses_of(self, job: Job) -> set[float]:
        """What a job with candidates loses at least, and as a whole if it may lose all, rounded up."""
        if not job.ready_count or not job.visible:
            return set()
        losses = {rounded_up(self._least_loss(job))}
        if self.options.no_harm and is_complete(job):
            losses.add(rounded_up(self._share(job.held)))
        return losses

    def may_lose_all(self, job: Job) -> bool:
        """Whether a job may be evicted as a whole, by what it loses."""
        return self._limits.loss == inf or self._share(job.held) <= self._limits.loss

    def _share(self, amounts: Vector) -> float:
        return dominant_share(amounts, self.session.total)

    def _least_loss(self, job: Job) -> float:
        """The share of the cluster that is freed with a job's first victim: that of its gang if it is needed there."""
        known = self._shared.least_losses.get(job)
        if known is None or known[0] != job.ready_count:
            victims = (victim for status in self._candidates.statuses for victim in job.by_status[status])
            first = next(victims, None)
            spared = first is not None and self._can_spare(job, first)
            loss = self._share(first.request if first is not None and spared else job.held)
            known = self._shared.least_losses[job] = (job.ready_count, loss)
        return known[1]

    def _can_spare(self, job: Job, victim: Task) -> bool:
        if job.disrupted_as_group:
            return False
        return not self.options.no_harm or not is_complete(job) or Surplus(job).take(victim)

    def _may_take_from(self, task: Task, job: Job) -> bool:
        """Whether a job has candidates for a task within the limits."""
        return self._allows(job) and self._candidates.may_take_from(task, job)

    def _allows(self, job: Job) -> bool:
        """Whether the limits allow victims of a job."""
        limits = self._limits
        return job.priority <= limits.priority and (
            limits.loss == inf or self._least_loss(job) <= limits.loss
        )

    def _priorities(self, task: Task) -> list[int]:
        """The priorities of jobs that have candidates for a task's job, the lowest first."""
        priorities = self._priorities_for.get(task.job)
        if priorities is None:
            candidates = self._candidates
            priorities = self._priorities_for[task.job] = [
                priority
                for priority, jobs in self._by_priority_within(candidates.scope(task)).items()
                if any(candidates.has_any(job) and candidates.may_take_from(task, job) for job in jobs)
            ]
        return priorities

    def _by_priority_within(self, scope: Queue | Job | None) -> dict[int, list[Job]]:
        known = self._jobs_by_priority.get(scope)
        if known is None:
            jobs: dict[int, list[Job]] = {}
            for job in jobs_within(self.session, scope):
                if job.visible:
                    jobs.setdefault(job.priority, []).append(job)
            known = self._jobs_by_priority[scope] = dict(sorted(jobs.items()))
        return known

    # -- on which nodes it is worthwhile

    def nodes_in_order(self, task: Task, within: Domain | None = None) -> Iterator[Node]:
        """Nodes where the search is worthwhile (of a domain, if one is given), by row."""
        worthwhile = self._nodes(task, within)
        nodes = self.session.cluster.columns.nodes
        for group in own_nodes_first(self.session.cluster, worthwhile):
            if group is not None:
                yield from (nodes[row] for row in np.flatnonzero(group))  # few of them are ever asked for

    def nodes_by_score(self, task: Task, within: Domain | None = None) -> Iterator[Node]:
        """The same, the best for the task first."""
        return self.session.ranked(task, self._nodes(task, within))

    def _nodes(self, task: Task, within: Domain | None) -> Bools:
        """Nodes, of a domain or any, on which the task could fit if all possible victims were evicted."""
        session = self.session
        freeable = self._freeable_for(task)
        reach = session.reachable(task)
        if within is not None:
            reach = reach & within.mask(len(reach))
        future = session.cluster.reservations.future_idle_for(task)
        worthwhile = reach & fits(task, future + freeable.freed)
        if not worthwhile.any():
            return worthwhile
        fitting = None if self._candidates.required else fits(task, future)
        if fitting is not None and fitting[worthwhile].all():
            return worthwhile
        without_candidates = worthwhile & (self._candidate_counts(task, freeable) <= 0)
        if fitting is None or not without_candidates.any():
            return worthwhile & ~without_candidates
        return worthwhile & (~without_candidates | fitting)

    def promising(self, domains: Sequence[Domain], tasks: Sequence[Task], needed: int) -> list[Domain]:
        """The domains in which so many of some tasks could fit if all possible victims were evicted."""
        cluster = self.session.cluster
        if any(cluster.reservations.own_reservation(task) is not None for task in tasks):
            return list(domains)
        keys = [self._failure_key(task, None) for task in tasks]
        counts = Counter(keys)
        first = dict(zip(reversed(keys), reversed(tasks), strict=True))
        slots = TaskSlots((self._slots_for(first[key]), number) for key, number in counts.items())
        fitting = slots.within(RowGroups([domain.rows for domain in domains], len(cluster.columns)))
        return [domains[place] for place in np.flatnonzero(fitting >= needed).tolist()]

    def _slots_for(self, task: Task) -> SlotCount:
        """On the nodes that a task may use, if all possible victims were evicted."""
        free = self.session.cluster.columns.future_idle + self._freeable_for(task).freed
        return SlotCount(task.shape.request, free, self.session.reachable(task))

    def may_help(self, group: WaitGroup) -> bool:
        """Whether jobs that wait for capacity could have it if all possible victims were evicted.

        If tasks are served one by one, also whether a node has capacity for any of them as it is.
        """
        task = group.task
        if not task.may_preempt:
            return False
        if task.job is not None and task.job.allocated_count:
            return True  # it may take from its own tasks
        future = self.session.cluster.columns.future_idle
        if self._candidates.one_by_one and SlotCount(task.shape.request, future).total:
            return True
        slots = SlotCount(task.shape.request, future + self._freeable_for(task).freed)
        if slots.total < group.needed or not group.alike:
            return slots.total >= group.needed
        return slots.on(self.session.evaluation(task).reachable(task)) >= group.needed

    def _freeable_for(self, task: Task) -> FreeableCapacity:
        """What each node could free for a task at most: what victims hold that plugins and guarantees might allow."""
        key, kind, bound = self._kind_of(task)
        capacity = self._capacities.get(key)
        if capacity is None or not capacity.is_valid(self.session):
            capacity = remember(self._capacities, key, self._sum_freeable(task, kind, bound))
        return capacity

    def _kind_of(self, task: Task) -> tuple[Hashable, Hashable, Bound]:
        """The key of tasks with the same freeable capacity, that of the same candidates, and the bound of plugins."""
        first_tier_only = self._limits.last_tier is not None
        bound = self.session.rules.bound(
            self._candidates.point, task, self.options.no_harm, of_jobs=True, first_tier_only=first_tier_only
        )
        kind = (task.best_effort, bound.key, first_tier_only, self._candidates.key(task))
        key = (self.session.queue_of(task), task.job if self._depends_on_job(task) else None, kind)
        return key, kind, bound

    def _sum_freeable(self, task: Task, kind: Hashable, bound: Bound) -> FreeableCapacity:
        index, freeing = self._index(task, kind, bound), {}
        can_spare = self.guarantees.can_spare(self.session.queue_of(task)) if self.options.no_harm else None
        for queue, jobs in index.by_queue.items():
            of_queue = self._taken(task, queue, jobs)
            if index.has_refused:
                of_queue = {job: victims for job, victims in of_queue.items() if victims.allowed}
            if can_spare is not None and queue is not None and queue.guarantee:
                of_queue = {
                    job: victims for job, victims in of_queue.items() if can_spare(queue, victims.rows)
                }
            freeing.update(of_queue)
        return index.freeable(freeing)

    def _candidate_counts(self, task: Task, capacity: FreeableCapacity) -> Ints:
        """How many candidates for a task each node has."""
        if capacity.counts is None:
            _, kind, bound = self._kind_of(task)
            index = self._index(task, kind, bound, listing_all=True)
            for queue, jobs in index.by_queue.items():
                capacity.taken.update(self._taken(task, queue, jobs))
            capacity.counts = index.counts_by(capacity.taken)
            capacity.journal_length = len(self.session.journal)  # what it counts as evicted must stay so
        return capacity.counts

    def _taken(self, task: Task, queue: Queue | None, jobs: dict[Job, JobVictims]) -> dict[Job, JobVictims]:
        """Those of some jobs, all of one queue, from which a task may take within the limits."""
        taken = self._candidates.all_of(task, queue, jobs)
        if self._is_whole or not taken:
            return taken
        return {job: victims for job, victims in taken.items() if self._allows(job)}

    def _index(self, task: Task, kind: Hashable, bound: Bound, listing_all: bool = False) -> VictimIndex:
        """The candidates of all jobs that any task of a kind might take from: starving queues share them."""
        scope = self._candidates.scope(task)
        index = self._shared.indexes.pop((scope, kind), None)
        if index is None:
            candidates = self._candidates.of_any_job()
            index = VictimIndex(self.session, candidates, scope, whole_queues=scope is None)
        index.update(task, bound)
        if listing_all:
            index.list_all()
        return remember(self._shared.indexes, (scope, kind), index)  # not if a plugin failed on the way

    def _depends_on_job(self, task: Task) -> bool:
        """The tasks of a job that has running ones see other candidates than the tasks of other jobs."""
        return task.job is not None and any(task.job.counts[status] for status in self._candidates.statuses)

    def _jobs_for(self, task: Task, jobs: Iterable[Job]) -> Iterator[Job]:
        """Those of some jobs that have candidates for a task, if they have any."""
        return (job for job in jobs if job.ready_count and job.visible and self._may_take_from(task, job))

    def note_evicted(self, victims: Iterable[Task]) -> None:
        """These were evicted: they can free nothing again."""
        evicted = list(victims)
        for search in self._shared.searches.values():
            search._remove(evicted)

    def _remove(self, victims: list[Task]) -> None:
        journal_length = len(self.session.journal)
        for capacity in self._capacities.values():
            if capacity.is_valid(self.session):
                for victim in victims:
                    if victim.node is not None:
                        capacity.remove(victim, victim.node.row, journal_length)

    # -- the victims that plugins allow

    def choose(self, task: Task, node: Node) -> Choice | None:
        """The victims that plugins allow on a node, in the order of eviction; none if it is to be passed over."""
        on_node = self._candidates.on_node(task, node)
        if not self._is_whole:
            on_node = [victim for victim in on_node if victim.job is None or self._allows(victim.job)]
        if not on_node:
            return None if self._candidates.required else Choice([])
        candidates = in_victim_order(self.session, task, on_node, self._shared.ranks)
        candidates = self._holders_first(task, node, candidates)
        choice = self._choose_enough(task, node, candidates)
        chosen = set(choice.victims)
        return choice._replace(victims=[victim for victim in candidates if victim in chosen])

    def _holders_first(self, task: Task, node: Node, candidates: list[Task]) -> list[Task]:
        """Where a task is short of devices or the like, first those that hold any: others cannot help by themselves."""
        ledgers = self.session.cluster.ledgers_of
        needed = set(map(id, ledgers(task.shape)))
        if not needed or not self.session.evaluation(task).is_filtered(node.row):
            return candidates
        return sorted(candidates, key=lambda victim: needed.isdisjoint(map(id, ledgers(victim.shape))))

    def _choose_enough(self, task: Task, node: Node, candidates: list[Task]) -> Choice:
        """The vote; with `fewestVictims`, if it is not enough, the vote on those that hold what is still short.

        Else pods without a GPU that the first tier allows would hide those with one that only the next tier allows.
        """
        choice = self._vote(task, candidates)
        if not self.options.fewest_victims or len(choice.victims) == len(candidates):
            return choice
        freed = plus(self.session.future_idle(node, task), total_of(each.request for each in choice.victims))
        short = [dim for dim, amount in task.request.items() if amount > freed.get(dim, 0)]
        holders = [each for each in candidates if any(each.request.get(dim, 0) > 0 for dim in short)]
        return self._vote(task, holders) if 0 < len(holders) < len(candidates) else choice

    def _vote(self, task: Task, candidates: list[Task]) -> Choice:
        if self.options.fewest_victims:
            return self._shared.votes.choose(task, candidates, self._limits.last_tier)
        return self._choice(task, candidates)

    def _choice(self, task: Task, candidates: list[Task]) -> Choice:
        choice: Choice = getattr(self.session.rules, self._candidates.point)(task, candidates)
        return choice

    def members(self, job: Job) -> list[Task]:
        """The tasks of a job that could be victims by their status, the last one first."""
        return sorted(self._candidates.members(job), key=self.session.task_key, reverse=True)

    def may_evict(self, task: Task, victim: Task) -> bool:
        """Whether the first tier allows a victim by itself, plugins aside that only count what its gang can spare."""
        if not self._candidates.accepts(task, victim):
            return False
        return all(
            answer is None or victim in answer
            for plugin, answer in self.session.rules.votes(self._candidates.point, task, [victim])
            if not plugin.counts_gangs
        )

    def may_evict_together(self, task: Task, victims: list[Task]) -> bool:
        """Whether plugins allow all of these victims at once."""
        if not all(self._candidates.accepts(task, victim) for victim in victims):
            return False
        return set(self._choice(task, victims).victims) >= set(victims)

    # -- what failed before: not tried again until something moved

    def _failure_key(self, task: Task, within: Domain | None) -> Hashable:
        session = self.session
        bound = session.rules.bound(self._candidates.point, task)
        job = task.job if self._depends_on_job(task) else None
        kind = (session.placement.key(task), bound.key, job, self._candidates.key(task))
        return (session.queue_of(task), *kind, within)

    def _state_version(self) -> tuple[int, int]:
        cluster = self.session.cluster
        return (cluster.columns.clock, len(cluster.touched))


def loss_limits(need: float, losses: Collection[float]) -> list[float]:
    """Limits of what a job may lose, from what is needed to less than the largest loss; all as shares, rounded up."""
    need, largest = rounded_up(need), max(losses, default=0.0)
    return [need, *sorted(loss for loss in losses if need < loss < largest)] if need < largest else []


def is_out_of_proportion(loss: float, need: float) -> bool:
    """Whether a job would lose many times what is needed."""
    return loss > OUT_OF_PROPORTION * rounded_up(need)


def rounded_up(size: float) -> float:
    """One of a few sizes that is not smaller, so that searches with equal limits share what they know."""
    return float(2 ** (ceil(log2(size) * SIZE_STEPS) / SIZE_STEPS)) if size > 0 else 0.0


# -- the vote with `fewestVictims`: as many candidates as the plugins of one tier allow together
#
# Plugins that allow so many per gang or budget name the first ones they see, and together they may miss a candidate
# that all of them would allow. So candidates are added one at a time, each if all allow it beside those before it.
# Where every plugin of a tier votes in turn (`points.in_turn`) it is asked once about all candidates, with the same
# result.


class VictimVotes:
    """The vote of each tier at a victim point; the first tier that allows any candidate decides."""

    def __init__(self, rules: Rules, point: str):
        self._tiers = [
            (number, TierVote(methods)) for number, methods in rules.methods_by_tier(point) if methods
        ]

    def choose(self, task: Task, candidates: list[Task], last_tier: int | None = None) -> Choice:
        """The candidates that may go for a task, in their order; tiers after the last one are not asked."""
        for number, vote in self._tiers:
            if last_tier is not None and number > last_tier:
                break
            choice = vote.choose(task, candidates)
            if choice.victims:
                return choice._replace(tier=number)
        return Choice([])


class TierVote:
    """The vote of the plugins of one tier."""

    def __init__(self, methods: Sequence[Method]):
        self._methods = methods
        self._all_vote_in_turn = all(map(votes_in_turn, methods))
        self._vote = tier_intersection([methods])

    def choose(self, task: Task, candidates: list[Task]) -> Choice:
        """The candidates that all of these plugins allow together."""
        choice = self._all_at_once(task, candidates) if self._all_vote_in_turn else None
        return choice if choice is not None else self._one_at_a_time(task, candidates)

    def _all_at_once(self, task: Task, candidates: list[Task]) -> Choice | None:
        """The answer of the first plugin that spares any, if those after it allow all of it.

        None if they do not: in the place of a candidate that they spare, the first might name another.
        """
        left, voters, narrowed = candidates, [], False
        for method in self._methods:
            answer = next(answers((method,), (task, left)))
            if answer is None:
                continue
            voters.append(plugin_of(method))
            named = set(answer)
            kept = [candidate for candidate in left if candidate in named]
            if narrowed and len(kept) < len(left):
                return None
            narrowed = narrowed or len(kept) < len(left)
            left = kept
            if not left:
                break
        return Choice(left if voters else [], plugins=tuple(voters))

    def _one_at_a_time(self, task: Task, candidates: list[Task]) -> Choice:
        best = Choice([])
        for candidate in candidates:
            choice: Choice = self._vote(task, [*best.victims, candidate])
            if len(choice.victims) > len(best.victims):
                best = choice
        return best
