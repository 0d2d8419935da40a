"""Which action an event asks for, and after how long (spec 06 2.4): the task's policies first, then the job's."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from stromboli.api.go_scalars import LONGEST_DURATION, duration
from stromboli.api.types.volcano_job import Job, LifecyclePolicy

ANY = "*"
POD_FAILED = "PodFailed"
POD_EVICTED = "PodEvicted"
POD_PENDING = "PodPending"
TASK_COMPLETED = "TaskCompleted"
TASK_FAILED = "TaskFailed"
UNKNOWN = "Unknown"


class Signal(NamedTuple):
    """Something that happened to a job, as the cluster shows it, and since when."""

    event: str
    since: datetime
    task: str = ""
    pod: str = ""
    partition: str = ""
    exit_code: int = 0
    why: str = ""
    """In words, for the user."""


class Order(NamedTuple):
    """An action that a policy asks for, and after how many seconds."""

    action: str
    delay: float = 0.0


def order_for(job: Job, signal: Signal) -> Order | None:
    """What the policies of a job ask for when this happens; the first that matches decides."""
    task = next((task for task in job.spec.tasks if task.name == signal.task), None)
    own = _first(task.policies, signal) if task is not None and signal.task else None
    return own or _first(job.spec.policies, signal)


def _first(policies: Iterable[LifecyclePolicy], signal: Signal) -> Order | None:
    for policy in policies:
        if _matches(policy, signal):
            return Order(policy.action, min(max(0.0, duration(policy.timeout) or 0.0), LONGEST_DURATION))
    return None


def _matches(policy: LifecyclePolicy, signal: Signal) -> bool:
    if signal.event == POD_FAILED and policy.exit_code == signal.exit_code:
        return True
    events = policy.all_events
    if not {signal.event, ANY} & events:
        return False
    return signal.event != POD_PENDING or duration(policy.timeout) is not None
