"""Which gangs are likely to come: those that are there now, by how many pods they have and what a pod requests.

All is read off the jobs of the cluster, so that a scheduler that starts anew knows what the one before it knew.
"""

from __future__ import annotations

from collections import Counter
from heapq import nsmallest
from typing import TYPE_CHECKING, NamedTuple

from stromboli.engine.topology.topology_limits import requested_topology
from stromboli.model.amounts import total_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stromboli.model.amounts import Vector
    from stromboli.model.cluster import Cluster, Dirty
    from stromboli.model.job import Job, SubJob

KINDS = 8
"""How many kinds count: the most frequent."""


class GangKind(NamedTuple):
    """Gangs of so many pods, with what a pod of them requests on average, by resource."""

    pods: int
    request: tuple[tuple[int, float], ...]


class GangKinds:
    """How many gangs of each kind there are, running or waiting; follows what changed since the last session."""

    def __init__(self) -> None:
        self._of_job: dict[Job, list[GangKind]] = {}
        self._counts: Counter[GangKind] = Counter()
        self._shares: list[tuple[GangKind, float]] | None = None

    def update(self, cluster: Cluster, dirty: Dirty) -> None:
        """Look again at jobs that changed."""
        changed: Iterable[Job] = dirty.jobs
        if dirty.everything:
            self._of_job, self._counts, self._shares = {}, Counter(), None
            changed = list(cluster.jobs.values())
        for job in changed:
            kinds = list(_kinds(job)) if cluster.jobs.get(job.id) is job else []
            if kinds != self._of_job.get(job, []):
                self._replace(job, kinds)

    def _replace(self, job: Job, kinds: list[GangKind]) -> None:
        gone = self._of_job.pop(job, [])
        self._counts.subtract(gone)
        for kind in gone:
            if self._counts[kind] <= 0:
                del self._counts[kind]
        if kinds:
            self._of_job[job] = kinds
            self._counts.update(kinds)
        self._shares = None

    def shares(self) -> list[tuple[GangKind, float]]:
        """The most frequent kinds, each with its part of all gangs."""
        if self._shares is None:
            first = nsmallest(KINDS, self._counts.items(), key=lambda item: (-item[1], item[0]))
            total = self._counts.total()
            self._shares = [(kind, count / total) for kind, count in first]
        return self._shares


def kind_of(pods: int, total: Vector) -> GangKind:
    """The kind of a gang with so many pods that request so much together."""
    return GangKind(pods, tuple((dim, amount / pods) for dim, amount in sorted(total.items()) if amount > 0))


def total_request(sub_job: SubJob) -> Vector:
    """What all tasks of a sub-group request, whatever their status."""
    if not sub_job.job.policies:
        return sub_job.job.total
    return total_of(task.request for task in sub_job.tasks)


def _kinds(job: Job) -> Iterator[GangKind]:
    """The parts of a job that want to be together, each as a gang."""
    for sub_job in job.sub_jobs.values() if job.visible else ():
        if sub_job.tasks and requested_topology(sub_job) is not None:
            yield kind_of(len(sub_job.tasks), total_request(sub_job))
