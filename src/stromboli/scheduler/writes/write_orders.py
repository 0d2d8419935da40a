"""Orders for the writer: a decision, what its request needs, its tries, and the gang whose binds go together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from stromboli.api import names
from stromboli.api.types.devices import ConsumerReference
from stromboli.api.types.meta import Condition
from stromboli.api.types.node import Node
from stromboli.api.types.scheduling import PodGroup
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.engine.decisions import (
    Bind,
    Decision,
    Event,
    Evict,
    GateRemoval,
    GroupCondition,
    NativeGroupCondition,
    PodCondition,
    PodGroupStatus,
    QueueAnnotation,
    QueueStatus,
    ReleaseClaim,
    ShardStatus,
)
from stromboli.kube.request import Request
from stromboli.model.cluster import Cluster
from stromboli.model.intake.native_groups import KIND
from stromboli.model.job import Job, JobId
from stromboli.model.ledgers import Grant

FAILED_BIND = "failed bind"
"""The topic of events about a bind that failed, which stays true when the pod is bound later."""
URGENT, SOON, LATER = range(3)
_KIND_AND_URGENCY: dict[type[Decision], tuple[str, int]] = {
    Bind: ("Pod", URGENT),
    Evict: ("Pod", URGENT),
    GateRemoval: ("Pod", SOON),
    PodCondition: ("Pod", SOON),
    PodGroupStatus: ("PodGroup", SOON),
    NativeGroupCondition: ("NativePodGroup", SOON),
    ShardStatus: ("NodeShard", SOON),
    ReleaseClaim: ("ResourceClaim", SOON),
    QueueStatus: ("Queue", LATER),
    QueueAnnotation: ("Queue", LATER),
    Event: ("Event", LATER),
}
"""Of the object that is written, and of the write."""


class WriteFailure(Struct, frozen=True):
    """A bind or an eviction that failed, and why."""

    decision: Bind | Evict
    why: str
    gone: bool = False
    """Whether the pod no longer exists, or is bound elsewhere: no condition or event is written."""
    unprepared: str = ""
    """The pod of the same gang for which something could not be written before the binds; empty if a bind failed."""


@dataclass(slots=True)
class WriteOrder:
    """A decision to be written."""

    decision: Decision
    uid: str = ""
    conditions: tuple[Condition, ...] = ()
    """Those that a native group has now."""
    newest_group: Callable[[], PodGroup | None] = lambda: None
    """The PodGroup as it was last seen, asked when its status is sent."""
    api_version: str = ""
    generation: int = 0
    """Of a native group."""
    shown: frozenset[str] = frozenset()
    """The resources that the status of a queue shows now."""
    created: float = 0.0
    """When a pod that is bound was created."""
    job: Hashable = None
    """Identifies the job of a bind; None if that is gone."""
    awaited: bool = False
    """Whether a controller waits for this status of a PodGroup before it makes pods."""
    overtaken: bool = False
    """Whether an event is no longer true: it is not written if it has not been yet."""
    since: float | None = None
    """When it was first tried."""
    tries: int = 0
    doubtful: bool = False
    """Whether a response was lost, so that it may have been carried out."""
    marked: bool = False
    """Whether an evicted pod has its conditions."""
    request: Request | None = None
    """An event's, made once."""
    member: GangMember | None = None
    """Of a bind that goes together with others."""

    @property
    def key(self) -> Hashable:
        """Orders of one key are executed one after the other."""
        decision = self.decision
        kind, _ = _KIND_AND_URGENCY[type(decision)]
        subject = decision.kind if isinstance(decision, Event) else ""
        return kind, subject, getattr(decision, "namespace", ""), getattr(decision, "name", "")

    @property
    def urgency(self) -> int:
        return _KIND_AND_URGENCY[type(self.decision)][1]


def merge(earlier: WriteOrder, later: WriteOrder) -> WriteOrder | None:
    """Merge two orders that wait, if possible: of two statuses the later stays, with the conditions of both."""
    match earlier.decision, later.decision:
        case PodCondition() as first, PodCondition() as second if first.uid == second.uid:
            nominated = second.nominated_node or first.nominated_node
            later.decision = replace(second, nominated_node=nominated)
            return later
        case PodCondition() as condition, Bind() as bind if condition.uid == bind.uid:
            return later
        case PodGroupStatus() as first, PodGroupStatus() as second if earlier.uid == later.uid:
            later.decision = replace(second, conditions=_conditions(first, second))
            later.awaited |= earlier.awaited
            return later
        case (
            (ShardStatus(), ShardStatus()) | (GateRemoval(), GateRemoval()) | (ReleaseClaim(), ReleaseClaim())
        ):
            return later
        case NativeGroupCondition(), NativeGroupCondition() if earlier.uid == later.uid:
            return later
        case QueueStatus(), QueueStatus():
            later.shown |= earlier.shown
            return later
    return None


