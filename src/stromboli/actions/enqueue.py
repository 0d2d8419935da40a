"""Admit waiting jobs to their queues, as far as the policy allows (spec 02 2)."""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.api import names
from stromboli.engine.catalog import action
from stromboli.engine.eviction.urgent_admission import UrgentAdmission
from stromboli.engine.session import Session
from stromboli.model.amounts import lacking
from stromboli.model.job import Job
from stromboli.policy.arguments import arg


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of the enqueue action."""

    urgent_through: bool = arg(
        "letUrgentThrough",
        False,
        "Admit a job that could start by preemption or reclaim, even while the cluster is full.",
    )
    reserve_minimum: bool | None = arg(
        "reserveMinimum",
        None,
        "Reserve the minimum of admitted jobs: a running job below its minimum comes before new jobs of equal priority,"
        " what it lacks is not given to new jobs, and a job without minResources needs what its pods request."
        " Default: the value of letUrgentThrough.",
    )

    @property
    def reserves_minimum(self) -> bool:
        """Whether the minimum of admitted jobs is reserved."""
        return self.urgent_through if self.reserve_minimum is None else self.reserve_minimum


@action("enqueue", Arguments, for_waiting=True)
def enqueue(session: Session) -> None:
    """Admit pending jobs, one per turn of its queue; a rejected job does not block the next one."""
    arguments: Arguments = session.arguments("enqueue")
    urgent = None
    if arguments.reserves_minimum and session.cluster.waiting:
        urgent = UrgentAdmission(session, arguments.urgent_through)
    admits_early = session.rules.has("admitted_early")
    for _, job in session.jobs_by_queue(list(session.cluster.waiting)).turns():
        with session.guard(job):
            if session.requirements.unmet(job):
                continue
            if session.needs.runs_short(job):  # it was admitted before, and what it lacks is reserved for it
                session.set_phase(job, names.GROUP_INQUEUE)
                continue
            decided = len(session.journal.decisions)
            admitted = _may_enter(session, job)
            if not admitted and urgent is not None and urgent.admit(job):
                admitted = True
                session.reports.retract_refusals(job, decided)
            if admitted or (admits_early and _may_enter_early(session, job)):
                session.rules.job_enqueued(job)
                session.set_phase(job, names.GROUP_INQUEUE)


def _may_enter(session: Session, job: Job) -> bool:
    return session.needs.least(job) is None or session.rules.job_enqueueable(job)


def _may_enter_early(session: Session, job: Job) -> bool:
    """Whether only capacity in use keeps a job out of its queue, and a plugin admits it all the same."""
    queue, least = job.queue, job.min_resources or {}
    if queue is None or not queue.open or job in session.objections or not session.rules.admitted_early(job):
        return False
    limits = [limit.raised_to or limit.most for limit in session.rules.queue_limits(queue)]
    if lacking(least, session.total, least) or any(
        least[dim] > limit[dim] for limit in limits for dim in least if dim in limit
    ):
        return False
    return session.rules.enqueueable_beside_limits(job)
