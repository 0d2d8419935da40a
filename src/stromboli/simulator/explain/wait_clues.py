"""What a cycle found out about a waiting job, by which remedies are chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.explanation.diagnosis import WAITING
from stromboli.engine.explanation.queue_limit_hits import Hit, limit_hit
from stromboli.model.dimensions import PODS
from stromboli.simulator.explain.resource_holders import HoldingTasks, largest_holding_jobs
from stromboli.simulator.explain.room_by_nodes import WaitingKind, waiting_kinds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stromboli.engine.cycle import Outcome
    from stromboli.engine.explanation.diagnosis import Diagnosis
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.capacity_waits import Waits
    from stromboli.model.job import Job, JobId
    from stromboli.model.node_columns import Bools, Ints
    from stromboli.model.task import Task

MAX_HOLDERS = 8
MAX_PROMISES = 500
"""Waiting jobs for which plugins are asked for a promised start."""


@dataclass(slots=True)
class WaitClues:
    """Clues to remedies; the tasks and nodes are those of the cluster, the arrays are copies."""

    id: JobId
    wait: Diagnosis
    tasks: list[Task]
    needed: int
    """How many of them must start together, at least."""
    kinds: list[WaitingKind]
    short: list[int]
    idle: Ints
    usable: Bools
    holders: list[HoldingTasks]
    """The jobs that hold the most of what is short on usable nodes."""
    codes: set[str] = field(default_factory=set)
    """Codes of the diagnosis and of the reasons that nodes gave."""
    promised: float | None = None
    """The first promised start of another job."""
    waits: Waits | None = None
    """The jobs that the cycle skips because they need more capacity than there is."""
    hit: Hit | None = None
    """The limit of its queue, or of an ancestor, that leaves too little for all its pods."""


def _short_dims(session: Session, wait: Diagnosis, kinds: Sequence[WaitingKind]) -> list[int]:
    """What is short: by the diagnosis, or else what no node has enough of, or else all that the pods request."""
    dims = session.cluster.dims
    named = [dims.index[each.resource] for each in wait.shortages if each.resource in dims.index]
    if named:
        return named
    asked = {
        dim: amount
        for kind in kinds
        for dim, amount in kind.task.request.items()
        if amount > 0 and dim != PODS
    }
    idle = session.cluster.columns.idle
    if not idle.shape[1]:
        return list(asked)
    return [dim for dim, amount in asked.items() if idle[dim].max() < amount] or dims.ordered(asked)


def _waiting_tasks(job: Job) -> list[Task]:
    """The waiting tasks of a job without scheduling gates, in their order."""
    tasks = (task for status in WAITING for task in job.by_status[status] if not task.gates)
    return sorted(tasks, key=lambda task: task.order)


def wait_clues(outcome: Outcome, job: Job, wait: Diagnosis) -> WaitClues:
    """What a cycle found out about a waiting job, before the cluster changes again."""
    session = outcome.session
    tasks = _waiting_tasks(job)
    kinds = waiting_kinds(session, tasks)
    usable: Bools = np.zeros(len(session.cluster.columns), dtype=bool)
    for kind in kinds:
        usable |= kind.usable
    short = _short_dims(session, wait, kinds)
    clues = WaitClues(
        id=job.id,
        wait=wait,
        tasks=tasks,
        needed=max(job.minimum - job.ready_count, 1),
        kinds=kinds,
        short=short,
        holders=largest_holding_jobs(session, short, usable, job)[:MAX_HOLDERS],
        idle=session.cluster.columns.idle.copy(),
        usable=usable,
        codes={wait.code}.union(
            reason.code for verdict in outcome.diagnoses.verdicts(job).values() for reason in verdict.reasons
        ),
        waits=session.waits,
    )
    if wait.gate == "backfill":
        clues.promised = _first_promise(outcome, job)
    if job.queue is not None and job.queue.exists:
        with session.reporting():
            clues.hit = limit_hit(session, job.queue, job.pending or job.min_resources or {})
    return clues


def _first_promise(outcome: Outcome, job: Job) -> float | None:
    session = outcome.session
    starts = []
    for other in islice((each for each in session.cluster.backlog if each is not job), MAX_PROMISES):
        promise = session.rules.promised(other)
        if promise is not None and promise.start > session.now:
            starts.append(promise.start)
    return min(starts, default=None)
