"""The search for the cheapest moves with which a gang fits.

The search is a rehearsal in a statement that is always undone: running tasks are released and placed elsewhere, and
the gang's tasks take their places. The result is a plan. Tasks that fit without moves are placed first. For each other
task, sets of moves are tried on the nodes that lack least, the cheapest first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.consolidation.consolidation_plan import ConsolidationPlan, Move
from stromboli.engine.consolidation.movable_tasks import MOVABLE_STATUSES, Cost
from stromboli.engine.eviction.eviction_domains import domains_of_job, domains_of_sub_job
from stromboli.engine.pending_tasks import pending_tasks
from stromboli.engine.placement.node_fit import SlotCount, fits
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.plugin import Eviction
from stromboli.model.amounts import Amounts, total_of
from stromboli.model.status import Status

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from stromboli.engine.consolidation.consolidation_options import ConsolidationOptions
    from stromboli.engine.consolidation.movable_tasks import MovableTasks, MoveUnit
    from stromboli.engine.eviction.victim_candidates import VictimIndex
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.engine.points import Choice
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.amounts import Vector
    from stromboli.model.job import Job, SubJob
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


MAX_NODES = 64
"""Maximum number of nodes that are compared for one task of a gang."""
MAX_TRIES = 128
"""Maximum number of sets of moves that are tried for one gang."""
MAX_TRIES_PER_CYCLE = 512
"""Maximum number of sets of moves that are tried in one cycle, for all gangs together."""


class Tries:
    """The number of sets of moves that may still be tried in this cycle."""

    def __init__(self) -> None:
        self.left = MAX_TRIES_PER_CYCLE


class ConsolidationSearch:
    """The search for one gang."""

    def __init__(
        self, session: Session, options: ConsolidationOptions, movable: MovableTasks, tries: Tries, job: Job
    ):
        self._session = session
        self._options = options
        self._movable = movable
        self._job = job
        self._tries = tries
        self._tries_left = MAX_TRIES
        self._refused: set[Task] = set()
        """Tasks that plugins do not allow to move."""
        self._gangs_shared = False
        """Whether a gang on several nodes is priced by what it costs for each task that replaces it."""
        self._gangs_seen = False
        self._domain: Domain | None = None
        self._domains: dict[SubJob, Domain] = {}

    def plan(self) -> ConsolidationPlan | None:
        """The cheapest plan over the domains of the job; one without moves if the job fits without them.

        None if no plan was found, or if the tries of this cycle are used up.
        """
        if self._tries.left <= 0:
            return None
        plans = []
        for domain in self._likeliest_domains():
            plan = self._plan_in(domain)
            if plan is not None and not plan.moves:
                return plan
            if plan is not None:
                plans.append(plan)
        return min(plans, key=lambda plan: (plan.cost, plan.domain.tier), default=None)

    def _likeliest_domains(self) -> list[Domain]:
        """Domains that lack capacity for the fewest tasks, the narrower first."""
        domains = domains_of_job(self._session, self._job, "consolidate")
        if len(domains) > 1:
            first = next(iter(self._job.by_status[Status.PENDING]))
            slots = SlotCount(first.shape.request, self._session.cluster.columns.future_idle)
            missing = {domain: max(self._job.minimum - slots.on(domain.rows), 0) for domain in domains}
            domains.sort(key=lambda domain: (missing[domain], domain.tier, domain.name))
        return domains[: self._options.max_domains]

    def _plan_in(self, domain: Domain) -> ConsolidationPlan | None:
        """The cheaper of two plans: by what each task costs alone, and with gangs that free several nodes shared."""
        self._gangs_shared = self._gangs_seen = False
        plan = self._rehearse(domain)
        if not self._gangs_seen or (plan is not None and not plan.moves):
            return plan
        self._gangs_shared = True
        plans = [each for each in (plan, self._rehearse(domain)) if each is not None]
        return min(plans, key=lambda each: each.cost, default=None)

    def _rehearse(self, domain: Domain) -> ConsolidationPlan | None:
        self._domain, self._domains = domain, {}
        with self._session.rehearsal() as trial:
            if not self._place_gang(trial, domain):
                return None
            moves = self._moves(trial)
            moved = [move.task for move in moves]
            placements = tuple(
                (change.task, change.node)
                for change in trial.changes()
                if change.task.job is self._job and change.node is not None
            )
            cost, chosen_by = self._movable.cost_of(moved), self._agreed(moved).by if moved else ""
            return ConsolidationPlan(self._job, domain, moves, placements, self._domains, cost, chosen_by)

    @staticmethod
    def _moves(trial: Statement) -> tuple[Move, ...]:
        """The tasks that were released, with where they were and where they are now."""
        return tuple(
            Move(change.task, change.old_node, change.task.node)
            for change in trial.changes()
            if change.old_status in MOVABLE_STATUSES
            and change.status is Status.PENDING
            and change.old_node is not None
            and change.task.node is not None
        )

    # -- the gang

    def _place_gang(self, trial: Statement, domain: Domain) -> bool:
        """Place as many tasks as the job needs to start, sub-group by sub-group."""
        session, job = self._session, self._job
        pending = pending_tasks(session, job)
        while pending:
            sub_job, tasks = pending.pop()
            ungated = [task for task in reversed(tasks) if not task.gates]
            if not self._place_sub_job(trial, sub_job, ungated, domain):
                continue
            if session.rules.job_pipelined(job):
                return True
            if left := [task for task in tasks if task.status is Status.PENDING]:
                pending.push(sub_job, left)
        return False

    def _place_sub_job(self, trial: Statement, sub_job: SubJob, tasks: list[Task], within: Domain) -> bool:
        domains = domains_of_sub_job(self._session, sub_job, within, "consolidate")
        for domain in domains[: self._options.max_domains]:
            mask = domain.mask(len(self._session.cluster.columns))
            with self._session.statement() as part:
                if self._place_tasks(trial, part, sub_job, tasks, mask):
                    self._note_domain(sub_job, domain)
                    part.keep()
                    return True
        return False

    def _note_domain(self, sub_job: SubJob, domain: Domain) -> None:
        """Record the lowest domain that contains all domains in which tasks of a sub-group were placed."""
        common = self._session.cluster.hyper_nodes.lowest_common(self._domains.get(sub_job), domain)
        self._domains[sub_job] = domain if common is None else common

    def _place_tasks(
        self, trial: Statement, part: Statement, sub_job: SubJob, tasks: list[Task], mask: Bools
    ) -> bool:
        """Place tasks without moves, then with moves, until the sub-group has enough."""
        session = self._session
        for moves_too in (False, True):
            failed: set[Hashable] = set()
            for task in tasks:
                if task.status is not Status.PENDING or session.placement.key(task) in failed:
                    continue
                if self._place_task(part, task, mask) or (moves_too and self._clear_for(trial, task, mask)):
                    if session.sub_job_pipelined(sub_job):
                        return True
                else:
                    failed.add(session.placement.key(task))
        return False

    def _place_task(self, part: Statement, task: Task, mask: Bools) -> bool:
        place = self._session.place(task, mask)
        return isinstance(place, Place) and part.pipeline(task, place.node) is None

    # -- one task

    def _clear_for(self, trial: Statement, task: Task, mask: Bools) -> bool:
        """Free a node for a task by the cheapest moves that work."""
        by_cost: list[tuple[Cost, int, Node, Cover, Iterator[tuple[Cost, Cover]]]] = []

        def push_next(index: int, node: Node, sets: Iterator[tuple[Cost, Cover]]) -> None:
            for cost, cover in sets:
                heapq.heappush(by_cost, (cost, index, node, cover, sets))
                return

        movable = self._movable.index(task)
        for index, node in enumerate(self._nodes(task, mask, movable)):
            units = [self._priced(unit, mask) for unit in self._movable.units_on(node, movable)]
            push_next(index, node, covers(self._lack(task, node), units, node))
        moves_left = self._options.max_moves - len(self._moves(trial))
        while by_cost and by_cost[0][0].pods <= moves_left and self._tries_left > 0 and self._tries.left > 0:
            _, index, node, cover, sets = heapq.heappop(by_cost)
            moved = sum(len(unit.tasks) for unit in cover)
            if moved <= moves_left and self._try(trial, task, node, cover, mask):
                return True
            push_next(index, node, sets)
        return False

    def _priced(self, unit: MoveUnit, mask: Bools) -> MoveUnit:
        """A unit with its price for one task: a gang's may be shared by the tasks that replace it."""
        nodes = {task.node.row for task in unit.tasks if task.node is not None and mask[task.node.row]}
        helped = min(len(nodes), self._job.counts[Status.PENDING])
        if helped <= 1:
            return unit
        self._gangs_seen = True
        return replace(unit, cost=unit.cost.shared_by(helped)) if self._gangs_shared else unit

    def _nodes(self, task: Task, mask: Bools, movable: VictimIndex) -> Iterator[Node]:
        """Nodes on which a task could fit after moves, those that lack least first."""
        session, cluster = self._session, self._session.cluster
        future = cluster.reservations.future_idle_for(task)
        enough = fits(task, future + movable.held)
        rows = np.flatnonzero(mask & session.reachable(task) & enough)
        lack = np.zeros(len(rows))
        for dim, amount in task.request.items():
            if amount > 0:
                lack += np.maximum(amount - future[dim, rows], 0) / amount
        order = np.lexsort((rows, lack))[:MAX_NODES]
        return (cluster.columns.nodes[row] for row in rows[order].tolist())

    def _lack(self, task: Task, node: Node) -> dict[int, float]:
        """What a node will lack for a task."""
        future = self._session.future_idle(node, task)
        missing = {dim: task.request.get(dim, 0) - future.get(dim, 0) for dim in task.dims}
        return {dim: amount for dim, amount in missing.items() if amount > 0}

    def _try(self, trial: Statement, task: Task, node: Node, cover: Cover, mask: Bools) -> bool:
        """Release a set of units, give the task their place, and find another node for each of them."""
        session = self._session
        origins = {moved: moved.node for unit in cover for moved in unit.tasks if moved.node is not None}
        before = [move.task for move in self._moves(trial)]
        if not self._refused.isdisjoint(origins):
            return False
        self._tries_left -= 1
        self._tries.left -= 1
        asked = [*before, *origins]
        refused = set(asked) - set(self._agreed(asked).victims)
        if refused:
            self._refused |= refused - set(before)
            return False
        with session.statement() as attempt:
            if not all(attempt.release(moved) is None for moved in origins):
                return False
            if not isinstance(session.place(task, session.only(node)), Place):
                return False
            if attempt.pipeline(task, node) is not None:
                return False
            relocation = UnitRelocation(session, task, mask, self._options.max_domains)
            if not all(relocation.place(unit, origins) for unit in cover):
                return False
            attempt.keep()
            return True

    def _agreed(self, tasks: list[Task]) -> Choice:
        """Which of these tasks all plugins of all tiers allow to move together."""
        eviction = Eviction("consolidate", self._job, self._domain)
        return self._session.rules.agreed_by_all("unified_evictable", eviction, tasks)


