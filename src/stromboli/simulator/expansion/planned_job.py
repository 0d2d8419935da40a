"""A Volcano Job in a plan: the pods that it lacks, task by task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from stromboli.api import names
from stromboli.api.types.controlled_pod import Pod, PodMeta, PodStatus
from stromboli.api.types.volcano_job import Job, Manifest, TaskSpec
from stromboli.controllers.job.job_pods import Member, pod_of
from stromboli.controllers.job.order.task_dependencies import StartedTasks, may_start
from stromboli.controllers.job.plugins.job_plugin import JobPlugin
from stromboli.controllers.job.pod_facts import has_become_ready
from stromboli.controllers.job.succeeded_pods import recorded_indexes


@dataclass(slots=True)
class PlannedJob:
    """A Job whose pods are part of the plan."""

    job: Job
    where: str
    group: str
    """The name of its PodGroup: that of the job, unless it has one already."""
    plugins: tuple[JobPlugin, ...]
    manifests: list[Manifest] = field(default_factory=list)
    """The PodGroup and the claims that it lacks."""
    made: set[str] = field(default_factory=set)

    @property
    def subject(self) -> str:
        return f"Job {self.job.key}"

    @property
    def created(self) -> datetime | None:
        return self.job.metadata.creation_timestamp

    @property
    def unfinished(self) -> bool:
        """Whether a task waits for others, so that its pods may not be made yet."""
        dependent = [task for task in self.job.spec.tasks if task.depends_on is not None]
        return any(member.name not in self.made for task in dependent for member in self._members(task))

    def due_pods(self, phase_of: Callable[[str], str | None]) -> Iterator[Manifest]:
        """The pods that do not exist, of tasks that may start."""
        pods = self._pods(phase_of)
        started = StartedTasks(self.job, self._ready(pods))
        for task in self.job.spec.tasks:
            if may_start(task, started):
                for member in self._members(task):
                    if member.name not in pods and member.name not in self.made:
                        self.made.add(member.name)
                        yield self._pod(member)

    def waiting(self, phase_of: Callable[[str], str | None]) -> Iterator[str]:
        """A sentence for each task whose pods are not made yet."""
        started = StartedTasks(self.job, self._ready(self._pods(phase_of)))
        for task in self.job.spec.tasks:
            if task.depends_on is not None and not may_start(task, started):
                either = " or " if task.depends_on.iteration == "any" else " and "
                yield (
                    f"{self.subject}: the pods of task {task.name} ({task.replicas}) are made once "
                    f"{either.join(task.depends_on.name)} runs (dependsOn)"
                )

    def _pods(self, phase_of: Callable[[str], str | None]) -> dict[str, Pod]:
        """The pods that exist, and those that succeeded and were deleted."""
        pods = {}
        for task, succeeded in zip(self.job.spec.tasks, recorded_indexes(self.job), strict=True):
            for member in self._members(task):
                before = names.POD_SUCCEEDED if succeeded >> member.index & 1 else None
                phase = phase_of(f"{self.job.namespace}/{member.name}") or before
                if phase is not None:
                    metadata = PodMeta(name=member.name, namespace=self.job.namespace)
                    pods[member.name] = Pod(metadata=metadata, status=PodStatus(phase=phase))
        return pods

    def _ready(self, pods: Mapping[str, Pod]) -> list[int]:
        """How many pods of each task are or were ready."""
        members = ([pods.get(member.name) for member in self._members(task)] for task in self.job.spec.tasks)
        return [sum(pod is not None and has_become_ready(pod) for pod in of_task) for of_task in members]

    def _members(self, task: TaskSpec) -> Iterator[Member]:
        return (Member(self.job, task, index) for index in range(task.replicas))

    def _pod(self, member: Member) -> Manifest:
        pod = pod_of(member)
        for plugin in self.plugins:
            plugin.dress(member, pod)
        pod["metadata"]["annotations"][names.GROUP_NAME] = self.group
        return pod
