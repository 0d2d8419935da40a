"""Writes to the pods of a Job of `batch/v1`: with their end to be counted, or not to be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from stromboli.api.patches import STRATEGIC
from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.workloads.adoption import adoption_patch, release_patch
from stromboli.controllers.workloads.batch_job.batch_job_kind import BatchJob
from stromboli.controllers.workloads.batch_job.pod_ends import (
    INDEX_FAILURES,
    INDEX_IGNORED_FAILURES,
    is_tracked,
)
from stromboli.controllers.workloads.batch_job.pod_management import NewPod
from stromboli.controllers.workloads.pod_control import FULL_BATCH, OwnedPods, in_batches
from stromboli.controllers.workloads.workload import Manifest
from stromboli.controllers.workloads.workload_kinds import SelectingWorkload
from stromboli.controllers.workloads.workload_pods import JOB_TRACKING, job_pod

WITHOUT_FINALIZER = {"metadata": {"$deleteFromPrimitiveList/finalizers": [JOB_TRACKING]}}
"""A strategic merge patch."""


class JobPods(OwnedPods):
    """Pods have the finalizer from the moment they are the job's until their end is counted."""

    def adoption_patch(self, owner: SelectingWorkload, obj: Pod) -> dict[str, Any]:
        patch = adoption_patch(owner)
        return {"metadata": {**patch["metadata"], "finalizers": [JOB_TRACKING]}}

    def release_patch(self, owner: SelectingWorkload, obj: Pod) -> dict[str, Any]:
        return {"metadata": {**release_patch(owner)["metadata"], **WITHOUT_FINALIZER["metadata"]}}

    async def create_new(self, job: BatchJob, pods: Iterable[NewPod]) -> None:
        await self.create_all(job, [partial(new_pod, job, pod) for pod in pods])

    async def remove_all(self, job: BatchJob, pods: Sequence[Pod]) -> None:
        """Delete pods whose ends shall not be counted; the first error is raised when all were tried."""
        uncounted, error = await self.remove_finalizers(pods)
        await self.delete_all(job, uncounted)
        if error is not None:
            raise error

    async def remove_finalizers(self, pods: Sequence[Pod]) -> tuple[list[Pod], Exception | None]:
        """The pods that have it no more, and the first error."""
        released: list[Pod] = []

        async def remove(pod: Pod) -> None:
            await self.remove_finalizer(pod)
            released.append(pod)

        errors = await in_batches([partial(remove, pod) for pod in pods], FULL_BATCH)
        return released, errors[0] if errors else None

    async def remove_finalizer(self, pod: Pod) -> None:
        if is_tracked(pod):
            write = self.context.writer.patch(pod, WITHOUT_FINALIZER, exact=False, patch_type=STRATEGIC)
            self.patched(pod, await write)


def new_pod(job: BatchJob, pod: NewPod, seed: int) -> Manifest:
    """The manifest of a pod; the end of its name follows from the seed."""
    manifest = job_pod(job, seed if pod.index is None else pod.index, seed)
    annotations = manifest["metadata"]["annotations"]
    if pod.failures is not None:
        annotations[INDEX_FAILURES] = str(pod.failures)
    if pod.ignored_failures:
        annotations[INDEX_IGNORED_FAILURES] = str(pod.ignored_failures)
    return manifest
