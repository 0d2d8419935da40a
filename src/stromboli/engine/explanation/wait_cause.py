"""What holds a job: the gate that it has not passed, what is short, and the way out.

A cause stays the same as long as the gate and what is short do, and conditions and events are made from it, so a
cluster that waits writes nothing. Amounts and counts that move are in its details, which are made when they are asked
for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from stromboli.api.wait_messages import wait_sentence
from stromboli.engine.explanation.closest_domain import ClosestDomain
from stromboli.engine.explanation.shortages import Holder, Shortage
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.job import Job
    from stromboli.model.task import Task

Gate = Literal[
    "cycle",
    "pod-group",
    "queue",
    "requirements",
    "pipeline",
    "backfill",
    "validity",
    "scheduling-gates",
    "enqueue",
    "topology",
    "nodes",
    "policy",
    "queue-limits",
    "gang",
]
"""What a job has to pass before it starts."""
FirstWaiting = Callable[["Job"], "Task | None"]
"""`first_waiting`, asked once for each job and cycle."""
WAITING = (Status.PENDING, Status.ALLOCATED, Status.PIPELINED)
"""Statuses of tasks that wait: what is allocated and not bound when a cycle ends is taken back."""


class Details(NamedTuple):
    """A cause with the numbers of the moment."""

    reason: str
    """A few words, the same for all jobs that wait for this."""
    message: str
    hint: str = ""
    counts: Mapping[str, int] = {}
    """Nodes per reason, where nodes were looked at."""
    shortages: tuple[Shortage, ...] = ()
    holders: tuple[Holder, ...] = ()
    closest: ClosestDomain | None = None
    """The domain that comes closest to having room, of a gang that must keep to one."""


class Cause(NamedTuple):
    """Why a job waits, without numbers that move."""

    gate: Gate
    summary: str
    """What holds it and what is short."""
    way_out: str
    details: Callable[[], Details]

    def sentence(self, job: Job) -> str:
        """`Job train waits: SUMMARY; WAY OUT`."""
        owner = job.owner
        subject = f"{owner.kind} {owner.name}" if owner else f"PodGroup {job.name}"
        if job.group is None:
            subject = "This pod"
        elif job.ready_count - job.counts[Status.ALLOCATED] >= job.minimum > 0:
            subject = f"The rest of {subject}"
        short = below_minimum_text(job)
        return wait_sentence(subject, f"{short}: {self.summary}" if short else self.summary, self.way_out)


def below_minimum_text(job: Job) -> str:
    """`it runs below its minimum (1 of 2 pods)` for a job that was started and lost pods; else empty."""
    ready = job.ready_count - job.counts[Status.ALLOCATED]
    if not job.has_started or (ready >= job.minimum and not job.below_minimum):
        return ""
    missing = f"too few pods of a {'subgroup' if job.roles_ready else 'task'}"
    if ready < job.minimum:
        missing = f"{ready} of {job.minimum} pods"
    return f"it runs below its minimum ({missing})"


def waits(job: Job) -> bool:
    """Whether pods of a job are not placed, or there are none and no controller is about to make them."""
    if job.tasks or job.group is None or job.minimum <= 0:
        return waiting_count(job) > 0
    return job.owner is None or job.waits_for_queue


def waiting_count(job: Job) -> int:
    counts = job.counts
    return counts[Status.PENDING] + counts[Status.ALLOCATED] + counts[Status.PIPELINED]


def first_waiting(job: Job) -> Task | None:
    """The first of the tasks that wait, in an order that does not depend on what was tried."""
    if len(job.tasks) == 1:
        return next((task for task in job.tasks.values() if task.status in WAITING), None)
    tasks = (task for status in WAITING for task in job.by_status[status])
    return min(tasks, key=lambda task: task.order, default=None)


def short_text(text: str) -> str:
    """A text without its particulars."""
    return text.split(":", 1)[0].split(", ", 1)[0]
