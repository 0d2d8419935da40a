"""Which changes since the last cycle could change a decision, and when the next cycle starts for them.

The impact of a change follows from what the model knew of the object before, compared with what it knows now: a
heartbeat of a node has no impact, and neither has an own write that the watch brings back. Every other change counts
as news. A new pod is news if its job could start now; a change that frees capacity, or that changes where pods may
run, is news if a pending job could start. A change that only the status of an object follows may wait a moment. All
other changes wait for the period.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from enum import IntEnum
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.node import Node as NodeObject
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodDisruptionBudget, PodGroup
from stromboli.api.types.scheduling import Queue as QueueObject
from stromboli.model.cluster import Cluster
from stromboli.model.intake.pod_fields import scheduling_properties_changed
from stromboli.model.job import Job, JobId
from stromboli.model.node_columns import Node
from stromboli.model.status import Status
from stromboli.model.task import Task

NOW = 0.0
"""Seconds that news may wait which could let a pod start; other changes may wait longer."""
STATUS_PATIENCE = 1.0
"""Seconds that a change may wait which only the status of some object can follow."""
EMPTY_GROUP_PATIENCE = 0.1
"""Seconds that a PodGroup without pods waits to be admitted: most are created beside pods that exist already."""
SEARCHED = 100
"""Pending jobs that are searched for one that could start; beyond them one is assumed."""
JOB_KIND = "Job"
"""The kind of owner that creates no pods before its PodGroup is admitted."""
_REPORTED_ELSEWHERE = frozenset(
    (
        "status",
        "node",
        "job",
        "sub_job",
        "_order",
        "grants",
        "attaches",
        "assumed",
        "terminating",
        "preempted",
    )
)
"""Fields of a task that follow from others, from its status, or from objects of their own."""
_UNREAD = frozenset(("condition", "nominated", "scheduled_at", "started"))
"""Fields that we write ourselves, or that no decision reads."""
_FACTS = attrgetter(
    *(field.name for field in fields(Task) if field.name not in _REPORTED_ELSEWHERE | _UNREAD),
)
"""What decisions read of a task besides its status and node; a field that is new in tasks is among it."""
_DECIDED = (Status.ALLOCATED, Status.BINDING)
_ENDED = (Status.SUCCEEDED, Status.FAILED)


# -- the impact of a change


class Impact(IntEnum):
    """Which jobs a change may help to start."""

    NONE = 0
    STATUS = 1
    """None: only the status of some object follows it."""
    JOB = 2
    """The job itself."""
    VICTIMS = 3
    """All pending jobs, if the policy evicts."""
    ALL_PENDING = 4
    """All pending jobs."""


class Known(NamedTuple):
    """What the model knows of an object, to be compared with what it knows after a change."""

    facts: Any = None
    status: Status | str | None = None
    """Of a task its status, of a job its phase."""
    node: Node | None = None
    """Of a task where it is."""


UNKNOWN = Known()


def known(cluster: Cluster, object: Object) -> Known:
    """What the model has of an object now."""
    if isinstance(object, Pod):
        task = _task(cluster, object)
        return Known(_FACTS(task), task.status, task.node) if task is not None else UNKNOWN
    if isinstance(object, PodGroup | NativePodGroup):
        job = _job(cluster, object)
        return Known(job.group, job.phase) if job is not None and job.group is not None else UNKNOWN
    if isinstance(object, NodeObject):
        node = cluster.nodes.get(object.name)
        return Known(node.object) if node is not None else UNKNOWN
    if isinstance(object, QueueObject):
        queue = cluster.queues.get(object.name)
        return Known(queue.object) if queue is not None else UNKNOWN
    return Known(cluster.objects.get(object))


def impact_of(cluster: Cluster, object: Object, before: Known, gone: bool) -> Impact:
    """The impact of an object that was added, changed or deleted."""
    return _COMPARISONS.get(type(object), _impact_of_lookup_object)(cluster, object, before, gone)


def job_of(cluster: Cluster, object: Object) -> Job | None:
    """The job of a pod or a PodGroup."""
    if isinstance(object, Pod):
        task = _task(cluster, object)
        return task.job if task is not None else None
    return _job(cluster, object)


def _impact_of_pod(cluster: Cluster, object: Object, before: Known, gone: bool) -> Impact:
    task = _task(cluster, object)
    if task is None:
        if before is UNKNOWN:
            return Impact.NONE
        return Impact.STATUS if before.status in _ENDED else Impact.ALL_PENDING
    if before is UNKNOWN:
        return _impact_of_new_task(task)
    if task.node is not None and task.node is before.node and task.status is not before.status:
        if task.status is Status.BOUND and before.status in _DECIDED:
            return Impact.STATUS
        if task.status is Status.RUNNING and before.status in (*_DECIDED, Status.BOUND):
            return Impact.VICTIMS
    if task.status is before.status and task.node is before.node and _FACTS(task) == before.facts:
        return Impact.NONE
    if task.status is Status.PENDING and before.status in (Status.PENDING, *_ENDED):
        return Impact.JOB
    both_ended = task.status in _ENDED and before.status in _ENDED
    return Impact.STATUS if both_ended else Impact.ALL_PENDING


def _impact_of_new_task(task: Task) -> Impact:
    if task.status is Status.PENDING:
        return Impact.JOB
    return Impact.STATUS if task.status in _ENDED else Impact.ALL_PENDING


def _impact_of_group(cluster: Cluster, object: Object, before: Known, gone: bool) -> Impact:
    assert isinstance(object, PodGroup | NativePodGroup)
    if gone:
        return Impact.NONE if before is UNKNOWN else Impact.ALL_PENDING
    if before is UNKNOWN:
        return Impact.JOB
    job = _job(cluster, object)
    if (
        job is None
        or job.group is None
        or job.group.spec != before.facts.spec
        or not _same_metadata(job.group, before.facts)
    ):
        return Impact.ALL_PENDING
    return Impact.NONE if job.phase == before.status else Impact.JOB


def _impact_of_node(cluster: Cluster, object: Object, before: Known, gone: bool) -> Impact:
    assert isinstance(object, NodeObject)
    if gone or before.facts is None:
        return Impact.NONE if gone and before.facts is None else Impact.ALL_PENDING
    return Impact.ALL_PENDING if scheduling_properties_changed(before.facts, object) else Impact.NONE


def _impact_of_queue(cluster: Cluster, object: Object, before: Known, gone: bool) -> Impact:
    assert isinstance(object, QueueObject)
    old = before.facts
    if gone or old is None:
        return Impact.NONE if gone and old is None else Impact.ALL_PENDING
    same = old.spec == object.spec and old.status.state == object.status.state
    return Impact.NONE if same and _same_metadata(old, object) else Impact.ALL_PENDING


def _impact_of_lookup_object(cluster: Cluster, object: Object, before: Known, gone: bool) -> Impact:
    old = before.facts
    if old is None and gone:
        return Impact.NONE
    if old is not None and not gone and _same_metadata(old, object):
        fields = (field for field in type(object).__struct_fields__ if field != "metadata")
        if all(getattr(old, field) == getattr(object, field) for field in fields):
            return Impact.NONE
    return Impact.VICTIMS if isinstance(object, PodDisruptionBudget) else Impact.ALL_PENDING


_COMPARISONS: dict[type[Object], Callable[[Cluster, Object, Known, bool], Impact]] = {
    Pod: _impact_of_pod,
    PodGroup: _impact_of_group,
    NativePodGroup: _impact_of_group,
    NodeObject: _impact_of_node,
    QueueObject: _impact_of_queue,
}


def _same_metadata(old: Object, new: Object) -> bool:
    """Whether two versions have the same labels, annotations but those that we write, and deletion mark."""
    before, after = old.metadata, new.metadata
    return (
        before.uid == after.uid
        and before.labels == after.labels
        and _without_ours(before.annotations) == _without_ours(after.annotations)
        and (before.deletion_timestamp is None) is (after.deletion_timestamp is None)
    )


def _without_ours(annotations: dict[str, str]) -> dict[str, str]:
    if names.FAIR_SHARE not in annotations:
        return annotations
    return {key: value for key, value in annotations.items() if key != names.FAIR_SHARE}


# -- the task or job of an object


def _task(cluster: Cluster, pod: Object) -> Task | None:
    return cluster.tasks.get(pod.metadata.uid or pod.key)


def _job(cluster: Cluster, group: Object) -> Job | None:
    return cluster.jobs.get(JobId(type(group).__name__, group.namespace, group.name))


# -- how long changes may wait


class News:
    """Changes since the last call, or the start of a cycle, that could change a decision."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all changes: the cycle that starts sees them."""
        self._jobs: dict[Job, None] = {}
        """Jobs that may be able to start."""
        self._impact = Impact.NONE
        """The widest impact besides those."""
        self._phases_changed = False
        """Whether a cycle ended with other phases than its actions saw."""

    def note(self, cluster: Cluster, object: Object, before: Known, gone: bool) -> None:
        """Note an object that was added, changed or deleted."""
        impact = impact_of(cluster, object, before, gone)
        if impact is not Impact.JOB:
            self._impact = max(self._impact, impact)
        elif (job := job_of(cluster, object)) is not None:
            self._jobs[job] = None

    def note_everything(self) -> None:
        """Note that the model was rebuilt: its jobs are new objects."""
        self._jobs.clear()
        self._impact = Impact.ALL_PENDING

    def note_phases(self) -> None:
        """Note that a cycle changed phases at its end: a running job no longer holds what enqueue reserved for it."""
        self._phases_changed = True

    def take_patience(self, cluster: Cluster, gangs: bool, evicts: bool) -> float:
        """Return how long the changes may wait for a cycle, and forget them; infinite if none needs a cycle.

        `gangs`: the policy tries no job that lacks pods. `evicts`: it has actions that evict.
        """
        jobs, impact, phases_changed = self._jobs, self._impact, self._phases_changed
        self.forget()
        frees = phases_changed or impact is Impact.ALL_PENDING or (impact is Impact.VICTIMS and evicts)
        if frees and _may_start(cluster, gangs):
            return NOW
        could_be_admitted = phases_changed and bool(cluster.waiting)
        patience = STATUS_PATIENCE if could_be_admitted or impact is not Impact.NONE else math.inf
        for job in jobs:
            patience = min(patience, _patience_of(cluster, job, gangs))
            if patience <= NOW:
                break
        return patience


