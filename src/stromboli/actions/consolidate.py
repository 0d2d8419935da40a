"""Move running jobs for a gang that would fit if they ran elsewhere; every moved pod gets another node."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.engine.catalog import action
from stromboli.engine.consolidation.consolidation_options import ConsolidationOptions
from stromboli.engine.consolidation.consolidation_plan import carry_out
from stromboli.engine.consolidation.consolidation_search import ConsolidationSearch, Tries
from stromboli.engine.consolidation.movable_tasks import MovableTasks
from stromboli.engine.eviction.eviction_commit import lost_pods_lately
from stromboli.engine.eviction.starving_jobs import pending_ungated, starving_jobs
from stromboli.engine.session import Session
from stromboli.model.job import Job

MEMORY = "consolidate"
"""The key of the cluster's memory under which failed searches are kept."""
RETRY_AFTER = 60.0
"""Seconds after which a search is repeated though no number changed: run times and rests may be over by then."""


@action("consolidate", ConsolidationOptions, evicts_by="unified_evictable", for_waiting=True)
def consolidate(session: Session) -> None:
    """Move other jobs to other nodes so that a starving gang fits, at the lowest cost, all or nothing."""
    options: ConsolidationOptions = session.arguments("consolidate")
    starving = [job for job in starving_jobs(session) if _may_benefit(session, job, options)]
    if not starving and not session.cluster.memory.get(MEMORY):
        return
    failures = FailedSearches(session)
    movable, tries = MovableTasks(session, options), Tries()
    for jobs in failures.untried_first(starving):
        for _, waiting in session.jobs_by_queue(jobs).visits(skip=session.rules.overused):
            for job in waiting:
                with session.guard(job):
                    plan = ConsolidationSearch(session, options, movable, tries, job).plan()
                    if plan is None:
                        if tries.left > 0:  # else the search was not finished
                            failures.add(job)
                    elif plan.moves and carry_out(session, plan, options):
                        movable.note_moved(move.task for move in plan.moves)
    failures.remember()


def _may_benefit(session: Session, job: Job, options: ConsolidationOptions) -> bool:
    """Whether pods may be moved for a job: not if it lost pods recently itself, nor if it may not preempt."""
    with session.guard(job):
        tasks, queue = pending_ungated(session, job), job.queue
        return (
            queue is not None
            and bool(tasks)
            and not session.requirements.unmet(job)
            and not lost_pods_lately(session, job, options)
            and all(task.may_preempt for task in tasks)
            and session.rules.allocatable(queue, tasks[0])
        )
    return False


class FailedSearches:
    """What nodes held when the search for each gang last failed, and when that was.

    A search that failed is not repeated while nothing changed that could make a difference.
    """

    def __init__(self, session: Session):
        self._session = session
        self._before: dict[str, tuple[int, float]] = session.cluster.memory.get(MEMORY, {})
        self._failed: dict[str, tuple[int, float]] = {}
        columns = session.cluster.columns
        self._state = hash((columns.layout, columns.objects, columns.amounts.tobytes()))

    def untried_first(self, jobs: Iterable[Job]) -> tuple[list[Job], list[Job]]:
        """The jobs worth a search in two parts: those for which none failed before, then the others."""
        fresh: list[Job] = []
        again: list[Job] = []
        for job in jobs:
            key = job.key
            if key not in self._before:
                fresh.append(job)
            elif self._is_current(job):
                self._failed[key] = self._before[key]
            else:
                again.append(job)
        return fresh, again

    def _is_current(self, job: Job) -> bool:
        state, when = self._before[job.key]
        return state == self._state_for(job) and not self._session.has_come(when + RETRY_AFTER)

    def _state_for(self, job: Job) -> int:
        return hash((self._state, tuple(job.counts), job.priority))

    def add(self, job: Job) -> None:
        """The search for a job failed."""
        self._failed[job.key] = (self._state_for(job), self._session.now)

    def remember(self) -> None:
        """Keep what failed for the next cycle."""
        memory = self._session.cluster.memory
        if self._failed != self._before:
            self._session.restore_if_lost(memory, MEMORY, self._before or None)
            memory[MEMORY] = self._failed
