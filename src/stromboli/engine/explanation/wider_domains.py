"""Whether a gang would have room if it might be farther apart; the limits of its sub-groups stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stromboli.engine.explanation.closest_domain import DomainSearch
from stromboli.model.job import SubJob

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


def wider_domain(session: Session, unit: Job | SubJob, tasks: Sequence[Task]) -> Domain | None:
    """The lowest domain above the allowed ones that has room for these tasks, perhaps the top; none if none has."""
    tree, limit = session.cluster.hyper_nodes, session.network_topology(unit) or 0
    of_job = session.network_topology(unit.job) if isinstance(unit, SubJob) else None
    highest = tree.top.tier if of_job is None else of_job
    wider = [
        domain for domain in (*tree.domains.values(), tree.top) if limit < domain.tier <= max(highest, limit)
    ]
    wider.sort(key=lambda domain: (domain.tier, domain.name))
    search, sub_groups = DomainSearch(session, tasks), _SubGroups(session, unit, tasks)
    fits = search.fits(wider)
    roomy = (domain for domain, fit in zip(wider, fits, strict=True) if fit >= search.needed)
    return next((domain for domain in roomy if sub_groups.fit(domain)), None)


class _SubGroups:
    """For how many sub-groups of a job domains have room, each kept within its own limit."""

    def __init__(self, session: Session, unit: Job | SubJob, tasks: Sequence[Task]):
        self._needed: list[tuple[int, int, Counter[Domain]]] = []
        """By sub-group policy: the tier within which each stays, how many there are, and how many fit."""
        by_policy: dict[str, dict[SubJob, list[Task]]] = {}
        for task in () if isinstance(unit, SubJob) else tasks:
            if task.sub_job is not None and task.sub_job.policy is not None:
                groups = by_policy.setdefault(task.sub_job.policy.name, {})
                groups.setdefault(task.sub_job, []).append(task)
        for groups in by_policy.values():
            limit = session.network_topology(next(iter(groups)))
            if limit is not None and limit < session.cluster.hyper_nodes.top.tier:
                self._needed.append((limit, len(groups), _groups_that_fit(session, limit, groups)))

    def fit(self, domain: Domain) -> bool:
        """Whether a domain has room for all of them."""
        return all(fitting[domain] >= count for limit, count, fitting in self._needed if limit < domain.tier)


def _groups_that_fit(session: Session, limit: int, groups: dict[SubJob, list[Task]]) -> Counter[Domain]:
    """For how many sub-groups of one size each domain has room in its parts up to a tier."""
    search = DomainSearch(session, [task for tasks in groups.values() for task in tasks])
    size = max(map(len, groups.values()))
    parts = [
        domain
        for domain in session.cluster.hyper_nodes.domains.values()
        if domain.tier <= limit and (domain.parent is None or domain.parent.tier > limit)
    ]
    fitting: Counter[Domain] = Counter()
    for part, fits in zip(parts, search.fits(parts), strict=True):
        for domain in part.ancestors():
            fitting[domain] += int(fits) // size
    return fitting
