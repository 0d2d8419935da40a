"""What a job reads from one of its pods: whether and when it ended, its index, and whether its end is counted."""

from __future__ import annotations

from stromboli.api import names
from stromboli.api.pods import is_terminating
from stromboli.api.types.controlled_pod import ContainerStatus, Pod
from stromboli.controllers.workloads.batch_job.batch_job_kind import BatchJob
from stromboli.controllers.workloads.batch_job.index_intervals import read_index
from stromboli.controllers.workloads.workload_pods import COMPLETION_INDEX, JOB_TRACKING

INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"


def is_tracked(pod: Pod) -> bool:
    """Whether its end, once it comes, is still to be counted."""
    return JOB_TRACKING in pod.metadata.finalizers


def is_failed(pod: Pod, job: BatchJob) -> bool:
    """A pod that is being deleted has failed too, since it may never say so, unless the job waits for ends."""
    if pod.status.phase == names.POD_FAILED:
        return True
    return is_terminating(pod) and not job.waits_for_ends


def completion_index(pod: Pod) -> int | None:
    return read_index(pod.metadata.annotations.get(COMPLETION_INDEX, ""))


def valid_index(pod: Pod, job: BatchJob) -> int | None:
    """The index, if the job has it at present."""
    index = completion_index(pod)
    return index if index is not None and index < job.completions else None


def index_failures(pod: Pod) -> int:
    """How often pods of its index failed before it, not counting failures that were ignored."""
    return _count(pod, INDEX_FAILURES)


def index_ignored_failures(pod: Pod) -> int:
    return _count(pod, INDEX_IGNORED_FAILURES)


def _count(pod: Pod, annotation: str) -> int:
    number = read_index(pod.metadata.annotations.get(annotation, ""))
    return number if number is not None and number < 2**31 else 0


def finished_at(pod: Pod) -> float:
    """When its last container ended; else when it ceased to be ready, when it was deleted, or when it was created.

    In seconds since 1970.
    """
    meta = pod.metadata
    by_containers = _containers_finished_at(pod)
    if by_containers is not None:
        return by_containers
    for condition in pod.status.conditions:
        since = condition.last_transition_time
        if condition.type == names.CONDITION_READY and condition.status == "False" and since is not None:
            return since.timestamp()
    if meta.deletion_timestamp is not None:
        return meta.deletion_timestamp.timestamp() - (meta.deletion_grace_period_seconds or 0)
    return meta.created


def _containers_finished_at(pod: Pod) -> float | None:
    """The latest end; None if a container has not ended. Sidecars end after the others."""
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    statuses: list[ContainerStatus] = [
        *pod.status.container_statuses,
        *(each for each in pod.status.init_container_statuses if each.name in sidecars),
    ]
    ends = [each.state.terminated.finished_at if each.state.terminated else None for each in statuses]
    known = [end.timestamp() for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None
