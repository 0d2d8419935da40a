"""What the cluster shows to have happened to a job. Nothing here is a timer: every signal has the time it began.

Pods that were taken away are the one thing that a cluster does not show, so each look remembers which pods it saw. A
pod made in place of a lost one carries the time of the loss, so that a delayed action outlives the memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.types.scheduling import PodGroup
from stromboli.api.types.volcano_job import ContainerRun, Job, JobPod, JobPodStatus, JobSpec, TaskSpec
from stromboli.controllers.job import lifecycle_policies
from stromboli.controllers.job.lifecycle_policies import Signal

DEFAULT_RETRIES = 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Glimpse(NamedTuple):
    """What is remembered of a pod."""

    uid: str
    task: str
    version: int
    partition: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What one look leaves for the next. It may be lost at any time: then evictions in between go unnoticed."""

    pods: Mapping[str, Glimpse] = field(default_factory=dict)
    losses: Mapping[str, Signal] = field(default_factory=dict)
    """Pods that were taken away, as long as an action about it is still to come."""
    since: Mapping[tuple[str, str], datetime] = field(default_factory=dict)
    """Since when a task keeps failing, or the group is unknown: the cluster only shows the last time."""
    told: frozenset[tuple[str, str]] = frozenset()
    """Events, by reason and words, that say nothing new any more."""
    attached: str = ""
    """The digest of what plugins want beside the pods, once it is there."""
    version: int = 0
    """The version of the job that all this is about."""
    agreed: tuple[str, str, JobSpec] | None = None
    """Uid and version of the group, and the spec that it agreed with or was made to."""


def version_of(pod: JobPod) -> int:
    """The version of the job for which a pod was made; -1 if it does not say."""
    text = pod.metadata.annotations.get(names.JOB_VERSION, "")
    return int(text) if text.isdecimal() and len(text) < 10 else -1


def is_marked(pod: JobPod) -> bool:
    """Whether we decided that this pod has to go, so that its end means nothing."""
    return names.OUT_OF_SYNC in pod.metadata.annotations


def task_of(pod: JobPod) -> str:
    return pod.metadata.annotations.get(names.TASK_SPEC, "")


def partition_of(pod: JobPod) -> str:
    return pod.metadata.labels.get(names.PARTITION_ID, "")


def counts_for(job: Job, pod: JobPod) -> bool:
    """Whether what happens to a pod happens to the job as it is now."""
    return version_of(pod) >= job.status.version and not is_marked(pod)


def glimpses(job: Job, pods: Iterable[JobPod], going: frozenset[str]) -> dict[str, Glimpse]:
    """What to remember: pods whose disappearance would be news."""
    return {
        pod.name: Glimpse(pod.metadata.uid, task_of(pod), version_of(pod), partition_of(pod))
        for pod in pods
        if pod.name not in going and counts_for(job, pod)
    }


def losses(
    job: Job, pods: Mapping[str, JobPod], wanted: Iterable[str], memory: Memory, now: datetime
) -> dict[str, Signal]:
    """Pods that should be there and were taken away: now, earlier, or before this controller started."""
    names_wanted = frozenset(wanted)
    waiting = memory.losses if memory.version == job.status.version else {}
    found: dict[str, Signal] = {}
    for name, seen in memory.pods.items():
        pod = pods.get(name)
        gone = pod is None or pod.metadata.uid != seen.uid
        if gone and name in names_wanted and seen.version >= job.status.version:
            found[name] = _loss(name, seen.task, seen.partition, now)
    for name in names_wanted:
        known = waiting.get(name)
        pod = pods.get(name)
        if known is not None and (pod is None or pod.status.phase == names.POD_PENDING):
            found.setdefault(name, known)
        elif pod is not None and pod.status.phase == names.POD_PENDING and counts_for(job, pod):
            since = _time(pod.metadata.annotations.get(names.LOST_AT, ""))
            if since is not None:
                found.setdefault(name, _loss(name, task_of(pod), partition_of(pod), since))
    return found


def _loss(name: str, task: str, partition: str, since: datetime) -> Signal:
    why = f"pod {name} was deleted"
    return Signal(lifecycle_policies.POD_EVICTED, since, task, name, partition, why=why)


def signals(
    job: Job, pods: Mapping[str, JobPod], group: PodGroup | None, memory: Memory, now: datetime
) -> Iterator[Signal]:
    """Everything else, in a fixed order: the first that leads to an action is the one that counts."""
    current = [pod for _, pod in sorted(pods.items()) if counts_for(job, pod)]
    yield from sorted(map(_failure, (pod for pod in current if pod.status.phase == names.POD_FAILED)))
    for task in job.spec.tasks:
        own = [pod for pod in current if task_of(pod) == task.name]
        if own:
            yield from _task_signals(task, own, pods, memory, now)
    if group is not None and group.status.phase == names.GROUP_UNKNOWN:
        since = memory.since.get((lifecycle_policies.UNKNOWN, "")) or _group_time(group, now)
        yield Signal(
            lifecycle_policies.UNKNOWN, since, why="some pods of the group are lost and cannot be replaced"
        )
    for pod in current:
        if pod.status.phase == names.POD_PENDING and pod.metadata.deletion_timestamp is None:
            why = f"pod {pod.name} is pending"
            since = pod.metadata.creation_timestamp or _EPOCH
            yield Signal(
                lifecycle_policies.POD_PENDING, since, task_of(pod), pod.name, partition_of(pod), why=why
            )


def _failure(pod: JobPod) -> Signal:
    code = exit_code(pod)
    why = f"pod {pod.name} failed with exit code {code}" if code else f"pod {pod.name} failed"
    return Signal(
        lifecycle_policies.POD_FAILED, ended_at(pod), task_of(pod), pod.name, partition_of(pod), code, why
    )


def _task_signals(
    task: TaskSpec, own: list[JobPod], pods: Mapping[str, JobPod], memory: Memory, now: datetime
) -> Iterator[Signal]:
    restarts = _restarts(own)
    allowed = task.max_retry or DEFAULT_RETRIES
    if allowed > 0 and task.replicas > 0 and restarts >= allowed:
        last = max(own, key=lambda pod: (_restarts([pod]), pod.name))
        since = memory.since.get((lifecycle_policies.TASK_FAILED, task.name)) or _last_restart(own, now)
        why = f"containers of task {task.name} were restarted {restarts} times"
        yield Signal(lifecycle_policies.TASK_FAILED, since, task.name, last.name, partition_of(last), why=why)
    of_task = [pod for pod in pods.values() if task_of(pod) == task.name]
    done = [pod for pod in of_task if pod.status.phase == names.POD_SUCCEEDED]
    latest = [pod for pod in own if pod.status.phase == names.POD_SUCCEEDED]
    if task.replicas > 0 and len(done) >= task.replicas and latest:
        last = max(latest, key=lambda pod: (ended_at(pod), pod.name))
        why = f"task {task.name} is completed"
        yield Signal(
            lifecycle_policies.TASK_COMPLETED,
            ended_at(last),
            task.name,
            last.name,
            partition_of(last),
            why=why,
        )


def _restarts(pods: Iterable[JobPod]) -> int:
    """How often containers were started again in pods that have not ended."""
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
    """When a pod ended: the latest time that it shows."""
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
