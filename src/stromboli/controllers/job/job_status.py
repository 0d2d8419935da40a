"""The status of a job: phase, times, counts (spec 06 2.15)."""

from __future__ import annotations

from datetime import datetime

import msgspec

from stromboli.api import names
from stromboli.api.types.volcano_job import Job, JobCondition, JobState, JobStatus
from stromboli.controllers.job import succeeded_pods
from stromboli.controllers.job.job_phases import Phase
from stromboli.controllers.job.order.job_order import Obstacle
from stromboli.controllers.job.pod_facts import Counts

MAX_MESSAGE = 500
"""Characters of a state's message."""
MAX_CONDITIONS = 50
"""Earlier conditions that are kept; phases of ours are fewer."""
OBSTACLES = frozenset(
    {
        names.FAILED_CREATE,
        names.NAME_TAKEN,
        names.REJECTED,
        names.TOO_LARGE,
        names.WAITS_FOR_JOBS,
        names.AFTER_MISSING,
        names.AFTER_CYCLE,
        names.AFTER_INVALID,
    }
)
"""Reasons of a pending job that go when the obstacle is gone."""
_LIVE = (Phase.PENDING, Phase.RUNNING)


def with_phase(job: Job, to: Phase, now: datetime, reason: str = "", message: str = "") -> JobStatus:
    """The status of a job that enters a phase; the conditions list each phase once, with the last time."""
    at = now.replace(microsecond=0)
    status = msgspec.structs.replace(job.status)
    status.state = JobState(str(to), reason, message, at)
    others = [condition for condition in status.conditions if condition.status != to]
    status.conditions = (*others[-MAX_CONDITIONS:], JobCondition(str(to), at))
    if to not in _LIVE and job.metadata.creation_timestamp is not None:
        status.running_duration = go_duration((at - job.metadata.creation_timestamp).total_seconds())
    return status


def with_obstacle(status: JobStatus, obstacle: Obstacle | None) -> JobStatus:
    """The same status, which says what keeps a pending job from the objects that it needs, or no longer does."""
    state = status.state
    reason, message = obstacle if obstacle is not None else ("", "")
    if state.phase != Phase.PENDING or (obstacle is None and state.reason not in OBSTACLES):
        return status
    changed = msgspec.structs.replace(state, reason=reason, message=message[:MAX_MESSAGE])
    return msgspec.structs.replace(status, state=changed)


def with_counts(status: JobStatus, job: Job, counts: Counts) -> JobStatus:
    """The same with new counts."""
    return msgspec.structs.replace(
        status,
        min_available=job.spec.min_available,
        pending=counts.pending,
        running=counts.running,
        succeeded=counts.succeeded,
        failed=counts.failed,
        terminating=counts.terminating,
        unknown=counts.unknown,
        task_status_count=counts.by_task,
    )


def only_counts_differ(status: JobStatus, other: JobStatus) -> bool:
    """Whether a change may wait: pods of a job start and end together, and every status goes to all watches."""
    return _without_counts(status) == _without_counts(other)


def _without_counts(status: JobStatus) -> tuple[object, ...]:
    resources = status.controlled_resources.items()
    others = {key: value for key, value in resources if not key.startswith(succeeded_pods.PREFIX)}
    return status.state, status.version, status.retry_count, others


def go_duration(seconds: float) -> str:
    """A duration as Go writes it: 10m0s, 1h0m5s, 300ms."""
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    if 0 < seconds < 1:
        return f"{sign}{round(seconds * 1000)}ms"
    whole, part = divmod(round(seconds, 3), 1)
    hours, rest = divmod(int(whole), 3600)
    minutes, last = divmod(rest, 60)
    seconds_text = f"{last + round(part, 3):g}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds_text}"
    return f"{sign}{minutes}m{seconds_text}" if minutes else f"{sign}{seconds_text}"
