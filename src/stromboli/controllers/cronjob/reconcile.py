"""One look at a CronJob: from its jobs and the time to what is to be done (spec 06 9). Nothing here waits or writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from stromboli.api import names
from stromboli.api.cron_schedule import BadSchedule
from stromboli.api.go_scalars import rfc3339
from stromboli.api.types.cronjob import CronJob, CronJobStatus, Reference
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.cronjob.schedule_times import PREFIXES, BadZone, Times, read_times
from stromboli.controllers.finished_job_gc import FINISHED
from stromboli.controllers.watched_kinds import PLACES, controlled_by

SCHEDULED_AT = "volcano.sh/cronjob-scheduled-timestamp"
ALLOW, FORBID, REPLACE = "Allow", "Forbid", "Replace"
MANY = 100
"""Missed times that are worth a word."""
LATE = 0.1
"""Seconds after the time at which a job is due that we look."""
SOONEST = 600.0
"""Seconds after which we look again in any case, should clocks be set."""
_EPOCH = datetime.min.replace(tzinfo=UTC)


class Words(NamedTuple):
    """An event."""

    type: str
    reason: str
    message: str


@dataclass(slots=True)
class Look:
    """What is to be done: in this order, and the status last."""

    status: CronJobStatus
    said: list[Words] = field(default_factory=list)
    prune: list[Job] = field(default_factory=list)
    replace: list[Job] = field(default_factory=list)
    start: dict[str, Any] | None = None
    """The job to be made."""
    due: float | None = None
    """The time for which it is made."""
    again: float | None = None

    def warn(self, reason: str, message: str) -> None:
        self.said.append(Words(names.WARNING, reason, message))

    def tell(self, reason: str, message: str) -> None:
        self.said.append(Words(names.NORMAL, reason, message))


def look(cron: CronJob, jobs: Iterable[Job], now: float, since: float = 0.0) -> Look:
    """What a CronJob needs; `jobs` are those that it controls. Times before `since` are not made up for."""
    owned = sorted(jobs, key=lambda job: (job.metadata.creation_timestamp or _EPOCH, job.name))
    found = Look(CronJobStatus(cron.status.active, _last(cron, owned, now), cron.status.last_successful_time))
    _settle(cron, owned, found)
    _prune(cron, owned, found)
    if cron.spec.suspend:
        return found
    times = _times(cron, found)
    if times is not None:
        following = times.next(now)
        if following is not None:
            found.again = min(following - now + LATE, SOONEST)
        _start(cron, owned, times, max(since, _earliest(cron, now)), now, found)
    return found


def started(found: Look, job: Job, due: float) -> CronJobStatus:
    """The status once the job is there."""
    return CronJobStatus(
        (*found.status.active, _reference(job)),
        datetime.fromtimestamp(due, UTC),
        found.status.last_successful_time,
    )


def job_name(cron: CronJob, due: float) -> str:
    """One name per minute, so that no time is served twice."""
    return f"{cron.name}-{int(due) // 60}"


# -- what there is


def _last(cron: CronJob, jobs: Iterable[Job], now: float) -> datetime | None:
    """The last time that was served: as the status has it, or later if a job shows that it was not written."""
    shown = [at for job in jobs if (at := _scheduled_at(job)) is not None and at.timestamp() <= now]
    known = cron.status.last_schedule_time
    return max((*shown, *([known] if known is not None else [])), default=None)


def _scheduled_at(job: Job) -> datetime | None:
    try:
        at = datetime.fromisoformat(job.metadata.annotations.get(SCHEDULED_AT, ""))
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo is not None else None


def _settle(cron: CronJob, jobs: list[Job], found: Look) -> None:
    """Which jobs are under way: those that ended leave, those that the status has forgotten come back."""
    by_uid = {job.metadata.uid: job for job in jobs}
    active = []
    for reference in found.status.active:
        job = by_uid.get(reference.uid)
        if job is None:
            found.warn("StaleReference", f"Active job {reference.name} is gone")
        elif job.status.state.phase in FINISHED:
            message = f"Saw completed job: {job.name}, status: {job.status.state.phase}"
            found.tell("SawCompletedJob", message)
        else:
            active.append(reference)
    known = {reference.uid for reference in active}
    for job in jobs:
        if job.metadata.uid in known or job.status.state.phase in FINISHED:
            continue
        if _scheduled_at(job) is None:
            found.warn("OrphanedJob", f"Saw a job that the controller did not create or forgot: {job.name}")
        elif job.metadata.deletion_timestamp is None:
            active.append(_reference(job))
    succeeded = [
        job.status.state.last_transition_time for job in jobs if job.status.state.phase == "Completed"
    ]
    latest = [one for one in (*succeeded, found.status.last_successful_time) if one is not None]
    found.status = CronJobStatus(
        tuple(active), found.status.last_schedule_time, max(latest) if latest else None
    )


def _prune(cron: CronJob, jobs: list[Job], found: Look) -> None:
    """Ended jobs beyond what is to be kept, the oldest first. Terminated ones count as failed."""
    spec = cron.spec
    limits = (
        (spec.successful_jobs_history_limit, ("Completed",)),
        (spec.failed_jobs_history_limit, ("Failed", "Terminated")),
    )
    for limit, phases in limits:
        ended = [job for job in jobs if job.status.state.phase in phases]
        if limit is not None:
            surplus = ended[: max(0, len(ended) - limit)]
            found.prune += [job for job in surplus if job.metadata.deletion_timestamp is None]


# -- when


def _times(cron: CronJob, found: Look) -> Times | None:
    """The schedule, or None with a word to the user."""
    spec = cron.spec
    if spec.schedule.startswith(PREFIXES):
        found.warn(
            "UnsupportedSchedule",
            "CRON_TZ or TZ used in schedule is not officially supported; use spec.timeZone instead",
        )
    since = found.status.last_schedule_time or cron.metadata.creation_timestamp or _EPOCH
    try:
        return read_times(spec.schedule, spec.time_zone, since.timestamp())
    except BadZone as error:
        found.warn("InvalidTimeZone", f"invalid timeZone: {error}")
    except BadSchedule as error:
        found.warn("UnParseableCronJobSchedule", f"unparseable schedule: {spec.schedule[:100]!r}: {error}")
    return None


def _earliest(cron: CronJob, now: float) -> float:
    """The moment after which a time is not too late to be served."""
    patience = cron.spec.starting_deadline_seconds
    return now - patience if patience is not None else 0.0


def _start(cron: CronJob, jobs: list[Job], times: Times, earliest: float, now: float, found: Look) -> None:
    due = times.last(now)
    if due is None or due <= earliest:
        return
    missed = times.missed(now)
    if missed > MANY:
        found.warn(
            "TooManyMissedTimes",
            f"too many missed start times: {missed}. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
        )
    name = job_name(cron, due)
    if any(reference.name == name for reference in found.status.active):
        return
    if any(job.name == name for job in jobs):
        found.status.last_schedule_time = datetime.fromtimestamp(due, UTC)  # served already, and ended
        return
    if found.status.active and not _make_way(cron, jobs, found):
        return
    found.start, found.due = _manifest(cron, name, due, times), due


def _make_way(cron: CronJob, jobs: list[Job], found: Look) -> bool:
    """What becomes of jobs under way; whether another one may start."""
    running = ", ".join(reference.name for reference in found.status.active)
    if cron.spec.concurrency_policy == FORBID:
        found.warn(
            "ForbidConcurrent", f"not starting a job because of prior execution still running: {running}"
        )
        return False
    if cron.spec.concurrency_policy == REPLACE:
        found.warn("ReplaceConcurrent", f"replacing the jobs under way: {running}")
        uids = {reference.uid for reference in found.status.active}
        found.replace = [job for job in jobs if job.metadata.uid in uids]
        found.status.active = ()
    return True


# -- the job


def _manifest(cron: CronJob, name: str, due: float, times: Times) -> dict[str, Any]:
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
            "ownerReferences": [controlled_by(cron)],
        },
        "spec": template.get("spec") or {},
    }


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _reference(job: Job) -> Reference:
    return Reference(
        PLACES[Job].api_version,
        "Job",
        job.namespace,
        job.name,
        job.metadata.uid,
        job.metadata.resource_version,
    )
