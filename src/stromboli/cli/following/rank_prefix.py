"""The rank of a pod among all pods of its job, and what its lines begin with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stromboli.api import names

Manifest = dict[str, Any]


class PodRanks:
    """Ranks count the pods of all tasks in the order of the job: those of the first task, then of the next."""

    def __init__(self, job: Manifest | None) -> None:
        """Without a job (it is gone) the rank of a pod is the index in its task."""
        self._first: dict[str, int] = {}
        self.total = 0
        for task in _tasks(job):
            self._first.setdefault(str(task.get("name") or ""), self.total)
            self.total += _count(task.get("replicas"))

    def rank(self, pod: Manifest) -> int:
        task, index = task_and_index(pod)
        return self._first.get(task, 0) + index

    def prefix(self, pod: Manifest, container: str = "") -> str:
        """`[3] `, or `[3 sidecar] `; nothing for the only container of a job of a single pod."""
        inside = f" {container}" if container else ""
        if self.total == 1 and not container:
            return ""
        width = len(str(max(0, self.total - 1)))
        return f"[{self.rank(pod):>{width}}{inside}] "


def task_and_index(pod: Manifest) -> tuple[str, int]:
    """The task of a pod, and its index there."""
    marks = _marks(pod)
    index = marks.get(names.TASK_INDEX, "")
    return marks.get(names.TASK_SPEC, ""), int(index) if index.isdecimal() and len(index) < 10 else 0


def _tasks(job: Manifest | None) -> list[Manifest]:
    tasks = ((job or {}).get("spec") or {}).get("tasks")
    return [task for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []


def _marks(pod: Manifest) -> Mapping[str, str]:
    """What the controller noted on a pod: annotations, or on older versions labels."""
    metadata = pod.get("metadata") or {}
    return {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 10**7 else 0
