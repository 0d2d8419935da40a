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

    def action_for(self, event: str, task: str = "", exit_code: int = 0) -> PolicyAction | None:
        """The action of the first policy that matches an event of such a kind."""
        key = (event, task, exit_code)
        if key not in self._known:
            spec = self._tasks.get(task) if task else None
            own = _first(spec.policies, event, exit_code) if spec is not None else None
            self._known[key] = own or _first(self._job.spec.policies, event, exit_code)
        return self._known[key]


def _first(policies: Iterable[LifecyclePolicy], event: str, exit_code: int) -> PolicyAction | None:
    for policy in policies:
        if _matches(policy, event, exit_code):
            return PolicyAction(policy.action, min(max(0.0, duration(policy.timeout) or 0.0), MAX_DURATION))
    return None


def _matches(policy: LifecyclePolicy, event: str, exit_code: int) -> bool:
    if event == POD_FAILED and policy.exit_code == exit_code:
        return True
    if not {event, ANY} & policy.all_events:
        return False
    return event != POD_PENDING or duration(policy.timeout) is not None
