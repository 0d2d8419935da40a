"""When a new CronJob, Volcano's or Kubernetes' own, starts its first job."""

from __future__ import annotations

from datetime import UTC, datetime

from stromboli.api.errors import BadObject
from stromboli.api.go_scalars import rfc3339
from stromboli.api.types.cronjob import CronJob
from stromboli.controllers.cronjob.schedule_times import read_times
from stromboli.controllers.workloads.workload import Workload


def next_run(cron: CronJob | Workload, now: float, notes: list[str]) -> float | None:
    """The next time of a CronJob that is created now; None if it has none. Either is noted."""
    subject, spec = f"CronJob {cron.key}", cron.spec
    if spec.suspend:
        notes.append(f"{subject} is suspended: it starts no job")
        return None
    try:
        due = read_times(spec.schedule, spec.time_zone, now).next(now)
    except ValueError as error:
        raise BadObject("spec.schedule", str(error)) from None
    if due is None:
        notes.append(f"{subject}: its schedule {spec.schedule!r} has no next time")
        return None
    when = rfc3339(datetime.fromtimestamp(due, UTC))
    notes.append(f"{subject}: planned as if its next time, {when}, had come")
    return due
