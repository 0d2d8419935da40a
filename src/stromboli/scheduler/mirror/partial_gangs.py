"""Gangs of which only a part was bound: completed within a while, or evicted.

A gang is decided on as a whole, but its binds are written one by one: some may fail, or the scheduler may die half
way. The next cycles try to place the rest. If that does not succeed in time, the bound members are evicted together,
and the whole gang is pending again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from stromboli.engine.decisions import Decision, Event, Evict
from stromboli.model.cluster import Cluster
from stromboli.model.job import Job
from stromboli.model.status import Status

log = logging.getLogger(__name__)

PATIENCE = 60.0
"""Seconds that a partial gang has to become complete."""
RECENT = 600.0
"""Seconds after its last bind for which a gang never seen complete, as after a restart, counts as partial."""
REASON = "gang"
MESSAGE = "only {bound} of {minimum} could be bound within {patience:.0f}s, so all of them make room"

_HOLDING = (Status.BOUND, Status.RUNNING)
_SPENT = (Status.SUCCEEDED, Status.FAILED, Status.RELEASING)


class PartialGangs:
    """Remembers which gangs are partial, and since when."""

    def __init__(self, patience: float = PATIENCE):
        self._patience = patience
        self._since: dict[Job, float] = {}
        self._complete: set[str] = set()
        """Uids of PodGroups that were once bound completely: members they lose later are no concern of ours."""

    def release(self, cluster: Cluster, wall: float, now: float) -> list[Decision]:
        """The evictions that are due. Only jobs that changed or are known to be partial are checked.

        Patience is measured in `now`, a monotonic clock; `wall` is compared with times that the API server wrote.
        """
        dirty = cluster.dirty
        for job in list(cluster.jobs.values()) if dirty.everything else list(dirty.jobs):
            self._check(job, wall, now)
        decisions: list[Decision] = []
        for job, since in list(self._since.items()):
            if cluster.jobs.get(job.id) is not job or not self._is_partial(job, wall):
                del self._since[job]
            elif now - since >= self._patience and not job.counts[Status.BINDING]:
                del self._since[job]
                decisions += self._evictions(job)
        if len(self._complete) > 2 * len(cluster.jobs) + 1000:
            self._complete &= {_uid(job) for job in cluster.jobs.values()}
        return decisions

    def _check(self, job: Job, wall: float, now: float) -> None:
        if job.group is not None and not job.counts[Status.BINDING] and job.ready_count >= job.minimum:
            self._complete.add(_uid(job))
            self._since.pop(job, None)
        elif job not in self._since and self._is_partial(job, wall):
            self._since[job] = now

    def _is_partial(self, job: Job, wall: float) -> bool:
        """Whether only a part of the minimum was ever bound, and the rest existed when that part was bound."""
        counts = job.counts
        holding = sum(counts[status] for status in _HOLDING)
        if (
            not holding
            or job.group is None
            or _uid(job) in self._complete
            or any(counts[status] for status in _SPENT)
        ):
            return False
        if job.ready_count >= job.minimum and not counts[Status.BINDING]:
            return False
        times = [task.scheduled_at for status in _HOLDING for task in job.by_status[status]]
        bound = [time for time in times if time is not None]
        if not bound or wall - max(bound) > RECENT + self._patience:
            return False
        since = min(bound)
        waiting = sum(task.created <= since for task in job.by_status[Status.PENDING])
        return holding + counts[Status.BINDING] + waiting >= job.minimum

    def _evictions(self, job: Job) -> Iterator[Decision]:
        tasks = [task for status in _HOLDING for task in job.by_status[status]]
        text = MESSAGE.format(bound=len(tasks), minimum=job.minimum, patience=self._patience)
        log.warning("%s: %s", job.key, text)
        yield Event(job.id.kind, job.namespace, job.name, "Warning", "Evict", text)
        for task in sorted(tasks, key=lambda task: task.order):
            node = task.node.name if task.node else ""
            yield Evict(task.namespace, task.name, task.uid, node, job.key, REASON, REASON, job.key)


def _uid(job: Job) -> str:
    return job.group.metadata.uid if job.group else ""
