"""Move running jobs aside for a gang that would fit if they sat elsewhere; whoever moves has a place to go to."""

from __future__ import annotations

from stromboli.engine.catalog import action
from stromboli.engine.consolidation.consolidation_commit import carry_out
from stromboli.engine.consolidation.consolidation_options import ConsolidationOptions
from stromboli.engine.consolidation.consolidation_search import ConsolidationSearch, Tries
from stromboli.engine.consolidation.failed_searches import FailedSearches
from stromboli.engine.consolidation.movable_tasks import MovableTasks
from stromboli.engine.eviction.eviction_commit import lost_pods_lately
from stromboli.engine.eviction.starving_jobs import pending_ungated, starving_jobs
from stromboli.engine.session import Session
from stromboli.model.job import Job


@action("consolidate", ConsolidationOptions)
def consolidate(session: Session) -> None:
    """For each starving gang: the cheapest moves of other jobs with which it fits, all of them or none."""
    options: ConsolidationOptions = session.arguments("consolidate")
    starving = [job for job in starving_jobs(session) if _may_benefit(session, job, options)]
    if not starving and not session.cluster.memory.get("consolidate"):
        return
    failures = FailedSearches(session)
    movable, tries = MovableTasks(session, options), Tries()
    for jobs in failures.untried_first(starving):
        for _, waiting in session.jobs_by_queue(jobs).visits(skip=session.rules.overused):
            for job in waiting:
                with session.guard(job):
                    plan = ConsolidationSearch(session, options, movable, tries, job).plan()
                    if plan is None:
                        if tries.left > 0:  # else it was not searched for to the end
                            failures.add(job)
                    elif plan.moves and carry_out(session, plan, options):
                        movable.note_moved(move.task for move in plan.moves)
    failures.remember()


def _may_benefit(session: Session, job: Job, options: ConsolidationOptions) -> bool:
    """Whether pods may be moved for a job: not for one that was moved itself just now, nor against its own will."""
    with session.guard(job):
        tasks, queue = pending_ungated(session, job), job.queue
        return (
            queue is not None
            and bool(tasks)
            and not session.unmet(job)
            and not lost_pods_lately(session, job, options)
            and all(task.may_preempt for task in tasks)
            and session.rules.allocatable(queue, tasks[0])
        )
    return False
