"""The lifecycle events that the observed state of a job shows, each with the time at which it happened.

The cluster does not show deleted pods, so those that were observed and are gone are kept for the next reconcile.
The replacement of a lost pod is annotated with the time of the loss, so that a delayed action survives a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.scheduling import PodGroup, PodGroupSpec
from stromboli.api.types.volcano_job import Job, JobSpec
from stromboli.controllers.job import lifecycle_policies
from stromboli.controllers.job.lifecycle_policies import LifecycleEvent
from stromboli.controllers.job.pod_facts import (
    ended_at,
    exit_code,
    partition_of,
    restarted_at,
    task_of,
    version_of,
)
from stromboli.controllers.job.pod_summary import PodSummary

DEFAULT_RETRIES = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class GonePod(NamedTuple):
    """What is kept of a pod that an earlier reconcile observed, and that somebody else has deleted since."""

    uid: str
    task: str
    version: int
    partition: str
    succeeded: bool
    """Whether the pod had succeeded before it was deleted."""

    @classmethod
    def of(cls, pod: Pod) -> GonePod:
        succeeded = pod.status.phase == names.POD_SUCCEEDED and pod.metadata.deletion_timestamp is None
        return cls(pod.metadata.uid, task_of(pod), version_of(pod), partition_of(pod), succeeded)


def succeeded_pods(job: Job, gone: Mapping[str, GonePod]) -> Iterator[str]:
    """Yield the names of pods of the job's current version that had succeeded."""
    return (name for name, pod in gone.items() if pod.succeeded and pod.version >= job.status.version)


@dataclass(frozen=True, slots=True)
class ReconcileCache:
    """What one reconcile keeps for the next. It may be lost at any time."""

    lost: Mapping[str, LifecycleEvent] = field(default_factory=dict)
    """Pods that were deleted by others, as long as an action because of that is delayed."""
    since: Mapping[tuple[str, str], datetime] = field(default_factory=dict)
    """Since when a task fails, is completed or the group is unknown, as the cluster shows only the last time."""
    recorded: frozenset[tuple[str, str]] = frozenset()
    """Events that are recorded already, by reason and message."""
    attached: str = ""
    """The digest of the plugins' attachments, once they exist."""
    version: int = 0
    """The version of the job that this is about."""
    synced_group: tuple[str, PodGroupSpec, JobSpec] | None = None
    """Uid and spec of the group, and the job spec that it was last compared with."""
    checked: JobSpec | None = None
    """The spec of which nothing is too large."""


def lost_pods(
    job: Job, summary: PodSummary, gone: Mapping[str, GonePod], cache: ReconcileCache, now: datetime
) -> dict[str, LifecycleEvent]:
    """Pods that should exist and were deleted by others: since the last reconcile, earlier, or before a restart.

    The loss of a pod that succeeded is none.
    """
    lost: dict[str, LifecycleEvent] = {}
    for name, seen in gone.items():
        pod = summary.pods.get(name)
        is_gone = pod is None or pod.metadata.uid != seen.uid
        if is_gone and not seen.succeeded and summary.wants(name) and seen.version >= job.status.version:
            lost[name] = _lost_pod(name, seen.task, seen.partition, now)
    for name, event in (cache.lost if cache.version == job.status.version else {}).items():
        pod = summary.pods.get(name)
        if summary.wants(name) and (pod is None or pod.status.phase == names.POD_PENDING):
            lost.setdefault(name, event)
    for name, since in summary.lost_at.items():
        pod = summary.pods[name]
        lost.setdefault(name, _lost_pod(name, task_of(pod), partition_of(pod), since))
    return dict(sorted(lost.items()))


def _lost_pod(name: str, task: str, partition: str, since: datetime) -> LifecycleEvent:
    why = f"pod {name} was deleted"
    return LifecycleEvent(lifecycle_policies.POD_EVICTED, since, task, name, partition, why=why)


