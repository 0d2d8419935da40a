"""Evict running tasks that plugins name, on any node (spec 02 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, overload

from stromboli.engine.catalog import action
from stromboli.engine.plugin_failures import FailureGuard
from stromboli.engine.session import Session
from stromboli.engine.transaction import EvictionReason
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task


@action("shuffle", evicts_by="victim_limits")
def shuffle(session: Session) -> None:
    """Evict the running tasks that plugins select, unless other plugins veto it.

    A native group that may only be disrupted as a whole is evicted if all of it is selected.
    """
    if session.rules.has("victim_tasks"):
        for task, chosen_by in _victims(session).items():
            with session.statement() as trial:
                if trial.evict(task, EvictionReason(session.action, chosen_by=chosen_by)) is None:
                    trial.commit()


def _victims(session: Session) -> dict[Task, str]:
    """The victims, and which plugin named each; none if a plugin fails."""

    def rank(task: Task) -> tuple[Any, ...]:
        job = session.job_key(task.job) if task.job is not None else ()
        return (job, session.task_key(task))

    with FailureGuard(session, ()):
        named = session.rules.victim_tasks(RunningTasks(session))
        victims = [task for task in named if task.status is Status.RUNNING]
        allowed = session.rules.victim_limits(sorted(victims, key=rank, reverse=True))
        victims_of = Counter(task.job for task in allowed)
        return {task: named[task] for task in allowed if not _breaks_group(task.job, victims_of)}
    return {}


class RunningTasks(Sequence[Task]):
    """All running tasks, listed when a plugin first looks at them: in most cycles none does."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @cached_property
    def _tasks(self) -> list[Task]:
        return [task for job in self._session.jobs() for task in job.by_status[Status.RUNNING]]

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | list[Task]:
        return self._tasks[index]

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)


def _breaks_group(job: Job | None, victims_of: Counter[Job | None]) -> bool:
    """Whether a group that may only be evicted as a whole would lose a part of its tasks."""
    return job is not None and job.disrupted_as_group and victims_of[job] < job.allocated_count
