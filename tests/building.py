"""Objects in one line each, a cluster made of them, and an engine over it: what most tests begin with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from stromboli.api import names
from stromboli.api.types.meta import LabelSelector, Object, ObjectMeta
from stromboli.api.types.native_group import (
    DisruptionMode,
    Empty,
    GangPolicy,
    NativeMeta,
    NativePodGroup,
    NativePodGroupSpec,
    SchedulingPolicy,
)
from stromboli.api.types.node import Node, NodeSpec, NodeStatus, Taint
from stromboli.api.types.pod import (
    Affinity,
    Container,
    Pod,
    PodSpec,
    PodStatus,
    Resources,
    SchedulingGate,
    SchedulingGroup,
    Toleration,
    TopologySpreadConstraint,
)
from stromboli.api.types.scheduling import (
    Guarantee,
    PodGroup,
    PodGroupSpec,
    PodGroupStatus,
    PriorityClass,
    Queue,
    QueueSpec,
    QueueStatus,
    SubGroupPolicy,
)
from stromboli.engine.catalog import Action, Catalog
from stromboli.engine.cycle import Engine
from stromboli.engine.placement.node_placement import Placement
from stromboli.engine.plugin import Plugin
from stromboli.engine.rules import Rules
from stromboli.engine.session import Session
from stromboli.extensions import load_catalog
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake
from stromboli.model.job import Job, JobId
from stromboli.model.task import Task
from stromboli.policy.policy import load_policy

EPOCH = 1_700_000_000


def at(seconds: float) -> datetime:
    """A moment some seconds after the beginning of the test world."""
    return datetime.fromtimestamp(EPOCH + seconds, UTC)


def node(
    name: str,
    cpu: str | int = "4",
    memory: str | int = "8Gi",
    pods: int = 110,
    gpu: int = 0,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    unschedulable: bool = False,
    created: float = 0,
) -> Node:
    size: dict[str, str | int | float] = {"cpu": cpu, "memory": memory, "pods": pods}
    if gpu:
        size[names.NVIDIA_GPU] = gpu
    return Node(
        ObjectMeta(
            name,
            creation_timestamp=at(created),
            labels={names.HOSTNAME: name, **(labels or {})},
            annotations=dict(annotations or {}),
        ),
        NodeSpec(tuple(taints), unschedulable),
        NodeStatus(size, dict(size)),
    )


def pod(
    name: str,
    group: str = "",
    cpu: str | int | None = "1",
    memory: str | int | None = "1Gi",
    gpu: int = 0,
    *,
    namespace: str = "default",
    phase: str = "Pending",
    node: str = "",
    dying: bool = False,
    role: str = "",
    priority: int | None = None,
    gates: Iterable[str] = (),
    scheduler: str = names.SCHEDULER_NAME,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    selector: Mapping[str, str] | None = None,
    tolerations: Iterable[Toleration] = (),
    affinity: Affinity | None = None,
    spread: Iterable[TopologySpreadConstraint] = (),
    created: float = 0,
    uid: str = "",
    native: str = "",
) -> Pod:
    """Of a group of Volcano's, or of one of Kubernetes' own (`native`)."""
    requests: dict[str, str | int | float] = {}
    for resource, amount in (("cpu", cpu), ("memory", memory), (names.NVIDIA_GPU, gpu or None)):
        if amount is not None:
            requests[resource] = amount
    notes = dict(annotations or {})
    if group:
        notes[names.GROUP_NAME] = group
    if role:
        notes[names.TASK_SPEC] = role
    return Pod(
        ObjectMeta(
            name,
            namespace,
            uid or f"uid-{namespace}-{name}",
            creation_timestamp=at(created),
            deletion_timestamp=at(created + 1) if dying else None,
            labels=dict(labels or {}),
            annotations=notes,
        ),
        PodSpec(
            node_name=node,
            scheduler_name=scheduler,
            priority=priority,
            containers=(Container(name="main", resources=Resources(requests)),),
            node_selector=dict(selector) if selector is not None else None,
            tolerations=tuple(tolerations),
            affinity=affinity,
            topology_spread_constraints=tuple(spread),
            scheduling_gates=tuple(SchedulingGate(gate) for gate in gates),
            scheduling_group=SchedulingGroup(native) if native else None,
        ),
        PodStatus(phase),
    )


def idle_pod(name: str, group: str = "", **more: Any) -> Pod:
    """A pod that asks for nothing."""
    return pod(name, group, cpu=None, memory=None, **more)


def running(name: str, on: str, group: str = "", **more: Any) -> Pod:
    return pod(name, group, phase="Running", node=on, **more)


def group(
    name: str,
    minimum: int = 0,
    *,
    namespace: str = "default",
    queue: str = "default",
    roles: Mapping[str, int] | None = None,
    phase: Any = "Inqueue",
    resources: Mapping[str, str] | None = None,
    priority_class: str = "",
    policies: Iterable[SubGroupPolicy] = (),
    annotations: Mapping[str, str] | None = None,
    created: float = 0,
) -> PodGroup:
    return PodGroup(
        ObjectMeta(
            name,
            namespace,
            creation_timestamp=at(created),
            annotations=dict(annotations or {}),
            uid=f"uid-{name}",
        ),
        PodGroupSpec(
            min_member=minimum,
            min_task_member=dict(roles or {}),
            queue=queue,
            priority_class_name=priority_class,
            min_resources=dict(resources) if resources is not None else None,
            sub_group_policy=tuple(policies),
        ),
        PodGroupStatus(phase),
    )


def native_group(
    name: str,
    minimum: int = 0,
    *,
    namespace: str = "default",
    mode: Any = "",
    priority: int | None = None,
    priority_class: str = "",
    preemption: Any = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    version: str = "v1alpha2",
    created: float = 0,
) -> NativePodGroup:
    """A group of Kubernetes' own; without a minimum its pods are no gang."""
    policy = SchedulingPolicy(gang=GangPolicy(minimum)) if minimum else SchedulingPolicy(basic=Empty())
    meta = NativeMeta(
        name,
        namespace,
        f"uid-native-{name}",
        creation_timestamp=at(created),
        labels=dict(labels or {}),
        annotations=dict(annotations or {}),
        generation=1,
    )
    spec = NativePodGroupSpec(
        scheduling_policy=policy,
        disruption_mode=mode,
        priority=priority,
        priority_class_name=priority_class,
        preemption_policy=preemption,
    )
    return NativePodGroup(meta, f"scheduling.k8s.io/{version}", spec)


