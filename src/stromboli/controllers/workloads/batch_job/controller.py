"""The controller of Jobs of `batch/v1`: makes their pods, and counts how these end."""

from __future__ import annotations

from typing import ClassVar

from stromboli.controllers.controller import Context
from stromboli.controllers.workloads.batch_job.batch_job_kind import NON_INDEXED, BatchJob, BatchJobStatus
from stromboli.controllers.workloads.batch_job.job_pod_control import JobPods
from stromboli.controllers.workloads.batch_job.pod_backoff import PodBackoff
from stromboli.controllers.workloads.batch_job.pod_management import PodChanges
from stromboli.controllers.workloads.batch_job.reconcile import Decision, Finish, finish, reconcile, record
from stromboli.controllers.workloads.workload import INDEXED, Workload
from stromboli.controllers.workloads.workload_controller import WorkloadController
from stromboli.kube.request import ApiError, NoResponse

RETRY = 60.0
"""Seconds after which a job is synced again at the latest whose pods could not be written: a quota may have room."""


class BatchJobController(WorkloadController[BatchJob]):
    """Keeps as many pods active as the job asks for, until enough have succeeded or too many have failed."""

    name = "job-controller"
    kind: ClassVar[type[Workload]] = BatchJob
    status_counts: ClassVar[tuple[str, ...]] = ()

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.pods = JobPods(self)
        self._backoffs: dict[str, PodBackoff] = {}
        """By the uid of the job."""
        self.on_owner_gone.append(self._forget)

    def _forget(self, job: Workload) -> None:
        self._backoffs.pop(job.metadata.uid, None)

    async def sync_owner(self, owner: BatchJob) -> float | None:
        """An error of a write to a pod is raised once the status is written."""
        job = owner
        if job.is_managed_elsewhere or job.finished is not None:
            self._forget(job)
            return None
        if job.spec.completion_mode not in ("", NON_INDEXED, INDEXED):
            message = "Skipped Job sync because completion mode is unknown"
            self.recorder.warning(job, "UnknownCompletionMode", message)
            return None
        pods = await self.pods.claim(job)
        with self.computing(job):
            backoff = self._backoffs.get(job.metadata.uid, PodBackoff())
            decision = reconcile(job, pods, backoff, self.context.clock())
        if decision.announcement is not None:
            job = await self._write(job, decision.announcement)
        errors = [await self._change_pods(job, decision.changes)]
        finished, error = await self._count_ends(job, decision)
        for event in finished.events:
            self.recorder.record(job, event)
        wait = self.pods.look_again(job, decision.requeue_after)
        for each in (*errors, error):
            if each is not None:
                self.queue.add_after(job.key, RETRY if wait is None else min(wait, RETRY))
                raise each
        return wait

    async def _change_pods(self, job: BatchJob, changes: PodChanges) -> Exception | None:
        try:
            await self.pods.create_new(job, changes.create)
            await self.pods.remove_all(job, changes.remove)
            await self.pods.delete_all(job, changes.delete)
        except (ApiError, NoResponse) as error:
            return error
        return None

    async def _count_ends(self, job: BatchJob, decision: Decision) -> tuple[Finish, Exception | None]:
        """Write the status, remove finalizers, and write it again with what is counted by then."""
        with self.computing(job):
            recorded = record(decision, self.pods.of(job), self.context.clock())
        error: Exception | None = None
        released = recorded.tracking.release
        if released:
            job = await self._write(job, recorded.status)
            released, error = await self.pods.remove_finalizers(released)
        self._backoffs[job.metadata.uid] = decision.view.backoff
        with self.computing(job):
            finished = finish(decision, recorded, released, self.context.clock())
        finished.events = [*recorded.events, *finished.events]
        await self._write(job, finished.status)
        return finished, error

    async def _write(self, job: BatchJob, status: BatchJobStatus) -> BatchJob:
        """The job as it is then."""
        await self.write_status(job, status)
        now = self.owners.get(job.key)
        return now if isinstance(now, BatchJob) and now.metadata.uid == job.metadata.uid else job
