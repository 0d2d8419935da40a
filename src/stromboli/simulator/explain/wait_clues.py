"""What a cycle left behind about a job that waits, from which follows what is worth trying."""

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

MOST_HOLDERS = 8
MOST_PROMISES = 500
"""Waiting jobs that are asked whether they were promised a start."""


@dataclass(slots=True)
class WaitClues:
    """About one job after a cycle; the tasks and nodes are those of the cluster, the arrays are copies."""

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
    """Of all reasons that nodes gave, as far as these have one."""
    promised: float | None = None
    """When the first of the jobs starts that were promised a start."""
    waits: Waits | None = None
    """The jobs for which there was no room in the cycle."""
    hits: list[Hit] = field(default_factory=list)
    """Limits of its queue, and of those above, that leave too little for all its pods."""


def wait_clues(outcome: Outcome, job: Job, wait: Diagnosis) -> WaitClues:
    """To be asked before the cluster changes again."""
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
    holding = largest_holding_jobs(session, short, usable, job)[:MOST_HOLDERS]
    clues.holders = [(holder, held) for holder, held, _ in holding]
    if job.queue is not None and job.queue.exists:
        with session.reporting():
            hit = limit_hit(session, job.queue, job.pending or job.min_resources or {})
            clues.hits = [hit] if hit else []
    return clues


def _first_promise(outcome: Outcome, job: Job) -> float | None:
    session = outcome.session
    starts = []
    for other in islice((each for each in session.cluster.backlog if each is not job), MOST_PROMISES):
        promise = session.rules.promised(other)
        if promise is not None and promise.start > session.now:
            starts.append(promise.start)
    return min(starts, default=None)
