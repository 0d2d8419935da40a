"""A job with its pods as they are at one moment: who is active, and who has ended and is not counted yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stromboli.api import names
from stromboli.api.pods import is_active, is_ready, is_terminating
from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.workloads.batch_job.batch_job_kind import BatchJob, UncountedPods
from stromboli.controllers.workloads.batch_job.index_intervals import NO_INDEXES, IndexIntervals
from stromboli.controllers.workloads.batch_job.pod_backoff import PodBackoff
from stromboli.controllers.workloads.batch_job.pod_ends import (
    finished_at,
    index_failures,
    index_ignored_failures,
    is_failed,
    is_tracked,
    valid_index,
)
from stromboli.controllers.workloads.batch_job.pod_failure_policy import FAIL_INDEX, meaning_of


@dataclass(slots=True)
class JobView:
    """Counts include pods that ended and are not in the status yet."""

    job: BatchJob
    pods: Sequence[Pod]
    active: list[Pod]
    terminating: list[Pod]
    ready: int
    backoff: PodBackoff
    """With the pods that ended now."""
    succeeded: int
    failed: int
    indexes: PodIndexes
    """Empty unless the job is indexed."""


@dataclass(slots=True)
class PodIndexes:
    counted: IndexIntervals = NO_INDEXES
    """Succeeded by the status."""
    succeeded: IndexIntervals = NO_INDEXES
    failed: IndexIntervals | None = None
    """None unless failures are counted by index."""
    unreplaced: dict[int, Pod] = field(default_factory=dict)
    """The last failed pod of each index that waits for another: it is kept, since it tells how often pods failed."""


def observe(job: BatchJob, pods: Sequence[Pod], backoff: PodBackoff) -> JobView:
    """`backoff` is as of the last time."""
    uncounted = job.status.uncounted_terminated_pods or UncountedPods()
    active = [pod for pod in pods if is_active(pod)]
    ended_well = _new_ends(
        job, (pod for pod in pods if pod.status.phase == names.POD_SUCCEEDED), uncounted.succeeded
    )
    ended_badly = _new_ends(job, (pod for pod in pods if is_failed(pod, job)), uncounted.failed)
    indexes = _indexes(job, pods, active) if job.indexed else PodIndexes()
    succeeded = job.status.succeeded + len(ended_well) + len(uncounted.succeeded)
    counted_failures = sum(meaning_of(job, pod).counts for pod in ended_badly)
    return JobView(
        job,
        pods,
        active,
        [pod for pod in pods if is_terminating(pod)],
        sum(map(is_ready, active)),
        backoff.after(ended_well, ended_badly),
        len(indexes.succeeded) if job.indexed else succeeded,
        job.status.failed + counted_failures + len(uncounted.failed),
        indexes,
    )


def _new_ends(job: BatchJob, pods: Iterable[Pod], uncounted: Iterable[str]) -> list[Pod]:
    """Ended pods that the status does not know of."""
    known = frozenset(uncounted)
    return [
        pod
        for pod in pods
        if is_tracked(pod)
        and pod.metadata.uid not in known
        and (not job.indexed or valid_index(pod, job) is not None)
    ]


# -- indexes


def _indexes(job: BatchJob, pods: Sequence[Pod], active: Sequence[Pod]) -> PodIndexes:
    tracked = [
        (index, pod) for pod in pods if is_tracked(pod) and (index := valid_index(pod, job)) is not None
    ]
    counted = IndexIntervals.parse(job.status.completed_indexes, job.completions)
    ended_well = {index for index, pod in tracked if pod.status.phase == names.POD_SUCCEEDED}
    indexes = PodIndexes(counted, counted | IndexIntervals.of(ended_well))
    if job.spec.backoff_limit_per_index is not None:
        known = IndexIntervals.parse(job.status.failed_indexes or "", job.completions)
        failed = [(index, pod) for index, pod in tracked if is_failed(pod, job)]
        final = {index for index, pod in failed if _ends_index(job, pod)}
        indexes.failed = known | IndexIntervals.of(final)
        settled = indexes.succeeded | indexes.failed | indexes_of(job, active)
        indexes.unreplaced = _last_failures((index, pod) for index, pod in failed if index not in settled)
    return indexes


def indexes_of(job: BatchJob, pods: Iterable[Pod]) -> IndexIntervals:
    return IndexIntervals.of({index for pod in pods if (index := valid_index(pod, job)) is not None})


def _ends_index(job: BatchJob, pod: Pod) -> bool:
    """Whether no pod is made for the index of a failed pod any more."""
    meaning = meaning_of(job, pod)
    if meaning.action == FAIL_INDEX:
        return True
    return meaning.counts and index_failures(pod) >= (job.spec.backoff_limit_per_index or 0)


def _last_failures(failed: Iterable[tuple[int, Pod]]) -> dict[int, Pod]:
    """By index: the pod that knows of most failures, and of those the one that ended last."""
    last: dict[int, Pod] = {}
    for index, pod in failed:
        if index not in last or _lateness(pod) >= _lateness(last[index]):
            last[index] = pod
    return last


def _lateness(pod: Pod) -> tuple[int, float]:
    return index_failures(pod) + index_ignored_failures(pod), finished_at(pod)
