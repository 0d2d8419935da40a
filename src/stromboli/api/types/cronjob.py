"""Volcano's CronJob: a job on a schedule. The job's spec stays as it was written."""

from typing import Any

from msgspec import field

from stromboli.api.types.meta import Count, Int64, Object, Record, Time, Value


class Reference(Value, frozen=True):
    """An object reference, to a job that a CronJob started."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class CronJobSpec(Record):
    """When to start a job, what happens if the last one still runs, and how many ended ones are kept."""

    schedule: str = ""
    time_zone: str = ""
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    job_template: dict[str, Any] = field(default_factory=dict)
    successful_jobs_history_limit: Count | None = None
    failed_jobs_history_limit: Count | None = None


class CronJobStatus(Record):
    active: tuple[Reference, ...] = ()
    last_schedule_time: Time | None = None
    last_successful_time: Time | None = None


class CronJob(Object):
    """Starts a Job on a schedule."""

    spec: CronJobSpec = field(default_factory=CronJobSpec)
    status: CronJobStatus = field(default_factory=CronJobStatus)
