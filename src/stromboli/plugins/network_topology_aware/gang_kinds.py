"""Which gangs are likely to come: those that are there now, by how many pods they have and what a pod requests.

All is read off the jobs of the cluster, so that a scheduler that starts anew knows what the one before it knew.
"""

from __future__ import annotations

from collections import Counter
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

    def update(self, cluster: Cluster, dirty: Dirty) -> None:
        """Look again at jobs that changed."""
        changed: Iterable[Job] = dirty.jobs
        if dirty.everything:
            self._of_job, self._counts, changed = {}, Counter(), list(cluster.jobs.values())
        for job in changed:
            self._counts.subtract(self._of_job.pop(job, ()))
            if cluster.jobs.get(job.id) is job and (kinds := list(_kinds(job))):
                self._of_job[job] = kinds
                self._counts.update(kinds)
        self._counts = +self._counts

    def shares(self) -> list[tuple[GangKind, float]]:
        """The most frequent kinds, each with its part of all gangs."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        return [(kind, count / self._counts.total()) for kind, count in ordered[:KINDS]]


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
