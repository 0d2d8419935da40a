"""What happened since the last cycle, as far as it could change a decision, and how long it may wait for the next.

A pod that arrives is news if its job could start now; what frees room, or changes what may go where, is news if
somebody waits who could start. What only the status of an object follows may wait a moment. All else is left to the
period.
"""

from __future__ import annotations

import math
from itertools import islice

from stromboli.api.types.meta import Object
from stromboli.model.cluster import Cluster
from stromboli.model.job import Job
from stromboli.scheduler.gathering import NOW
from stromboli.scheduler.mirror.change_concerns import Concern, Known, concern, job_of

STATUS_PATIENCE = 1.0
"""Seconds that a change may wait which only the status of some object can follow."""
EMPTY_GROUP_PATIENCE = 0.1
"""Seconds that a PodGroup without pods waits to be let in: most are made beside pods that exist already."""
SEARCHED = 100
"""Jobs among which somebody is sought who could start, before it is taken for granted."""
JOB_KIND = "Job"
"""The kind of owner that makes no pods before its PodGroup is let in."""


class News:
    """What happened since it was last asked, or a cycle began, as far as it could change a decision."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """A cycle begins, which sees all of it."""
        self._jobs: dict[Job, None] = {}
        """Jobs that may be able to start."""
        self._concern = Concern.NOBODY
        """The widest concern besides those."""
        self._phases_changed = False
        """Whether a cycle ended with other phases than its actions saw."""

    def note(self, cluster: Cluster, object: Object, before: Known, gone: bool) -> None:
        """An object was taken in, or is gone."""
        whom = concern(cluster, object, before, gone)
        if whom is not Concern.JOB:
            self._concern = max(self._concern, whom)
        elif (job := job_of(cluster, object)) is not None:
            self._jobs[job] = None

    def note_everything(self) -> None:
        """The model was rebuilt: its jobs are others than before."""
        self._jobs.clear()
        self._concern = Concern.EVERYBODY

    def note_phases(self) -> None:
        """A cycle changed phases at its end: a job that runs no longer holds what enqueue kept for it."""
        self._phases_changed = True

    def take_patience(self, cluster: Cluster, gangs: bool, evicts: bool) -> float:
        """How long it may all wait for a cycle, which is asked once; infinite if there is no reason for one.

        `gangs`: the policy tries no job that lacks pods. `evicts`: it has actions that evict.
        """
        jobs, whom, phases_changed = self._jobs, self._concern, self._phases_changed
        self.forget()
        room = phases_changed or whom is Concern.EVERYBODY or (whom is Concern.VICTIMS and evicts)
        if room and _somebody_could_start(cluster, gangs):
            return NOW
        could_be_let_in = phases_changed and bool(cluster.waiting)
        patience = STATUS_PATIENCE if could_be_let_in or whom is not Concern.NOBODY else math.inf
        for job in jobs:
            patience = min(patience, _patience_of(cluster, job, gangs))
            if patience <= NOW:
                break
        return patience


def _somebody_could_start(cluster: Cluster, gangs: bool) -> bool:
    for jobs in (cluster.waiting, cluster.backlog):
        if len(jobs) > SEARCHED or any(
            _patience_of(cluster, job, gangs) <= NOW for job in islice(jobs, SEARCHED)
        ):
            return True
    return False


def _patience_of(cluster: Cluster, job: Job, gangs: bool) -> float:
    """How long a job may wait that changed: not at all if it could start, or be let in and get pods."""
    if job not in cluster.waiting and job not in cluster.backlog:
        return STATUS_PATIENCE
    if not job.tasks and job.waits_for_queue:
        made_by_job = job.owner is not None and job.owner.kind == JOB_KIND
        return NOW if made_by_job else EMPTY_GROUP_PATIENCE
    return NOW if not gangs or job.complete else STATUS_PATIENCE
