"""The plugin `predicates`: which filters a task has to pass, and what refuses it on every node at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stromboli.api import names
from stromboli.engine.arguments import arg
from stromboli.engine.nodefunctions import NodeFilter, Refusal
from stromboli.engine.plugin import Plugin
from stromboli.model.nodeselection import is_choosy
from stromboli.model.task import Task
from stromboli.plugins.predicates import nodes


@dataclass(frozen=True, slots=True)
class Shape:
    """One point of a broken line: at this utilization, that score."""

    utilization: int = arg("utilization", 0, "How much of a volume's capacity is asked for, in percent.")
    score: int = arg("score", 0, "What that is worth, 0 to 10.")


_NOT_YET = "Only with Kubernetes' feature gate StorageCapacityScoring, which is off: accepted, no effect."


@dataclass(frozen=True, slots=True)
class Switches:
    """Switches of the single filters, under Volcano's names."""

    node_affinity: bool = arg(
        "predicate.NodeAffinityEnable", True, "Filter by nodeSelector and node affinity."
    )
    node_ports: bool = arg("predicate.NodePortsEnable", True, "Filter by free host ports.")
    taints: bool = arg("predicate.TaintTolerationEnable", True, "Filter by taints.")
    pod_affinity: bool = arg("predicate.PodAffinityEnable", True, "Filter by pod affinity and anti-affinity.")
    volume_limits: bool = arg("predicate.NodeVolumeLimitsEnable", True, "Filter by attachable volumes.")
    volume_zone: bool = arg("predicate.VolumeZoneEnable", True, "Filter by the zones of bound volumes.")
    spreading: bool = arg("predicate.PodTopologySpreadEnable", True, "Filter by spread constraints.")
    volume_binding: bool = arg(
        "predicate.VolumeBindingEnable", True, "Filter by volumes that could be bound."
    )
    devices: bool = arg(
        "predicate.DynamicResourceAllocationEnable", True, "Accepted for old files; never had an effect."
    )
    cache: bool = arg(
        "predicate.CacheEnable",
        False,
        "Accepted and without effect: tasks that are alike always share their filtering, others never do.",
    )
    bind_timeout: int = arg("volumebinding.bindTimeoutSeconds", 600, "How long to wait for volumes to bind.")
    binding_weight: int = arg("volumebinding.weight", 1, _NOT_YET)
    binding_shape: tuple[Shape, ...] = arg("volumebinding.shape", (Shape(0, 10), Shape(100, 0)), _NOT_YET)
    device_timeout: int = arg(
        "dynamicresources.filterTimeoutSeconds", 10, "How long to look for devices on one node; 0: no limit."
    )


class Predicates(Plugin):
    """Kubernetes' own node filters."""

    name = "predicates"
    Arguments = Switches
    arguments: Switches

    def shape_key(self, task: Task) -> Any:
        return None

    def prefilter(self, task: Task) -> Refusal | None:
        spec = task.shape.spec
        if spec.affinity is not None and self.arguments.node_affinity and nodes.names_conflict(spec):
            return _refusal("NodeAffinity", names.AFFINITY_TERMS_CONFLICT)
        return None

    def node_filters(self, task: Task) -> Iterator[NodeFilter]:
        wanted, name, cluster, spec = self.arguments, self.name, self.session.cluster, task.shape.spec
        yield NodeFilter(nodes.pod_slots, name, "usage")
        yield NodeFilter(nodes.cordon, name, "static")
        if wanted.node_affinity and is_choosy(spec):
            yield NodeFilter(nodes.NodeAffinity(cluster).checks, name, "static")
        if wanted.taints:
            yield NodeFilter(nodes.taints, name, "static")


def _refusal(filter: str, reason: str) -> Refusal:
    text = names.PRE_PREDICATE_FAILED.format(plugin=filter, reasons=reason)
    return Refusal(text, curable=False, plugin=Predicates.name)
