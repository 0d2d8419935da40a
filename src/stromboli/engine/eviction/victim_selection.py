"""The search for victims: on which nodes it is worthwhile, and which victims plugins allow there (spec 02 0.4, 5, 6).

What a node could free at most is kept as a column, and a node on which a task would not fit even then is never
visited. What failed for one task is not tried for the next of its kind until something moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import ceil, log2
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.engine.eviction.queue_guarantees import QueueGuarantees
from stromboli.engine.eviction.victim_bundles import Surplus, is_complete
from stromboli.engine.eviction.victim_candidates import (
    FreeableRoom,
    JobRanks,
    VictimCandidates,
    VictimIndex,
    in_victim_order,
    jobs_within,
    remember,
)
from stromboli.engine.eviction.victim_votes import VictimVotes
from stromboli.engine.placement.node_fit import fits, slots
from stromboli.engine.placement.shard_nodes import own_nodes_first
from stromboli.engine.points import Choice
from stromboli.model.amounts import Vector, dominant_share, plus, total_of
from stromboli.model.topology.domain_sums import RowGroups

if TYPE_CHECKING:
    from stromboli.engine.eviction.eviction_options import EvictionOptions
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.room_waits import WaitGroup
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain

Clear = Callable[["VictimSelection", "Task", "Domain | None"], bool]
"""Clears a node for a task, in a domain or anywhere, among the candidates of a search; whether it did."""
SIZE_STEPS = 4
"""How many sizes are told apart between one and its double."""


class VictimSelection:
    """The search for victims in one run of an action."""

    def __init__(self, session: Session, candidates: VictimCandidates, options: EvictionOptions):
        self.session = session
        self.options = options
        self.guarantees = QueueGuarantees(session)
        self._candidates = candidates
        self._ranks = JobRanks(session)
        self._votes = VictimVotes(session.rules, candidates.point)
        self._indexes: dict[Hashable, VictimIndex] = {}
        self._rooms: dict[Hashable, FreeableRoom] = {}
        self._spared: dict[Hashable, int] = {}
        """For tasks for which no job may be taken from: after how many moves that was found."""
        self._failed: dict[Hashable, tuple[int, int]] = {}
        self._searches: list[VictimSelection] = [self]
        """This search, and those among its candidates up to some priority."""
        self._last_tier: int | None = None
        """The last tier that is asked, where not all are."""
        self._by_priority: dict[tuple[int, bool], VictimSelection] = {}
        self._by_size: dict[float, VictimSelection] = {}
        self._least_losses: dict[Job, tuple[int, float]] = {}
        """By job, with how many tasks of it were ready."""
        self._distinct_losses: dict[Hashable, set[float]] = {}
        """What jobs lose at least and as a whole, for tasks of one kind; as they were when it was first asked."""
        self._max_loss: float | None = None
        """The share of the cluster that a job may lose at most, if it is limited."""
        self._priorities_for: dict[Job | None, list[int]] = {}
        self._jobs_by_priority: dict[Queue | Job | None, dict[int, list[Job]]] = {}
        """By the scope of candidates, its jobs by priority, the lowest first."""

    def run(self, task: Task, clear: Clear, within: Domain | None = None) -> bool:
        """Let `clear` look for a node and its victims among these candidates, unless a like task failed before.

        `within` is the domain to which it keeps, if any.
        """
        key = self._failure_key(task, within)
        if self._failed.get(key) == self._state_version():
            return False
        if any(clear(search, task, within) for search in self._narrowest_first(task, within)):
            return True
        if self.session.refused(task) is None:  # else only this task is known to fail
            self._failed[key] = self._state_version()
        return False

    def _narrowest_first(self, task: Task, within: Domain | None) -> Iterator[VictimSelection]:
        """The searches among some of the candidates, the best victims first; last the one among all of them.

        With `fewestVictims`, victims that the first tier allows are looked for on every node, those of the lowest
        priority first, before any others. Among the others, smaller jobs come first, and among those of a size the
        lowest priority.
        """
        if not self.options.fewest_victims:
            yield self
            return
        priorities = self._priorities(task)
        for priority in priorities:
            yield from self._up_to_priority(priority, first_tier_only=True)._in_proportion(task)
        for search in self._in_proportion(task):
            if len(priorities) < 2 or search._nodes(task, within).any():
                yield from map(search._up_to_priority, priorities[:-1])
                yield search

    def _in_proportion(self, task: Task) -> Iterator[VictimSelection]:
        """First among jobs in proportion to what the task's job needs; then among larger ones, and among all."""
        yield from map(self._up_to_size, self._sizes(task))
        yield self

    def _sizes(self, task: Task) -> list[float]:
        """Limits of what a job may lose, from what the task's job needs to less than the largest."""
        key = (self.session.queue_of(task), self._candidates.key(task))
        losses = self._distinct_losses.get(key)
        if losses is None:
            jobs = list(self._jobs_for(task))
            losses = {rounded_up(self._least_loss(job)) for job in jobs}
            if self.options.no_harm:
                losses |= {rounded_up(self._share(job.held)) for job in jobs if is_complete(job)}
            self._distinct_losses[key] = losses
        return loss_limits(self._share(task.job.pending) if task.job is not None else 0.0, losses)

    def may_lose_all(self, job: Job) -> bool:
        """Whether a job may be evicted as a whole, by what it loses."""
        return self._max_loss is None or self._share(job.held) <= self._max_loss

    def _share(self, amounts: Vector) -> float:
        return dominant_share(amounts, self.session.total)

    def _least_loss(self, job: Job) -> float:
        """The share of the cluster that is freed with a job's first victim: that of its gang if it is needed there."""
        known = self._least_losses.get(job)
        if known is None or known[0] != job.ready_count:
            victims = (victim for status in self._candidates.statuses for victim in job.by_status[status])
            first = next(victims, None)
            spared = first is not None and self._can_spare(job, first)
            loss = self._share(first.request if first is not None and spared else job.held)
            known = self._least_losses[job] = (job.ready_count, loss)
        return known[1]

    def _can_spare(self, job: Job, victim: Task) -> bool:
        if job.disrupted_as_group:
            return False
        return not self.options.no_harm or not is_complete(job) or Surplus(job).take(victim)

    def _up_to_priority(self, priority: int, first_tier_only: bool = False) -> VictimSelection:
        search = self._by_priority.get((priority, first_tier_only))
        if search is None:
            may_take_from = self._candidates.may_take_from
            search = self._by_priority[priority, first_tier_only] = self._limited(
                may_take_from=lambda task, job: job.priority <= priority and may_take_from(task, job)
            )
            if first_tier_only:
                search._last_tier = self.session.rules.first_tier(self._candidates.point)
        return search

    def _up_to_size(self, size: float) -> VictimSelection:
        search = self._by_size.get(size)
        if search is None:
            may_take_from = self._candidates.may_take_from
            search = self._by_size[size] = self._limited(
                may_take_from=lambda task, job: self._least_loss(job) <= size and may_take_from(task, job)
            )
            search._max_loss = size
        return search

    def _limited(self, **limits: Any) -> VictimSelection:
        """The same search among fewer candidates."""
        search = VictimSelection(self.session, replace(self._candidates, **limits), self.options)
        search._last_tier, search._max_loss = self._last_tier, self._max_loss
        search._searches, search._indexes = self._searches, self._indexes
        search.guarantees = self.guarantees
        self._searches.append(search)
        return search

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
                yield from (nodes[row] for row in np.flatnonzero(group).tolist())

    def nodes_by_score(self, task: Task, within: Domain | None = None) -> Iterator[Node]:
        """The same, the best for the task first."""
        return self.session.ranked(task, self._nodes(task, within))

    def _nodes(self, task: Task, within: Domain | None) -> Bools:
        """Nodes, of a domain or any, on which the task could fit if all possible victims were evicted."""
        session = self.session
        room = self._freeable_for(task)
        reach = session.reachable(task)
        if within is not None:
            reach = reach & within.mask(len(reach))
        future = session.cluster.reservations.future_idle_for(task)
        worthwhile = reach & fits(task, future + room.freed)
        if not worthwhile.any():
            return worthwhile
        has_candidates: Bools = room.counts > 0
        if self._candidates.required:
            return worthwhile & has_candidates
        return worthwhile & (has_candidates | fits(task, future))

    def promising(self, domains: Sequence[Domain], tasks: Sequence[Task], needed: int) -> list[Domain]:
        """The domains in which so many of some tasks could have room if all possible victims were evicted."""
        cluster = self.session.cluster
        if any(cluster.reservations.own_room(task) is not None for task in tasks):
            return list(domains)
        groups = RowGroups([domain.rows for domain in domains], len(cluster.columns))
        kinds = [self._failure_key(task, None) for task in tasks]
        fitting = np.zeros(len(domains), dtype=np.int64)
        for task, count in ((tasks[kinds.index(kind)], count) for kind, count in Counter(kinds).items()):
            room = slots(task.shape, cluster.columns.future_idle + self._freeable_for(task).freed)
            fitting += np.minimum(groups.sums(room * self.session.reachable(task)), count)
        return [domain for domain, fit in zip(domains, fitting, strict=True) if fit >= needed]

    def may_make_room(self, group: WaitGroup, one_by_one: bool = False) -> bool:
        """Whether jobs that wait for room could have it if all possible victims were evicted.

        If tasks are served `one_by_one`, also whether there is room for any of them as it is.
        """
        task = group.task
        if not task.may_preempt:
            return False
        if task.job is not None and task.job.allocated_count:
            return True  # it may take from its own tasks
        future = self.session.cluster.columns.future_idle
        if one_by_one and slots(task.shape, future).any():
            return True
        room = slots(task.shape, future + self._freed_at_most(task))
        if room.sum() >= group.needed and group.alike:
            room = room * self.session.reachable_by_kind(task)
        return bool(room.sum() >= group.needed)

    def _freed_at_most(self, task: Task) -> Ints:
        """What each node could free for a task at most. No pod is listed if plugins allow no job as a victim."""
        key, _, may = self._kind_of(task)
        room = self._rooms.get(key)
        if room is None or not room.is_valid(self.session):
            moves = len(self.session.cluster.touched)
            if self._spared.get(key) == moves or not any(map(may, self._jobs_for(task))):
                remember(self._spared, key, moves)
                return np.zeros_like(self.session.cluster.columns.idle)
        return self._freeable_for(task).freed

    def _freeable_for(self, task: Task) -> FreeableRoom:
        """What each node could free for a task at most: what victims hold that plugins and guarantees might allow."""
        key, kind, may = self._kind_of(task)
        room = self._rooms.get(key)
        if room is None or not room.is_valid(self.session):
            room = remember(self._rooms, key, self._sum_freeable(task, kind, may))
        return room

    def _kind_of(self, task: Task) -> tuple[Hashable, Hashable, Callable[[Job], bool]]:
        """The key of tasks with the same freeable capacity, that of the same candidates, and the bound of plugins."""
        first_tier_only = self._last_tier is not None
        bound = self.session.rules.bound(
            self._candidates.point, task, self.options.no_harm, of_jobs=True, first_tier_only=first_tier_only
        )
        kind = (task.best_effort, bound.key, first_tier_only, self._candidates.key(task))
        key = (self.session.queue_of(task), task.job if self._depends_on_job(task) else None, kind)
        return key, kind, bound.may

    def _sum_freeable(self, task: Task, kind: Hashable, may: Callable[[Job], bool]) -> FreeableRoom:
        scope, no_harm = self._candidates.scope(task), self.options.no_harm
        index = self._indexes.pop((scope, kind), None) or VictimIndex(self.session, scope, scope is None)
        index.update(task, partial(self._candidates.of_job, task), may)
        remember(self._indexes, (scope, kind), index)  # not if a plugin failed on the way
        can_spare = self.guarantees.can_spare(self.session.queue_of(task)) if no_harm else None
        return index.room(
            partial(self._candidates.may_take_from, task),
            lambda job, victims: can_spare is None or can_spare(job.queue, victims.rows),
        )

    def _depends_on_job(self, task: Task) -> bool:
        """The tasks of a job that has running ones see other candidates than the tasks of other jobs."""
        return task.job is not None and any(task.job.counts[status] for status in self._candidates.statuses)

    def _jobs_for(self, task: Task) -> Iterator[Job]:
        """The jobs that have candidates for a task, if they have any."""
        may_take_from = self._candidates.may_take_from
        for job in jobs_within(self.session, self._candidates.scope(task)):
            if job.ready_count and job.visible and may_take_from(task, job):
                yield job

    def note_evicted(self, victims: Iterable[Task]) -> None:
        """These were evicted: they can free nothing again."""
        evicted = list(victims)
        for search in self._searches:
            search._remove(evicted)

    def _remove(self, victims: list[Task]) -> None:
        journal_length = len(self.session.journal)
        for room in self._rooms.values():
            if room.is_valid(self.session):
                for victim in victims:
                    if victim.node is not None:
                        room.remove(victim, victim.node.row, journal_length)

    # -- the victims that plugins allow

    def choose(self, task: Task, node: Node) -> Choice | None:
        """The victims that plugins allow on a node, in the order of eviction; none if there are no candidates."""
        candidates = in_victim_order(self.session, task, self._candidates.on_node(task, node), self._ranks)
        if not candidates:
            return None
        candidates = self._holders_first(task, node, candidates)
        choice = self._choose_enough(task, node, candidates)
        chosen = set(choice.victims)
        return choice._replace(victims=[victim for victim in candidates if victim in chosen])

    def _holders_first(self, task: Task, node: Node, candidates: list[Task]) -> list[Task]:
        """Where a task is short of devices or the like, those first who hold any: others cannot help by themselves."""
        ledgers = self.session.cluster.ledgers_of
        needed = set(map(id, ledgers(task.shape)))
        if not needed or not self.session.is_filtered(task, node):
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
            return self._votes.choose(task, candidates, self._last_tier)
        return self._choice(task, candidates)

    def _choice(self, task: Task, candidates: list[Task]) -> Choice:
        choice: Choice = getattr(self.session.rules, self._candidates.point)(task, candidates)
        return choice

    def members(self, job: Job) -> list[Task]:
        """The tasks of a job that could be victims by their status, the last one first."""
        members = (
            victim
            for status in self._candidates.statuses
            for victim in job.by_status[status]
            if victim.node is not None and victim.node.row >= 0
        )
        return sorted(members, key=self.session.task_key, reverse=True)

    def may_evict(self, task: Task, victim: Task) -> bool:
        """Whether the first tier allows a victim by itself, plugins aside that only count what its gang can spare."""
        if not victim.preemptable or not self._candidates.accepts(task, victim):
            return False
        return all(
            answer is None or victim in answer
            for plugin, answer in self.session.rules.votes(self._candidates.point, task, [victim])
            if not plugin.counts_gangs
        )

    def may_evict_together(self, task: Task, victims: list[Task]) -> bool:
        """Whether plugins allow all of these victims at once."""
        if not all(victim.preemptable and self._candidates.accepts(task, victim) for victim in victims):
            return False
        return set(self._choice(task, victims).victims) >= set(victims)

    # -- what failed before: not tried again until something moved

    def _failure_key(self, task: Task, within: Domain | None) -> Hashable:
        session = self.session
        bound = session.rules.bound(self._candidates.point, task)
        job = task.job if self._depends_on_job(task) else None
        kind = (session.shape_key(task), bound.key, job, self._candidates.key(task))
        return (session.queue_of(task), *kind, within)

    def _state_version(self) -> tuple[int, int]:
        cluster = self.session.cluster
        return (cluster.columns.clock, len(cluster.touched))


def loss_limits(need: float, losses: Collection[float]) -> list[float]:
    """Limits of what a job may lose, from what is needed to less than the largest loss; all as shares, rounded up."""
    need, largest = rounded_up(need), max(losses, default=0.0)
    return [need, *sorted(loss for loss in losses if need < loss < largest)] if need < largest else []


def rounded_up(size: float) -> float:
    """One of a few sizes that is not smaller, so that searches with equal limits share what they know."""
    return float(2 ** (ceil(log2(size) * SIZE_STEPS) / SIZE_STEPS)) if size > 0 else 0.0
