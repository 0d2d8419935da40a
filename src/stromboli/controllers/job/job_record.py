"""What the job controller keeps in memory about a job between two syncs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import monotonic

from stromboli.api.types.volcano_job import Job
from stromboli.controllers.api_writer import FINAL_PAUSE
from stromboli.controllers.job.expectations import Expectations
from stromboli.controllers.job.observed_events import ReconcileCache
from stromboli.controllers.job.observed_state import ObservedState, Outcome
from stromboli.controllers.job.order.job_order import Obstacle
from stromboli.controllers.job.pod_facts import is_annotated
from stromboli.controllers.owner_references import controller_of
from stromboli.controllers.watched_kinds import Pod


@dataclass(frozen=True, slots=True)
class Rejection:
    """What the API server rejected, which it would reject again as long as the job is the same."""

    job: object
    """The part of the job that the rejected write followed from."""
    until: float
    """When it is tried again all the same, as rules of the cluster may have changed."""

    def holds(self, job: object, now: float) -> bool:
        return now < self.until and self.job == job


@dataclass(slots=True)
class JobRecord:
    """The memory of one job."""

    uid: str
    queue: str
    expectations: Expectations
    cache: ReconcileCache = field(default_factory=ReconcileCache)
    claims: set[str] = field(default_factory=set)
    status_written: float = field(default_factory=monotonic)
    """When the status was last written, or the job was first seen."""
    news: int = 0
    """How often something else than our own writes has changed what a reconcile observes."""
    obstacle: Obstacle | None = None
    """What keeps the job from the objects that it needs."""
    failures: int = 0
    """How often in a row it was met."""
    written: Job | None = None
    """The job as the last writes left it."""
    rejected_status: Rejection | None = None
    rejected_objects: Rejection | None = None

    def pod_changed(self, before: Pod | None, now: Pod | None) -> bool:
        """The store shows another state of a pod that names the job as its owner; whether that is news for a reconcile.

        Of a pod that was made for an earlier job of the same name, it is news that the name is free.
        """
        was, remains = (
            pod if pod is not None and is_pod_of(self.uid, pod) else None for pod in (before, now)
        )
        if was is None and remains is None:
            return now is None
        return self.expectations.pods.stored(was, remains)

    def events_recorded(self, outcome: Outcome) -> None:
        """The events of a reconcile are recorded, and not repeated when its writes fail and are tried again."""
        self.cache = replace(self.cache, recorded=outcome.cache.recorded)

    def carried_out(self, observed: ObservedState, outcome: Outcome) -> None:
        """All writes of a reconcile were executed."""
        self.cache = outcome.cache
        self.expectations.pods.carried_out(observed.gone)

    def reject_status(self, job: Job, now: float) -> None:
        self.rejected_status = Rejection(job.metadata.resource_version, now + FINAL_PAUSE)

    def reject_objects(self, job: Job, now: float) -> None:
        self.rejected_objects = Rejection(_template(job), now + FINAL_PAUSE)

    def status_is_rejected(self, job: Job, now: float) -> bool:
        rejection = self.rejected_status
        return rejection is not None and rejection.holds(job.metadata.resource_version, now)

    def objects_are_rejected(self, job: Job, now: float) -> bool:
        rejection = self.rejected_objects
        return rejection is not None and rejection.holds(_template(job), now)


def is_pod_of(uid: str, pod: Pod) -> bool:
    """Whether a pod is one that was made for the job of that uid."""
    owner = controller_of(pod)
    return owner is not None and owner.uid == uid and is_annotated(pod)


def content_of(job: Job) -> object:
    """All of a job that others than its controller change."""
    return job.metadata.uid, job.metadata.deletion_timestamp, _template(job)


def _template(job: Job) -> object:
    """What the objects of a job are made of."""
    return job.spec, job.metadata.labels, job.metadata.annotations
