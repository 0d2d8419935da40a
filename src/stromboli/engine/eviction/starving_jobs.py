"""The walk over starving jobs, and the one way in which evicting actions end (spec 02 5, 6, 7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stromboli.engine.eviction.eviction_options import Manners, spare
from stromboli.engine.statement import Statement
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.task import Task

EVICTED = "evicted"
"""Under which name the cluster remembers which jobs lost pods lately, and until when they rest."""

TryTask = Callable[[Statement, "Task"], bool]
"""Makes room for one task within a statement; whether it got some."""


def starving_jobs(session: Session) -> list[Job]:
    """Jobs that were let in, may be scheduled and are short of what they need."""
    return [job for job in list(session.cluster.backlog) if _starves(session, job)]


def _starves(session: Session, job: Job) -> bool:
    with session.guard(job):
        return (
            not job.waits_for_queue
            and session.rules.job_valid(job) is None
            and session.rules.job_starving(job)
        )
    return False


def wanting(session: Session, job: Job) -> list[Task]:
    """A job's pending tasks in order, save those that are held at a gate."""
    return sorted((task for task in job.by_status[Status.PENDING] if not task.gates), key=session.task_key)


def feed(session: Session, job: Job, try_task: TryTask, manners: Manners) -> None:
    """Make room for a job task by task while it starves; all of it stands only if the job can start with it."""
    if rests(session, job, manners):
        return
    with session.guard(job), session.statement() as trial:
        for task in wanting(session, job):
            if not session.rules.job_starving(job):
                break
            try_task(trial, task)
        if session.rules.job_pipelined(job):
            seal(session, trial, manners)


def seal(session: Session, trial: Statement, manners: Manners) -> None:
    """Let the evictions leave: spare who need not go, hold what was cleared for whom it was cleared.

    Where all the room is free as it is, nothing is promised: promised again in every cycle, it would never be given.
    """
    if manners.fewest_victims:
        spare(session, trial, manners.no_harm)
    anybody_went = bool(
        trial.evicted()
    )  # then the room that was free counts as much: all of it, or it was in vain
    promised = [change.task for change in trial.changes() if change.status is Status.PIPELINED]
    cleared = [task for task in promised if anybody_went or session.is_nominated(task)]
    if cleared or not manners.fewest_victims:
        for task in cleared:
            session.reserve(task, manners.hold)
        _let_rest(session, {victim.job for victim in trial.evicted() if victim.job is not None}, manners)
        trial.commit()


def rests(session: Session, job: Job, manners: Manners) -> bool:
    """Whether a job lost pods so lately that it evicts nobody itself: victims that come back start no circle."""
    return manners.hold > 0 and session.now < session.cluster.memory.get(EVICTED, {}).get(job.key, 0.0)


def _let_rest(session: Session, jobs: set[Job], manners: Manners) -> None:
    """Remember who lost pods, for as long as what they left is held."""
    if manners.hold > 0:
        memory = session.cluster.memory
        before = memory.get(EVICTED, {})
        lately = {key: until for key, until in before.items() if until > session.now}
        memory[EVICTED] = lately | {job.key: session.now + manners.hold for job in jobs}
        session.record(lambda: memory.update({EVICTED: before}), committed=True)
