"""Tasks that depend on other tasks of their job (spec 06 2.12)."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.api import names
from stromboli.api.types.volcano_job import Job, JobPod, TaskSpec
from stromboli.controllers.job.job_pod_counts import phase_of
from stromboli.controllers.job.job_pods import Member


class StartedTasks:
    """Which tasks of a job have as many ready pods as others wait for; each is looked at once.

    `pods` are those of the job, by name.
    """

    def __init__(self, job: Job, pods: Mapping[str, JobPod]) -> None:
        self._job = job
        self._pods = pods
        self._tasks = {task.name: task for task in reversed(job.spec.tasks)}
        self._known: dict[str, bool] = {}

    def __contains__(self, name: str) -> bool:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._has_started(name)
        return known

    def _has_started(self, name: str) -> bool:
        task = self._tasks.get(name)
        if task is None or task.min_available is None:
            return True
        members = (self._pods.get(Member(self._job, task, index).name) for index in range(task.replicas))
        return sum(pod is not None and _has_become_ready(pod) for pod in members) >= task.min_available


def may_start(task: TaskSpec, started: StartedTasks) -> bool:
    """Whether the tasks that a task depends on have started."""
    if task.depends_on is None or not task.depends_on.name:
        return True
    ready = (before in started for before in task.depends_on.name)
    several = len(task.depends_on.name) > 1
    return any(ready) if several and task.depends_on.iteration == "any" else all(ready)


def _has_become_ready(pod: JobPod) -> bool:
    if phase_of(pod) == names.POD_RUNNING:
        return all(run.ready for run in pod.status.container_statuses)
    return phase_of(pod) == names.POD_SUCCEEDED
