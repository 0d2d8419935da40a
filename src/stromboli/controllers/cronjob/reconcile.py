"""Reconciles a CronJob without I/O: from its jobs and the time to what is to be done (spec 06 9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from stromboli.api.cron_schedule import BadSchedule
from stromboli.api.go_scalars import rfc3339
from stromboli.api.types.cronjob import CronJob, CronJobStatus, Reference
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.cronjob.cron_outcome import (
    FORBID,
    MAX_ACTIVE,
    MISSED_LIMIT,
    REPLACE,
    CronOutcome,
    first_names,
    job_name,
)
from stromboli.controllers.cronjob.schedule_times import PREFIXES, BadZone, ScheduleTimes, read_times
from stromboli.controllers.job.job_phases import FINISHED
from stromboli.controllers.owner_references import BATCH_VERSION, controller_reference

SCHEDULED_AT = "volcano.sh/cronjob-scheduled-timestamp"
_EPOCH = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Outcome(CronOutcome[CronJobStatus]):
    """Jobs that are pruned and replaced go before another is created."""

    prune: list[Job] = field(default_factory=list)
    replace: list[Job] = field(default_factory=list)


def reconcile(cron: CronJob, jobs: Iterable[Job], now: float, since: float = 0.0) -> Outcome:
    """What to do about a CronJob; `jobs` are those that it controls. Times before `since` are not made up for."""
    owned = sorted(jobs, key=lambda job: (job.metadata.creation_timestamp or _EPOCH, job.name))
    outcome = Outcome(
        CronJobStatus(cron.status.active, _last(cron, owned, now), cron.status.last_successful_time)
    )
    _update_active(owned, outcome)
    _prune(cron, owned, outcome)
    if cron.spec.suspend:
        return outcome
    times = _times(cron, outcome)
    if times is not None:
        outcome.requeue_for(times, now)
        _start(cron, owned, times, max(since, _earliest(cron, now)), now, outcome)
    return outcome


def started(outcome: Outcome, job: Job, due: float) -> CronJobStatus:
    """The status once the job is created."""
    return CronJobStatus(
        (*outcome.status.active, _reference(job)),
        datetime.fromtimestamp(due, UTC),
        outcome.status.last_successful_time,
    )


# -- the jobs that exist


def _last(cron: CronJob, jobs: Iterable[Job], now: float) -> datetime | None:
    """The last scheduled time: as the status has it, or a later one from a job's annotation if that was lost."""
    annotated = [at for job in jobs if (at := _scheduled_at(job)) is not None and at.timestamp() <= now]
    known = cron.status.last_schedule_time
    return max((*annotated, *([known] if known is not None else [])), default=None)


def _scheduled_at(job: Job) -> datetime | None:
    try:
        at = datetime.fromisoformat(job.metadata.annotations.get(SCHEDULED_AT, ""))
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo is not None else None


def _update_active(jobs: list[Job], outcome: Outcome) -> None:
    """Drop ended jobs from the active ones, and add those that the status lacks."""
    by_uid = {job.metadata.uid: job for job in jobs}
    active = []
    for reference in outcome.status.active:
        job = by_uid.get(reference.uid)
        if job is None:
            outcome.warn("StaleReference", f"Active job {reference.name} is gone")
        elif job.status.state.phase in FINISHED:
            message = f"Saw completed job: {job.name}, status: {job.status.state.phase}"
            outcome.inform("SawCompletedJob", message)
        else:
            active.append(reference)
    known = {reference.uid for reference in active}
    for job in jobs:
        if job.metadata.uid in known or job.status.state.phase in FINISHED:
            continue
        if _scheduled_at(job) is None:
            outcome.warn("OrphanedJob", f"Saw a job that the controller did not create or forgot: {job.name}")
        elif job.metadata.deletion_timestamp is None:
            active.append(_reference(job))
    succeeded = [
        job.status.state.last_transition_time for job in jobs if job.status.state.phase == "Completed"
    ]
    latest = [time for time in (*succeeded, outcome.status.last_successful_time) if time is not None]
    outcome.status = CronJobStatus(
        tuple(active[:MAX_ACTIVE]), outcome.status.last_schedule_time, max(latest) if latest else None
    )


