"""What a pod shows that decisions about its job depend on, and counts of pods by phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.pods import FINISHED, PHASES
from stromboli.api.types.controlled_pod import ContainerStatus, Pod, PodStatus
from stromboli.api.types.volcano_job import Job, TaskState

_UNFINISHED = frozenset({names.POD_PENDING, names.POD_RUNNING})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Counts:
    """Pods by phase; those being deleted are `terminating` and nothing else."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    tasks: dict[str, Counter[str]] = field(default_factory=dict)
    """Phases by task, without what is being deleted."""

    @property
    def started(self) -> int:
        """Pods that run or ran."""
        return self.running + self.succeeded + self.failed

    @property
    def by_task(self) -> dict[str, TaskState]:
        return {task: TaskState(dict(sorted(phases.items()))) for task, phases in self.tasks.items()}


class PodFacts(NamedTuple):
    """All that a reconcile reads of a pod, as far as it can change."""

    uid: str
    task: str
    phase: str
    """As the pod shows it."""
    terminating: bool
    own: bool
    """Whether the job has its task."""
    wanted: bool
    """Whether the job should have a pod of its name."""
    current: bool
    """Whether what happens to it is an event of the job's current version."""
    old: bool
    """Whether it was created for an earlier version of the job."""
    out_of_sync: bool
    ready: bool
    restarts: int
    exit_code: int
    ended: datetime | None
    """When it ended, if it has."""
    held: bool
    """Whether it waits at the gate for other jobs."""
    lost_at: datetime | None
    """When the pod was lost that it replaces, as long as it is pending."""


def facts_of(job: Job, pod: Pod, tasks: Container[str], members: Container[str]) -> PodFacts:
    """The facts of a pod of a job that has these tasks, and should have pods of the names in `members`."""
    phase, annotations, metadata = pod.status.phase, pod.metadata.annotations, pod.metadata
    task, old = annotations.get(names.TASK_SPEC, ""), version_of(pod) < job.status.version
    out_of_sync = names.OUT_OF_SYNC in annotations
    current = not old and not out_of_sync
    runs = _runs(pod.status)
    return PodFacts(
        uid=metadata.uid,
        task=task,
        phase=phase,
        terminating=metadata.deletion_timestamp is not None,
        own=task in tasks,
        wanted=metadata.name in members,
        current=current,
        old=old,
        out_of_sync=out_of_sync,
        ready=has_become_ready(pod),
        restarts=sum([run.restart_count for run in runs]) if runs and phase in _UNFINISHED else 0,
        exit_code=exit_code(pod) if phase == names.POD_FAILED else 0,
        ended=ended_at(pod) if phase in FINISHED else None,
        held=names.AFTER in annotations and phase not in FINISHED,
        lost_at=_time(annotations[names.LOST_AT])
        if names.LOST_AT in annotations and current and phase == names.POD_PENDING
        else None,
    )


def phase_of(pod: Pod) -> str:
    """The phase of a pod: Pending if it has none yet, Unknown if it is none of Kubernetes' other ones."""
    return known_phase(pod.status.phase)


def known_phase(shown: str) -> str:
    """The same of the phase that a pod shows."""
    phase = shown or names.POD_PENDING
    return phase if phase in PHASES else names.POD_UNKNOWN


def version_of(pod: Pod) -> int:
    """The version of the job for which a pod was created; -1 if it is not annotated."""
    text = pod.metadata.annotations.get(names.JOB_VERSION, "")
    return int(text) if text.isdecimal() and len(text) < 10 else -1


def is_annotated(pod: Pod) -> bool:
    """Whether a pod says which job, task and version it was made for."""
    annotations = pod.metadata.annotations
    return names.JOB_NAME in annotations and names.TASK_SPEC in annotations and version_of(pod) >= 0


def task_of(pod: Pod) -> str:
    return pod.metadata.annotations.get(names.TASK_SPEC, "")


def partition_of(pod: Pod) -> str:
    return pod.metadata.labels.get(names.PARTITION_ID, "")


def has_become_ready(pod: Pod) -> bool:
    """Whether a pod is or was ready, as tasks count it that depend on its task."""
    if pod.status.phase == names.POD_RUNNING:
        return all(run.ready for run in pod.status.container_statuses)
    return pod.status.phase == names.POD_SUCCEEDED


def exit_code(pod: Pod) -> int:
    """The exit code of the first container, 0 if there is none."""
    for run in pod.status.container_statuses[:1]:
        if run.state.terminated is not None:
            return run.state.terminated.exit_code
    return 0


def ended_at(pod: Pod) -> datetime:
    """When a pod ended: the latest time in its status."""
    times = [pod.metadata.creation_timestamp, pod.status.start_time]
    times += [condition.last_transition_time for condition in pod.status.conditions]
    times += [run.state.terminated.finished_at for run in _runs(pod.status) if run.state.terminated]
    return max((time for time in times if time is not None), default=_EPOCH)


def restarted_at(pod: Pod) -> datetime | None:
    """When a container of a pod ended last, to be restarted."""
    runs = _runs(pod.status)
    times = [run.last_state.terminated.finished_at for run in runs if run.last_state.terminated is not None]
    return max((time for time in times if time is not None), default=None)


def _runs(status: PodStatus) -> tuple[ContainerStatus, ...]:
    return status.init_container_statuses + status.container_statuses


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None