# -- which units to move off a node so that enough is free there: sets in order of their cost, the cheapest first


MAX_SETS = 500
"""Maximum number of sets of units that are compared on one node."""

Cover = tuple["MoveUnit", ...]


def covers(lack: Amounts, units: Sequence[MoveUnit], node: Node) -> Iterator[tuple[Cost, Cover]]:
    """The sets of units that free what is lacking on a node, by cost; none of them has a unit too many.

    Units that free the same are taken in the order of their cost, so of equal sets only the cheapest is tried. Where
    nothing is lacking (a filter keeps the task out), each unit is tried by itself.
    """
    groups = _alike(units, node, lack)
    if not lack:
        singles = [(unit.cost, (unit,)) for members in groups for unit in members[:1]]
        yield from sorted(singles, key=lambda cover: cover[0])
        return
    frees = [_freed(members[0], node) for members in groups]
    start = (0,) * len(groups)
    heap: list[tuple[Cost, int, tuple[int, ...], int]] = [(Cost(), 0, start, 0)]
    for serial in range(1, MAX_SETS + 1):
        if not heap:
            return
        cost, _, counts, first = heapq.heappop(heap)
        if _covers(lack, frees, counts):
            yield (
                cost,
                tuple(
                    unit for members, count in zip(groups, counts, strict=True) for unit in members[:count]
                ),
            )
            continue
        for index in range(first, len(groups)):
            if counts[index] < len(groups[index]):
                more = groups[index][counts[index]].cost
                taken = (*counts[:index], counts[index] + 1, *counts[index + 1 :])
                heapq.heappush(heap, (cost.plus(more), -serial, taken, index))


