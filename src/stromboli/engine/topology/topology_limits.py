"""The topology limits of a job (spec 01 7.3): its highest tier or its label, and the domains that it may use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.model.job import Job, SubJob
from stromboli.model.status import ALLOCATED_CLASS, Status
from stromboli.model.topology.domain import LABEL_TIER, label_domains

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import NetworkTopology
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Columns, Node
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain
    from stromboli.model.topology.hyper_node_tree import HyperNodeTree

HOLDS_RESOURCES = tuple(status for status in Status if ALLOCATED_CLASS[status])
PLACED = (*HOLDS_RESOURCES, Status.PIPELINED)


def highest_tier(tree: HyperNodeTree, unit: Job | SubJob) -> int | None:
    """The highest tier that a job or a sub-group may span; none if it requests no topology.

    A soft topology allows the tier of the top; in a sub-group, that of its job. The domains of a label are below all
    HyperNodes.
    """
    if label_key(unit):
        return LABEL_TIER
    topology = requested_topology(unit)
    if topology is None:
        return None
    if topology.mode != names.TOPOLOGY_SOFT:
        return _hard_tier(tree, topology)
    of_job = highest_tier(tree, unit.job) if isinstance(unit, SubJob) and unit.policy is not None else None
    return tree.top.tier if of_job is None else of_job


def has_topology(job: Job) -> bool:
    """Whether the PodGroup of a job requests a network topology, for itself or for sub-groups."""
    if job.group is None:
        return False
    spec = job.group.spec
    if spec.network_topology is not None or not spec.sub_group_policy:
        return spec.network_topology is not None
    return any(each.network_topology for each in spec.sub_group_policy)


def requested_topology(unit: Job | SubJob) -> NetworkTopology | None:
    """The topology that a job or a sub-group requests; a sub-group without a policy has that of its job."""
    if isinstance(unit, SubJob) and unit.policy is not None:
        return unit.policy.network_topology
    job = unit.job if isinstance(unit, SubJob) else unit
    return job.group.spec.network_topology if job.group is not None else None


def _hard_tier(tree: HyperNodeTree, topology: NetworkTopology) -> int | None:
    if topology.highest_tier_allowed is not None:
        return topology.highest_tier_allowed
    return tree.tier_of_name.get(topology.highest_tier_name)


def label_key(unit: Job | SubJob) -> str:
    """The label whose value all nodes of a native group must share; empty if it requests none.

    Kubernetes honours this without a plugin, and so does the engine.
    """
    job = unit.job if isinstance(unit, SubJob) else unit
    return job.native.topology_key if job.native is not None else ""


def placed(unit: Job | SubJob, statuses: tuple[Status, ...] = PLACED) -> Iterator[Task]:
    """The tasks of a job or a sub-group with one of these statuses."""
    if not isinstance(unit, SubJob):
        for status in statuses:
            yield from unit.by_status[status]
    elif any(unit.counts[status] for status in statuses):
        yield from (task for task in unit.tasks if task.status in statuses)


def possible_domains(
    cluster: Cluster,
    unit: Job | SubJob,
    without: Task | None = None,
    statuses: tuple[Status, ...] = PLACED,
) -> list[Domain]:
    """The domains up to the highest tier allowed that contain all nodes of a job or a sub-group."""
    limit = highest_tier(cluster.hyper_nodes, unit)
    nodes = [task.node for task in placed(unit, statuses) if task is not without and task.node is not None]
    if key := label_key(unit):
        return possible_label_domains(cluster.columns, key, nodes)
    known = [node.row for node in nodes if node.row >= 0]  # deleted nodes are not in the tree
    if limit is None or (nodes and not known):
        return []
    return [domain for domain in cluster.hyper_nodes.containing(known) if domain.tier <= limit]


def possible_label_domains(columns: Columns, key: str, nodes: Sequence[Node]) -> list[Domain]:
    """The domains that have all nodes of a group; empty if these are in several domains, or all deleted."""
    domains = label_domains(columns, key).by_value
    if not nodes:
        return list(domains.values())
    values = {node.labels.get(key) for node in nodes if node.row >= 0}
    return [domain for value, domain in domains.items() if values == {value}]