def lifecycle_events(
    job: Job,
    summary: PodSummary,
    group: PodGroup | None,
    cache: ReconcileCache,
    now: datetime,
    leads_to_action: Callable[[str, str, int], bool],
) -> Iterator[LifecycleEvent]:
    """All other events, in a fixed order: the first that leads to an action counts.

    Events of pods are left out, unread, if `leads_to_action` says of their kind, task and exit code that none follows.
    """
    failed = [
        pod
        for (task, code), chosen in summary.failed.items()
        if leads_to_action(lifecycle_policies.POD_FAILED, task, code)
        for pod in summary.named(chosen)
    ]
    yield from sorted(map(_failure, failed))
    for position in range(len(job.spec.tasks)):
        yield from _task_events(job, position, summary, cache, now, leads_to_action)
    if group is not None and group.status.phase == names.GROUP_UNKNOWN:
        since = cache.since.get((lifecycle_policies.UNKNOWN, "")) or _group_time(group, now)
        yield LifecycleEvent(
            lifecycle_policies.UNKNOWN, since, why="some pods of the group are lost and cannot be replaced"
        )
    pending = [
        chosen
        for task, chosen in summary.pending.items()
        if leads_to_action(lifecycle_policies.POD_PENDING, task, 0)
    ]
    for pod in summary.named(set[str]().union(*pending)):
        since = pod.metadata.creation_timestamp or _EPOCH
        yield _pod_event(lifecycle_policies.POD_PENDING, pod, since, f"pod {pod.name} is pending")


def _pod_event(event: str, pod: Pod, since: datetime, why: str, exit_code: int = 0) -> LifecycleEvent:
    return LifecycleEvent(event, since, task_of(pod), pod.name, partition_of(pod), exit_code, why)


def _failure(pod: Pod) -> LifecycleEvent:
    code = exit_code(pod)
    why = f"pod {pod.name} failed with exit code {code}" if code else f"pod {pod.name} failed"
    return _pod_event(lifecycle_policies.POD_FAILED, pod, ended_at(pod), why, code)


def _task_events(
    job: Job,
    position: int,
    summary: PodSummary,
    cache: ReconcileCache,
    now: datetime,
    leads_to_action: Callable[[str, str, int], bool],
) -> Iterator[LifecycleEvent]:
    """Those of a task. That it fails is told in any case, since the time at which that began is kept."""
    task = job.spec.tasks[position]
    restarted = summary.restarted.get(task.name) or {}
    restarts, allowed = sum(restarted.values()), task.max_retry or DEFAULT_RETRIES
    if allowed > 0 and task.replicas > 0 and restarts >= allowed:
        last = summary.pods[max(restarted, key=lambda name: (restarted[name], name))]
        known = cache.since.get((lifecycle_policies.TASK_FAILED, task.name))
        since = known or _last_restart(summary.current_of(task.name), now)
        why = f"containers of task {task.name} were restarted {restarts} times"
        yield _pod_event(lifecycle_policies.TASK_FAILED, last, since, why)
    done = [summary.pods[name] for name in summary.completed.get(task.name, ())]
    event, is_new = lifecycle_policies.TASK_COMPLETED, bool(done or summary.lost(position))
    if is_new and summary.has_completed(position) and leads_to_action(event, task.name, 0):
        why = f"task {task.name} is completed"
        if done:
            latest = max(done, key=lambda pod: (ended_at(pod), pod.name))
            yield _pod_event(event, latest, ended_at(latest), why)
        else:
            yield LifecycleEvent(event, cache.since.get((event, task.name), now), task.name, why=why)


def _last_restart(pods: Iterable[Pod], now: datetime) -> datetime:
    return max((time for pod in pods if (time := restarted_at(pod)) is not None), default=now)


def _group_time(group: PodGroup, now: datetime) -> datetime:
    times = [condition.last_transition_time for condition in group.status.conditions]
    return max((time for time in times if time is not None), default=now)