def _alike(units: Sequence[MoveUnit], node: Node, lack: Amounts) -> list[list[MoveUnit]]:
    """Units in groups that free the same on a node, without those that free nothing that is lacking."""
    groups: dict[Hashable, list[MoveUnit]] = {}
    for unit in units:
        freed = _freed(unit, node)
        if not lack or any(freed.get(dim, 0) > 0 for dim in lack):
            key = unit.job.id if unit.whole else (unit.tasks[0].shape.id, unit.tasks[0].label_set)
            groups.setdefault(key, []).append(unit)
    for members in groups.values():
        members.sort(key=_order)
    return sorted(groups.values(), key=lambda members: _order(members[0]))


def _order(unit: MoveUnit) -> tuple[Cost, str, str]:
    return (unit.cost, unit.tasks[0].key, unit.tasks[0].uid)


def _freed(unit: MoveUnit, node: Node) -> Amounts:
    return total_of(task.request for task in unit.tasks if task.node is node)


def _covers(lack: Vector, frees: list[Amounts], counts: tuple[int, ...]) -> bool:
    return all(
        sum(freed.get(dim, 0) * count for freed, count in zip(frees, counts, strict=True)) >= amount
        for dim, amount in lack.items()
    )


# -- places for tasks that move: for a single task near its gang, for a whole gang in any domain that it may use


