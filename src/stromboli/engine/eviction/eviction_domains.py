"""Where evicting actions free capacity: the domains of a job, and in them those of its sub-groups (spec 02 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job, SubJob
    from stromboli.model.topology.domain import Domain

DEFAULT_MAX_DOMAINS = 8
"""The number of domains that are tried for a job."""


def domains_of_job(session: Session, job: Job, purpose: str = "evict") -> list[Domain]:
    """The domains in which a job may be placed, in order; the whole cluster if it asks for no topology."""
    top = session.cluster.hyper_nodes.top
    domains = _flat(session.topology.gradients(job, top, purpose))
    return domains if domains or _tiers(session, job) else [top]


def domains_of_sub_job(
    session: Session, sub_job: SubJob, domain: Domain, purpose: str = "evict"
) -> list[Domain]:
    """The domains within that of a job in which a sub-group may be placed, in order."""
    if not _tiers(session, sub_job.job):
        return [domain]
    return _flat(session.topology.gradients(sub_job, domain, purpose))


def is_confined(session: Session, job: Job) -> bool:
    """Whether a job or any of its sub-groups may not span the whole cluster."""
    return any(tier < session.cluster.hyper_nodes.top.tier for tier in _tiers(session, job))


def _tiers(session: Session, job: Job) -> list[int]:
    """The highest tiers that a job and its sub-groups may span; empty if none of them asks for a topology."""
    tiers = [session.topology.tier_limit(job), *map(session.topology.tier_limit, job.sub_jobs.values())]
    return [tier for tier in tiers if tier is not None]


def _flat(gradients: Iterable[Iterable[Domain]]) -> list[Domain]:
    return list(dict.fromkeys(domain for group in gradients for domain in group))


def nominate_hyper_nodes(session: Session, chosen: Mapping[SubJob, Domain]) -> None:
    """Record for later cycles of allocate the HyperNodes in which capacity was freed for sub-groups (spec 02 3.6)."""
    tree = session.cluster.hyper_nodes
    for sub_job, domain in chosen.items():
        if _tiers(session, sub_job.job) and tree.domain(domain.name) is domain:
            session.journal.deferred.write(sub_job, "nominated_hyper_node", domain.name)


def domain_text(session: Session, domain: Domain | None) -> str:
    """A domain as users read it: a HyperNode, or a label and its value; empty for the whole cluster."""
    tree = session.cluster.hyper_nodes
    if domain is None or domain is tree.top:
        return ""
    return f"HyperNode {domain.title}" if domain.name in tree.domains else domain.name
