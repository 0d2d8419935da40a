"""What the job controller keeps in memory about a job between two syncs."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

from stromboli.api.types.volcano_job import Job
from stromboli.controllers.api_writer import FINAL_PAUSE
from stromboli.controllers.job.expectations import Expectations
from stromboli.controllers.job.observed_events import ReconcileCache
from stromboli.controllers.job.observed_state import Obstacle


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
    busy: float = 0.0
    """Seconds that the last reconcile of a large job took."""
    rests_until: float = 0.0
    """When a large job may be reconciled again, by the steady clock."""
    obstacle: Obstacle | None = None
    """What keeps the job from the objects that it needs."""
    failures: int = 0
    """How often in a row it was met."""
    rejected_status: Rejection | None = None
    rejected_objects: Rejection | None = None

    def rest(self, factor: float, longest: float) -> None:
        """Leave the CPU to other jobs for a multiple of what the last reconcile took."""
        if self.busy:
            self.rests_until, self.busy = monotonic() + min(factor * self.busy, longest), 0.0

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


def _template(job: Job) -> object:
    """What the objects of a job are made of."""
    return job.spec, job.metadata.labels, job.metadata.annotations