MAX_PLACES = 16
"""Maximum number of nodes that are tried for a task that moves."""


class UnitRelocation:
    """Finds places for units whose tasks were released, so that another task takes their place.

    Where there is a choice, they go where they least disturb what is being cleared: outside the beneficiary's domain,
    and to the node with the least left.
    """

    def __init__(self, session: Session, beneficiary: Task, domain: Bools, max_domains: int):
        self._session = session
        self._beneficiary = beneficiary
        self._domain = domain
        self._max_domains = max_domains

    def place(self, unit: MoveUnit, origins: dict[Task, Node]) -> bool:
        """Pipeline all tasks of a unit elsewhere, if its queue would take them again; all or nothing."""
        session, queue = self._session, unit.job.queue
        if queue is None or session.rules.overused(queue):
            return False
        with session.statement() as attempt:
            top, (task, *_) = session.cluster.hyper_nodes.top, unit.tasks
            if unit.whole:
                _forget_hyper_nodes(session, unit.job)
                placed = self._place_gang(unit, top)
            else:  # it stays where the topology of its gang allows it beside the others
                placed = self._place_sub_job(task.sub_job, unit.tasks, top, origins[task])
            if placed:
                attempt.keep()
            return placed

    def _place_gang(self, unit: MoveUnit, within: Domain) -> bool:
        by_sub_job: dict[SubJob, list[Task]] = {}
        for task in unit.tasks:
            if task.sub_job is not None:
                by_sub_job.setdefault(task.sub_job, []).append(task)
        for domain in self._domains(unit.job, within):
            with self._session.statement() as part:
                if all(self._place_sub_job(*entry, domain) for entry in by_sub_job.items()):
                    part.keep()
                    return True
        return False

    def _place_sub_job(
        self, sub_job: SubJob | None, tasks: Sequence[Task], within: Domain, origin: Node | None = None
    ) -> bool:
        """Place all tasks in one domain, on other nodes than `origin`."""
        for domain in self._domains(sub_job, within):
            mask = domain.mask(len(self._session.cluster.columns))
            if origin is not None:
                mask[origin.row] = False
            with self._session.statement() as part:
                if all(self._place_task(part, task, mask) for task in tasks):
                    part.keep()
                    return True
        return False

    def _domains(self, unit: Job | SubJob | None, within: Domain) -> Iterator[Domain]:
        if unit is None:
            return iter((within,))
        gradients = self._session.topology.gradients(unit, within, "allocate")
        ordered = (domain for group in gradients for domain in sorted(group, key=self._overlaps))
        return islice(ordered, self._max_domains)

    def _overlaps(self, domain: Domain) -> bool:
        return bool(self._domain[domain.rows].any())

    def _place_task(self, attempt: Statement, task: Task, mask: Bools) -> bool:
        session, queue = self._session, self._session.queue_of(task)
        if queue is None or not session.rules.allocatable(queue, task):
            return False
        for node in islice(self._nodes(task, mask), MAX_PLACES):
            if isinstance(session.place(task, session.only(node)), Place):
                return attempt.pipeline(task, node) is None
        return False

    def _nodes(self, task: Task, mask: Bools) -> Iterator[Node]:
        """Nodes on which a task fits: those outside the domain first, then those with the least left."""
        session, columns = self._session, self._session.cluster.columns
        future = session.cluster.reservations.future_idle_for(task)
        rows = np.flatnonzero(mask & session.reachable(task) & fits(task, future))
        request = self._beneficiary.request
        wanted = [dim for dim in self._beneficiary.dims if request.get(dim, 0) > 0]
        left = sum((future[dim, rows] / request[dim] for dim in wanted), np.zeros(len(rows)))
        order = np.lexsort((rows, left, self._domain[rows]))
        return (columns.nodes[row] for row in rows[order].tolist())


def _forget_hyper_nodes(session: Session, job: Job) -> None:
    """Clear the HyperNodes of a gang that moves as a whole; undone with the statement."""
    units: list[Job | SubJob] = [job, *job.sub_jobs.values()]
    for unit in units:
        session.journal.record(partial(setattr, unit, "allocated_hyper_node", unit.allocated_hyper_node))
        unit.allocated_hyper_node = ""
