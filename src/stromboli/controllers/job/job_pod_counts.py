"""Counts the pods of a job by phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from stromboli.api import names
from stromboli.api.types.volcano_job import JobPod, TaskState

_PHASES = (names.POD_PENDING, names.POD_RUNNING, names.POD_SUCCEEDED, names.POD_FAILED)
ENDED = frozenset({names.POD_SUCCEEDED, names.POD_FAILED})


@dataclass(slots=True)
class Counts:
    """Pods by phase; those being deleted are `terminating` and nothing else."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    tasks: dict[str, Counter[str]] = field(default_factory=dict)
    """Phases by task, without what is being deleted."""

    @property
    def started(self) -> int:
        """Pods that run or ran."""
        return self.running + self.succeeded + self.failed

    @property
    def by_task(self) -> dict[str, TaskState]:
        return {task: TaskState(dict(sorted(phases.items()))) for task, phases in self.tasks.items()}


def phase_of(pod: JobPod) -> str:
    """The phase of a pod: Pending if it has none yet, Unknown if it is none of Kubernetes' other ones."""
    phase = pod.status.phase or names.POD_PENDING
    return phase if phase in _PHASES else names.POD_UNKNOWN


def count(pods: Iterable[JobPod], deleting: frozenset[str] = frozenset()) -> Counts:
    """Count pods; those in `deleting` (by name) count as terminating."""
    phases: Counter[str] = Counter()
    tasks: dict[str, Counter[str]] = {}
    for pod in pods:
        if pod.metadata.deletion_timestamp is not None or pod.name in deleting:
            phases["Terminating"] += 1
            continue
        phase = phase_of(pod)
        phases[phase] += 1
        tasks.setdefault(pod.metadata.annotations.get(names.TASK_SPEC, ""), Counter())[phase] += 1
    return Counts(
        pending=phases[names.POD_PENDING],
        running=phases[names.POD_RUNNING],
        succeeded=phases[names.POD_SUCCEEDED],
        failed=phases[names.POD_FAILED],
        terminating=phases["Terminating"],
        unknown=phases[names.POD_UNKNOWN],
        tasks=dict(sorted(tasks.items())),
    )
