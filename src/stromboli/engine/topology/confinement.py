"""Nodes to which a gang keeps its own tasks: whatever places them, a hard topology is never left (spec 01 7.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.topology.label_topology import label_key, possible_label_domains
from stromboli.model.job import SubJob
from stromboli.model.status import ALLOCATED_CLASS, Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Bools
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain

HOLDS_ROOM = tuple(status for status in Status if ALLOCATED_CLASS[status])
PLACED = (*HOLDS_ROOM, Status.PIPELINED)
_EARLIER = tuple(status for status in HOLDS_ROOM if status is not Status.ALLOCATED)
"""The statuses of tasks that were placed before this session."""


def placed(unit: Job | SubJob, statuses: tuple[Status, ...] = PLACED) -> Iterator[Task]:
    """The tasks of a job or a sub-group that hold room or are promised any."""
    if not isinstance(unit, SubJob):
        for status in statuses:
            yield from unit.by_status[status]
    elif any(unit.counts[status] for status in statuses):
        yield from (task for task in unit.tasks if task.status in statuses)


def possible_domains(
    session: Session,
    unit: Job | SubJob,
    without: Task | None = None,
    statuses: tuple[Status, ...] = PLACED,
) -> list[Domain]:
    """The domains, none above the highest tier allowed, that have all nodes a job or a sub-group is on."""
    limit = session.network_topology(unit)
    nodes = [task.node for task in placed(unit, statuses) if task is not without and task.node is not None]
    if key := label_key(unit):
        return possible_label_domains(session.cluster.columns, key, nodes)
    known = [node.row for node in nodes if node.row >= 0]  # a node that is lost has no place in the tree
    if limit is None or (nodes and not known):
        return []
    return [domain for domain in session.cluster.hyper_nodes.containing(known) if domain.tier <= limit]


class Confinement:
    """Where the tasks of gangs with a limit may be, in one session."""

    def __init__(self, session: Session):
        self._session = session
        self._together: dict[Job | SubJob, tuple[int, bool]] = {}

    def applies_to(self, task: Task) -> bool:
        """Whether a topology limits the job of a task or its sub-group."""
        return any(True for _ in self._limited_units(task))

    def nodes(self, task: Task) -> Bools | None:
        """The nodes that a task may use without leaving the domain of its gang; none for any node."""
        confined: Bools | None = None
        for unit in self._limited_units(task):
            inside = np.zeros(len(self._session.cluster.columns), dtype=bool)
            for domain in possible_domains(self._session, unit, without=task):
                inside[domain.rows] = True
            confined = inside if confined is None else confined & inside
        return confined

    def holds(self, task: Task) -> bool:
        """Whether the gang of a task, as it is placed now, is within its limits."""
        clock = self._session.cluster.columns.clock
        for unit in self._limited_units(task):
            known = self._together.get(unit)
            if known is None or known[0] != clock:
                known = self._together[unit] = (clock, bool(possible_domains(self._session, unit)))
            if not known[1]:
                return False
        return True

    def _limited_units(self, task: Task) -> Iterator[Job | SubJob]:
        """The job and the sub-group of a task, as far as a topology limits them."""
        job, top = task.job, self._session.cluster.hyper_nodes.top
        if job is None or not (job.group_demands or label_key(job)):
            return
        for unit in (job, task.sub_job) if job.policies and task.sub_job is not None else (job,):
            limit = self._session.network_topology(unit)
            if limit is not None and limit < top.tier and not (task.best_effort and self._is_divided(unit)):
                yield unit

    def _is_divided(self, unit: Job | SubJob) -> bool:
        """Whether tasks placed in earlier sessions lie farther apart than the topology allows.

        Such a gang has no domain to keep to, and best-effort tasks use no capacity: they go anywhere (spec 02 4.1).
        """
        if label_key(unit):
            return False
        rows = {task.node.row for task in placed(unit, _EARLIER) if task.node is not None}
        return bool(rows - {-1}) and not possible_domains(self._session, unit, statuses=_EARLIER)
