"""Tasks that depend on other tasks of their job (spec 06 2.12)."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.api import names
from stromboli.api.types.volcano_job import Job, JobPod, TaskSpec
from stromboli.controllers.job.job_pod_counts import phase_of
from stromboli.controllers.job.job_pods import Member


def may_start(job: Job, task: TaskSpec, pods: Mapping[str, JobPod]) -> bool:
    """Whether the tasks that a task depends on have started; `pods` are those of the job, by name."""
    if task.depends_on is None or not task.depends_on.name:
        return True
    ready = (_has_started(job, before, pods) for before in task.depends_on.name)
    several = len(task.depends_on.name) > 1
    return any(ready) if several and task.depends_on.iteration == "any" else all(ready)


def _has_started(job: Job, name: str, pods: Mapping[str, JobPod]) -> bool:
    task = next((task for task in job.spec.tasks if task.name == name), None)
    if task is None or task.min_available is None:
        return True
    members = (pods.get(Member(job, task, index).name) for index in range(task.replicas))
    return sum(pod is not None and _has_become_ready(pod) for pod in members) >= task.min_available


def _has_become_ready(pod: JobPod) -> bool:
    if phase_of(pod) == names.POD_RUNNING:
        return all(run.ready for run in pod.status.container_statuses)
    return phase_of(pod) == names.POD_SUCCEEDED
