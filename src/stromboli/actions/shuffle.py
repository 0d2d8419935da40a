"""Evict running tasks that plugins want gone, wherever they are (spec 02 8)."""

from __future__ import annotations

from typing import Any

from stromboli.api import names
from stromboli.engine.blame import Attempt
from stromboli.engine.catalog import action
from stromboli.engine.session import Session
from stromboli.engine.transaction import EvictionNote
from stromboli.model.status import Status
from stromboli.model.task import Task


@action("shuffle")
def shuffle(session: Session) -> None:
    """Evict the running tasks that plugins name, as far as others let them go; gangs are not asked."""
    if session.rules.has("victim_tasks"):
        for task, chosen_by in _victims(session).items():
            with session.statement() as trial:
                if trial.evict(task, EvictionNote(names.EVICTED_BY_SHUFFLE, chosen_by=chosen_by)) is None:
                    trial.commit()


def _victims(session: Session) -> dict[Task, str]:
    """Who goes, and who chose it; nobody if a plugin fails."""

    def rank(task: Task) -> tuple[Any, ...]:
        job = session.job_key(task.job) if task.job is not None else ()
        return (job, session.task_key(task))

    with Attempt(session, ()):
        running = [task for job in session.jobs() for task in job.by_status[Status.RUNNING]]
        named = session.rules.victim_tasks(running)
        victims = [task for task in named if task.status is Status.RUNNING]
        last_first = sorted(victims, key=rank, reverse=True)
        return {task: named[task] for task in session.rules.victim_limits(last_first)}
    return {}
