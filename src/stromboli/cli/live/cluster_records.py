"""What is kept of a cluster while it is watched: a few fields of each object, and sums that are kept up to date.

A change costs as much as the object that changed, whatever the size of the cluster. Records for somebody who may see
less follow those of the whole cluster (`visible_records`), so that nobody reads it twice.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from dataclasses import dataclass, field
from sys import intern
from typing import Any, NamedTuple, Protocol, TypeVar

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.name_rules import dns_subdomain_errors
from stromboli.api.node_state import node_state
from stromboli.api.resources.pod_requests import pod_request
from stromboli.api.resources.resource_lists import amounts
from stromboli.api.types.meta import Condition, Object, OwnerReference, Time, Value
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import HyperNode, PodGroup, Queue
from stromboli.api.types.volcano_job import Job
from stromboli.api.wait_messages import headline
from stromboli.kube.reflector import UnusableObject

Amounts = dict[str, int]
MOST_NEWS = 200
LONGEST_REASON = 300
"""Characters of a reason that are kept."""
LONGEST_NAME = 253
"""Characters of a name that are kept: no object has a longer one."""
MOST_REQUESTS = 10_000
"""Different requests of pods of which one copy is kept."""
FINISHED = (names.POD_SUCCEEDED, names.POD_FAILED)
UNSCHEDULABLE = "Unschedulable"
EVICTED_BECAUSE = "Pod is evicted, because of "
VOLCANO_JOBS = "batch.volcano.sh/"
ONE_EVICTION_SECONDS = 10.0
"""Evictions for the same reason within so many seconds are one."""
_UID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""That PodGroups of jobs have in their names."""


