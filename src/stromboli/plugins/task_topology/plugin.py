"""Place tasks bucket by bucket, and prefer the nodes where the rest of the bucket is or fits."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from stromboli.api import names
from stromboli.engine.placement.node_functions import Bools, Column, Nodes, NodeScore
from stromboli.engine.plugin import Key, Plugin
from stromboli.engine.session import Session
from stromboli.model.cluster import Change, Dirty
from stromboli.model.dimensions import MEMORY
from stromboli.model.job import Job
from stromboli.model.node_columns import Ints
from stromboli.model.requirements.placement_requirement import TASK_TOPOLOGY
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.plugins.task_topology.role_affinities import BadRoleList, read_affinities
from stromboli.plugins.task_topology.role_buckets import Bucket, JobBuckets, role_of
from stromboli.policy.arguments import arg

FULL_SCORE = 100.0
_OUT_OF_BUCKET = (1,)
WAY_OUT = "the job is placed as if it had no task-topology annotations: correct the list"


@dataclass(frozen=True, slots=True)
class TaskTopologyArguments:
    """How much the score counts."""

    weight: int = arg("task-topology.weight", 1, "How much it counts that roles are together or apart.")


class TaskTopology(Plugin):
    """Keeps roles of a job on one node or apart, as the annotations of its PodGroup say."""

    name = "task-topology"
    honours = frozenset({TASK_TOPOLOGY.name})
    Arguments = TaskTopologyArguments
    arguments: TaskTopologyArguments

    def __init__(self, arguments: TaskTopologyArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._jobs: dict[Job, JobBuckets] = {}

    # -- buckets

    def opening(self, session: Session, dirty: Dirty) -> None:
        if dirty.everything:
            self._jobs = {}
        for job in session.jobs() if dirty.everything else dirty.jobs:
            self._jobs.pop(job, None)
            if _wants_topology(job):
                self._divide(session, job)

    def _divide(self, session: Session, job: Job) -> None:
        """Divide the tasks of a job into buckets; one with a bad list gets none, and is told."""
        assert job.group is not None
        try:
            roles = {task.role for task in job.tasks.values()}
            affinities = read_affinities(job.group.metadata.annotations, roles)
        except BadRoleList as error:
            text = f"{error}: {WAY_OUT}"
            session.record_event(job, self.name, names.WARNING, names.EVENT_FIELD_IGNORED, text)
        else:
            self._jobs[job] = JobBuckets(affinities, job.tasks.values())

    def on_move(self, change: Change) -> None:
        buckets = self._jobs.get(change.task.job) if change.task.job is not None else None
        if buckets is not None and change.old_node is not change.node:
            if change.old_node is not None:
                buckets.unbind(change.task, change.old_node)
            if change.node is not None:
                buckets.bind(change.task, change.node)

    def _bucket(self, task: Task) -> tuple[JobBuckets, Bucket] | None:
        buckets = self._jobs.get(task.job) if task.job is not None else None
        bucket = buckets.bucket_of(task) if buckets is not None else None
        return (buckets, bucket) if buckets is not None and bucket is not None else None

    # -- order

    def task_order(self, task: Task) -> Key:
        """The bucket with the most tasks that wait, then the older one; within it by role."""
        known = self._bucket(task)
        if known is None:
            return _OUT_OF_BUCKET
        buckets, bucket = known
        return (0, -len(bucket.unbound), bucket.index, *buckets.affinities.rank(role_of(task)))

    # -- score

    def shape_key(self, task: Task) -> Hashable:
        known = self._bucket(task)
        return (task.job.id if task.job else None, known[1].index, role_of(task)) if known else None

    def node_scores(self, task: Task) -> Iterable[NodeScore]:
        if self._bucket(task) is not None and self.arguments.weight:
            yield NodeScore(self._score, self.name, "pods", self._version, of_some_nodes=True)

    def _version(self, task: Task) -> Hashable:
        return (self.session.cluster.columns.clock, task.uid)

    def _score(self, task: Task, nodes: Nodes) -> Column:
        known = self._bucket(task)
        if known is None:
            return nodes.zeros()
        buckets, bucket = known
        available = nodes.idle + nodes.releasing
        score = nodes.pick(self._near(buckets, bucket, role_of(task))) + len(bucket.unbound)
        score -= bucket.displaced(task, available)
        score[_lacks(task, nodes, available)] = 0
        return score * self.arguments.weight * FULL_SCORE / buckets.largest

    def _near(self, buckets: JobBuckets, bucket: Bucket, role: str) -> Ints:
        """By node: the tasks of the bucket that are there, less those placed there that the role shuns."""
        near: Ints = np.zeros(len(self.session.cluster.columns), dtype=np.int64)
        for node, count in bucket.bound_on.items():
            if node.row >= 0:
                near[node.row] += count
        for node, roles in buckets.placed.items() if buckets.affinities.shunned else ():
            if node.row >= 0:
                near[node.row] += buckets.affinities.anti_affinity(role, roles)
        return near


def _wants_topology(job: Job) -> bool:
    group = job.group
    return (
        group is not None
        and any(key in group.metadata.annotations for key in names.TASK_TOPOLOGY)
        and bool(job.by_status[Status.PENDING])
    )


def _lacks(task: Task, nodes: Nodes, available: Ints) -> Bools:
    """Nodes that could never take the task.

    # quirk: spec 04 8: so are those with less than nothing of any resource, and without one that it asks nothing of.
    """
    lacking: Bools = np.any(available < task.shape.dense(len(available))[:, None], axis=0)
    unused = {dim for dim, amount in task.request.items() if not amount and dim > MEMORY}
    if unused:
        lacking = lacking | nodes.each(lambda node: not unused <= node.allocatable.keys(), bool)
    return lacking
