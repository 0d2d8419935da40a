"""Critical pods are never victims (spec 03 3)."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.api import names
from stromboli.engine.plugin import Bound, Eviction, Plugin
from stromboli.engine.points import in_turn
from stromboli.model.task import Task

_CRITICAL = frozenset({names.SYSTEM_CLUSTER_CRITICAL, names.SYSTEM_NODE_CRITICAL})


class Conformance(Plugin):
    """Protects system pods, by namespace or priority class, from eviction."""

    name = "conformance"

    @in_turn
    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return _not_critical(candidates)

    @in_turn
    def reclaimable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return _not_critical(candidates)

    def why_spared(self, task: Task, candidates: Sequence[Task]) -> str:
        return "its pods are critical to the cluster"

    def victim_bound(self, point: str, task: Task) -> Bound | None:
        return _NOT_OF_SYSTEM

    @in_turn
    def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task]:
        return _not_critical(candidates)


_NOT_OF_SYSTEM = Bound(None, lambda job: job.namespace != names.SYSTEM_NAMESPACE, lambda queue: None)


def _not_critical(candidates: list[Task]) -> list[Task]:
    return [
        task
        for task in candidates
        if task.namespace != names.SYSTEM_NAMESPACE and task.priority_class not in _CRITICAL
    ]
