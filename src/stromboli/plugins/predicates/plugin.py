"""The plugin `predicates`: the node filters of a task, and refusals that hold for all nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakSet

from stromboli.api import names
from stromboli.engine.decisions import ReleaseClaim
from stromboli.engine.placement.node_functions import (
    CORDONED,
    NOT_SELECTED,
    TAINTED,
    Check,
    NodeFilter,
    Nodes,
    NodeScore,
    Refusal,
)
from stromboli.engine.placement.verdict import FIT
from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.model.cluster import Dirty
from stromboli.model.constraints.node_selection import (
    cordoned_nodes,
    matching_nodes,
    required_selector,
    selection_remedy,
    selects_nodes,
    tolerable_nodes,
    tolerates_cordon,
)
from stromboli.model.devices.task_claims import task_claims
from stromboli.model.job import JobId
from stromboli.model.ledgers import Grant
from stromboli.model.node_columns import Node
from stromboli.model.remedy import Why
from stromboli.model.requirements.placement_requirement import (
    NODE_FILTERS,
    RESOURCE_CLAIMS,
    VOLUME_BINDING,
    VOLUME_LIMITS,
    VOLUME_TOPOLOGY,
)
from stromboli.model.shape import VIEW_PODS, Shape
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.model.volumes.claim_kind import NO_VOLUMES, VolumeDemand
from stromboli.model.volumes.claim_problems import binding_problem, zone_problem
from stromboli.model.volumes.task_volumes import delayed_claims, volume_demand
from stromboli.model.volumes.volume_grant import BIND_TIMEOUT, VolumeGrant
from stromboli.plugins.predicates.device_claims import CLAIM_ELSEWHERE, DeviceClaims
from stromboli.plugins.predicates.pod_count_filters import (
    invalid_term,
    pod_affinity,
    pod_affinity_key,
    spreading,
    spreading_key,
)
from stromboli.plugins.predicates.volume_filters import (
    AttachableVolumes,
    NodeVolumeLimits,
    StorageScore,
    UtilizationPoint,
    VolumeBinding,
    VolumeRestrictions,
    VolumeZone,
)
from stromboli.plugins.predicates.volume_remedies import unbindable_claims
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.api.types.devices import ConsumerReference, ResourceClaim
    from stromboli.api.types.pod import NodeSelectorTerm, PodSpec
    from stromboli.model.cluster import Cluster
    from stromboli.model.constraints.pod_counts import PodCount
    from stromboli.model.devices.claim_use import ClaimUse
    from stromboli.model.node_columns import Columns


_GATED = "Only with the feature gate StorageCapacityScoring, which is disabled by default."


@dataclass(frozen=True, slots=True)
class Switches:
    """A switch for each filter, under Volcano's names."""

    node_affinity: bool = arg(
        "predicate.NodeAffinityEnable", True, "Filter by nodeSelector and node affinity."
    )
    node_ports: bool = arg("predicate.NodePortsEnable", True, "Filter by free host ports.")
    taints: bool = arg("predicate.TaintTolerationEnable", True, "Filter by taints.")
    pod_affinity: bool = arg("predicate.PodAffinityEnable", True, "Filter by pod affinity and anti-affinity.")
    volume_limits: bool = arg(
        "predicate.NodeVolumeLimitsEnable",
        True,
        "Filter by the volumes that a CSI driver can still attach to a node, VolumeAttachments included. Off: "
        "volumes of pods alone are counted, as an ordinary resource of the node.",
    )
    volume_zone: bool = arg(
        "predicate.VolumeZoneEnable",
        True,
        "Filter by the zones of bound volumes; refuse pods whose volumes have no known zone: a claim or its volume "
        "is missing or unbound.",
    )
    spreading: bool = arg("predicate.PodTopologySpreadEnable", True, "Filter by spread constraints.")
    volume_binding: bool = arg(
        "predicate.VolumeBindingEnable",
        True,
        "Filter by the node affinity of bound volumes, and by the volumes and the storage for claims that wait for "
        "their first pod; bind these. Refuse pods whose claims cannot be bound on any node: missing, lost, being "
        "deleted, or unbound and of a class that binds at once. Off: claims are ignored, and pods start "
        "regardless of them.",
    )
    devices: bool = arg(
        "predicate.DynamicResourceAllocationEnable", True, "Accepted for compatibility, without effect."
    )
    cache: bool = arg(
        "predicate.CacheEnable",
        False,
        "Accepted for compatibility, without effect: equal tasks always share their filtering.",
    )
    bind_timeout: int = arg(
        "volumebinding.bindTimeoutSeconds", BIND_TIMEOUT, "Timeout of binding a claim, in seconds."
    )
    binding_weight: int = arg("volumebinding.weight", 1, f"Weight of the score by storage. {_GATED}")
    binding_shape: tuple[UtilizationPoint, ...] = arg(
        "volumebinding.shape",
        (UtilizationPoint(0, 10), UtilizationPoint(100, 0)),
        f"Score of a node by the utilization of its storage. {_GATED}",
    )
    device_timeout: int = arg(
        "dynamicresources.filterTimeoutSeconds",
        10,
        "Limit of the search for devices on one node. One second counts as 5,000 steps of the search, so that every "
        "machine decides the same; at most 250,000 steps. 0: 250,000 steps; negative values: the default.",
    )


