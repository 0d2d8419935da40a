"""Removes the tracking finalizer from pods that no Job counts any more, so that it keeps none of them.

Their job is gone, has ended, or lost them.
"""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.patches import STRATEGIC
from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.owner_references import controller_of, owned_by, owner_key
from stromboli.controllers.workloads.batch_job.batch_job_kind import BatchJob
from stromboli.controllers.workloads.batch_job.job_pod_control import WITHOUT_FINALIZER
from stromboli.controllers.workloads.batch_job.pod_ends import is_tracked


class TrackingFinalizerController(Controller[str]):
    """One key per pod, `namespace/name`."""

    name = "job-tracking-finalizer-controller"
    workers = 8

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.jobs = self.watch(BatchJob, self._job_changed)
        self.pods = self.watch(Pod, self._pod_changed)
        self._owned = self.pods.index(owned_by)

    def _job_changed(self, before: BatchJob | None, now: BatchJob | None) -> Iterable[str]:
        """The pods of a job that has ended, or is gone."""
        job = now or before
        if job is None or (now is not None and now.finished is None):
            return []
        return [pod.key for pod in self._owned[owner_key(job)] if is_tracked(pod)]

    def _pod_changed(self, before: Pod | None, now: Pod | None) -> Iterable[str]:
        return [now.key] if now is not None and self._is_left_behind(now) else []

    def _is_left_behind(self, pod: Pod) -> bool:
        """Whether no job will count its end. Pods of other controllers are left alone."""
        if not is_tracked(pod):
            return False
        owner = controller_of(pod)
        if owner is None:
            return True
        if (owner.api_version, owner.kind) != ("batch/v1", "Job"):
            return False
        job = self.jobs.get(owner.name, pod.namespace)
        if job is None or job.metadata.uid != owner.uid:
            return True
        return job.finished is not None and not job.is_managed_elsewhere

    async def sync(self, key: str) -> float | None:
        pod = self.pods.get(key)
        if pod is not None and self._is_left_behind(pod):
            patch = self.context.writer.patch(pod, WITHOUT_FINALIZER, exact=False, patch_type=STRATEGIC)
            self.pods.mutated(await patch)
        return None