SINGLE, WHOLE = DisruptionMode(single=Empty()), DisruptionMode(all=Empty())
"""As 1.37 writes them."""


def policy_of(
    name: str, *keys: str, size: int = 1, least: int = 0, selector: Mapping[str, str] | None = None
) -> SubGroupPolicy:
    """A sub-group policy: pods that share the values of these labels belong together."""
    chosen = LabelSelector(dict(selector)) if selector is not None else None
    return SubGroupPolicy(name, chosen, keys, size, least)


def queue(
    name: str = "default",
    *,
    weight: int = 1,
    state: Any = "Open",
    parent: str = "",
    capability: Mapping[str, str] | None = None,
    guarantee: Mapping[str, str] | None = None,
    reclaimable: bool | None = None,
    annotations: Mapping[str, str] | None = None,
    created: float = 0,
) -> Queue:
    return Queue(
        ObjectMeta(name, creation_timestamp=at(created), annotations=dict(annotations or {})),
        QueueSpec(
            weight,
            dict(capability or {}),
            guarantee=Guarantee(dict(guarantee or {})),
            reclaimable=reclaimable,
            parent=parent,
        ),
        QueueStatus(state),
    )


def priority_class(name: str, value: int, *, default: bool = False) -> PriorityClass:
    return PriorityClass(ObjectMeta(name), value, default)


def intake_of(*things: Object) -> Intake:
    intake = Intake()
    for thing in things:
        intake.put(thing)
    return intake


def cluster_of(*things: Object) -> Cluster:
    cluster = intake_of(*things).cluster
    cluster.settle()
    return cluster


def job_of(cluster: Cluster, name: str, namespace: str = "default") -> Job:
    return cluster.jobs[JobId("PodGroup", namespace, name)]


def native_job_of(cluster: Cluster, name: str, namespace: str = "default") -> Job:
    return cluster.jobs[JobId("NativePodGroup", namespace, name)]


def task_of(cluster: Cluster, name: str, namespace: str = "default") -> Task:
    return cluster.tasks[f"uid-{namespace}-{name}"]


def session_over(cluster: Cluster, *plugins: type[Plugin]) -> Session:
    """A session outside of any cycle, with these plugins in one tier."""
    rules = Rules([[plugin(None, {}) for plugin in plugins]])
    policy = load_policy('actions: "allocate"\ntiers: []\n', built_in())
    return Session(cluster, policy, rules, Placement(rules), 0.0, "test")


@cache
def built_in() -> Catalog:
    return load_catalog()


def engine(
    *tiers: str,
    actions: str = "enqueue, allocate, backfill",
    own: Iterable[type[Plugin]] = (),
    own_actions: Iterable[Action] = (),
    features: Iterable[str] = (),
) -> Engine:
    """An engine whose tiers are lists of plugin names; `own` plugins and actions may be named as well."""
    known = built_in()
    catalog = Catalog(
        {**known.actions, **{action.name: action for action in own_actions}},
        {**known.plugins, **{plugin.name: plugin for plugin in own}},
    )
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        lines.append("- plugins:")
        lines.extend(f"  - name: {name.strip()}" for name in tier.split(","))
    return Engine(load_policy("\n".join(lines), catalog), catalog, features=features)
