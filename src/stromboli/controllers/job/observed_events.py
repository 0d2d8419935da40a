"""The lifecycle events that the observed state of a job shows, each with the time at which it happened.

The cluster does not show deleted pods, so each reconcile keeps the pods that it observed for the next one.
The replacement of a lost pod is annotated with the time of the loss, so that a delayed action survives a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.types.scheduling import PodGroup
from stromboli.api.types.volcano_job import ContainerRun, Job, JobPod, JobPodStatus, JobSpec, TaskSpec
from stromboli.controllers.job import lifecycle_policies
from stromboli.controllers.job.lifecycle_policies import LifecycleEvent

DEFAULT_RETRIES = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ObservedPod(NamedTuple):
    """What is kept of a pod for the next reconcile."""

    uid: str
    task: str
    version: int
    partition: str


@dataclass(frozen=True, slots=True)
class ReconcileCache:
    """What one reconcile keeps for the next. It may be lost at any time; deletions of pods in between go unnoticed."""

    pods: Mapping[str, ObservedPod] = field(default_factory=dict)
    lost: Mapping[str, LifecycleEvent] = field(default_factory=dict)
    """Pods that were deleted by others, as long as an action because of that is delayed."""
    since: Mapping[tuple[str, str], datetime] = field(default_factory=dict)
    """Since when a task fails or the group is unknown, as the cluster shows only the last time."""
    recorded: frozenset[tuple[str, str]] = frozenset()
    """Events that are recorded already, by reason and message."""
    attached: str = ""
    """The digest of the plugins' attachments, once they exist."""
    version: int = 0
    """The version of the job that this is about."""
    synced_group: tuple[str, str, JobSpec] | None = None
    """Uid and resource version of the group, and the job spec that it was last compared with."""


def version_of(pod: JobPod) -> int:
    """The version of the job for which a pod was created; -1 if it is not annotated."""
    text = pod.metadata.annotations.get(names.JOB_VERSION, "")
    return int(text) if text.isdecimal() and len(text) < 10 else -1


def is_out_of_sync(pod: JobPod) -> bool:
    """Whether the controller itself deletes this pod, so that its end is no lifecycle event."""
    return names.OUT_OF_SYNC in pod.metadata.annotations


def task_of(pod: JobPod) -> str:
    return pod.metadata.annotations.get(names.TASK_SPEC, "")


def partition_of(pod: JobPod) -> str:
    return pod.metadata.labels.get(names.PARTITION_ID, "")


def counts_for(job: Job, pod: JobPod) -> bool:
    """Whether what happens to a pod is an event of the job's current version."""
    return version_of(pod) >= job.status.version and not is_out_of_sync(pod)


def observed_pods(job: Job, pods: Iterable[JobPod], deleting: frozenset[str]) -> dict[str, ObservedPod]:
    """The pods whose deletion by others would be an event; not those that we delete."""
    return {
        pod.name: ObservedPod(pod.metadata.uid, task_of(pod), version_of(pod), partition_of(pod))
        for pod in pods
        if pod.name not in deleting and counts_for(job, pod)
    }


def lost_pods(
    job: Job, pods: Mapping[str, JobPod], wanted: Set[str], cache: ReconcileCache, now: datetime
) -> dict[str, LifecycleEvent]:
    """Pods that should exist and were deleted by others: since the last reconcile, earlier, or before a restart."""
    delayed = cache.lost if cache.version == job.status.version else {}
    lost: dict[str, LifecycleEvent] = {}
    for name, seen in cache.pods.items():
        pod = pods.get(name)
        gone = pod is None or pod.metadata.uid != seen.uid
        if gone and name in wanted and seen.version >= job.status.version:
            lost[name] = _lost_pod(name, seen.task, seen.partition, now)
    for name in wanted if delayed else [name for name in pods if name in wanted]:
        known = delayed.get(name)
        pod = pods.get(name)
        if known is not None and (pod is None or pod.status.phase == names.POD_PENDING):
            lost.setdefault(name, known)
        elif pod is not None and pod.status.phase == names.POD_PENDING and counts_for(job, pod):
            since = _time(pod.metadata.annotations.get(names.LOST_AT, ""))
            if since is not None:
                lost.setdefault(name, _lost_pod(name, task_of(pod), partition_of(pod), since))
    return lost


def _lost_pod(name: str, task: str, partition: str, since: datetime) -> LifecycleEvent:
    why = f"pod {name} was deleted"
    return LifecycleEvent(lifecycle_policies.POD_EVICTED, since, task, name, partition, why=why)


