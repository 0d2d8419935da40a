"""The domains to try for a native group that keeps to a value of a label, and which of them is best.

The rule of choice is kube-scheduler's: the more of the group's pods have room and the fuller the domain is with them,
the better. Ties fall to the domain of the first node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.placement.node_fit import slots
from stromboli.engine.topology.confinement import possible_domains
from stromboli.engine.topology.label_topology import label_key
from stromboli.model.job import SubJob
from stromboli.model.shape import VIEW_NONZERO_CPU, VIEW_NONZERO_MEMORY
from stromboli.model.status import Status
from stromboli.model.topology.domain import label_domains

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Bools, Ints
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain, Floats

_VIEW = (VIEW_NONZERO_CPU, VIEW_NONZERO_MEMORY)
PLACING = ("allocate", "reserve")
"""Purposes for which only what is free counts."""
FULL = 100
"""What a domain scores if all of its room is in use, and what it scores if no other takes more pods."""
NOMINATED = 500
"""What it scores beyond that if room was made there for pods of the group."""
STARTS_NOW = 1000
"""What it scores beyond all that if the group need not wait for room there."""


def label_gradients(session: Session, unit: Job | SubJob, root: Domain, purpose: str) -> list[list[Domain]]:
    """The domains to try for a native group, all in one group; those without room only to make some.

    To be allocated, the one sub-group of a job chooses, so that domains are scored together.
    """
    job = unit.job if isinstance(unit, SubJob) else unit
    if root is not session.cluster.hyper_nodes.top or (unit is job and purpose in PLACING):
        return [[root]]
    domains = possible_domains(session, job)
    if len(domains) < 2:
        return [domains]
    fitting = LabelRoom(session, job).fitting
    if purpose in PLACING:
        enough = np.flatnonzero(fitting >= session.rules.tasks_needed(job))
        return [[domains[place] for place in enough]]
    return [[domains[place] for place in np.argsort(-fitting, kind="stable")]]


def label_scores(session: Session, sub_job: SubJob, domains: Sequence[Domain]) -> Mapping[str, float]:
    """How good domains are for a group, by name."""
    if len(domains) < 2:
        return {}
    room = LabelRoom(session, sub_job.job)
    held = sub_job.allocated_count
    pods = held + room.fitting
    score = np.floor(pods * FULL / max(pods.max(), 1)) + room.fullness
    score += STARTS_NOW * (room.fitting_now >= room.fitting) + NOMINATED * room.nominated
    return dict(zip((domain.name for domain in room.domains), score.tolist(), strict=True))


class LabelRoom:
    """How many pending tasks of a group have room in each domain, as far as requests and filters of nodes tell."""

    def __init__(self, session: Session, job: Job):
        self._columns = session.cluster.columns
        self._label = label_domains(self._columns, label_key(job))
        self.domains = list(self._label.by_value.values())
        self.fitting = np.zeros(len(self.domains))
        """How many fit once what is leaving has left."""
        self.fitting_now = np.zeros(len(self.domains))
        self._incoming = np.zeros((len(_VIEW), len(self.domains)))
        tasks = [task for task in job.by_status[Status.PENDING] if not task.gates]
        now, later = _free_for(session, tasks)
        of_shape, counts = {task.shape: task for task in tasks}, Counter(task.shape for task in tasks)
        for shape, count in counts.items():
            reachable = session.reachable(of_shape[shape])
            fitting = self._fitting(shape, later, reachable, count)
            self.fitting += fitting
            self.fitting_now += self._fitting(shape, now, reachable, count)
            self._incoming += shape.incoming[list(_VIEW)][:, None] * fitting

        self.nominated = self._label.sums(_nominated(session, tasks)) > 0
        """Where room was made for any of them."""

    def _fitting(self, shape: Shape, free: Ints, reachable: Bools, count: int) -> Floats:
        return np.minimum(self._label.sums(slots(shape, free, count) * reachable), count)

    @property
    def fullness(self) -> Floats:
        """How much of cpu and memory is in use with these tasks, from 0 to 100."""
        scores, known = np.zeros(len(self.domains)), np.zeros(len(self.domains))
        for place, view in enumerate(_VIEW):
            size = self._label.sums(self._columns.view_allocatable[view])
            used = self._label.sums(self._columns.view[view]) + self._incoming[place]
            scores += np.floor(np.minimum(used, size) * FULL / np.maximum(size, 1))
            known += size > 0
        return np.floor(scores / np.maximum(known, 1))


def _free_for(session: Session, tasks: Sequence[Task]) -> tuple[Ints, Ints]:
    """What nodes have free for tasks of a job, their reservations included: now, and once what is leaving has left."""
    columns, reservations = session.cluster.columns, session.cluster.reservations
    now, later = columns.idle, columns.future_idle
    if reservations and tasks:
        now = reservations.idle_for(tasks[0])
        for task in tasks:
            own = reservations.own_room(task)
            if own is not None:
                later[:, own.row] += own.amount
                now[:, own.row] += own.amount if task is not tasks[0] else 0
    return now, later


def _nominated(session: Session, tasks: Sequence[Task]) -> Bools:
    """The nodes that were cleared for tasks."""
    nominated = np.zeros(len(session.cluster.columns), dtype=bool)
    for task in tasks:
        node = session.cluster.nodes.get(task.nominated) if task.nominated else None
        if node is not None and node.row >= 0:
            nominated[node.row] = True
    return nominated
