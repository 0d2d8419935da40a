"""The allocated HyperNode of gangs: in which domain they are (spec 01 7.4).

It is memory: whatever is lost of it, by a restart or a change of the tree, is recovered from where their tasks are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.engine.topology.confinement import HOLDS_ROOM, placed
from stromboli.engine.topology.topology_limits import highest_tier
from stromboli.model.requirements.group_demands import network_topologies

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stromboli.engine.session import Session
    from stromboli.model.job import Job, SubJob
    from stromboli.model.topology.domain import Domain
    from stromboli.model.topology.hyper_node_tree import HyperNodeTree


class AllocatedDomains:
    """Brings allocated HyperNodes up to date when a session opens: of jobs that changed, of all if the tree did."""

    def __init__(self) -> None:
        self._version = -1

    def update(self, session: Session) -> None:
        tree, changed = session.cluster.hyper_nodes, session.changed
        everything = changed.everything or tree.version != self._version
        self._version = tree.version
        jobs: Iterable[Job] = session.cluster.jobs.values() if everything else changed.jobs
        for job in jobs:
            if job.group_demands and job.group is not None and network_topologies(job.group):
                _update_job(tree, job)


def _update_job(tree: HyperNodeTree, job: Job) -> None:
    changes = [_update_sub_job(tree, sub_job) for sub_job in job.sub_jobs.values()]
    common: Domain | None = None
    for sub_job in job.sub_jobs.values():
        common = tree.lowest_common(common, tree.domain(sub_job.allocated_hyper_node))
    if common is None:  # sub-groups come and go with their tasks
        job.allocated_hyper_node = ""
    elif any(changes) or not _allowed(tree, job, tree.domain(job.allocated_hyper_node)):
        job.allocated_hyper_node = common.name


def _update_sub_job(tree: HyperNodeTree, sub_job: SubJob) -> bool:
    """Recover the domain of a sub-group that has none, or one that no longer has its nodes; whether it changed."""
    before = sub_job.allocated_hyper_node
    nodes = [task.node for task in placed(sub_job, HOLDS_ROOM) if task.node is not None]
    if not nodes:
        sub_job.allocated_hyper_node = ""
    else:
        rows = [node.row for node in nodes if node.row >= 0]
        domains = (
            tree.containing(rows) if rows else [tree.top]
        )  # a node that is lost has no place in the tree
        if not any(domain.name == before and _allowed(tree, sub_job, domain) for domain in domains):
            sub_job.allocated_hyper_node = domains[0].name
    return sub_job.allocated_hyper_node != before


def _allowed(tree: HyperNodeTree, unit: Job | SubJob, domain: Domain | None) -> bool:
    """Whether a domain is there and not above the highest tier that a job or a sub-group may span."""
    limit = highest_tier(tree, unit)
    return domain is not None and (limit is None or domain.tier <= limit)
