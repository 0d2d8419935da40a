"""What a PodGroup or a queue requires of the placement of its pods and only a plugin can honour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stromboli.api import names
from stromboli.api.types.scheduling import NetworkTopology, PodGroup, QueueSpec
from stromboli.model.requirements.placement_requirement import (
    DEQUEUE_STRATEGY,
    HARD_NETWORK_TOPOLOGY,
    NODE_GROUPS,
    PREFERRED_NODE_GROUPS,
    SOFT_NETWORK_TOPOLOGY,
    TASK_TOPOLOGY,
    TOPOLOGY_WITHOUT_TIER,
    WAITING_TIME,
    Demand,
)

_ANNOTATIONS = {
    **dict.fromkeys(names.TASK_TOPOLOGY, TASK_TOPOLOGY),
    **dict.fromkeys((names.SLA_WAITING_TIME, names.OLD_SLA_WAITING_TIME), WAITING_TIME),
}


def network_topologies(group: PodGroup) -> dict[NetworkTopology, str]:
    """The different network topologies of a group and of its sub-groups, each with its first field."""
    spec = group.spec
    topologies: dict[NetworkTopology, str] = {}
    if spec.network_topology is not None:
        topologies[spec.network_topology] = "spec.networkTopology"
    for number, policy in enumerate(spec.sub_group_policy):
        if policy.network_topology is not None:
            topologies.setdefault(policy.network_topology, f"spec.subGroupPolicy[{number}].networkTopology")
    return topologies


def group_demands(group: PodGroup) -> tuple[Demand, ...]:
    """The requirements of a PodGroup: of each of its network topologies, in order, then of its annotations."""
    topologies = [topology_demand(field, topology) for topology, field in network_topologies(group).items()]
    return (*topologies, *annotation_demands(group.metadata.annotations))


def annotation_demands(annotations: Mapping[str, str]) -> Iterator[Demand]:
    """The requirements of a group's annotations."""
    for key, requirement in _ANNOTATIONS.items():
        if annotations.get(key):
            yield Demand(requirement, f"annotation {key}", annotations[key][:63])


def topology_demand(field: str, topology: NetworkTopology) -> Demand:
    """The requirements of a network topology."""
    if topology.mode == names.TOPOLOGY_SOFT:
        return Demand(SOFT_NETWORK_TOPOLOGY, field, "soft")
    if topology.highest_tier_allowed is not None:
        return Demand(
            HARD_NETWORK_TOPOLOGY, field, f"hard, highestTierAllowed {topology.highest_tier_allowed}"
        )
    if topology.highest_tier_name:
        return Demand(
            HARD_NETWORK_TOPOLOGY, field, f'hard, highestTierName "{topology.highest_tier_name[:63]}"'
        )
    return Demand(TOPOLOGY_WITHOUT_TIER, field, "hard")


def queue_demands(spec: QueueSpec) -> tuple[Demand, ...]:
    """The requirements of a queue for its jobs."""
    demands = []
    for field, groups in (
        ("nodeGroupAffinity", spec.affinity.node_group_affinity if spec.affinity else None),
        ("nodeGroupAntiAffinity", spec.affinity.node_group_anti_affinity if spec.affinity else None),
    ):
        where = f"spec.affinity.{field} of its queue"
        if groups is not None and groups.required:
            demands.append(Demand(NODE_GROUPS, where, ", ".join(groups.required[:3])[:200]))
        elif groups is not None and groups.preferred:
            demands.append(Demand(PREFERRED_NODE_GROUPS, where, ", ".join(groups.preferred[:3])[:200]))
    if spec.dequeue_strategy == "fifo":
        demands.append(Demand(DEQUEUE_STRATEGY, "spec.dequeueStrategy of its queue", "fifo"))
    return tuple(demands)
