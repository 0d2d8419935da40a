"""Tasks that may be moved, and units that move together: a single task that its job can spare, or the whole gang."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api import go_scalars, names
from stromboli.engine.eviction.victim_bundles import Surplus, is_complete
from stromboli.engine.eviction.victim_candidates import VictimCandidates, VictimIndex
from stromboli.engine.placement.node_fit import fits
from stromboli.model.amounts import dominant_share
from stromboli.model.status import Status

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from stromboli.engine.consolidation.consolidation_options import ConsolidationOptions
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Bools, Node
    from stromboli.model.task import Task

MOVABLE_STATUSES = (Status.BOUND, Status.RUNNING)


class Cost(NamedTuple):
    """The cost of moves: first the number of pods that start again, then the work that is lost."""

    pods: float = 0
    lost_work: float = 0.0
    """The sum over the pods of their share of the cluster, times the seconds that they have run."""

    def plus(self, other: Cost) -> Cost:
        """The sum of two costs."""
        return Cost(self.pods + other.pods, self.lost_work + other.lost_work)

    def shared_by(self, count: int) -> Cost:
        """An equal part of the cost."""
        return Cost(self.pods / count, self.lost_work / count)


@dataclass(frozen=True, slots=True)
class MoveUnit:
    """Tasks of one job that move together."""

    job: Job
    tasks: tuple[Task, ...]
    whole: bool
    """Whether these are all tasks of the job that hold capacity."""
    cost: Cost


class MovableTasks:
    """Which running tasks may be moved in this session."""

    def __init__(self, session: Session, options: ConsolidationOptions):
        self._session = session
        self._options = options
        self._has_run_long_enough = options.run_long_enough(session)
        self._candidates = VictimCandidates(
            "unified_evictable", MOVABLE_STATUSES, self._may_move_from, accepts=self._may_move
        )
        self._indexes: dict[int, VictimIndex] = {}
        """Movable tasks by the priority of the beneficiary."""
        self._known: dict[Task, bool] = {}
        self._jobs: dict[Job, bool] = {}
        self._moved: set[Job] = set()
        """Jobs that were moved in this session."""
        self._fitting: dict[Hashable, Bools] = {}
        """The nodes on which a shape of task fits, as of a moment."""
        self._clock = -1

    # -- tasks that may be moved

    def index(self, beneficiary: Task) -> VictimIndex:
        """The tasks that may be moved for a task's job now: those of jobs with no higher priority."""
        priority = beneficiary.job.priority if beneficiary.job is not None else 0
        index = self._indexes.get(priority)
        if index is None:
            index = self._indexes[priority] = VictimIndex(self._session, self._candidates)
        index.update(beneficiary)
        return index

    def _may_move_from(self, beneficiary: Task, job: Job) -> bool:
        """Whether a job with no higher priority takes part in cycles, is complete, and was not moved recently."""
        mine = beneficiary.job
        if mine is None or job is mine or job.priority > mine.priority or job in self._moved:
            return False
        known = self._jobs.get(job)
        if known is None:
            rested = self._session.has_come(_last_move(job) + self._options.rest_seconds)
            known = self._jobs[job] = job.visible and rested and is_complete(job)
        return known

    def _may_move(self, beneficiary: Task, task: Task) -> bool:
        known = self._known.get(task)
        if known is None:
            known = self._known[task] = self._is_movable(task)
        if known and beneficiary.job and task.job and task.job.priority == beneficiary.job.priority:
            return not self._options.is_young(self._session, task)
        return known

    def _is_movable(self, task: Task) -> bool:
        job = task.job
        if job is None or task.terminating or task.best_effort:
            return False
        movable = _movable_annotation(task.annotations)
        if movable is None:
            movable = _movable_annotation(job.annotations)
        if movable is None:
            # Without a controller the pod would not be created again.
            movable = task.owner is not None and task.preemptable and job.gang_evictable
        return movable and self._has_run_long_enough(task)

    def note_moved(self, tasks: Iterable[Task]) -> None:
        """Record moved tasks; their jobs are not moved again in this session."""
        self._moved.update(task.job for task in tasks if task.job is not None)

    # -- units that move together

    def units_on(self, node: Node, movable: VictimIndex) -> list[MoveUnit]:
        """The units that can be moved off a node now."""
        by_job: dict[Job, list[Task]] = {}
        for task in node.tasks:
            if task.job is not None and task in movable:
                by_job.setdefault(task.job, []).append(task)
        return [unit for job, tasks in by_job.items() for unit in self._units_of(job, tasks, movable)]

    def _fits_elsewhere(self, task: Task) -> bool:
        """Whether a single task fits on some other node: a quick check before the search for its place."""
        session = self._session
        columns = session.cluster.columns
        if self._clock != columns.clock:
            self._fitting.clear()
            self._clock = columns.clock
        key = session.placement.key(task)
        fitting = self._fitting.get(key)
        if fitting is None:
            fitting = self._fitting[key] = session.reachable(task) & fits(task, columns.future_idle)
        own = task.node is not None and bool(fitting[task.node.row])
        return int(np.count_nonzero(fitting)) > own

    def _units_of(self, job: Job, tasks: list[Task], movable: VictimIndex) -> list[MoveUnit]:
        """Single tasks as far as the job can spare them, the cheapest first; then the whole gang."""
        if not is_complete(job):
            return []
        units: list[MoveUnit] = []
        surplus, tasks = Surplus(job), sorted(tasks, key=lambda task: (self.cost(task), task.key, task.uid))
        for task in tasks:
            if job.disrupted_as_group or not surplus.take(task):
                return [*units, *self._whole(job, movable)]
            if self._fits_elsewhere(task):
                units.append(MoveUnit(job, (task,), False, self.cost(task)))
        return units

    def _whole(self, job: Job, movable: VictimIndex) -> list[MoveUnit]:
        members = list(self._candidates.members(job))
        if job.counts[Status.PIPELINED]:  # some of its tasks are moved already, or wait for capacity
            return []
        if len(members) != job.allocated_count or len(members) > self._options.max_moves:
            return []
        if not all(task in movable for task in members):
            return []
        cost = self.cost_of(members)
        return [MoveUnit(job, tuple(sorted(members, key=self._session.task_key)), True, cost)]

    def cost_of(self, tasks: Iterable[Task]) -> Cost:
        """The cost of moving several tasks."""
        return reduce(Cost.plus, map(self.cost, tasks), Cost())

    def cost(self, task: Task) -> Cost:
        """The cost of moving a task."""
        session = self._session
        started = task.started if task.started is not None else task.scheduled_at
        run_time = max(session.now - started, 0.0) if started is not None else 0.0
        return Cost(1, dominant_share(task.request, session.total) * run_time)


def _movable_annotation(annotations: dict[str, str]) -> bool | None:
    """The annotation `stromboli.sh/movable`; None if it is missing or no boolean."""
    return go_scalars.boolean(annotations.get(names.MOVABLE, ""))


def _last_move(job: Job) -> float:
    """When a job was last moved; for a native group, which has no condition, also when its youngest pod was created."""
    if job.native is None:
        return job.moved_at
    return max([job.moved_at, *(task.created for task in job.tasks.values())])
