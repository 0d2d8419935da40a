"""The plugin `predicates`: the node filters of a task, and what refuses it on every node at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from stromboli.api import names
from stromboli.engine.placement.node_functions import NodeFilter, Refusal
from stromboli.engine.plugin import Plugin
from stromboli.model.constraints.node_selection import selects_nodes
from stromboli.model.constraints.volume_claims import binding_problem, restricted_volumes, zone_problem
from stromboli.model.requirements.placement_requirement import NODE_FILTERS, VOLUME_BINDING, VOLUME_TOPOLOGY
from stromboli.model.task import Task
from stromboli.plugins.predicates import node_filters
from stromboli.plugins.predicates.host_ports import NodePorts, host_ports
from stromboli.plugins.predicates.pod_affinity_filter import invalid_term, pod_affinity, pod_affinity_key
from stromboli.plugins.predicates.topology_spread_filter import spreading, spreading_key
from stromboli.plugins.predicates.volume_nodes import VolumeNodes
from stromboli.policy.arguments import arg


@dataclass(frozen=True, slots=True)
class UtilizationPoint:
    """One point of a piecewise linear function: at this utilization, that score."""

    utilization: int = arg("utilization", 0, "How much of a volume's capacity is asked for, in percent.")
    score: int = arg("score", 0, "What that is worth, 0 to 10.")


_OFF = "Only with Kubernetes' feature gate StorageCapacityScoring, which is off: accepted, no effect."


@dataclass(frozen=True, slots=True)
class Switches:
    """Switches of the single filters, under Volcano's names."""

    node_affinity: bool = arg(
        "predicate.NodeAffinityEnable", True, "Filter by nodeSelector and node affinity."
    )
    node_ports: bool = arg("predicate.NodePortsEnable", True, "Filter by free host ports.")
    taints: bool = arg("predicate.TaintTolerationEnable", True, "Filter by taints.")
    pod_affinity: bool = arg("predicate.PodAffinityEnable", True, "Filter by pod affinity and anti-affinity.")
    volume_limits: bool = arg(
        "predicate.NodeVolumeLimitsEnable", True, "Filter by attachable volumes.", not_yet=True
    )
    volume_zone: bool = arg(
        "predicate.VolumeZoneEnable",
        True,
        "Filter by the zones of bound volumes; refuse pods whose volumes have no zone that can be told: a claim or "
        "its volume is missing or unbound.",
    )
    spreading: bool = arg("predicate.PodTopologySpreadEnable", True, "Filter by spread constraints.")
    volume_binding: bool = arg(
        "predicate.VolumeBindingEnable",
        True,
        "Filter by the node affinity of bound volumes; refuse pods whose claims cannot be bound on any node: "
        "missing, lost, being deleted or unbound. Binding claims is not there yet. Off: claims are left to others, "
        "and pods start whatever becomes of them.",
    )
    devices: bool = arg(
        "predicate.DynamicResourceAllocationEnable", True, "Accepted for old files; never had an effect."
    )
    cache: bool = arg(
        "predicate.CacheEnable",
        False,
        "Accepted and without effect: tasks that are alike always share their filtering, others never do.",
    )
    bind_timeout: int = arg(
        "volumebinding.bindTimeoutSeconds", 600, "How long to wait for volumes to bind.", not_yet=True
    )
    binding_weight: int = arg("volumebinding.weight", 1, _OFF)
    binding_shape: tuple[UtilizationPoint, ...] = arg(
        "volumebinding.shape", (UtilizationPoint(0, 10), UtilizationPoint(100, 0)), _OFF
    )
    device_timeout: int = arg(
        "dynamicresources.filterTimeoutSeconds",
        10,
        "How long to look for devices on one node; 0: no limit.",
        not_yet=True,
    )


class Predicates(Plugin):
    """Kubernetes' own node filters."""

    name = "predicates"
    Arguments = Switches
    arguments: Switches
    honours = frozenset({NODE_FILTERS.name, VOLUME_TOPOLOGY.name})

    def __init__(self, arguments: Switches, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        if not arguments.volume_binding:  # whoever switches it off wants claims to be left to others
            self.honours = self.honours | {VOLUME_BINDING.name}

    def shape_key(self, task: Task) -> Hashable:
        enabled, cluster = self.arguments, self.session.cluster
        affinity = pod_affinity_key(cluster, task) if enabled.pod_affinity else None
        spread = spreading_key(task) if enabled.spreading else None
        return (affinity, spread, self._volumes(task) if task.shape.spec.volumes else ())

    def _volumes(self, task: Task) -> tuple[str, ...]:
        """The volumes of a task that cannot be reached from every node, by name."""
        enabled = self.arguments.volume_zone or self.arguments.volume_binding
        if not enabled:
            return ()
        return tuple(volume.name for volume in restricted_volumes(self.session.cluster.objects, task))

    def prefilter(self, task: Task) -> Refusal | None:
        spec = task.shape.spec
        if spec.affinity is None and not spec.volumes and not spec.topology_spread_constraints:
            return None
        for filter, problem in self._problems(task):
            if problem:
                text = names.PRE_PREDICATE_FAILED.format(plugin=filter, reasons=problem)
                return Refusal(text, curable=False, plugin=self.name)
        return None

    def _problems(self, task: Task) -> Iterator[tuple[str, str | None]]:
        """What keeps a task from every node, in the order in which Volcano checks (spec 04 1.2)."""
        enabled, objects, spec = self.arguments, self.session.cluster.objects, task.shape.spec
        if enabled.node_affinity and node_filters.names_conflict(spec):
            yield "NodeAffinity", names.AFFINITY_TERMS_CONFLICT
        if enabled.pod_affinity and (problem := invalid_term(spec)):
            yield "InterPodAffinity", names.TERM_UNREADABLE.format(problem=problem)
        if enabled.volume_zone:
            # quirk: spec 04 1.2, zones come first, so they report what binding would report better
            yield "VolumeZone", zone_problem(objects, task)
        if enabled.volume_binding:
            yield "VolumeBinding", binding_problem(objects, task)

    def node_filters(self, task: Task) -> Iterator[NodeFilter]:
        enabled, name, cluster, spec = self.arguments, self.name, self.session.cluster, task.shape.spec
        yield NodeFilter(node_filters.pod_slots, name, "usage")
        yield NodeFilter(node_filters.cordon, name, "static")
        if enabled.node_affinity and selects_nodes(spec):
            yield NodeFilter(node_filters.node_affinity, name, "static")
        if enabled.taints:
            yield NodeFilter(node_filters.taints, name, "static")
        if enabled.node_ports and (ports := host_ports(spec)):
            node_ports = NodePorts(cluster, ports)
            yield NodeFilter(node_ports.checks, name, "pods", node_ports.version)
        if enabled.pod_affinity and (affinity := pod_affinity(cluster, task)):
            yield NodeFilter(affinity.checks, name, "pods", affinity.version)
        volumes = VolumeNodes(cluster) if self._volumes(task) else None
        if enabled.volume_zone and volumes:
            yield NodeFilter(volumes.zones, name, "pods", volumes.version)
        if enabled.spreading and (spread := spreading(cluster, task)):
            yield NodeFilter(spread.checks, name, "pods", spread.version)
        if enabled.volume_binding and volumes:
            yield NodeFilter(volumes.affinity, name, "pods", volumes.version)
