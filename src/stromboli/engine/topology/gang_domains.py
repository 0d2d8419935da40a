"""In which domain gangs with a topology are, for people who ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from stromboli.engine.topology.confinement import HOLDS_ROOM, placed
from stromboli.engine.topology.label_topology import label_key, possible_label_domains
from stromboli.model.requirements.group_demands import network_topologies

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.job import Job, SubJob
    from stromboli.model.topology.domain import Domain


class GangDomain(Struct, frozen=True):
    """The lowest domain that has all pods of a gang, and of each of its sub-groups."""

    name: str = ""
    """Of a HyperNode, or a label with its value: `rack=r1`; empty if no domain has all of them."""
    tier: int | None = None
    """None for a label."""
    title: str = ""
    """The name as users read it: the value of a label instead of a generated name."""
    sub_groups: dict[str, GangDomain] = {}
    """The domains of sub-groups, by the names of these."""

    @property
    def text(self) -> str:
        """`HyperNode s1 (tier 1); worker-0 in s0, worker-1 in s1`."""
        where = self.title or "in no HyperNode as a whole"
        if self.tier is not None:
            where = f"HyperNode {self.title} (tier {self.tier})"
        parts = ", ".join(f"{part} in {domain.title or 'none'}" for part, domain in self.sub_groups.items())
        return f"{where}; {parts}" if parts else where


def gang_domains(cluster: Cluster) -> Iterator[tuple[Job, GangDomain]]:
    """The domains of jobs that ask for a topology, hard or soft, and have pods on nodes."""
    for job in cluster.jobs.values():
        if job.allocated_count and (label_key(job) or _has_topology(job)):
            sub_groups = {
                sub_job.id.rpartition("/")[2]: _domain(cluster, sub_job)
                for sub_job in job.sub_jobs.values()
                if sub_job.policy is not None and sub_job.allocated_count
            }
            yield job, structs.replace(_domain(cluster, job), sub_groups=sub_groups)


def _domain(cluster: Cluster, unit: Job | SubJob) -> GangDomain:
    nodes = [task.node for task in placed(unit, HOLDS_ROOM) if task.node is not None and task.node.row >= 0]
    if not nodes:
        return GangDomain()
    if key := label_key(unit):
        domains = possible_label_domains(cluster.columns, key, nodes)
        return _of(domains[0], None) if domains else GangDomain()
    lowest = cluster.hyper_nodes.containing(node.row for node in nodes)[0]
    return GangDomain() if lowest is cluster.hyper_nodes.top else _of(lowest, lowest.tier)


def _of(domain: Domain, tier: int | None) -> GangDomain:
    return GangDomain(domain.name, tier, domain.title)


def _has_topology(job: Job) -> bool:
    return bool(job.group_demands) and job.group is not None and bool(network_topologies(job.group))
