"""An own action that places pods: gangs, the oldest first, each on the fewest nodes that hold it.

A gang is tried on so many of the roomiest nodes in a statement that is taken back, until the smallest number is known;
that one is committed. Which nodes are allowed and how much a queue may have is up to the plugins of the policy.
"""

from bisect import bisect_left

import numpy as np

from stromboli.engine.catalog import action
from stromboli.engine.placement.verdict import Verdict
from stromboli.engine.session import Session
from stromboli.model.amounts import total_of
from stromboli.model.job import Job
from stromboli.model.node_columns import Ints
from stromboli.model.status import Status
from stromboli.model.task import Task


@action("pack-gangs")
def pack_gangs(session: Session) -> None:
    """Place waiting gangs, the oldest first, each on the fewest nodes that hold it."""
    for job in sorted(session.cluster.backlog, key=lambda job: (job.created, job.id)):
        with session.guard(job):  # what a plugin raises costs this job its turn, and nothing else
            if not job.waits_for_queue and not session.rules.job_valid(job):
                pack(session, job)


def pack(session: Session, job: Job) -> None:
    """Bind what a gang lacks, all of it or nothing; pods beyond its minimum are left to `allocate`."""
    waiting = [task for task in job.by_status[Status.PENDING] if not task.best_effort and not task.gates]
    gang = sorted(waiting, key=session.task_key)[: max(job.minimum - job.ready_count, 0)]
    if not gang or job.queue is None or session.rules.overused(job.queue):
        return
    nodes = roomiest_first(session, gang)
    if starts(session, job, gang, nodes):  # on all nodes: is there a way at all?
        counts = range(len(nodes))
        fewest = bisect_left(counts, True, lo=1, key=lambda n: starts(session, job, gang, nodes[:n]))
        starts(session, job, gang, nodes[:fewest], commit=True)


def starts(session: Session, job: Job, gang: list[Task], nodes: Ints, commit: bool = False) -> bool:
    """Whether a gang can start on these nodes alone; unless it is committed, nothing is left of the trial."""
    within = np.isin(np.arange(len(session.cluster.columns.nodes)), nodes)
    with session.statement() as trial:
        for task in gang:
            if job.queue is None or not session.rules.allocatable(job.queue, task):
                return False
            place = session.place(task, within)
            if isinstance(place, Verdict) or trial.assign(task, place) is not None:
                return False
        ready = session.rules.job_ready(job)
        if ready and commit:
            trial.commit()
        return ready


def roomiest_first(session: Session, gang: list[Task]) -> Ints:
    """The rows of all nodes, those first that have room for the largest part of a gang."""
    idle, wanted = session.cluster.columns.idle, total_of(task.request for task in gang)
    parts = [idle[dim] / amount for dim, amount in wanted.items()]
    return np.argsort(-np.min(parts, axis=0), kind="stable")
