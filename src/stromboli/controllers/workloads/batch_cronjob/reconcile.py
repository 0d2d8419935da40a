"""Reconciles a CronJob of `batch/v1` without I/O: from its jobs and the time to what is to be done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from stromboli.api.cron_schedule import BadSchedule
from stromboli.api.go_scalars import rfc3339
from stromboli.api.types.cronjob import Reference
from stromboli.controllers.cronjob.cron_outcome import FORBID, MISSED_LIMIT, REPLACE, CronOutcome, job_name
from stromboli.controllers.cronjob.schedule_times import BadZone, ScheduleTimes, read_times
from stromboli.controllers.workloads.batch_cronjob.batch_cronjob_kind import (
    BatchCronJob,
    BatchCronJobStatus,
)
from stromboli.controllers.workloads.batch_job.batch_job_kind import COMPLETE, FAILED, BatchJob
from stromboli.controllers.workloads.workload_pods import cron_job_run

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"


@dataclass(slots=True)
class Outcome(CronOutcome[BatchCronJobStatus]):
    """Jobs that are deleted go before another is created."""

    delete: list[BatchJob] = field(default_factory=list)
    """Jobs that are replaced, and those that have ended beyond the history limits."""


def reconcile(cron: BatchCronJob, jobs: Iterable[BatchJob], now: float, since: float = 0.0) -> Outcome:
    """What to do about a CronJob; `jobs` are those that it controls. Times up to `since` are not made up for."""
    owned = sorted(jobs, key=_start_order)
    outcome = Outcome(msgspec.structs.replace(cron.status))
    _delete_old(cron, owned, outcome)
    _update_active(owned, outcome)
    if cron.metadata.deletion_timestamp is not None or cron.spec.suspend:
        return outcome
    times = _times(cron, outcome)
    if times is not None:
        outcome.requeue_for(times, now)
        _start(cron, owned, replace(times, since=max(since, times.since)), now, outcome)
    return outcome


def started(outcome: Outcome, job: BatchJob, due: float) -> BatchCronJobStatus:
    """The status once the job is created."""
    return msgspec.structs.replace(
        outcome.status,
        active=(*outcome.status.active, reference_to(job)),
        last_schedule_time=datetime.fromtimestamp(due, UTC),
    )


def reference_to(job: BatchJob) -> Reference:
    meta = job.metadata
    return Reference("batch/v1", "Job", meta.namespace, meta.name, meta.uid, meta.resource_version)


# -- the jobs that exist


def _start_order(job: BatchJob) -> tuple[bool, float, str]:
    start = job.status.start_time
    return start is None, start.timestamp() if start is not None else 0.0, job.name


def _delete_old(cron: BatchCronJob, jobs: Sequence[BatchJob], outcome: Outcome) -> None:
    """Ended jobs beyond the history limits, oldest first."""
    limits = (
        (cron.spec.successful_jobs_history_limit, COMPLETE),
        (cron.spec.failed_jobs_history_limit, FAILED),
    )
    for limit, condition in limits:
        ended = [job for job in jobs if job.finished is not None and job.finished.type == condition]
        surplus = ended[: max(0, len(ended) - limit)] if limit is not None else []
        outcome.delete += [job for job in surplus if job.metadata.deletion_timestamp is None]


def _update_active(jobs: Sequence[BatchJob], outcome: Outcome) -> None:
    """Active jobs are those that the status lists and that have not ended; others are told of, and not taken in."""
    status = outcome.status
    by_uid = {job.metadata.uid: job for job in jobs}
    active = []
    for reference in status.active:
        job = by_uid.get(reference.uid)
        if job is None:
            outcome.inform("MissingJob", f"Active job went missing: {reference.name}")
        elif job.finished is not None:
            message = f"Saw completed job: {job.name}, condition: {job.finished.type}"
            outcome.inform("SawCompletedJob", message)
        else:
            active.append(reference)
    known = {reference.uid for reference in active}
    for job in jobs:
        if job.finished is None and job.metadata.uid not in known:
            message = f"Saw a job that the controller did not create or forgot: {job.name}"
            outcome.warn("UnexpectedJob", message)
    succeeded = [job.status.completion_time for job in jobs if _is_complete(job)]
    times = [time for time in (*succeeded, status.last_successful_time) if time is not None]
    status.active, status.last_successful_time = tuple(active), max(times, default=None)


def _is_complete(job: BatchJob) -> bool:
    return job.finished is not None and job.finished.type == COMPLETE


# -- the schedule


def _times(cron: BatchCronJob, outcome: Outcome) -> ScheduleTimes | None:
    """The times since the last start, or since the CronJob was created; None and an event if that cannot be told."""
    spec = cron.spec
    since = outcome.status.last_schedule_time or cron.metadata.creation_timestamp
    if "TZ" in spec.schedule:
        outcome.warn(
            "UnsupportedSchedule",
            f"CRON_TZ or TZ used in schedule {spec.schedule[:100]!r} is not officially supported;"
            " use spec.timeZone instead",
        )
    try:
        return read_times(spec.schedule, spec.time_zone, since.timestamp() if since is not None else 0.0)
    except BadZone as error:
        outcome.warn("UnknownTimeZone", f"invalid timeZone: {spec.time_zone[:100]!r}: {error}")
    except BadSchedule as error:
        outcome.warn("UnparseableSchedule", f"unparseable schedule: {spec.schedule[:100]!r} : {error}")
    return None


def _start(
    cron: BatchCronJob, jobs: Sequence[BatchJob], times: ScheduleTimes, now: float, outcome: Outcome
) -> None:
    """Start a job for the last time that has passed, if its deadline has not."""
    deadline = cron.spec.starting_deadline_seconds
    earliest = now - deadline if deadline is not None else 0.0
    due = times.last(now)
    if due is None or due <= earliest:
        return
    if replace(times, since=max(times.since, earliest)).missed(now) > MISSED_LIMIT:
        outcome.warn(
            "TooManyMissedTimes",
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
        )
    name = job_name(cron, due)
    if any(reference.name == name for reference in outcome.status.active):
        return
    if outcome.status.active and not _may_start(cron, jobs, outcome):
        return
    outcome.start, outcome.due = _manifest(cron, name, due, times), due


def _may_start(cron: BatchCronJob, jobs: Sequence[BatchJob], outcome: Outcome) -> bool:
    """Whether another job may start beside the active ones; those that it replaces are to be deleted."""
    status = outcome.status
    if cron.spec.concurrency_policy == FORBID:
        message = "Not starting job because prior execution is running and concurrency policy is Forbid"
        outcome.inform("JobAlreadyActive", message)
        return False
    if cron.spec.concurrency_policy == REPLACE:
        replaced = {reference.uid for reference in status.active}
        outcome.delete += [job for job in jobs if job.metadata.uid in replaced]
        status.active = ()
    return outcome.has_room(status.active)


def _manifest(cron: BatchCronJob, name: str, due: float, times: ScheduleTimes) -> dict[str, Any]:
    manifest = cron_job_run(cron, name)
    zone = times.zone if cron.spec.time_zone else UTC
    manifest["metadata"]["annotations"][SCHEDULED_AT] = rfc3339(datetime.fromtimestamp(due, zone))
    return manifest
