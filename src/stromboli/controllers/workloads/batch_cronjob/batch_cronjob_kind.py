"""A CronJob of `batch/v1` as its controller reads it. The template of its jobs stays plain."""

from __future__ import annotations

from msgspec import field

from stromboli.api.types.cronjob import Reference
from stromboli.api.types.meta import Count, Int64, Time
from stromboli.controllers.workloads.workload import Workload, WorkloadSpec, WorkloadStatus


class BatchCronJobSpec(WorkloadSpec):
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: str = "Allow"
    successful_jobs_history_limit: Count | None = None
    failed_jobs_history_limit: Count | None = None


class BatchCronJobStatus(WorkloadStatus):
    active: tuple[Reference, ...] = ()
    last_schedule_time: Time | None = None
    last_successful_time: Time | None = None


class BatchCronJob(Workload):
    """Starts a Job on a schedule."""

    kind: str = "CronJob"
    api_version: str = "batch/v1"
    spec: BatchCronJobSpec = field(default_factory=BatchCronJobSpec)
    status: BatchCronJobStatus = field(default_factory=BatchCronJobStatus)