def _conditions(first: PodGroupStatus, second: PodGroupStatus) -> tuple[GroupCondition, ...]:
    """The conditions of both; a job that was scheduled before `Unschedulable` was written does not get it."""
    conditions = {entry.type: entry for entry in first.conditions}
    if any(entry.type == names.CONDITION_SCHEDULED for entry in second.conditions):
        conditions.pop(names.CONDITION_UNSCHEDULABLE, None)
    return tuple({**conditions, **{entry.type: entry for entry in second.conditions}}.values())


# -- binds that go together: those of one job that one cycle decided, if any of them needs a write before it


def needs_prebind(bind: Bind) -> bool:
    """Whether anything has to be written before this bind."""
    return any(grant.needs_write for grant in bind.grants)


class PreBindFailed(Exception):
    """What a bind needs will not come, or was taken by another user meanwhile."""


class BindAbandoned(Exception):
    """The process ends while a bind waits: the next leader continues from the objects."""


@dataclass(slots=True)
class GangFailure:
    """Why a gang is given up."""

    culprit: Bind
    why: str
    before_bind: bool
    """Whether what its bind needs failed, and not the bind itself."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Gang:
    """The binds of a gang. None is sent before all is written, and true, that its minimum needs."""

    job: Hashable = None
    """As in the orders."""
    spare: int = 0
    """How many of the binds may fail, or come later: pods beyond the minimum of the job."""
    unready: set[str] = field(default_factory=set)
    """Uids of pods whose grants are not all true yet."""
    unbound: dict[str, WriteOrder] = field(default_factory=dict)
    """The orders that are not done, by the uids of their pods: a new pod may have the name of one that is gone."""
    begun: bool = False
    """Whether any bind may have been sent."""
    waits: bool = False
    """Whether any bind has had to wait for what others do, such as controllers and drivers."""
    abandoned: bool = False
    """Whether that wait is over as the process ends."""
    locks: dict[tuple[str, str], str] = field(default_factory=dict)
    """When each node was locked for it, by node and annotation."""
    claims: set[str] = field(default_factory=set)
    """Uids of ResourceClaims about which anything was written for it."""
    consumers: dict[str, dict[str, ConsumerReference]] | None = None
    """The consumers of each ResourceClaim in the gang, by the uids of both; computed when first needed."""
    failure: GangFailure | None = None
    failures: list[WriteFailure] = field(default_factory=list)
    """The failures of its binds, reported together, so that no cycle sees a part of the gang as placed."""

    def add(self, order: WriteOrder, uid: str, node: Node | None) -> None:
        order.member = GangMember(order.key, self, node)
        self.job = order.job
        self.unready.add(uid)
        self.unbound[uid] = order

    def adopt(self, order: WriteOrder, uid: str) -> None:
        """Add a pod of the job that a later cycle bound: it follows those that it must not run without."""
        order.member = order.member or GangMember(order.key, self, None)
        order.member.gang, order.member.follows = self, True
        self.unbound[uid] = order
        self.consumers = None

    @property
    def may_begin(self) -> bool:
        """Whether enough pods are ready for the binds to be sent."""
        return len(self.unready) <= self.spare

    def can_spare(self, member: GangMember) -> bool:
        return member.follows or self.spare > 0

    def leave(self, member: GangMember, uid: str, failure: GangFailure) -> None:
        """Let a bind that failed and can be spared leave the gang."""
        self.spare -= not member.follows
        self.unready.discard(uid)
        self.consumers = None
        alone = {uid: self.unbound.pop(uid)}
        member.gang = Gang(unbound=alone, begun=True, claims=self.claims, failure=failure)


@dataclass(slots=True, eq=False)
class GangMember:
    """The progress of one bind of a gang."""

    key: Hashable
    """Of its order."""
    gang: Gang
    node: Node | None
    """The node of the bind as it was when that was decided."""
    node_gone: bool = False
    """Whether the node was deleted while the bind waited."""
    follows: bool = False
    """Whether the gang does not need it."""
    written: bool = False
    """Whether all its grants were written."""
    ready: bool = False
    """Whether they are true, so that the pod may be bound."""
    awaited: list[Grant] = field(default_factory=list)
    """Grants that were written and are not known to be true yet."""
    begun: float | None = None
    """When its first grant was written."""
    waiting_since: float = 0.0
    """When its last grant was written."""
    reported: bool = False
    """Whether an event of its pod reports what it waits for."""
    doing: str = ""
    """What is being written, as the beginning of an error."""
    lock_time: str = ""
    """When it locked its node, also if the answer was lost."""
    made_claim: str = ""
    """The name of the ResourceClaim that was made for it, or may have been."""
    why: str = ""
    """Why this very bind failed."""
    gone: bool = False
    """Whether it failed because the pod is gone."""
    undoing: bool = False
    """Whether it is being taken back."""
    take_back: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """What reverts writes that were sent or may have been; the last comes first."""


# -- orders of decisions, in the thread of the cycle


_REPORTED_BY_POD = frozenset({names.EVENT_SCHEDULED, names.EVENT_UNSCHEDULABLE})
"""Reasons of events about a group of a single pod that repeat events of the pod."""


class Mirror(Protocol):
    """The owner of the model."""

    @property
    def cluster(self) -> Cluster: ...


class DecisionOrders:
    """Makes orders of the decisions of one scheduler."""

    def __init__(
        self,
        mirror: Mirror,
        write: Callable[[list[WriteOrder]], None] = lambda orders: None,
        guard: TelemetryGuard | None = None,
    ):
        """`write` hands orders over to the writer."""
        self.write = write
        self._mirror = mirror
        self._guard = guard or TelemetryGuard()

    @property
    def _cluster(self) -> Cluster:
        """The present model, which may be rebuilt."""
        return self._mirror.cluster

    def submit(self, decisions: Sequence[Decision]) -> None:
        """Write these decisions."""
        self.write(list(self.of(decisions)))

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
                    queue = self._cluster.queues.get(decision.name)
                    written = queue.object.status.allocated if queue and queue.object else ()
                    yield WriteOrder(decision, shown=frozenset(written))
                case _:
                    yield WriteOrder(decision)

    def _bind_order(self, bind: Bind, gangs: Mapping[JobId, Gang]) -> WriteOrder:
        task, job = self._cluster.tasks.get(bind.uid), self._job_of(bind)
        order = WriteOrder(bind, created=task.created if task else 0.0, job=job.id if job else None)
        gang = gangs.get(job.id) if job is not None else Gang() if needs_prebind(bind) else None
        if gang is not None:
            gang.add(order, bind.uid, task.node.object if task and task.node else None)
        return order

    def _job_of(self, bind: Bind) -> Job | None:
        task = self._cluster.tasks.get(bind.uid)
        return task.job if task is not None else None

    def _is_reported_by_pod(self, event: Event) -> bool:
        """Whether an event would report of a single pod, or of its group, what the pod's own events report."""
        if event.kind == "Pod":
            return event.topic == "owner"
        job = self._cluster.jobs.get(event.job) if event.job is not None else None
        about_group = event.job is not None and event.kind == event.job.kind
        return about_group and event.reason in _REPORTED_BY_POD and job is not None and _is_single(job)

    def _event_order(self, event: Event, uids: Mapping[tuple[str, str], str]) -> WriteOrder:
        if event.uid:
            return WriteOrder(event, event.uid, api_version=event.api_version)
        if event.kind == "Pod":
            return WriteOrder(event, uids.get((event.namespace, event.name), ""))
        if event.kind == "Queue":
            queue = self._cluster.queues.get(event.name)
            return WriteOrder(event, queue.object.metadata.uid if queue and queue.object else "")
        if event.kind == "HyperNode":
            hyper_node = self._cluster.objects.hyper_nodes.get(event.name)
            return WriteOrder(event, hyper_node.metadata.uid if hyper_node else "")
        return self._group_order(event)

    def _group_order(self, decision: Event | PodGroupStatus | NativeGroupCondition) -> WriteOrder:
        job = self._cluster.jobs.get(_job_id(decision))
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
        job = self._cluster.jobs.get(id)
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
