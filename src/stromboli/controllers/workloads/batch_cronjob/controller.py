"""The controller of CronJobs of `batch/v1`: creates jobs when they are due, and deletes old ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from stromboli.controllers.api_writer import decode_response, is_final, is_namespace_terminating
from stromboli.controllers.controller import Context
from stromboli.controllers.owner_references import controller_of, controller_uid, owned_by, owner_key
from stromboli.controllers.reconciler import SyncError
from stromboli.controllers.workloads.batch_cronjob.batch_cronjob_kind import BatchCronJob
from stromboli.controllers.workloads.batch_cronjob.reconcile import reconcile, started
from stromboli.controllers.workloads.batch_job.batch_job_kind import BatchJob
from stromboli.controllers.workloads.workload import Workload
from stromboli.controllers.workloads.workload_controller import WorkloadController
from stromboli.kube.request import ApiError, NoResponse


class BatchCronJobController(WorkloadController[BatchCronJob]):
    """Starts a job for each time of the schedule."""

    name = "cronjob-controller"
    kind: ClassVar[type[Workload]] = BatchCronJob
    status_counts: ClassVar[tuple[str, ...]] = ()

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.jobs = self.watch(BatchJob, self._job_changed)
        self._owned = self.jobs.index(owned_by)
        self._rescheduled: dict[str, float] = {}
        """When a CronJob was given another schedule, by uid: earlier times of that are not missed ones."""
        self.on_owner_gone.append(lambda owner: self._rescheduled.pop(owner.metadata.uid, None))

    def _owner_changed(self, before: Workload | None, now: Workload | None) -> Iterable[str]:
        if before is not None and now is not None and _schedule(before) != _schedule(now):
            self._rescheduled[now.metadata.uid] = self.context.clock()
        return super()._owner_changed(before, now)

    def _job_changed(self, before: BatchJob | None, now: BatchJob | None) -> Iterable[str]:
        """Counts in a job's status change often and do not matter here."""
        if before is not None and now is not None and _relevant(before) == _relevant(now):
            return
        for job in (before, now):
            owner = controller_of(job) if job is not None else None
            if job is not None and owner is not None and (owner.api_version, owner.kind) == self.owner_type:
                yield f"{job.namespace}/{owner.name}"

    async def sync_owner(self, owner: BatchCronJob) -> float | None:
        cron = owner
        jobs = await self._jobs_of(cron)
        with self.computing(cron):
            since = self._rescheduled.get(cron.metadata.uid, 0.0)
            outcome = reconcile(cron, jobs, self.context.clock(), since)
        for job in outcome.delete:
            await self._delete(cron, job)
        status = outcome.status
        if outcome.start is not None and outcome.due is not None:
            created = await self._create(cron, outcome.start)
            if created is not None:
                status = started(outcome, created, outcome.due)
        await self.write_status(cron, status)
        for event in outcome.events:
            self.recorder.record(cron, event)
        return outcome.requeue_after

    async def _jobs_of(self, cron: BatchCronJob) -> list[BatchJob]:
        """All jobs of a CronJob; active ones that the store does not have yet are read from the API server."""
        jobs = {job.metadata.uid: job for job in self._owned[owner_key(cron)]}
        for reference in cron.status.active:
            if reference.uid not in jobs:
                fresh = await self.context.writer.read(BatchJob, reference.name, cron.namespace)
                if fresh is not None and fresh.metadata.uid == reference.uid:
                    jobs[reference.uid] = fresh
        return list(jobs.values())

    async def _delete(self, cron: BatchCronJob, job: BatchJob) -> None:
        try:
            await self.context.writer.delete(job)
        except (ApiError, NoResponse) as error:
            self.recorder.warning(cron, "FailedDelete", f"Deleted job: {error}")
            raise
        self.recorder.normal(cron, "SuccessfulDelete", f"Deleted job {job.name}")

    async def _create(self, cron: BatchCronJob, manifest: dict[str, Any]) -> BatchJob | None:
        """Create the job, or take the job of an earlier attempt; None if it cannot be created for now."""
        try:
            answer = await self.context.writer.create(BatchJob, manifest, cron.namespace)
        except (ApiError, NoResponse) as error:
            if is_namespace_terminating(error):
                return None
            self.recorder.warning(cron, "FailedCreate", f"Error creating job: {error}")
            if is_final(error):
                return None
            raise
        name = manifest["metadata"]["name"]
        if answer is not None:
            self.recorder.normal(cron, "SuccessfulCreate", f"Created job {name}")
            return decode_response(BatchJob, answer)
        existing = await self.context.writer.read(BatchJob, name, cron.namespace)
        if existing is None:
            raise SyncError(f"Job {cron.namespace}/{name} came and went")
        return existing if cron.metadata.uid in controller_uid(existing) else None


def _schedule(cron: Workload) -> tuple[str, str]:
    return cron.spec.schedule, cron.spec.time_zone


def _relevant(job: BatchJob) -> object:
    return job.finished, job.status.start_time, job.metadata.deletion_timestamp, controller_uid(job)
