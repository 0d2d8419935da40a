"""The messages of Volcano about a waiting gang, for programs that search for them (spec 01 4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.engine.explanation.diagnosis import WAITING, waiting_count
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.job import Job


def group_message(job: Job) -> str:
    """`pod group is not ready, 1 Running, 2 Pending, 3 minAvailable`; pods that are not bound count as Pending."""
    counts = job.counts.copy()
    for status in WAITING:
        counts[status] = 0
    counts[Status.PENDING] = waiting_count(job)
    parts = [names.MIN_AVAILABLE_COUNT.format(count=job.minimum)]
    for number, count in enumerate(counts):
        if count:
            parts.append(names.STATUS_COUNT.format(count=count, status=Status(number).title))
    return f"{readiness(job)}, {', '.join(sorted(parts))}"


def gang_message(job: Job, invalid: bool = False) -> str:
    """`2/3 tasks in gang unschedulable: pod group is not ready, ...`; for an invalid job with what it lacks."""
    text = group_message(job)
    if invalid and job.valid_count < job.minimum:
        lack = names.TOO_FEW_TASKS.format(valid=job.valid_count, minimum=job.minimum)
        text += names.ORIGIN_OF_JOB.format(message=lack)
    return names.GANG_UNSCHEDULABLE.format(count=waiting_count(job), total=len(job.tasks), message=text)


def readiness(job: Job) -> str:
    """Whether the group exists and is ready."""
    ready = job.enough_ready and job.group is not None
    return names.GROUP_IS_READY if ready else names.GROUP_IS_NOT_READY