class InvolvedObject(Value, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class Event(Object):
    """What an Event says of an eviction."""

    involved_object: InvolvedObject = InvolvedObject()
    reason: str = ""
    message: str = ""
    last_timestamp: Time | None = None
    event_time: Time | None = None


class PodRecord(NamedTuple):
    """A pod: whose it is, where it is, and what it asks for."""

    group: str
    """`namespace/name` of its PodGroup; empty if it has none."""
    node: str
    runs: bool
    finished: bool
    request: Amounts
    reason: str = ""
    """Why it has no node, where the scheduler said so."""


class GroupRecord(NamedTuple):
    """A PodGroup."""

    namespace: str
    name: str
    """Of the job that owns it, else its own."""
    kind: str
    """Of its owner: `job` if that is a Job of Volcano's, `podgroup` if there is none."""
    queue: str
    phase: str
    minimum: int
    created: float
    reason: str
    """Why it waits."""
    asks: Amounts
    """What its least number of pods asks for together, where it says so."""


class JobRecord(NamedTuple):
    """A Job of Volcano's: what its controller says of it, whether it has a PodGroup or not."""

    queue: str
    phase: str
    minimum: int
    replicas: int
    created: float
    succeeded: int = 0
    """Pods."""
    failed: int = 0


class NodeRecord(NamedTuple):
    """A node: its state and what pods may have of it."""

    state: str
    allocatable: Amounts
    labels: dict[str, str]


class QueueRecord(NamedTuple):
    """A queue, and the object for those who compute shares."""

    state: str
    object: Queue


@dataclass(slots=True)
class News:
    """Something that happened: a job started or ended, pods were evicted."""

    time: float
    what: str
    """`started`, `completed` or `evicted`."""
    subject: str
    """The job, or the first of the pods."""
    text: str
    pods: int = 1
    """Evicted for the same reason at about the same time."""
    group: str = ""
    """`namespace/name` of the PodGroup of the job or of the pod; empty if it was not known."""


@dataclass(slots=True)
class PodSums:
    """What some pods have and want together."""

    used: Amounts = field(default_factory=dict)
    """Requests of pods that have a node."""
    waiting: Amounts = field(default_factory=dict)
    placed: int = 0
    running: int = 0
    pending: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    """Pods that wait, by why; those of which nothing is said are not among them."""

    def add(self, pod: PodRecord, sign: int) -> None:
        """Count a pod, or with -1 count it no more."""
        if pod.node:
            total = self.used
            self.placed += sign
            self.running += sign * pod.runs
        else:
            total = self.waiting
            self.pending += sign
            self._count_reason(pod.reason, sign)
        for resource, amount in pod.request.items():
            total[resource] = total.get(resource, 0) + sign * amount

    def _count_reason(self, reason: str, sign: int) -> None:
        if not reason:
            return
        self.reasons[reason] = self.reasons.get(reason, 0) + sign
        if not self.reasons[reason]:
            del self.reasons[reason]

    @property
    def common_reason(self) -> str:
        """Why most of the pods that wait do; of equals the first by the alphabet, empty if nothing is said."""
        return min(self.reasons, key=lambda reason: (-self.reasons[reason], reason), default="")

    @property
    def is_empty(self) -> bool:
        return not (self.placed or self.pending)


class Eviction(NamedTuple):
    """A pod that was evicted, as an Event tells it."""

    time: float
    text: str


AnyRecord = TypeVar("AnyRecord")
Record = PodRecord | GroupRecord | JobRecord | NodeRecord | QueueRecord | HyperNode | Eviction
PODS, GROUPS, JOBS, NODES, QUEUES, HYPER_NODES, EVENTS = (
    "pods",
    "podgroups",
    "jobs",
    "nodes",
    "queues",
    "hypernodes",
    "events",
)
"""Kinds of records, by the plural names of what they are records of."""


class Follower(Protocol):
    """Who is told of every change of a record."""

    def follow(self, kind: str, key: str, record: Record | None) -> None: ...


class ClusterRecords:
    """All records and sums; a sink of reflectors."""

    def __init__(self) -> None:
        self.pods: dict[str, PodRecord] = {}
        self.groups: dict[str, GroupRecord] = {}
        self.jobs: dict[str, JobRecord] = {}
        self.nodes: dict[str, NodeRecord] = {}
        self.queues: dict[str, QueueRecord] = {}
        self.hyper_nodes: dict[str, HyperNode] = {}
        self.of_group: dict[str, PodSums] = {}
        self.of_node: dict[str, PodSums] = {}
        self.of_all = PodSums()
        """All pods that have a node, or wait for one as members of a PodGroup."""
        self.total: Amounts = {}
        """What all nodes have together."""
        self.news: deque[News] = deque(maxlen=MOST_NEWS)
        self.version = 0
        """Counts changes of what can be seen."""
        self.network_version = 0
        """Counts changes of which nodes and HyperNodes there are, and of labels."""
        self.pod_starts = 0
        """Pods that were given a node since everything was listed."""
        self.evictions = 0
        """Pods that were evicted since."""
        self.followers: list[Follower] = []
        self.unusable_count = 0
        self.tells_news = False
        """Set once everything was listed, so that what is there already is not news."""
        self._evictions: dict[str, News] = {}
        """The latest for each reason."""
        self._requests: dict[tuple[tuple[str, int], ...], Amounts] = {}

    # -- as a sink

    def put(self, object: Object, new: bool) -> None:
        try:
            if isinstance(object, Pod):
                self.set_record(PODS, object.key, self._pod_record(object))
            elif isinstance(object, PodGroup):
                self.set_record(GROUPS, object.key, _group_record(object))
            elif isinstance(object, Job):
                self.set_record(JOBS, object.key, _job_record(object))
            elif isinstance(object, Node):
                self.set_record(NODES, object.key, _node_record(object))
            elif isinstance(object, Queue):
                self.set_record(QUEUES, object.key, QueueRecord(object.status.state, object))
            elif isinstance(object, HyperNode):
                self.set_record(HYPER_NODES, object.key, object)
            elif isinstance(object, Event):
                self._put_event(object)
        except BadObject:
            self.unusable_count += 1

    def drop(self, object: Object) -> None:
        kind = _KINDS.get(type(object))
        if kind is not None:
            self.set_record(kind, object.key, None)

    def unusable(self, problem: UnusableObject) -> None:
        self.unusable_count += 1

    async def wait_for_room(self) -> None:
        """Let the screen and the keyboard have their turn."""
        await asyncio.sleep(0)

    # -- records

    def set_record(self, kind: str, key: str, record: Record | None) -> None:
        """Put a record in the place of the one by that key, or take that away; followers are told."""
        if isinstance(record, Eviction):
            self._add_eviction(key, record)
        elif isinstance(record, PodRecord) or (record is None and kind == PODS):
            self._set_pod(key, record)
        elif isinstance(record, GroupRecord) or (record is None and kind == GROUPS):
            self._set_group(key, record)
        elif isinstance(record, NodeRecord) or (record is None and kind == NODES):
            self._set_node(key, record)
        else:
            self._set_plain(kind, key, record)
        for follower in self.followers:
            follower.follow(kind, key, record)

    def _changed(self, really: bool = True) -> None:
        self.version += really

    def _set_plain(self, kind: str, key: str, record: Record | None) -> None:
        """Of a kind of which there are no sums."""
        tables: dict[str, dict[str, Any]] = {
            JOBS: self.jobs,
            QUEUES: self.queues,
            HYPER_NODES: self.hyper_nodes,
        }
        before = _replace(tables[kind], key, record)
        self._changed(before != record)
        self.network_version += kind == HYPER_NODES and before != record

    # -- pods

    def _pod_record(self, pod: Pod) -> PodRecord:
        group = _name(pod.metadata.annotations.get(names.GROUP_NAME, ""))
        phase = pod.status.phase
        return PodRecord(
            f"{pod.namespace}/{group}" if group else "",
            pod.spec.node_name,
            phase == names.POD_RUNNING,
            phase in FINISHED,
            self._request(pod),
            "" if pod.spec.node_name else _pod_reason(pod.status.conditions),
        )

    def _request(self, pod: Pod) -> Amounts:
        """One copy for all pods that ask for the same."""
        request = {name: amount for name, amount in pod_request(pod).items() if amount and name != names.PODS}
        if len(self._requests) > MOST_REQUESTS:
            self._requests.clear()
        return self._requests.setdefault(tuple(sorted(request.items())), request)

    def _set_pod(self, key: str, record: PodRecord | None) -> None:
        before = _replace(self.pods, key, record)
        if before == record:
            return
        for pod, sign in ((before, -1), (record, 1)):
            if pod is not None and not pod.finished:
                self._count(self.of_group, pod.group, pod, sign)
                self._count(self.of_node, pod.node, pod, sign)
                if pod.node or pod.group:
                    self.of_all.add(pod, sign)
        if self.tells_news and record is not None and record.node and (before is None or not before.node):
            self.pod_starts += 1
        self._changed()

    def _count(self, sums: dict[str, PodSums], key: str, pod: PodRecord, sign: int) -> None:
        if not key:
            return
        total = sums.get(key)
        if total is None:
            total = sums[key] = PodSums()
        total.add(pod, sign)
        if total.is_empty:
            del sums[key]

    # -- the other kinds

    def _set_group(self, key: str, record: GroupRecord | None) -> None:
        before = _replace(self.groups, key, record)
        self._changed(before != record)
        if before is not None and record is not None and before.phase != record.phase:
            self._tell_phase(key, record)

    def _tell_phase(self, key: str, group: GroupRecord) -> None:
        what = {names.GROUP_RUNNING: "started", names.GROUP_COMPLETED: "completed"}.get(group.phase)
        if what and self.tells_news:
            subject = f"{group.namespace}/{group.name}"
            self.news.append(News(time.time(), what, subject, f"queue {group.queue}", group=key))

    def _set_node(self, name: str, record: NodeRecord | None) -> None:
        before = _replace(self.nodes, name, record)
        if before == record:
            return
        for node, sign in ((before, -1), (record, 1)):
            for resource, amount in node.allocatable.items() if node is not None else ():
                self.total[resource] = self.total.get(resource, 0) + sign * amount
        self._changed()
        self.network_version += before is None or record is None or before.labels != record.labels

    def _put_event(self, event: Event) -> None:
        about = event.involved_object
        if about.kind != "Pod" or dns_subdomain_errors(about.name):
            return  # whoever may create Events may write anything into them
        moment = event.last_timestamp or event.event_time or event.metadata.creation_timestamp
        at = min(moment.timestamp() if moment is not None else 0.0, time.time())
        text = _UID.sub("", event.message.removeprefix(EVICTED_BECAUSE))[:LONGEST_REASON]
        namespace = event.metadata.namespace or about.namespace  # who may list it there may know of it
        self.set_record(EVENTS, f"{namespace}/{about.name}", Eviction(at, text))

    def _add_eviction(self, pod: str, eviction: Eviction) -> None:
        """Those of the other pods of a gang are counted with the first."""
        at, text = eviction
        known = self._evictions.get(text)
        if known is not None and abs(known.time - at) < ONE_EVICTION_SECONDS:
            known.pods += 1
        else:
            if len(self._evictions) >= MOST_NEWS:
                self._evictions.clear()
            group = self.pods[pod].group if pod in self.pods else ""
            known = self._evictions[text] = News(at, "evicted", pod, text, group=group)
            self.news.append(known)
        self.evictions += self.tells_news
        self._changed()


_KINDS: dict[type[Object], str] = {
    Pod: PODS,
    PodGroup: GROUPS,
    Job: JOBS,
    Node: NODES,
    Queue: QUEUES,
    HyperNode: HYPER_NODES,
}


def _replace(table: dict[str, AnyRecord], key: str, record: AnyRecord | None) -> AnyRecord | None:
    """Put a record in the place of another, so that lists keep their order, or take it away; the one before."""
    before = table.get(key)
    if record is not None:
        table[key] = record
    elif before is not None:
        del table[key]
    return before


def _group_record(group: PodGroup) -> GroupRecord:
    owners = group.metadata.owner_references
    owner = next((each for each in owners if each.controller), None)
    return GroupRecord(
        group.namespace,
        _name(owner.name) if owner is not None else group.name,
        _kind(owner) if owner is not None else "podgroup",
        _name(group.spec.queue or names.DEFAULT_QUEUE),
        _name(group.status.phase or names.GROUP_PENDING),
        group.spec.min_member,
        group.metadata.created,
        _reason(group.status.conditions),
        _least_amounts(group),
    )


def _least_amounts(group: PodGroup) -> Amounts:
    """Of `minResources`; amounts that cannot be read are not worth leaving the PodGroup out."""
    try:
        stated = amounts(group.spec.min_resources or {}, "spec.minResources")
    except BadObject:
        return {}
    return {name: amount for name, amount in stated.items() if amount and name != names.PODS}


def _name(text: str) -> str:
    """A name that no API server has checked, no longer than names are."""
    return text[:LONGEST_NAME]


def _kind(owner: OwnerReference) -> str:
    """`job` for Volcano's alone: Kubernetes has Jobs, too."""
    kind = _name(owner.kind.lower())
    return "job.batch" if kind == "job" and not owner.api_version.startswith(VOLCANO_JOBS) else kind


def _job_record(job: Job) -> JobRecord:
    return JobRecord(
        _name(job.spec.queue or names.DEFAULT_QUEUE),
        _name(job.status.state.phase or names.GROUP_PENDING),
        job.spec.min_available,
        sum(task.replicas for task in job.spec.tasks),
        job.metadata.created,
        job.status.succeeded,
        job.status.failed,
    )


def _node_record(node: Node) -> NodeRecord:
    allocatable = amounts(node.status.allocatable, "status.allocatable")
    return NodeRecord(node_state(node), allocatable, dict(node.metadata.labels))


def _reason(conditions: tuple[Condition, ...]) -> str:
    """What the scheduler last said about why pods are not placed; empty once they are."""
    holding = [each for each in conditions if each.status == "True"]
    latest = max(holding, key=_moment, default=None)
    if latest is None or latest.type != UNSCHEDULABLE:
        return ""
    return headline(latest.message)[:LONGEST_REASON]


def _pod_reason(conditions: tuple[Condition, ...]) -> str:
    """What the scheduler said about why a pod has no node; one copy for all pods of which it says the same."""
    told = next(
        (
            each
            for each in conditions
            if each.type == names.CONDITION_POD_SCHEDULED and each.status == "False"
        ),
        None,
    )
    return intern(headline(told.message)[:LONGEST_REASON]) if told is not None else ""


def _moment(condition: Condition) -> float:
    return condition.last_transition_time.timestamp() if condition.last_transition_time is not None else 0.0