def _may_start(cluster: Cluster, gangs: bool) -> bool:
    for jobs in (cluster.waiting, cluster.backlog):
        if len(jobs) > SEARCHED or any(
            _patience_of(cluster, job, gangs) <= NOW for job in islice(jobs, SEARCHED)
        ):
            return True
    return False


def _patience_of(cluster: Cluster, job: Job, gangs: bool) -> float:
    """How long a changed job may wait: zero if it could start, or be admitted and get pods."""
    if job not in cluster.waiting and job not in cluster.backlog:
        return STATUS_PATIENCE
    if not job.tasks and job.waits_for_queue:
        made_by_job = job.owner is not None and job.owner.kind == JOB_KIND
        return NOW if made_by_job else EMPTY_GROUP_PATIENCE
    return NOW if not gangs or job.complete else STATUS_PATIENCE


# -- when the next cycle starts


GATHER = 0.010
"""Seconds from the first news to its cycle, when nothing else happens."""
PAUSE = 0.005
"""Seconds without further news after which there is nothing more to gather."""
STORM = 4.0
"""While news keeps coming, it is gathered for this many times the cost of the last cycle."""
REST = 1.0
"""The pause between cycles is at least this many times the cost of the last one, to leave time for writes."""


class Gathering:
    """When the next cycle starts: a moment after news, later while news keeps coming, by the period at the latest.

    A cycle costs little more for ten changes than for one, so changes are gathered before it. How long is a trade of
    latency against work: a lone pod waits some milliseconds, and a storm has few cycles, in proportion to their cost.
    This is a pure function of times: it neither waits nor reads a clock.
    """

    def __init__(self, period: float, on_change: bool = True) -> None:
        """`period` is the longest rest after a cycle. Without `on_change` it is every rest, as in Volcano."""
        self._period = period
        self._on_change = on_change
        self.cycle_ended(-math.inf, cost=0.0)

    def cycle_ended(self, now: float, cost: float) -> None:
        """A cycle that took so many seconds of processor time has ended; it has seen all changes."""
        self._ended, self._cost = now, cost
        self._news_since = math.inf
        self._last_news = -math.inf
        self._deadline = math.inf

    def note(self, since: float, now: float, patience: float) -> None:
        """Note changes that came since some time; the most urgent of them may wait so long."""
        if patience <= NOW:
            self._news_since = min(self._news_since, since)
            self._last_news = now
        else:
            self._deadline = min(self._deadline, since + patience)

    @property
    def due(self) -> float:
        """When the next cycle starts, by the changes so far."""
        latest = self._ended + self._period
        if not self._on_change:
            return latest
        longest = self._news_since + max(GATHER, STORM * self._cost)
        gathered = max(self._news_since + GATHER, self._last_news + PAUSE)
        rested = self._ended + REST * self._cost
        return min(latest, max(rested, min(self._deadline, longest, gathered)))
