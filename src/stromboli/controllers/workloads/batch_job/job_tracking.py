"""Counts the ends of pods so that none is lost or counted twice, whatever is deleted or stops in between.

1. The status lists pods that have ended as uncounted (`track`). 2. Their finalizers are removed. 3. The status counts
them and lists them no more (`settle`). Whoever begins in the middle sees by status and finalizers how far it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import msgspec

from stromboli.api import names
from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.workloads.batch_job.batch_job_kind import (
    SUCCESS_CRITERIA_MET,
    BatchJobStatus,
    JobCondition,
    UncountedPods,
)
from stromboli.controllers.workloads.batch_job.index_intervals import IndexIntervals
from stromboli.controllers.workloads.batch_job.job_view import JobView
from stromboli.controllers.workloads.batch_job.pod_ends import (
    completion_index,
    is_failed,
    is_tracked,
    valid_index,
)
from stromboli.controllers.workloads.batch_job.pod_failure_policy import meaning_of

UNCOUNTED_LIMIT = 500
"""Pods that a sync takes note of: their uids are some 20 kB of the status. Others wait for the next sync."""


@dataclass(slots=True)
class Tracking:
    """Pods whose ends are noted in `status`, which is to be written before their finalizers are removed."""

    status: BatchJobStatus
    release: list[Pod]
    tracked: set[str]
    """Uids of all pods with the finalizer."""
    all_noted: bool
    """Whether no pod is left for the next sync."""


@dataclass(slots=True)
class EndedPods:
    """Uids of pods, and indexes, that are noted."""

    succeeded: dict[str, None]
    failed: dict[str, None]
    indexes: set[int] = field(default_factory=set)
    """New ones: an index that is in the status needs no uid in order not to be counted twice."""

    def __len__(self) -> int:
        return len(self.succeeded) + len(self.failed) + len(self.indexes)

    def note(self, view: JobView, pod: Pod, failed: bool) -> None:
        """Note a pod as succeeded, or as failed if it is, unless its end counts for nothing."""
        job, uid = view.job, pod.metadata.uid
        index = valid_index(pod, job) if job.indexed else None
        if uid in self.failed or (job.indexed and index is None):
            return
        if pod.status.phase == names.POD_SUCCEEDED:
            if index is None:
                self.succeeded[uid] = None
            elif index not in view.indexes.counted:
                self.indexes.add(index)
        elif failed and meaning_of(job, pod).counts:
            self.failed[uid] = None


def track(
    view: JobView,
    pods: Iterable[Pod],
    status: BatchJobStatus,
    end: JobCondition | None,
    deleted: Collection[str],
) -> Tracking:
    """Note pods that have ended, or all of them if the job ends; `status` is changed.

    `pods` are as they are now, `deleted` are uids of those that are deleted because the job ends. If it fails, they
    count as failures, as do all others that have not ended. If it succeeds, they do not.
    """
    pods = sorted(pods, key=_index_or_last) if view.job.indexed else list(pods)
    tracked = {pod.metadata.uid for pod in pods if is_tracked(pod)}
    uncounted = _count_released(status, tracked)
    ended = EndedPods(dict.fromkeys(uncounted.succeeded), dict.fromkeys(uncounted.failed))
    all_fail = end is not None and end.type != SUCCESS_CRITERIA_MET
    release, all_noted = list[Pod](), True
    for pod in pods:
        uid = pod.metadata.uid
        if uid not in tracked or not _may_be_released(view, pod, end):
            continue
        if len(ended) >= UNCOUNTED_LIMIT:
            all_noted = False
            break
        release.append(pod)
        ended.note(view, pod, all_fail or (is_failed(pod, view.job) and uid not in deleted))
    status.uncounted_terminated_pods = UncountedPods(tuple(ended.succeeded), tuple(ended.failed))
    if view.job.indexed:
        _write_indexes(view, status, ended.indexes)
    return Tracking(status, release, tracked, all_noted)


def _may_be_released(view: JobView, pod: Pod, end: JobCondition | None) -> bool:
    """A failed pod whose index waits for another pod is kept until that is there."""
    job = view.job
    if (
        job.metadata.deletion_timestamp is not None
        or end is not None
        or pod.status.phase == names.POD_SUCCEEDED
    ):
        return True
    if not is_failed(pod, job):
        return False
    index = completion_index(pod)
    kept = view.indexes.unreplaced.get(index) if index is not None else None
    return kept is None or kept.metadata.uid != pod.metadata.uid


def _write_indexes(view: JobView, status: BatchJobStatus, noted: set[int]) -> None:
    completed = view.indexes.counted | IndexIntervals.of(noted)
    status.completed_indexes, status.succeeded = str(completed), len(completed)
    failed = view.indexes.failed
    status.failed_indexes = str(failed) if failed is not None else None


def settle(tracking: Tracking, released: Iterable[Pod]) -> BatchJobStatus:
    """The status once finalizers are removed."""
    status = msgspec.structs.replace(tracking.status)
    _count_released(status, tracking.tracked - {pod.metadata.uid for pod in released})
    return status


def _count_released(status: BatchJobStatus, tracked: Collection[str]) -> UncountedPods:
    """Count noted pods that have no finalizer any more; those that are left."""
    uncounted = status.uncounted_terminated_pods or UncountedPods()
    succeeded = tuple(uid for uid in uncounted.succeeded if uid in tracked)
    failed = tuple(uid for uid in uncounted.failed if uid in tracked)
    status.succeeded += len(uncounted.succeeded) - len(succeeded)
    status.failed += len(uncounted.failed) - len(failed)
    status.uncounted_terminated_pods = left = UncountedPods(succeeded, failed)
    return left


def _index_or_last(pod: Pod) -> tuple[bool, int]:
    index = completion_index(pod)
    return index is None, index or 0
