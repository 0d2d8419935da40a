"""What Volcano writes about a gang that waits, for programs that look for its words (spec 01 4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.engine.explanation.wait_cause import WAITING, waiting_count
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.job import Job


def group_message(job: Job) -> str:
    """`pod group is not ready, 1 Running, 2 Pending, 3 minAvailable`; what is not bound by the end is Pending."""
    counts = {Status(status): count for status, count in enumerate(job.counts) if count}
    counts = {status: count for status, count in counts.items() if status not in WAITING}
    if waiting := waiting_count(job):
        counts[Status.PENDING] = waiting
    parts = [names.STATUS_COUNT.format(count=count, status=status.title) for status, count in counts.items()]
    parts.append(names.MIN_AVAILABLE_COUNT.format(count=job.minimum))
    return f"{readiness(job)}, {', '.join(sorted(parts))}"


def gang_message(job: Job) -> str:
    """`2/3 tasks in gang unschedulable: pod group is not ready, ...`."""
    return names.GANG_UNSCHEDULABLE.format(
        count=waiting_count(job), total=len(job.tasks), message=group_message(job)
    )


def readiness(job: Job) -> str:
    return names.GROUP_IS_READY if job.enough_ready else names.GROUP_IS_NOT_READY
