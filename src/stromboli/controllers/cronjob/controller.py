"""Starts the jobs of CronJobs when they are due, and tidies up after them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from stromboli.api.go_scalars import rfc3339
from stromboli.api.types.cronjob import CronJob, CronJobStatus
from stromboli.api.types.meta import Time
from stromboli.api.types.volcano_job import Job
from stromboli.controllers import selection
from stromboli.controllers.api_writer import decoded
from stromboli.controllers.context import Desk
from stromboli.controllers.controller import Controller, Hindrance
from stromboli.controllers.cronjob.reconcile import Look, look, started
from stromboli.controllers.merge_patch_diff import merge_patch
from stromboli.controllers.store import controller_uid
from stromboli.kube.request import ApiError, NoResponse


class CronJobController(Controller[str]):
    """One key per CronJob, `namespace/name`."""

    name = selection.CRON_JOB

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.workers = max(1, desk.options.worker_threads_for_cronjob)
        self.crons = self.watch(CronJob, self._cron_changed)
        self.jobs = self.watch(Job, self._job_changed)
        self._owned = self.jobs.index(controller_uid)
        self._rescheduled: dict[str, float] = {}
        """When a CronJob was given another schedule, by uid: times that are past by then are not its own."""

    def _cron_changed(self, before: CronJob | None, now: CronJob | None) -> Iterable[str]:
        if now is None:
            self._rescheduled.pop(before.metadata.uid if before is not None else "", None)
            return []
        if before is not None and _schedule(before) != _schedule(now):
            self._rescheduled[now.metadata.uid] = self.desk.clock()
        return [now.key]

    def _job_changed(self, before: Job | None, now: Job | None) -> Iterable[str]:
        """What a job counts changes often; only that it comes, changes its phase or goes concerns us."""
        if before is not None and now is not None and before.status.state == now.status.state:
            return []
        return {
            f"{one.namespace}/{owner.name}"
            for one in (before, now)
            if one is not None
            for owner in one.metadata.owner_references
            if owner.controller and owner.kind == "CronJob"
        }

    async def sync(self, key: str) -> float | None:
        cron = self.crons.at(key)
        if cron is None or cron.metadata.deletion_timestamp is not None:
            return None
        since = self._rescheduled.get(cron.metadata.uid, 0.0)
        found = look(cron, await self._jobs_of(cron), self.desk.clock(), since)
        for word in found.said:
            say = self.desk.voice.warning if word.type == "Warning" else self.desk.voice.normal
            say(cron, word.reason, word.message)
        for job in found.prune:
            await self._prune(cron, job)
        for job in found.replace:
            await self.desk.pen.delete(job)
            self.jobs.drop(job)
        status = found.status
        if found.start is not None and found.due is not None:
            made = await self._make(cron, found)
            if made is not None:
                status = started(found, made, found.due)
        await self._tell(cron, status)
        return found.again

    async def _jobs_of(self, cron: CronJob) -> list[Job]:
        """All jobs of a CronJob; those that it has just started and no watch has told of yet are asked for."""
        jobs = {job.metadata.uid: job for job in self._owned[cron.metadata.uid]}
        for reference in cron.status.active:
            if reference.uid not in jobs:
                fresh = await self.desk.pen.read(Job, reference.name, cron.namespace)
                if fresh is not None and fresh.metadata.uid == reference.uid:
                    jobs[reference.uid] = fresh
        return list(jobs.values())

    async def _prune(self, cron: CronJob, job: Job) -> None:
        try:
            await self.desk.pen.delete(job)
        except (ApiError, NoResponse) as error:
            self.desk.voice.warning(cron, "FailedDelete", f"Deleted job: {error}")
            raise
        self.jobs.drop(job)
        self.desk.voice.normal(cron, "SuccessfulDelete", f"Deleted job {job.name}")

    async def _make(self, cron: CronJob, found: Look) -> Job | None:
        """Make the job, or take the one that an earlier try has left; None if it cannot be made for now."""
        assert found.start is not None
        name = found.start["metadata"]["name"]
        try:
            answer = await self.desk.pen.create(Job, found.start, cron.namespace)
        except ApiError as error:
            if error.status == 403 and "being terminated" in str(error):
                self.desk.voice.warning(cron, "NamespaceTerminating", f"Error creating job: {error}")
                return None
            self.desk.voice.warning(cron, "FailedCreate", f"Error creating job: {error}")
            raise
        if answer is not None:
            self.desk.voice.normal(cron, "SuccessfulCreate", f"Created job {name}")
            return decoded(Job, answer)
        there = await self.desk.pen.read(Job, name, cron.namespace)
        if there is None:
            raise Hindrance(f"job {name} came and went")
        if cron.metadata.uid not in controller_uid(there):
            self.desk.voice.warning(
                cron, "ForeignJob", f"a job {name} of another owner exists; delete or rename it"
            )
            return None
        return there

    async def _tell(self, cron: CronJob, status: CronJobStatus) -> None:
        """Write what differs."""
        patch = merge_patch(_plain(cron.status), _plain(status))
        if patch:
            self.crons.learn(await self.desk.pen.patch(cron, {"status": patch}, "status"))


def _schedule(cron: CronJob) -> tuple[str, str]:
    return cron.spec.schedule, cron.spec.time_zone


def _plain(status: CronJobStatus) -> dict[str, Any]:
    return {
        "active": msgspec.to_builtins(status.active, builtin_types=()),
        "lastScheduleTime": _stamp(status.last_schedule_time),
        "lastSuccessfulTime": _stamp(status.last_successful_time),
    }


def _stamp(moment: Time | None) -> str | None:
    return rfc3339(moment) if moment is not None else None