def _prune(cron: CronJob, jobs: list[Job], outcome: Outcome) -> None:
    """Delete ended jobs beyond the history limits, oldest first. Terminated ones count as failed."""
    spec = cron.spec
    limits = (
        (spec.successful_jobs_history_limit, ("Completed",)),
        (spec.failed_jobs_history_limit, ("Failed", "Terminated")),
    )
    for limit, phases in limits:
        ended = [job for job in jobs if job.status.state.phase in phases]
        if limit is not None:
            surplus = ended[: max(0, len(ended) - limit)]
            outcome.prune += [job for job in surplus if job.metadata.deletion_timestamp is None]


# -- the schedule


def _times(cron: CronJob, outcome: Outcome) -> ScheduleTimes | None:
    """The schedule, or None and an event."""
    spec = cron.spec
    if spec.schedule.startswith(PREFIXES):
        outcome.warn(
            "UnsupportedSchedule",
            "CRON_TZ or TZ used in schedule is not officially supported; use spec.timeZone instead",
        )
    since = outcome.status.last_schedule_time or cron.metadata.creation_timestamp or _EPOCH
    try:
        return read_times(spec.schedule, spec.time_zone, since.timestamp())
    except BadZone as error:
        outcome.warn("InvalidTimeZone", f"invalid timeZone: {error}")
    except BadSchedule as error:
        outcome.warn("UnParseableCronJobSchedule", f"unparseable schedule: {spec.schedule[:100]!r}: {error}")
    return None


def _earliest(cron: CronJob, now: float) -> float:
    """Scheduled times before this have missed their deadline."""
    deadline = cron.spec.starting_deadline_seconds
    return now - deadline if deadline is not None else 0.0


def _start(
    cron: CronJob, jobs: list[Job], times: ScheduleTimes, earliest: float, now: float, outcome: Outcome
) -> None:
    due = times.last(now)
    if due is None or due <= earliest:
        return
    missed = times.missed(now)
    if missed > MISSED_LIMIT:
        outcome.warn(
            "TooManyMissedTimes",
            f"too many missed start times: {missed}. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
        )
    name = job_name(cron, due)
    if any(reference.name == name for reference in outcome.status.active):
        return
    if any(job.name == name for job in jobs):
        outcome.status.last_schedule_time = datetime.fromtimestamp(due, UTC)  # its job has ended already
        return
    if outcome.status.active and not _apply_concurrency_policy(cron, jobs, outcome):
        return
    outcome.start, outcome.due = _manifest(cron, name, due, times), due


def _apply_concurrency_policy(cron: CronJob, jobs: list[Job], outcome: Outcome) -> bool:
    """What becomes of active jobs; whether another one may start."""
    running = first_names(outcome.status.active)
    if cron.spec.concurrency_policy == FORBID:
        outcome.warn(
            "ForbidConcurrent", f"not starting a job because of prior execution still running: {running}"
        )
        return False
    if cron.spec.concurrency_policy == REPLACE:
        outcome.warn("ReplaceConcurrent", f"replacing the jobs under way: {running}")
        uids = {reference.uid for reference in outcome.status.active}
        outcome.replace = [job for job in jobs if job.metadata.uid in uids]
        outcome.status.active = ()
    return outcome.has_room(outcome.status.active)


# -- the job


def _manifest(cron: CronJob, name: str, due: float, times: ScheduleTimes) -> dict[str, Any]:
    template = cron.spec.job_template
    meta = _mapping(template.get("metadata"))
    zone = times.zone if cron.spec.time_zone else UTC
    stamp = {SCHEDULED_AT: rfc3339(datetime.fromtimestamp(due, zone))}
    return {
        "metadata": {
            "name": name,
            "namespace": cron.namespace,
            "labels": dict(_mapping(meta.get("labels"))),
            "annotations": {**_mapping(meta.get("annotations")), **stamp},
            "ownerReferences": [controller_reference(cron)],
        },
        "spec": template.get("spec") or {},
    }


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _reference(job: Job) -> Reference:
    return Reference(
        BATCH_VERSION,
        "Job",
        job.namespace,
        job.name,
        job.metadata.uid,
        job.metadata.resource_version,
    )
