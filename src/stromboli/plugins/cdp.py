"""Cool-down protection: tasks are not evicted for some time after they were scheduled (spec 03 15)."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.api import go_scalars, names
from stromboli.engine.plugin import Bound, Eviction, Plugin
from stromboli.engine.points import in_turn
from stromboli.model.status import Status
from stromboli.model.task import Task


class Cdp(Plugin):
    """Cool-down protection: protects running tasks for a time after scheduling that their pods set."""

    name = "cdp"

    @in_turn
    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return self._past_cooldown(candidates)

    @in_turn
    def reclaimable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return self._past_cooldown(candidates)

    @in_turn
    def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task] | None:
        """Volcano's gang-aware actions ignore it."""
        return self._past_cooldown(candidates) if eviction.kind == "consolidate" else None

    def why_spared(self, task: Task, candidates: Sequence[Task]) -> str:
        return "its pods are in their cooldown period"

    def victim_bound(self, point: str, task: Task) -> Bound:
        return _ANY_JOB

    def _past_cooldown(self, candidates: list[Task]) -> list[Task]:
        return [task for task in candidates if not self._cooling_down(task)]

    def _cooling_down(self, task: Task) -> bool:
        cooldown = _cooldown(task)
        if cooldown is None or task.scheduled_at is None or task.status is not Status.RUNNING:
            return False
        return not self.session.has_come(task.scheduled_at + cooldown)


_ANY_JOB = Bound(None, lambda job: True, lambda queue: None)


def _cooldown(task: Task) -> float | None:
    """The cool-down time of a pod: by its label, else its annotation."""
    key = names.COOLDOWN_TIME
    return go_scalars.duration(task.label_set.labels.get(key, task.annotations.get(key, "")))
