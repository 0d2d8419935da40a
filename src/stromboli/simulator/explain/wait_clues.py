"""What a cycle found out about a waiting job, by which remedies are chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from stromboli.engine.explanation.queue_limit_hits import Hit, limit_hit
from stromboli.simulator.explain.job_subject import short_dims, waiting_tasks
from stromboli.simulator.explain.resource_holders import largest_holding_jobs
from stromboli.simulator.explain.room_by_nodes import WaitingKind, waiting_kinds

if TYPE_CHECKING:
    from stromboli.engine.cycle import Outcome
    from stromboli.engine.explanation.diagnosis import Diagnosis
    from stromboli.engine.waiting.room_waits import Waits
    from stromboli.model.job import Job, JobId
    from stromboli.model.node_columns import Bools, Ints
    from stromboli.model.task import Task

MAX_HOLDERS = 8
MAX_PROMISES = 500
"""Waiting jobs for which plugins are asked for a promised start."""


@dataclass(slots=True)
class WaitClues:
    """The tasks and nodes are those of the cluster, the arrays are copies."""

    id: JobId
    wait: Diagnosis
    tasks: list[Task]
    needed: int
    """How many of them must start together, at least."""
    kinds: list[WaitingKind]
    short: list[int]
    idle: Ints
    usable: Bools
    holders: list[tuple[Job, list[Task]]] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)
    """Codes of the reasons that nodes gave."""
    promised: float | None = None
    """The first promised start of another job."""
    waits: Waits | None = None
    """The jobs that the cycle skips because they need more capacity than there is."""
    hits: list[Hit] = field(default_factory=list)
    """Limits of its queue, and of its ancestors, that leave too little for all its pods."""


def wait_clues(outcome: Outcome, job: Job, wait: Diagnosis) -> WaitClues:
    """To be called before the cluster changes again."""
    session = outcome.session
    tasks = waiting_tasks(job)
    kinds = waiting_kinds(session, tasks)
    usable: Bools = np.zeros(len(session.cluster.columns), dtype=bool)
    for kind in kinds:
        usable |= kind.usable
    short = short_dims(session, wait, kinds)
    clues = WaitClues(
        id=job.id,
        wait=wait,
        tasks=tasks,
        needed=max(job.minimum - job.ready_count, 1),
        kinds=kinds,
        short=short,
        idle=session.cluster.columns.idle.copy(),
        usable=usable,
        codes={
            reason.code for verdict in outcome.diagnoses.verdicts(job).values() for reason in verdict.reasons
        },
        waits=session.waits,
    )
    if wait.gate == "backfill":
        clues.promised = _first_promise(outcome, job)
    holding = largest_holding_jobs(session, short, usable, job)[:MAX_HOLDERS]
    clues.holders = [(holder, held) for holder, held, _ in holding]
    if job.queue is not None and job.queue.exists:
        with session.reporting():
            hit = limit_hit(session, job.queue, job.pending or job.min_resources or {})
            clues.hits = [hit] if hit else []
    return clues


def _first_promise(outcome: Outcome, job: Job) -> float | None:
    session = outcome.session
    starts = []
    for other in islice((each for each in session.cluster.backlog if each is not job), MAX_PROMISES):
        promise = session.rules.promised(other)
        if promise is not None and promise.start > session.now:
            starts.append(promise.start)
    return min(starts, default=None)
