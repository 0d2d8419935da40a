"""Why a job waits: the gate that holds it, what is short and by how much, who holds that, and the way out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from stromboli.engine.explanation.closest_domain import ClosestDomain
from stromboli.engine.explanation.shortages import Holder, Shortage
from stromboli.engine.explanation.wait_cause import (
    Cause,
    Details,
    Gate,
    below_minimum_text,
    waiting_count,
    waits,
)
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.explanation.wait_gates import WaitCauses
    from stromboli.engine.plugin_failures import Failure
    from stromboli.model.job import Job
    from stromboli.model.task import Task


class WaitExplanation(Struct, frozen=True):
    """Why a job with pods that are not placed waits."""

    gate: Gate
    reason: str
    """A few words, the same for all jobs that wait for this."""
    message: str
    hint: str = ""
    """The way out, in a sentence."""
    counts: dict[str, int] = {}
    """Nodes per reason, where nodes were looked at."""
    shortages: tuple[Shortage, ...] = ()
    holders: tuple[Holder, ...] = ()
    pods: int = 0
    """How many of its pods wait."""
    queue: str = ""
    summary: str = ""
    """What holds it and what is short, without numbers that move."""
    sentence: str = ""
    """The same with the way out, as conditions and events have it."""
    closest: ClosestDomain | None = None
    """The domain that comes closest to having room, of a gang that must keep to one."""


def explain_job(causes: WaitCauses, job: Job, lost: Failure | None = None) -> WaitExplanation | None:
    """Why a job waits after a cycle, which may have been lost; none if it does not wait."""
    cause = _lost_cycle(lost) if lost and waits(job) else causes.of(job)
    if cause is None:
        return None
    details, short = cause.details(), below_minimum_text(job)
    return WaitExplanation(
        cause.gate,
        details.reason,
        f"{short}: {details.message}" if short else details.message,
        details.hint,
        dict(details.counts),
        details.shortages,
        details.holders,
        waiting_count(job),
        job.queue.name if job.queue else "",
        cause.summary,
        cause.sentence(job),
        details.closest,
    )


def explain_task(causes: WaitCauses, task: Task, lost: Failure | None = None) -> str:
    """Why one pod waits, in a sentence; empty if it does not."""
    if task.status is not Status.PENDING:
        return ""
    if task.job is None:
        return "it does not belong to a PodGroup"
    verdict = causes.verdicts(task.job).get(task)
    explanation = None if verdict else explain_job(causes, task.job, lost)
    return verdict.message if verdict else explanation.message if explanation else ""


def _lost_cycle(failure: Failure) -> Cause:
    text = f"the cycle is lost: {failure.message}"
    return Cause("cycle", text, failure.remedy, partial(Details, "CycleLost", text, failure.remedy))