def lifecycle_events(
    job: Job, pods: Mapping[str, JobPod], group: PodGroup | None, cache: ReconcileCache, now: datetime
) -> Iterator[LifecycleEvent]:
    """All other events, in a fixed order: the first that leads to an action counts."""
    current = [pod for _, pod in sorted(pods.items()) if counts_for(job, pod)]
    yield from sorted(map(_failure, (pod for pod in current if pod.status.phase == names.POD_FAILED)))
    current_by_task, all_by_task = _by_task(current), _by_task(pods.values())
    for task in job.spec.tasks:
        own = current_by_task.get(task.name)
        if own:
            yield from _task_events(task, own, all_by_task[task.name], cache, now)
    if group is not None and group.status.phase == names.GROUP_UNKNOWN:
        since = cache.since.get((lifecycle_policies.UNKNOWN, "")) or _group_time(group, now)
        yield LifecycleEvent(
            lifecycle_policies.UNKNOWN, since, why="some pods of the group are lost and cannot be replaced"
        )
    for pod in current:
        if pod.status.phase == names.POD_PENDING and pod.metadata.deletion_timestamp is None:
            since = pod.metadata.creation_timestamp or _EPOCH
            yield _pod_event(lifecycle_policies.POD_PENDING, pod, since, f"pod {pod.name} is pending")


def _by_task(pods: Iterable[JobPod]) -> dict[str, list[JobPod]]:
    by_task: dict[str, list[JobPod]] = {}
    for pod in pods:
        by_task.setdefault(task_of(pod), []).append(pod)
    return by_task


def _pod_event(event: str, pod: JobPod, since: datetime, why: str, exit_code: int = 0) -> LifecycleEvent:
    return LifecycleEvent(event, since, task_of(pod), pod.name, partition_of(pod), exit_code, why)


def _failure(pod: JobPod) -> LifecycleEvent:
    code = exit_code(pod)
    why = f"pod {pod.name} failed with exit code {code}" if code else f"pod {pod.name} failed"
    return _pod_event(lifecycle_policies.POD_FAILED, pod, ended_at(pod), why, code)


def _task_events(
    task: TaskSpec, own: list[JobPod], of_task: list[JobPod], cache: ReconcileCache, now: datetime
) -> Iterator[LifecycleEvent]:
    """Those of a task: `own` are its pods of the job's current version, `of_task` those of all versions."""
    restarts = _restarts(own)
    allowed = task.max_retry or DEFAULT_RETRIES
    if allowed > 0 and task.replicas > 0 and restarts >= allowed:
        last = max(own, key=lambda pod: (_restarts([pod]), pod.name))
        since = cache.since.get((lifecycle_policies.TASK_FAILED, task.name)) or _last_restart(own, now)
        why = f"containers of task {task.name} were restarted {restarts} times"
        yield _pod_event(lifecycle_policies.TASK_FAILED, last, since, why)
    done = [pod for pod in of_task if pod.status.phase == names.POD_SUCCEEDED]
    latest = [pod for pod in own if pod.status.phase == names.POD_SUCCEEDED]
    if task.replicas > 0 and len(done) >= task.replicas and latest:
        last = max(latest, key=lambda pod: (ended_at(pod), pod.name))
        why = f"task {task.name} is completed"
        yield _pod_event(lifecycle_policies.TASK_COMPLETED, last, ended_at(last), why)


def _restarts(pods: Iterable[JobPod]) -> int:
    """How often containers were restarted in pods that have not ended."""
    live = (pod.status for pod in pods if pod.status.phase in (names.POD_PENDING, names.POD_RUNNING))
    return sum(run.restart_count for status in live for run in _runs(status))


def _runs(status: JobPodStatus) -> tuple[ContainerRun, ...]:
    return status.init_container_statuses + status.container_statuses


def exit_code(pod: JobPod) -> int:
    """The exit code of the first container, 0 if there is none."""
    for run in pod.status.container_statuses[:1]:
        if run.state.terminated is not None:
            return run.state.terminated.exit_code
    return 0


def ended_at(pod: JobPod) -> datetime:
    """When a pod ended: the latest time in its status."""
    times = [pod.metadata.creation_timestamp, pod.status.start_time]
    times += [condition.last_transition_time for condition in pod.status.conditions]
    times += [run.state.terminated.finished_at for run in _runs(pod.status) if run.state.terminated]
    return max((time for time in times if time is not None), default=_EPOCH)


def _last_restart(pods: Iterable[JobPod], now: datetime) -> datetime:
    times = [
        run.last_state.terminated.finished_at
        for pod in pods
        for run in _runs(pod.status)
        if run.last_state.terminated is not None
    ]
    return max((time for time in times if time is not None), default=now)


def _group_time(group: PodGroup, now: datetime) -> datetime:
    times = [condition.last_transition_time for condition in group.status.conditions]
    return max((time for time in times if time is not None), default=now)


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None
