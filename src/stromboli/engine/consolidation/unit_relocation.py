"""Another place for tasks that leave theirs: a single task near its gang, a gang as a whole wherever it may be."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.placement.node_fit import fits
from stromboli.engine.placement.node_placement import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stromboli.engine.consolidation.movable_tasks import MoveUnit
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import Job, SubJob
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain

MAX_PLACES = 16
"""How many nodes are tried for a task that is to be moved."""


class UnitRelocation:
    """Finds places for units whose tasks were released, for the sake of a task that takes their room.

    Where there is a choice, they go where they least disturb what is being cleared: outside the beneficiary's domain,
    and to the node with the least room left.
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
            if unit.whole:
                _forget_hyper_nodes(session, unit.job)
                placed = self._place_gang(unit)
            else:
                placed = self._place_single(attempt, unit.tasks[0], origins[unit.tasks[0]])
            if placed:
                attempt.keep()
            return placed

    def _place_single(self, attempt: Statement, task: Task, origin: Node) -> bool:
        """A task of a gang with a network topology stays where that allows it beside the others."""
        for domain in self._domains(task.sub_job, self._session.cluster.hyper_nodes.top):
            mask = domain.mask(len(self._session.cluster.columns))
            mask[origin.row] = False
            if self._place_task(attempt, task, mask):
                return True
        return False

    def _place_gang(self, unit: MoveUnit) -> bool:
        by_sub_job: dict[SubJob, list[Task]] = {}
        for task in unit.tasks:
            if task.sub_job is not None:
                by_sub_job.setdefault(task.sub_job, []).append(task)
        for domain in self._domains(unit.job, self._session.cluster.hyper_nodes.top):
            with self._session.statement() as part:
                if all(self._place_sub_job(*entry, domain) for entry in by_sub_job.items()):
                    part.keep()
                    return True
        return False

    def _place_sub_job(self, sub_job: SubJob, tasks: list[Task], within: Domain) -> bool:
        for domain in self._domains(sub_job, within):
            mask = domain.mask(len(self._session.cluster.columns))
            with self._session.statement() as part:
                if all(self._place_task(part, task, mask) for task in tasks):
                    part.keep()
                    return True
        return False

    def _domains(self, unit: Job | SubJob | None, within: Domain) -> Iterator[Domain]:
        if unit is None:
            return iter((within,))
        gradients = self._session.gradients(unit, within, "allocate")
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
        """Nodes with room for a task: those outside the domain first, then those with the least room left."""
        session, columns = self._session, self._session.cluster.columns
        future = session.cluster.reservations.future_idle_for(task)
        rows = np.flatnonzero(mask & session.reachable(task) & fits(task, future))
        request = self._beneficiary.request
        wanted = [dim for dim in self._beneficiary.dims if request.get(dim, 0) > 0]
        left = sum((future[dim, rows] / request[dim] for dim in wanted), np.zeros(len(rows)))
        order = np.lexsort((rows, left, self._domain[rows]))
        return (columns.nodes[row] for row in rows[order].tolist())


def _forget_hyper_nodes(session: Session, job: Job) -> None:
    """A gang that moves as a whole is bound to no HyperNode any more, until that is taken back."""
    units: list[Job | SubJob] = [job, *job.sub_jobs.values()]
    for unit in units:
        session.record(partial(setattr, unit, "allocated_hyper_node", unit.allocated_hyper_node))
        unit.allocated_hyper_node = ""
