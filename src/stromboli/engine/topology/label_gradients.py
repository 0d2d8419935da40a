"""The domains to try for a native group that keeps to a value of a label, and which of them is best.

The rule of choice is kube-scheduler's: the more of the group's pods have room and the fuller the domain is with them,
the better. Ties fall to the domain of the first node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.engine.placement.node_placement import Place
from stromboli.engine.topology.confinement import possible_domains
from stromboli.engine.topology.label_topology import label_key
from stromboli.model.job import SubJob
from stromboli.model.shape import VIEW_NONZERO_CPU, VIEW_NONZERO_MEMORY
from stromboli.model.status import Status
from stromboli.model.topology.label_domains import label_domains

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.amounts import Amounts
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Ints
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain

FULL = 100
"""What a domain scores if all of its room is in use, and what it scores if no other takes more pods."""
STARTS_NOW = 1000
"""What it scores beyond that if the group need not wait for room there."""


def label_gradients(session: Session, unit: Job | SubJob, root: Domain, purpose: str) -> list[list[Domain]]:
    """The domains to try for a native group, all in one group; those without room only to make some.

    To be allocated, the one sub-group of a job chooses, so that domains are scored together.
    """
    job = unit.job if isinstance(unit, SubJob) else unit
    if root is not session.cluster.hyper_nodes.top or (unit is job and purpose == "allocate"):
        return [[root]]
    domains = possible_domains(session, job)
    if len(domains) < 2:
        return [domains]
    sums = label_domains(session.cluster.columns, label_key(job)).sums
    need, room = _least_need(job), sums.future_idle
    if purpose == "allocate":
        enough = np.ones(len(domains), dtype=bool)
        for dim, amount in need.items():
            enough &= room[dim] >= amount
        return [[domains[place] for place in np.flatnonzero(enough)]]
    lacking = sum(np.maximum(amount - room[dim], 0) / amount for dim, amount in need.items() if amount > 0)
    return [[domains[place] for place in np.argsort(lacking + np.zeros(len(domains)), kind="stable")]]


def _least_need(job: Job) -> Amounts:
    """What the pods that it takes to start ask for at least."""
    pending = job.by_status[Status.PENDING]
    missing = min(max(job.minimum - job.ready_count, 1), len(pending))
    if missing == len(pending):
        return job.pending
    return {dim: missing * min(task.request.get(dim, 0) for task in pending) for dim in job.pending}


# -- which of them


class Trial(NamedTuple):
    """What came of trying all pending tasks of a group in a domain."""

    placed: list[Task]
    now: bool
    """Whether none of them has to wait for room."""


def label_scores(session: Session, sub_job: SubJob, domains: Sequence[Domain]) -> Mapping[str, float]:
    """How good domains are for a group, by name; a domain in which it cannot start scores nothing."""
    if len(domains) < 2:
        return {}
    held, needed = sub_job.allocated_count, session.rules.tasks_needed(sub_job)
    trials = {domain: _try(session, sub_job, domain) for domain in domains}
    serving = {domain: trial for domain, trial in trials.items() if len(trial.placed) >= needed}
    most = max((held + len(trial.placed) for trial in serving.values()), default=1)
    return {
        domain.name: STARTS_NOW * trial.now
        + (held + len(trial.placed)) * FULL // most
        + _fullness(session, domain, trial.placed)
        for domain, trial in serving.items()
    }


def _try(session: Session, sub_job: SubJob, domain: Domain) -> Trial:
    """Place all that has room of a sub-group in a domain, and take it back."""
    found, now, failed = [], True, set()
    tasks = [task for task in sub_job.job.by_status[Status.PENDING] if not task.gates]
    with session.statement() as trial:
        for task in sorted(tasks, key=session.task_key):
            if task.shape in failed:
                continue
            place = session.place(task, domain=domain)
            if isinstance(place, Place) and trial.assign(task, place) is None:
                found.append(task)
                now = now and place.now
            else:
                failed.add(task.shape)
    return Trial(found, now)


def _fullness(session: Session, domain: Domain, tasks: Sequence[Task]) -> int:
    """How much of a domain's cpu and memory is in use with these tasks, from 0 to 100."""
    columns, scores = session.cluster.columns, []
    for view in (VIEW_NONZERO_CPU, VIEW_NONZERO_MEMORY):
        size = _exact_sum(columns.view_allocatable[view, domain.rows])
        used = _exact_sum(columns.view[view, domain.rows])
        used += sum(int(task.shape.incoming[view]) for task in tasks)
        if size:
            scores.append(min(used, size) * FULL // size)
    return sum(scores) // len(scores) if scores else 0


def _exact_sum(column: Ints) -> int:
    """The sum of amounts, which may be more than 64 bits hold."""
    return int(np.sum(column >> 32)) * 2**32 + int(np.sum(column & 0xFFFFFFFF))
