"""Whom the change of an object concerns: what the model knew of it before, compared with what it knows now.

A heartbeat of a node concerns nobody, and neither does what we wrote ourselves and the watches bring back. What is not
known to be either is taken for news.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from enum import IntEnum
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

_TOLD_OTHERWISE = frozenset(
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
"""Fields that we write ourselves, or that no decision turns on."""
_FACTS = attrgetter(
    *(field.name for field in fields(Task) if field.name not in _TOLD_OTHERWISE | _UNREAD),
)
"""What decisions read of a task besides its status and node; a field that is new in tasks is among it."""
_DECIDED = (Status.ALLOCATED, Status.BINDING)
_ENDED = (Status.SUCCEEDED, Status.FAILED)


class Concern(IntEnum):
    """Whom a change concerns."""

    NOBODY = 0
    STATUS = 1
    """Nobody's place: it is only told in the status of some object."""
    JOB = 2
    """The job itself, which may start now."""
    VICTIMS = 3
    """Whoever waits, if the policy evicts."""
    EVERYBODY = 4
    """Whoever waits."""


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


def concern(cluster: Cluster, object: Object, before: Known, gone: bool) -> Concern:
    """Whom it concerns that an object was taken in, or is gone."""
    return _COMPARISONS.get(type(object), _concern_of_lookup_object)(cluster, object, before, gone)


def job_of(cluster: Cluster, object: Object) -> Job | None:
    """The job of a pod or a PodGroup."""
    if isinstance(object, Pod):
        task = _task(cluster, object)
        return task.job if task is not None else None
    return _job(cluster, object)


def _concern_of_pod(cluster: Cluster, object: Object, before: Known, gone: bool) -> Concern:
    task = _task(cluster, object)
    if task is None:
        if before is UNKNOWN:
            return Concern.NOBODY
        return Concern.STATUS if before.status in _ENDED else Concern.EVERYBODY
    if before is UNKNOWN:
        return _concern_of_new_task(task)
    if task.node is not None and task.node is before.node and task.status is not before.status:
        if task.status is Status.BOUND and before.status in _DECIDED:
            return Concern.STATUS
        if task.status is Status.RUNNING and before.status in (*_DECIDED, Status.BOUND):
            return Concern.VICTIMS
    if task.status is before.status and task.node is before.node and _FACTS(task) == before.facts:
        return Concern.NOBODY
    if task.status is Status.PENDING and before.status in (Status.PENDING, *_ENDED):
        return Concern.JOB
    both_ended = task.status in _ENDED and before.status in _ENDED
    return Concern.STATUS if both_ended else Concern.EVERYBODY


def _concern_of_new_task(task: Task) -> Concern:
    if task.status is Status.PENDING:
        return Concern.JOB
    return Concern.STATUS if task.status in _ENDED else Concern.EVERYBODY


def _concern_of_group(cluster: Cluster, object: Object, before: Known, gone: bool) -> Concern:
    assert isinstance(object, PodGroup | NativePodGroup)
    if gone:
        return Concern.NOBODY if before is UNKNOWN else Concern.EVERYBODY
    if before is UNKNOWN:
        return Concern.JOB
    job = _job(cluster, object)
    if (
        job is None
        or job.group is None
        or job.group.spec != before.facts.spec
        or not _same_metadata(job.group, before.facts)
    ):
        return Concern.EVERYBODY
    return Concern.NOBODY if job.phase == before.status else Concern.JOB


def _concern_of_node(cluster: Cluster, object: Object, before: Known, gone: bool) -> Concern:
    assert isinstance(object, NodeObject)
    if gone or before.facts is None:
        return Concern.NOBODY if gone and before.facts is None else Concern.EVERYBODY
    return Concern.EVERYBODY if scheduling_properties_changed(before.facts, object) else Concern.NOBODY


def _concern_of_queue(cluster: Cluster, object: Object, before: Known, gone: bool) -> Concern:
    assert isinstance(object, QueueObject)
    old = before.facts
    if gone or old is None:
        return Concern.NOBODY if gone and old is None else Concern.EVERYBODY
    same = old.spec == object.spec and old.status.state == object.status.state
    return Concern.NOBODY if same and _same_metadata(old, object) else Concern.EVERYBODY


def _concern_of_lookup_object(cluster: Cluster, object: Object, before: Known, gone: bool) -> Concern:
    old = before.facts
    if old is None and gone:
        return Concern.NOBODY
    if old is not None and not gone and _same_metadata(old, object):
        fields = (field for field in type(object).__struct_fields__ if field != "metadata")
        if all(getattr(old, field) == getattr(object, field) for field in fields):
            return Concern.NOBODY
    return Concern.VICTIMS if isinstance(object, PodDisruptionBudget) else Concern.EVERYBODY


_COMPARISONS: dict[type[Object], Callable[[Cluster, Object, Known, bool], Concern]] = {
    Pod: _concern_of_pod,
    PodGroup: _concern_of_group,
    NativePodGroup: _concern_of_group,
    NodeObject: _concern_of_node,
    QueueObject: _concern_of_queue,
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


# -- what an object is in the model


def _task(cluster: Cluster, pod: Object) -> Task | None:
    return cluster.tasks.get(pod.metadata.uid or pod.key)


def _job(cluster: Cluster, group: Object) -> Job | None:
    return cluster.jobs.get(JobId(type(group).__name__, group.namespace, group.name))
