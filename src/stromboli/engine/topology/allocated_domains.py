"""The allocated HyperNodes of gangs (spec 01 7.4), and the domains of gangs for users.

After a restart or a change of the tree, the allocated HyperNode is recovered from the nodes of the gang's tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from stromboli.engine.topology.topology_limits import (
    HOLDS_RESOURCES,
    has_topology,
    highest_tier,
    label_key,
    placed,
    possible_label_domains,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stromboli.engine.session import Session
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job, SubJob
    from stromboli.model.topology.domain import Domain
    from stromboli.model.topology.hyper_node_tree import HyperNodeTree


class AllocatedDomains:
    """Updates allocated HyperNodes when a session opens: of jobs that changed, or of all jobs if the tree changed."""

    def __init__(self) -> None:
        self._version = -1

    def update(self, session: Session) -> None:
        tree, changed = session.cluster.hyper_nodes, session.changed
        everything = changed.everything or tree.version != self._version
        self._version = tree.version
        jobs: Iterable[Job] = session.cluster.jobs.values() if everything else changed.jobs
        for job in jobs:
            if has_topology(job):
                _update_job(tree, job)


def _update_job(tree: HyperNodeTree, job: Job) -> None:
    changes = [_update_sub_job(tree, sub_job) for sub_job in job.sub_jobs.values()]
    common: Domain | None = None
    for sub_job in job.sub_jobs.values():
        common = tree.lowest_common(common, tree.domain(sub_job.allocated_hyper_node))
    if common is None:  # no sub-group has tasks on nodes
        job.allocated_hyper_node = ""
    elif any(changes) or not _allowed(tree, job, tree.domain(job.allocated_hyper_node)):
        job.allocated_hyper_node = common.name


def _update_sub_job(tree: HyperNodeTree, sub_job: SubJob) -> bool:
    """Recover the domain of a sub-group that has none or whose nodes are elsewhere; return whether it changed."""
    before = sub_job.allocated_hyper_node
    nodes = [task.node for task in placed(sub_job, HOLDS_RESOURCES) if task.node is not None]
    if not nodes:
        sub_job.allocated_hyper_node = ""
    else:
        rows = [node.row for node in nodes if node.row >= 0]
        domains = tree.containing(rows) if rows else [tree.top]  # deleted nodes are not in the tree
        if not any(domain.name == before and _allowed(tree, sub_job, domain) for domain in domains):
            sub_job.allocated_hyper_node = domains[0].name
    return sub_job.allocated_hyper_node != before


def _allowed(tree: HyperNodeTree, unit: Job | SubJob, domain: Domain | None) -> bool:
    """Whether a domain exists and is not above the highest tier that a job or a sub-group may span."""
    limit = highest_tier(tree, unit)
    return domain is not None and (limit is None or domain.tier <= limit)


# -- for users


class GangDomain(Struct, frozen=True):
    """The lowest domain that has all pods of a gang, and of each of its sub-groups."""

    name: str = ""
    """The name of a HyperNode, or a label with its value: `rack=r1`; empty if no domain has all pods."""
    tier: int | None = None
    """None for a label."""
    title: str = ""
    """The display name: the value of a label instead of a generated name."""
    sub_groups: dict[str, GangDomain] = {}
    """The domains of sub-groups by name."""

    @property
    def text(self) -> str:
        """`HyperNode s1 (tier 1); worker-0 in s0, worker-1 in s1`."""
        where = self.title or "in no HyperNode as a whole"
        if self.tier is not None:
            where = f"HyperNode {self.title} (tier {self.tier})"
        parts = ", ".join(f"{part} in {domain.title or 'none'}" for part, domain in self.sub_groups.items())
        return f"{where}; {parts}" if parts else where


def gang_domains(cluster: Cluster) -> Iterator[tuple[Job, GangDomain]]:
    """The domains of jobs that request a topology, hard or soft, and have pods on nodes."""
    for job in cluster.jobs.values():
        if job.allocated_count and (label_key(job) or has_topology(job)):
            sub_groups = {
                sub_job.id.rpartition("/")[2]: _domain(cluster, sub_job)
                for sub_job in job.sub_jobs.values()
                if sub_job.policy is not None and sub_job.allocated_count
            }
            yield job, structs.replace(_domain(cluster, job), sub_groups=sub_groups)


def _domain(cluster: Cluster, unit: Job | SubJob) -> GangDomain:
    nodes = [
        task.node for task in placed(unit, HOLDS_RESOURCES) if task.node is not None and task.node.row >= 0
    ]
    if not nodes:
        return GangDomain()
    if key := label_key(unit):
        domains = possible_label_domains(cluster.columns, key, nodes)
        return _of(domains[0], None) if domains else GangDomain()
    lowest = cluster.hyper_nodes.containing(node.row for node in nodes)[0]
    return GangDomain() if lowest is cluster.hyper_nodes.top else _of(lowest, lowest.tier)


def _of(domain: Domain, tier: int | None) -> GangDomain:
    return GangDomain(domain.name, tier, domain.title)
