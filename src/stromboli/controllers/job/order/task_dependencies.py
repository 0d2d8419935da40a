"""Tasks that depend on other tasks of their job (spec 06 2.12)."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.api.types.volcano_job import Job, TaskSpec


class StartedTasks:
    """Which tasks of a job have as many ready pods as others wait for.

    `ready` says how many pods of each task, in the order of tasks, are or were ready.
    """

    def __init__(self, job: Job, ready: Sequence[int]) -> None:
        self._ready = ready
        self._tasks = {
            task.name: (position, task) for position, task in reversed([*enumerate(job.spec.tasks)])
        }

    def __contains__(self, name: str) -> bool:
        position, task = self._tasks.get(name, (0, None))
        if task is None or task.min_available is None:
            return True
        return self._ready[position] >= task.min_available


def may_start(task: TaskSpec, started: StartedTasks) -> bool:
    """Whether the tasks that a task depends on have started."""
    if task.depends_on is None or not task.depends_on.name:
        return True
    ready = (before in started for before in task.depends_on.name)
    several = len(task.depends_on.name) > 1
    return any(ready) if several and task.depends_on.iteration == "any" else all(ready)
