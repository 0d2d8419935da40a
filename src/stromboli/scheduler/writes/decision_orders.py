"""Orders for the writer, made of decisions and of what the model knows of their objects; in the cycle's thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from stromboli.api import names
from stromboli.api.types.scheduling import PodGroup
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.engine.decisions import (
    Bind,
    Decision,
    Event,
    Evict,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueStatus,
)
from stromboli.model.cluster import Cluster
from stromboli.model.intake.native_groups import KIND
from stromboli.model.job import Job, JobId
from stromboli.scheduler.writes.prebind.gang_binds import Gang
from stromboli.scheduler.writes.prebind.prebinder import needs_prebind
from stromboli.scheduler.writes.write_orders import WriteOrder

_REPORTED_BY_POD = frozenset({names.EVENT_SCHEDULED, names.EVENT_UNSCHEDULABLE})
"""Reasons of events about a group of a single pod that repeat events of the pod."""


class DecisionOrders:
    """Makes orders of the decisions of one scheduler."""

    def __init__(self, cluster: Callable[[], Cluster], guard: TelemetryGuard | None = None):
        """`cluster` returns the present model, which may be rebuilt."""
        self._cluster = cluster
        self._guard = guard or TelemetryGuard()

    def of(self, decisions: Sequence[Decision]) -> Iterator[WriteOrder]:
        """The orders of decisions; of an event that need not be written there is none."""
        uids = {
            (decision.namespace, decision.name): decision.uid
            for decision in decisions
            if isinstance(decision, Bind | Evict | PodCondition)
        }
        gangs: dict[JobId, Gang] = {}
        for decision in decisions:
            if isinstance(decision, Bind) and decision.grants and needs_prebind(decision):
                job = self._job_of(decision)
                if job is not None and job.id not in gangs:
                    gangs[job.id] = Gang(spare=_spare(job))
        for decision in decisions:
            match decision:
                case Event():
                    with self._guard("events"):
                        if not self._is_reported_by_pod(decision):
                            yield self._event_order(decision, uids)
                case PodGroupStatus() | NativeGroupCondition():
                    yield self._group_order(decision)
                case Bind():
                    yield self._bind_order(decision, gangs)
                case QueueStatus():
                    queue = self._cluster().queues.get(decision.name)
                    written = queue.object.status.allocated if queue and queue.object else ()
                    yield WriteOrder(decision, shown=frozenset(written))
                case _:
                    yield WriteOrder(decision)

    def _bind_order(self, bind: Bind, gangs: Mapping[JobId, Gang]) -> WriteOrder:
        task, job = self._cluster().tasks.get(bind.uid), self._job_of(bind)
        order = WriteOrder(bind, created=task.created if task else 0.0, job=job.id if job else None)
        gang = gangs.get(job.id) if job is not None else Gang() if needs_prebind(bind) else None
        if gang is not None:
            gang.add(order, bind.uid, task.node.object if task and task.node else None)
        return order

    def _job_of(self, bind: Bind) -> Job | None:
        task = self._cluster().tasks.get(bind.uid)
        return task.job if task is not None else None

    def _is_reported_by_pod(self, event: Event) -> bool:
        """Whether an event would report of a single pod, or of its group, what the pod's own events report."""
        if event.kind == "Pod":
            return event.topic == "owner"
        job = self._cluster().jobs.get(event.job) if event.job is not None else None
        about_group = event.job is not None and event.kind == event.job.kind
        return about_group and event.reason in _REPORTED_BY_POD and job is not None and _is_single(job)

    def _event_order(self, event: Event, uids: Mapping[tuple[str, str], str]) -> WriteOrder:
        if event.uid:
            return WriteOrder(event, event.uid, api_version=event.api_version)
        if event.kind == "Pod":
            return WriteOrder(event, uids.get((event.namespace, event.name), ""))
        if event.kind == "Queue":
            queue = self._cluster().queues.get(event.name)
            return WriteOrder(event, queue.object.metadata.uid if queue and queue.object else "")
        if event.kind == "HyperNode":
            hyper_node = self._cluster().objects.hyper_nodes.get(event.name)
            return WriteOrder(event, hyper_node.metadata.uid if hyper_node else "")
        return self._group_order(event)

    def _group_order(self, decision: Event | PodGroupStatus | NativeGroupCondition) -> WriteOrder:
        job = self._cluster().jobs.get(_job_id(decision))
        if job is None or job.group is None:
            return WriteOrder(decision)
        order = WriteOrder(decision, job.group.metadata.uid, newest_group=partial(self._group, job.id))
        order.awaited = isinstance(decision, PodGroupStatus) and _is_awaited(job, decision.phase)
        if job.native is not None:
            order.conditions = job.group.status.conditions
            order.api_version, order.generation = job.native.api_version, job.native.generation
        return order

    def _group(self, id: JobId) -> PodGroup | None:
        """The PodGroup of a job as it was last seen. Called on the event loop: PodGroups never change in place."""
        job = self._cluster().jobs.get(id)
        return job.group if job is not None else None


def _spare(job: Job) -> int:
    """How many tasks with a node can be spared; none where roles or sub-groups have minimums of their own."""
    if job.role_minimums or job.policies:
        return 0
    return max(job.ready_count - job.minimum, 0)


def _is_single(job: Job) -> bool:
    """Whether a job is one pod; the group that a controller makes of a pod may be seen before its pod."""
    of_pod = job.owner is not None and job.owner.kind == "Pod"
    return job.minimum <= 1 and (len(job.tasks) == 1 or (of_pod and not job.tasks))


def _is_awaited(job: Job, phase: str) -> bool:
    """Whether the controller of a job creates its pods only after the job is admitted (spec 05 9.2)."""
    shown = job.group.status.phase if job.group is not None else ""
    admitted = phase == names.GROUP_INQUEUE and shown in ("", names.GROUP_PENDING)
    return admitted and job.owner is not None and len(job.tasks) < max(job.minimum, 1)


def _job_id(decision: Event | PodGroupStatus | NativeGroupCondition) -> JobId:
    kind = {PodGroupStatus: "PodGroup", NativeGroupCondition: KIND}.get(type(decision)) or decision.kind  # type: ignore[union-attr]
    return JobId(kind, decision.namespace, decision.name)