class Predicates(Plugin):
    """Kubernetes' own node filters."""

    name = "predicates"
    Arguments = Switches
    arguments: Switches
    honours = frozenset(
        {
            NODE_FILTERS.name,
            RESOURCE_CLAIMS.name,
            VOLUME_BINDING.name,
            VOLUME_TOPOLOGY.name,
            VOLUME_LIMITS.name,
        }
    )

    def __init__(self, arguments: Switches, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self.ignores_node_labels = not arguments.node_affinity
        self.keeps_off_barred_nodes = arguments.taints
        self.keeps_pods_apart = arguments.pod_affinity
        self._claims = DeviceClaims(self.name, arguments.device_timeout)
        self._unused_claims = UnusedClaims()
        self._last_demand: tuple[tuple[Task, int] | None, VolumeDemand] = (None, NO_VOLUMES)
        """The demand of the last task, with the version of the ledger: consecutive calls concern one task."""
        self._harmless: WeakSet[Shape] = WeakSet()
        """Shapes whose tasks are not refused on all nodes, unless by volumes or claims."""

    def opening(self, session: Session, dirty: Dirty) -> None:
        self._claims.opening(session)

    def closing(self, session: Session) -> None:
        self._unused_claims.release(session)
        if self._claims.is_unfinished:
            session.look_again()

    def shape_key(self, task: Task) -> Hashable:
        enabled, cluster = self.arguments, self.session.cluster
        affinity = pod_affinity_key(cluster, task) if enabled.pod_affinity else None
        spread = spreading_key(task) if enabled.spreading else None
        claims = self._claims.key(task) if self._claims.concerns(task) else None
        return (affinity, spread, self._volumes(task), claims)

    def _volumes(self, task: Task) -> VolumeDemand:
        """What a task requires of a node by its volumes."""
        cluster = self.session.cluster
        if cluster.volumes not in cluster.ledgers_of(task.shape):
            return NO_VOLUMES
        state = (task, cluster.volumes.version)
        if self._last_demand[0] != state:
            self._last_demand = (state, volume_demand(cluster.volumes, cluster.objects, task))
        return self._last_demand[1]

    def prefilter(self, task: Task) -> Refusal | None:
        shape = task.shape
        devices = self.session.cluster.devices
        by_shape = not (shape.spec.volumes or self._claims.concerns(task) or devices.made_for(task))
        if by_shape and shape in self._harmless:
            return None
        for filter, problem in self._problems(task):
            if problem:
                text = names.PRE_PREDICATE_FAILED.format(plugin=filter, reasons=problem.message)
                return Refusal(text, False, self.name, problem.remedy, problem.code or filter)
        if by_shape:
            self._harmless.add(shape)
        return None

    def _problems(self, task: Task) -> Iterator[tuple[str, Why | None]]:
        """Why a task is refused on all nodes, in the order of Volcano's checks (spec 04 1.2)."""
        enabled, objects, spec = self.arguments, self.session.cluster.objects, task.shape.spec
        if enabled.node_affinity and names_conflict(spec):
            yield "NodeAffinity", Why(names.AFFINITY_TERMS_CONFLICT)
        if enabled.pod_affinity and (problem := invalid_term(spec)):
            yield "InterPodAffinity", Why(names.TERM_UNREADABLE.format(problem=problem))
        if enabled.volume_zone:
            # quirk: spec 04 1.2, zones come first, so they report what binding would report better
            yield "VolumeZone", zone_problem(objects, task)
        if enabled.volume_binding:
            yield "VolumeBinding", binding_problem(objects, task)
        if task.demands or self._claims.concerns(task):
            yield "DynamicResources", self._claims.problem(task)

    def node_filters(self, task: Task) -> Iterator[NodeFilter]:
        enabled, name, cluster, spec = self.arguments, self.name, self.session.cluster, task.shape.spec
        demand = self._volumes(task)
        if any(each.required for each in demand.attachments):
            attachable = AttachableVolumes(cluster, demand)
            yield NodeFilter(attachable.checks, FIT, "pods", attachable.version)
        yield NodeFilter(pod_slots, name, "usage")
        yield NodeFilter(cordon, name, "static")
        if enabled.node_affinity and selects_nodes(spec):
            yield NodeFilter(node_affinity, name, "static")
        if enabled.taints:
            yield NodeFilter(taints, name, "static")
        if enabled.node_ports and (ports := host_ports(spec)):
            node_ports = NodePorts(cluster, ports)
            yield NodeFilter(node_ports.checks, name, "pods", node_ports.version)
        if enabled.pod_affinity and (affinity := pod_affinity(cluster, task)):
            yield NodeFilter(affinity.checks, name, "pods", affinity.version)
        if restrictions := VolumeRestrictions(cluster, demand, task):
            yield NodeFilter(restrictions.checks, name, "pods", restrictions.version)
        if (demand.attachments or demand.missing) and enabled.volume_limits:
            limits = NodeVolumeLimits(cluster, demand)
            yield NodeFilter(limits.checks, name, "pods", limits.version)
        if demand.zoned and enabled.volume_zone:
            zone = VolumeZone(cluster, demand)
            yield NodeFilter(zone.checks, name, "pods", zone.version)
        if enabled.spreading and (spread := spreading(cluster, task)):
            yield NodeFilter(spread.checks, name, "pods", spread.version)
        if (demand.bound or demand.delayed or demand.lost) and enabled.volume_binding:
            binding = VolumeBinding(cluster, demand)
            yield NodeFilter(binding.checks, name, "pods", binding.version)
        if self._claims.concerns(task):
            yield from self._claims.filters(task)

    def node_scores(self, task: Task) -> Iterator[NodeScore]:
        if names.STORAGE_CAPACITY_SCORING in self.session.features:
            yield from self._storage_scores(task)
        if task.claims:
            yield from self._claims.scores(task)

    def _storage_scores(self, task: Task) -> Iterator[NodeScore]:
        if self.arguments.volume_binding and self._volumes(task).delayed:
            storage = StorageScore(self.session.cluster, self.arguments.binding_shape)
            weight = self.arguments.binding_weight
            yield NodeScore(storage.score, self.name, "pods", storage.version, weight, batch=True)

    def grants(self, task: Task, node: Node, now: bool) -> Iterator[Grant | Refusal]:
        if self.arguments.volume_binding:
            yield from volume_grants(self.session.cluster, task, node, self.arguments.bind_timeout)
        if self._claims.concerns(task):
            yield from self._claims.grants(task, node, now)


# -- host ports: no two pods of a node may use the same one (spec 04 2.5)


ANY_ADDRESS = "0.0.0.0"
_OTHER_PORT = "the host port is in use on every node: choose another port"


class HostPort(NamedTuple):
    """A port of the host under one of its addresses, or under all of them."""

    protocol: str
    port: int
    address: str

    def conflicts(self, other: HostPort) -> bool:
        same = self.protocol == other.protocol and self.port == other.port
        return same and (self.address == other.address or ANY_ADDRESS in (self.address, other.address))


def host_ports(spec: PodSpec) -> frozenset[HostPort]:
    """The host ports of a pod's containers and sidecars."""
    sidecars = [
        container for container in spec.init_containers if container.restart_policy == names.RESTART_ALWAYS
    ]
    return frozenset(
        HostPort(port.protocol or "TCP", port.host_port, port.host_ip or ANY_ADDRESS)
        for container in (*spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    )


class NodePorts:
    """Nodes on which no pod uses one of the requested ports."""

    def __init__(self, cluster: Cluster, requested: frozenset[HostPort]):
        self._cluster = cluster
        self._requested = requested

    def version(self, task: Task) -> int:
        return self._conflicting_pods().version

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        yield Check(
            nodes.pick(self._conflicting_pods().by_node == 0), names.PORTS_TAKEN, True, remedy=_OTHER_PORT
        )

    def _conflicting_pods(self) -> PodCount:
        return self._cluster.pod_counts.get(("host ports", self._requested), self._conflicts)

    def _conflicts(self, task: Task) -> bool:
        used = host_ports(task.shape.spec)
        return any(port.conflicts(other) for port in self._requested for other in used)


# -- filters of a node by itself: its pod slots, its cordon, labels and taints (spec 04 1.3, 2.2-2.4)


TAINTS_SHOWN = 3
"""Maximum taints that a remedy names."""
_POD_LIMIT = "every node is at its pod limit: wait, add nodes or raise the limit"


def pod_slots(task: Task, nodes: Nodes) -> Iterator[Check]:
    """A node runs at most as many pods as its status allows."""
    free = nodes.view[VIEW_PODS] < nodes.view_allocatable[VIEW_PODS]
    yield Check(free, names.POD_NUMBER_EXCEEDED, True, remedy=_POD_LIMIT)


def cordon(task: Task, nodes: Nodes) -> Iterator[Check]:
    """A node marked unschedulable accepts only pods that tolerate it."""
    if not tolerates_cordon(task.shape.spec.tolerations):
        usable = ~nodes.pick(cordoned_nodes(nodes.columns))
        yield Check(
            usable,
            names.NODE_UNSCHEDULABLE,
            remedy="uncordon one of the nodes: kubectl uncordon NODE",
            code=CORDONED,
        )


def node_affinity(task: Task, nodes: Nodes) -> Iterator[Check]:
    """nodeSelector and required node affinity."""
    matching = nodes.pick(matching_nodes(nodes.columns, task.shape.spec))
    yield Check(matching, names.NODE_AFFINITY_MISMATCH, remedy=selection_remedy, code=NOT_SELECTED)


def taints(task: Task, nodes: Nodes) -> Iterator[Check]:
    """A taint repels pods that do not tolerate it."""
    tolerable = tolerable_nodes(nodes.columns, task.shape.spec.tolerations)
    remedy = partial(_taint_remedy, nodes.columns)
    yield Check(nodes.pick(tolerable), names.UNTOLERATED_TAINT, remedy=remedy, code=TAINTED)


def _taint_remedy(columns: Columns, task: Task) -> str:
    taints: dict[str, None] = {}
    for node in columns.nodes:
        for taint in node.object.spec.taints if node.object else ():
            if taint.effect != names.PREFER_NO_SCHEDULE:
                value = f"={taint.value}" if taint.value else ""
                taints[f"{taint.key}{value}:{taint.effect}"] = None
        if len(taints) > TAINTS_SHOWN:
            break
    listed = ", ".join(list(taints)[:TAINTS_SHOWN])
    return f"tolerate a taint or remove it: {listed}{', ...' if len(taints) > TAINTS_SHOWN else ''}"


def names_conflict(spec: PodSpec) -> bool:
    """Whether every required term selects by node name and none of them selects any name."""
    required = required_selector(spec)
    if required is None or not required.node_selector_terms:
        return False
    return all(_allowed_names(term) == set() for term in required.node_selector_terms)


def _allowed_names(term: NodeSelectorTerm) -> set[str] | None:
    """The node names that a term allows; None where it allows all."""
    allowed: set[str] | None = None
    for field in term.match_fields:
        if field.key == names.NODE_NAME_FIELD and field.operator == "In":
            allowed = set(field.values) if allowed is None else allowed & set(field.values)
    return allowed


# -- what a task is given for its claims that wait for it, on the node that was chosen


def volume_grants(cluster: Cluster, task: Task, node: Node, timeout: int) -> Iterator[VolumeGrant | Refusal]:
    """A volume for each claim, or the promise to provision one on the node."""
    waiting = delayed_claims(cluster.volumes, cluster.objects, task) if task.volume_claims else []
    if not waiting:
        return
    volumes = cluster.volumes.matching.choose(tuple(delayed for _, delayed in waiting), node.row)
    if volumes is None:  # the volume was given to another claim since the filters ran
        yield Refusal(names.NO_VOLUME_TO_BIND, remedy=unbindable_claims(cluster))
        return
    for (claim, _), volume in zip(waiting, volumes, strict=True):
        yield VolumeGrant(claim.namespace, claim.name, claim.metadata.uid, volume, timeout)


PAUSE = 30.0
"""Seconds after which a release is decided again, if the claim did not change."""


# -- allocations without a user, of pods that were not placed after all
#
# A claim may stay allocated if a scheduler stops between claim and bind, or if the other pods of a gang did not fit on
# the node of the claim. Kubernetes' scheduler deallocates such claims one by one when a pod of theirs fails
# (PostFilter).


class UnusedClaims:
    """Decides which claims to deallocate."""

    def __init__(self) -> None:
        self._decided: dict[str, tuple[str, float]] = {}
        """The version of claims whose release was decided, and when, by their keys."""

    def release(self, session: Session) -> None:
        """Release allocations of pods that have no node when the cycle ends."""
        unused = session.cluster.devices.unused
        if not unused:
            self._decided.clear()
            return
        unreachable = set(_unreachable(session))
        for use in list(unused):
            if use.object is not None and _is_abandoned(session, use, use.object, use in unreachable):
                self._decide(session, use, use.object)
        self._decided = {
            key: known for key, known in self._decided.items() if key in session.cluster.devices.claims
        }

    def _decide(self, session: Session, use: ClaimUse, claim: ResourceClaim) -> None:
        meta = claim.metadata
        version, at = self._decided.get(use.key, ("", 0.0))
        if version == meta.resource_version and session.now < at + PAUSE:
            return
        self._decided[use.key] = (meta.resource_version, session.now)
        session.journal.decisions.append(
            ReleaseClaim(meta.namespace, meta.name, meta.uid, meta.resource_version, delete=use.is_extended)
        )


def _is_abandoned(session: Session, use: ClaimUse, claim: ResourceClaim, unreachable: bool) -> bool:
    """Whether no consumer of a claim has a node; without consumers, whether the claim excludes nodes for a pod."""
    if claim.metadata.deletion_timestamp is not None:
        return False
    if use.is_extended:
        return _waits(session, use.controller)
    reserved = claim.status.reserved_for
    if not reserved:
        return unreachable
    return all(_consumer_waits(session, claim.namespace, consumer) for consumer in reserved)


def _consumer_waits(session: Session, namespace: str, consumer: ConsumerReference) -> bool:
    if consumer.resource == "pods":
        return _waits(session, consumer.uid)
    job = session.cluster.jobs.get(JobId("NativePodGroup", namespace, consumer.name))
    return (
        job is not None
        and bool(job.tasks)
        and job.group is not None
        and job.group.metadata.uid == consumer.uid
        and all(task.status is Status.PENDING for task in job.tasks.values())
    )


def _waits(session: Session, uid: str) -> bool:
    """Whether a pod of this scheduler has no node; pending pods of other schedulers are unknown."""
    task = session.cluster.tasks.get(uid)
    return task is not None and task.ours and task.status is Status.PENDING


def _unreachable(session: Session) -> Iterator[ClaimUse]:
    """Allocated claims that excluded nodes for a pod in this cycle."""
    for verdicts in session.attempts.verdicts.values():
        for task, verdict in verdicts.items():
            if task.claims and any(reason.code == CLAIM_ELSEWHERE for reason in verdict.reasons):
                yield from task_claims(session.cluster.devices, task)
