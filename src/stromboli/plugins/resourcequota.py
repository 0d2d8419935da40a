"""Admit only what the ResourceQuotas of a namespace still allow (spec 03 16)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from stromboli.api import names
from stromboli.api.resources.quantity import exact
from stromboli.api.types.meta import Quantity
from stromboli.api.types.scheduling import ResourceQuota
from stromboli.engine.plugin import Plugin
from stromboli.engine.points import Vote
from stromboli.engine.session import Session
from stromboli.model.cluster import Dirty
from stromboli.model.job import Job
from stromboli.model.remedy import Why


class ResourceQuotas(Plugin):
    """Limits the jobs admitted to a namespace by its ResourceQuotas, without their scopes."""

    name = "resourcequota"

    def __init__(self, arguments: object, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self.quotas: dict[str, list[ResourceQuota]] = {}
        """By namespace, in order of name."""
        self.pending: dict[str, dict[str, Fraction]] = {}
        """What was admitted since the session opened, by namespace; only where there is a quota."""
        self._version = -1

    def opening(self, session: Session, dirty: Dirty) -> None:
        self.pending = {}
        objects = session.cluster.objects
        if dirty.everything or objects.version != self._version:
            self._version = objects.version
            self.quotas = {}
            for _, quota in sorted(objects.quotas.items()):
                self.quotas.setdefault(quota.namespace, []).append(quota)

    def job_enqueueable(self, job: Job) -> Vote:
        wanted = _minimum(job)
        for quota in self.quotas.get(job.namespace, ()):
            if exceeded := self._exceeded(quota, wanted):
                self._report(job, quota, wanted, exceeded)
                return Vote.REJECT
        return Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        if job.namespace in self.quotas:
            pending = self.pending.setdefault(job.namespace, {})
            for name, quantity in _minimum(job).items():
                pending[name] = pending.get(name, Fraction()) + exact(quantity)

    def _exceeded(self, quota: ResourceQuota, wanted: Mapping[str, Quantity]) -> list[str]:
        """The names of which the quota allows less than would be used."""
        used, pending = quota.status.used, self.pending.get(quota.namespace, {})
        return [
            name
            for name, hard in quota.status.hard.items()
            if name in wanted
            and exact(used.get(name, 0)) + pending.get(name, 0) + exact(wanted[name]) > exact(hard)
        ]

    def _report(
        self, job: Job, quota: ResourceQuota, wanted: Mapping[str, Quantity], exceeded: list[str]
    ) -> None:
        text = names.NAMESPACE_QUOTA_INSUFFICIENT.format(
            requested=_listed(wanted, exceeded),
            used=_listed(quota.status.used, exceeded),
            limited=_listed(quota.status.hard, exceeded),
        )
        short = ", ".join(sorted(exceeded))
        summary = (
            f'resource quota insufficient: quota "{quota.name}" of its namespace has too little {short} left'
        )
        remedy = "wait until pods of the namespace end, or raise that quota"
        why = Why(text, remedy, "NamespaceQuotaInsufficient", summary, names.NAMESPACE_QUOTA_TITLE)
        self.session.refuse(job, self.name, why)


def _minimum(job: Job) -> Mapping[str, Quantity]:
    """What the PodGroup requests, as written: quotas also limit what the scheduler does not count."""
    return (job.group.spec.min_resources if job.group else None) or {}


def _listed(quantities: Mapping[str, Quantity], chosen: Iterable[str]) -> str:
    return ",".join(f"{name}={quantities[name]}" for name in sorted(chosen) if name in quantities)
