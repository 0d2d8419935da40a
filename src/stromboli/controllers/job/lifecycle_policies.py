"""Which action an event asks for, and after how long (spec 06 2.4): the task's policies first, then the job's."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from stromboli.api.go_scalars import MAX_DURATION, duration
from stromboli.api.types.volcano_job import Job, LifecyclePolicy

ANY = "*"
POD_FAILED = "PodFailed"
POD_EVICTED = "PodEvicted"
POD_PENDING = "PodPending"
TASK_COMPLETED = "TaskCompleted"
TASK_FAILED = "TaskFailed"
UNKNOWN = "Unknown"


class LifecycleEvent(NamedTuple):
    """An event of the kind that lifecycle policies name, and when it happened."""

    event: str
    since: datetime
    task: str = ""
    pod: str = ""
    partition: str = ""
    exit_code: int = 0
    why: str = ""
    """For the user."""


class PolicyAction(NamedTuple):
    """The action of a policy, and after how many seconds it is due."""

    action: str
    delay: float = 0.0


class PolicyActions:
    """The actions of a job's policies; each kind of event of a task is looked up once."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._tasks = {task.name: task for task in reversed(job.spec.tasks)}
        self._known: dict[tuple[str, str, int], PolicyAction | None] = {}

    def action_for(self, trigger: LifecycleEvent) -> PolicyAction | None:
        """The action of the first policy that matches an event."""
        key = (trigger.event, trigger.task, trigger.exit_code)
        if key not in self._known:
            task = self._tasks.get(trigger.task) if trigger.task else None
            own = _first(task.policies, trigger) if task is not None else None
            self._known[key] = own or _first(self._job.spec.policies, trigger)
        return self._known[key]


def _first(policies: Iterable[LifecyclePolicy], trigger: LifecycleEvent) -> PolicyAction | None:
    for policy in policies:
        if _matches(policy, trigger):
            return PolicyAction(policy.action, min(max(0.0, duration(policy.timeout) or 0.0), MAX_DURATION))
    return None


def _matches(policy: LifecyclePolicy, trigger: LifecycleEvent) -> bool:
    if trigger.event == POD_FAILED and policy.exit_code == trigger.exit_code:
        return True
    events = policy.all_events
    if not {trigger.event, ANY} & events:
        return False
    return trigger.event != POD_PENDING or duration(policy.timeout) is not None
