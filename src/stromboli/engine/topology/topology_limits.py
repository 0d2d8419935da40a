"""How far apart the tasks of a job may be, as a tier (spec 01 7.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.engine.topology.label_topology import label_key
from stromboli.model.job import Job, SubJob
from stromboli.model.topology.domain import LABEL_TIER

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import NetworkTopology
    from stromboli.model.topology.hyper_node_tree import HyperNodeTree


def highest_tier(tree: HyperNodeTree, unit: Job | SubJob) -> int | None:
    """The highest tier that a job or a sub-group may span; none if it asks for no topology.

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


def requested_topology(unit: Job | SubJob) -> NetworkTopology | None:
    """What a job asks for, or a sub-group, which has its job's unless a policy made it; none if that is nothing."""
    if isinstance(unit, SubJob) and unit.policy is not None:
        return unit.policy.network_topology
    job = unit.job if isinstance(unit, SubJob) else unit
    return job.group.spec.network_topology if job.group is not None else None


def _hard_tier(tree: HyperNodeTree, topology: NetworkTopology) -> int | None:
    if topology.highest_tier_allowed is not None:
        return topology.highest_tier_allowed
    return tree.tier_of_name.get(topology.highest_tier_name)
