"""The CronJob controller: creates jobs when they are due, and deletes old ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from stromboli.api.go_scalars import rfc3339
from stromboli.api.patches import merge_patch_between
from stromboli.api.types.cronjob import CronJob, CronJobStatus
from stromboli.api.types.meta import Time
from stromboli.api.types.volcano_job import Job
from stromboli.controllers import selection
from stromboli.controllers.api_writer import decode_response, is_final, is_namespace_terminating
from stromboli.controllers.controller import Context, Controller
from stromboli.controllers.cronjob.reconcile import reconcile, started
from stromboli.controllers.job.owned_objects import NameTaken, refuse_foreign
from stromboli.controllers.owner_references import controller_keys, controller_uid, owned_by, owner_key
from stromboli.controllers.reconciler import SyncError
from stromboli.kube.request import ApiError, NoResponse


class CronJobController(Controller[str]):
    """One key per CronJob, `namespace/name`."""

    name = selection.CRON_JOB

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.workers = max(1, context.options.worker_threads_for_cronjob)
        self.crons = self.watch(CronJob, self._cron_changed)
        self.jobs = self.watch(Job, self._job_changed)
        self._owned = self.jobs.index(owned_by)
        self._rescheduled: dict[str, float] = {}
        """When a CronJob was given another schedule, by uid: earlier times of the new schedule are not missed ones."""

    def _cron_changed(self, before: CronJob | None, now: CronJob | None) -> Iterable[str]:
        if now is None:
            self._rescheduled.pop(before.metadata.uid if before is not None else "", None)
            return []
        if before is not None and _schedule(before) != _schedule(now):
            self._rescheduled[now.metadata.uid] = self.context.clock()
        return [now.key]

    def _job_changed(self, before: Job | None, now: Job | None) -> Iterable[str]:
        """Counts in a job's status change often and do not matter here."""
        if before is not None and now is not None and before.status.state == now.status.state:
            return []
        return controller_keys(CronJob, before, now)

    async def sync(self, key: str) -> float | None:
        cron = self.crons.get(key)
        if cron is None or cron.metadata.deletion_timestamp is not None:
            return None
        since = self._rescheduled.get(cron.metadata.uid, 0.0)
        outcome = reconcile(cron, await self._jobs_of(cron), self.context.clock(), since)
        for job in outcome.prune:
            await self._prune(cron, job)
        for job in outcome.replace:
            await self.context.writer.delete(job)
            self.jobs.drop(job)
        status = outcome.status
        if outcome.start is not None and outcome.due is not None:
            created = await self._create(cron, outcome.start)
            if created is not None:
                status = started(outcome, created, outcome.due)
        await self._write_status(cron, status)
        for event in outcome.events:
            self.context.recorder.record(cron, event)
        return outcome.requeue_after

    async def _jobs_of(self, cron: CronJob) -> list[Job]:
        """All jobs of a CronJob; active ones that the store does not have yet are read from the API server."""
        jobs = {job.metadata.uid: job for job in self._owned[owner_key(cron)]}
        for reference in cron.status.active:
            if reference.uid not in jobs:
                fresh = await self.context.writer.read(Job, reference.name, cron.namespace)
                known = fresh is not None and fresh.metadata.uid == reference.uid
                if fresh is not None and known and cron.metadata.uid in controller_uid(fresh):
                    jobs[reference.uid] = fresh
        return list(jobs.values())

    async def _prune(self, cron: CronJob, job: Job) -> None:
        try:
            await self.context.writer.delete(job)
        except (ApiError, NoResponse) as error:
            self.context.recorder.warning(cron, "FailedDelete", f"Deleted job: {error}")
            raise
        self.jobs.drop(job)
        self.context.recorder.normal(cron, "SuccessfulDelete", f"Deleted job {job.name}")

    async def _create(self, cron: CronJob, manifest: dict[str, Any]) -> Job | None:
        """Create the job, or take the one of an earlier attempt; None if it cannot be created for now."""
        name = manifest["metadata"]["name"]
        try:
            answer = await self.context.writer.create(Job, manifest, cron.namespace)
        except ApiError as error:
            if is_namespace_terminating(error):
                self.context.recorder.warning(cron, "NamespaceTerminating", f"Error creating job: {error}")
                return None
            self.context.recorder.warning(cron, "FailedCreate", f"Error creating job: {error}")
            if is_final(error):
                return None
            raise
        if answer is not None:
            self.context.recorder.normal(cron, "SuccessfulCreate", f"Created job {name}")
            return decode_response(Job, answer)
        existing = await self.context.writer.read(Job, name, cron.namespace)
        if existing is None:
            raise SyncError(f"job {name} came and went")
        try:
            refuse_foreign(cron, "Job", name, controller_uid(existing))
        except NameTaken as error:
            self.context.recorder.warning(cron, "ForeignJob", str(error))
            return None
        return existing

    async def _write_status(self, cron: CronJob, status: CronJobStatus) -> None:
        """Patch what differs."""
        patch = merge_patch_between(_status_manifest(cron.status), _status_manifest(status))
        if patch:
            self.crons.mutated(await self.context.writer.patch(cron, {"status": patch}, "status"))

    def gave_up(self, key: str, error: Exception) -> None:
        cron = self.crons.get(key)
        if cron is not None:
            self.context.recorder.warning(cron, "SyncCronJob", f"SyncCronJob CronJob failed for {error}")


def _schedule(cron: CronJob) -> tuple[str, str]:
    return cron.spec.schedule, cron.spec.time_zone


def _status_manifest(status: CronJobStatus) -> dict[str, Any]:
    return {
        "active": msgspec.to_builtins(status.active, builtin_types=()),
        "lastScheduleTime": _stamp(status.last_schedule_time),
        "lastSuccessfulTime": _stamp(status.last_successful_time),
    }


def _stamp(moment: Time | None) -> str | None:
    return rfc3339(moment) if moment is not None else None
