"""Which pods a job that goes on wants to be created, and which it wants to be gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from stromboli.api.pods import PHASE_RANKS, is_ready
from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.workloads.batch_job.job_view import JobView, indexes_of
from stromboli.controllers.workloads.batch_job.pod_backoff import index_time_left
from stromboli.controllers.workloads.batch_job.pod_ends import (
    index_failures,
    index_ignored_failures,
    valid_index,
)
from stromboli.controllers.workloads.batch_job.pod_failure_policy import meaning_of

BURST = 500
"""Pods that a sync creates or removes at most."""
SHORTEST_WAIT = 1.0
"""Seconds until a job is looked at again that waits after failures."""


@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod to be created. Of a job with a limit for each index it tells how often pods of its index failed before."""

    index: int | None = None
    failures: int | None = None
    ignored_failures: int = 0


@dataclass(slots=True)
class PodChanges:
    """What is to be done with pods; `create` and `remove` never both."""

    create: list[NewPod] = field(default_factory=list)
    remove: Sequence[Pod] = ()
    """Pods too many, whose ends are not counted."""
    delete: Sequence[Pod] = ()
    """Pods of a job that ends, whose ends are counted."""
    requeue_after: float | None = None


def wanted_changes(view: JobView, now: float) -> PodChanges:
    """Pods that are too many go first; only then others are created."""
    job = view.job
    if job.spec.suspend:
        return PodChanges(remove=view.active)
    wanted = _wanted(view)
    surplus = _surplus(view, max(0, len(view.active) - wanted))
    if surplus:
        return PodChanges(remove=surplus[:BURST])
    leaving = len(view.terminating) if job.waits_for_ends else 0
    return _creations(view, wanted - leaving - len(view.active), now)


def _wanted(view: JobView) -> int:
    """How many pods should be active."""
    job = view.job
    if job.spec.completions is None:
        return len(view.active) if view.succeeded else job.parallelism
    return max(0, min(job.spec.completions - view.succeeded, job.parallelism))


# -- pods too many


def _surplus(view: JobView, count: int) -> list[Pod]:
    """At least `count` active pods, the least advanced first; of an indexed job all without an index of their own."""
    doubtful, sound = _by_index(view) if view.job.indexed else ([], view.active)
    if len(doubtful) < count:
        doubtful += sorted(sound, key=_advance)[: count - len(doubtful)]
    return doubtful


def _by_index(view: JobView) -> tuple[list[Pod], list[Pod]]:
    """Pods that have no index, one that the job does not have, or that of a pod that is further; and the others."""
    best: dict[int, Pod] = {}
    doubtful = []
    for pod in view.active:
        index = valid_index(pod, view.job)
        if index is None:
            doubtful.append(pod)
        elif index not in best:
            best[index] = pod
        else:
            worse, best[index] = sorted((best[index], pod), key=_advance)
            doubtful.append(worse)
    return doubtful, list(best.values())


def _advance(pod: Pod) -> tuple[bool, int, bool, float, str]:
    """How far a pod is: it has a node, runs, is ready, and is the oldest."""
    phase = PHASE_RANKS.get(pod.status.phase, 0)
    return bool(pod.spec.node_name), phase, is_ready(pod), -pod.metadata.created, pod.name


# -- pods too few


def _creations(view: JobView, count: int, now: float) -> PodChanges:
    if count <= 0:
        return PodChanges()
    job = view.job
    if job.indexed and job.spec.backoff_limit_per_index is not None:
        return _creations_by_index(view, count, now)
    wait = view.backoff.time_left(now)
    if wait > 0:
        return PodChanges(requeue_after=max(wait, SHORTEST_WAIT))
    count = min(count, BURST)
    if job.indexed:
        return PodChanges([NewPod(index) for index in islice(_pending_indexes(view), count)])
    return PodChanges([NewPod()] * count)


def _creations_by_index(view: JobView, count: int, now: float) -> PodChanges:
    """Each index waits for itself."""
    changes = PodChanges()
    for index in islice(_pending_indexes(view), min(count, BURST)):
        failed = view.indexes.unreplaced.get(index)
        wait = index_time_left(failed, now)
        if wait <= 0:
            changes.create.append(_replacement(view, index, failed))
        elif changes.requeue_after is None or wait < changes.requeue_after:
            changes.requeue_after = max(wait, SHORTEST_WAIT)
    return changes


def _replacement(view: JobView, index: int, failed: Pod | None) -> NewPod:
    if failed is None:
        return NewPod(index, 0)
    counts = meaning_of(view.job, failed).counts
    return NewPod(index, index_failures(failed) + counts, index_ignored_failures(failed) + (not counts))


def _pending_indexes(view: JobView) -> Iterable[int]:
    """The indexes without a pod that have neither succeeded nor failed, in order."""
    job, indexes = view.job, view.indexes
    taken = indexes.succeeded | indexes_of(job, view.active)
    if job.waits_for_ends:
        taken |= indexes_of(job, view.terminating)
    if indexes.failed is not None:
        taken |= indexes.failed
    return taken.gaps(job.completions)
