"""Native groups whose pods must share a value of a node label: which domains they may use, and which is best.

Kubernetes honours this in its core, so it takes no plugin here either. The rule of choice is kube-scheduler's: most of
the group's pods placed, then the domain that is fullest with them. Ties fall to the domain of the first node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.engine.placement.node_placement import Place
from stromboli.model.job import Job, SubJob
from stromboli.model.shape import VIEW_NONZERO_CPU, VIEW_NONZERO_MEMORY
from stromboli.model.status import ALLOCATED_CLASS, Status
from stromboli.model.topology.label_domains import label_domains

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.node_columns import Ints
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain

_HOLDING = (*(status for status in Status if ALLOCATED_CLASS[status]), Status.PIPELINED)
_VIEW = (VIEW_NONZERO_CPU, VIEW_NONZERO_MEMORY)
FULL = 100
"""What a domain scores with all of its room in use, and what it scores if no other takes more pods."""
STARTS_NOW = 1000
"""What it scores beyond that if the group could start there without waiting for room."""


class Trial(NamedTuple):
    """What came of trying all pending tasks of a group in a domain."""

    placed: list[Task]
    now: bool
    """Whether none of them has to wait for room."""


class LabelTopologies:
    """The label topologies of native groups in a session."""

    def __init__(self, session: Session):
        self._session = session
        self._spread: dict[Job, frozenset[str | None]] = {}

    def gradients(self, unit: Job | SubJob, root: Domain, purpose: str) -> list[list[Domain]]:
        """The domains to try: that of its tasks, else all; none if its tasks are in several.

        To be allocated, the one sub-group of a job chooses, so that domains are scored with each other.
        """
        job = unit.job if isinstance(unit, SubJob) else unit
        if root is not self._session.cluster.hyper_nodes.top or (unit is job and purpose == "allocate"):
            return [[root]]
        domains = label_domains(self._session.cluster.columns, topology_key(job))
        values = self.values(job)
        if not values:
            return [list(domains.values())]
        chosen = [domains[value] for value in values if value in domains]
        return [chosen] if len(values) == 1 else []

    def values(self, job: Job) -> frozenset[str | None]:
        """The values of the label on nodes where it holds room or is promised some; none: a node without the label.

        Who is placed in this session comes to the others, so only those that were there before may differ.
        """
        if job not in self._spread:
            self._spread[job] = frozenset(_values(job))
        spread = self._spread[job]
        return spread if len(spread) > 1 else frozenset(islice(_values(job), 1))

    def scores(self, sub_job: SubJob, domains: Sequence[Domain]) -> Mapping[str, float]:
        """How good domains are in which it can start, by name: kube-scheduler's scores of placements."""
        if len(domains) < 2:
            return {}
        trials = [self._try(sub_job, domain) for domain in domains]
        most = max((len(trial.placed) for trial in trials), default=0)
        held = sub_job.allocated_count
        return {
            domain.name: STARTS_NOW * trial.now
            + (held + len(trial.placed)) * FULL // max(held + most, 1)
            + self._fullness(domain, trial.placed)
            for domain, trial in zip(domains, trials, strict=True)
        }

    def _try(self, sub_job: SubJob, domain: Domain) -> Trial:
        """Place all that it can of a sub-group in a domain, and take it back."""
        session, placed, now = self._session, [], True
        mask = domain.mask(len(session.cluster.columns))
        tasks = sorted(sub_job.job.by_status[Status.PENDING], key=session.task_key)
        with session.statement() as trial:
            for task in tasks:
                place = session.place(task, mask)
                if isinstance(place, Place) and trial.assign(task, place) is None:
                    placed.append(task)
                    now = now and place.now
        return Trial(placed, now)

    def _fullness(self, domain: Domain, tasks: Sequence[Task]) -> int:
        """How much of a domain's cpu and memory is in use with these tasks, from 0 to 100."""
        columns = self._session.cluster.columns
        scores = []
        for view in _VIEW:
            size = _exact_sum(columns.view_allocatable[view, domain.rows])
            used = _exact_sum(columns.view[view, domain.rows])
            used += sum(int(task.shape.incoming[view]) for task in tasks)
            if size:
                scores.append(min(used, size) * FULL // size)
        return sum(scores) // len(scores) if scores else 0


def topology_key(job: Job) -> str:
    """The label whose value all nodes of a job must share; empty if it asks for none."""
    return job.native.topology_key if job.native is not None else ""


def _values(job: Job) -> Iterator[str | None]:
    """The value of the label for each task that holds room; a node that is gone has none to go by."""
    key = topology_key(job)
    for status in _HOLDING:
        for task in job.by_status[status]:
            if task.node is not None and task.node.object is not None:
                yield task.node.labels.get(key)


def _exact_sum(column: Ints) -> int:
    """The sum of amounts that may be more than 64 bits hold."""
    return int(np.sum(column >> 32)) * 2**32 + int(np.sum(column & 0xFFFFFFFF))
