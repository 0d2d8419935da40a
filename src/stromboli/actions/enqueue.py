"""Let waiting jobs into their queues, as far as the policy allows (spec 02 2)."""

from stromboli.api import names
from stromboli.engine.catalog import action
from stromboli.engine.session import Session


@action("enqueue")
def enqueue(session: Session) -> None:
    """Let waiting jobs in: one job per turn of its queue; a refused one does not hold up the next."""
    for _, job in session.backlog(list(session.cluster.waiting)).turns():
        with session.attempt(job):
            if job.min_resources is None or session.rules.job_enqueueable(job):
                session.rules.job_enqueued(job)
                session.set_phase(job, names.GROUP_INQUEUE)
