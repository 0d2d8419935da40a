"""Victims within PodDisruptionBudgets (spec 03 14, 02 D5)."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector
from stromboli.api.types.scheduling import PodDisruptionBudget
from stromboli.engine.plugin import Bound, Eviction, Plugin
from stromboli.engine.session import Session
from stromboli.model.cluster import Dirty
from stromboli.model.task import Task

_EMPTY_SELECTOR = LabelSelector()


class Pdb(Plugin):
    """Protects pods whose PodDisruptionBudget allows no further disruption."""

    name = "pdb"

    def __init__(self, arguments: object, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._budgets: dict[str, list[PodDisruptionBudget]] = {}
        """By namespace; only budgets that select pods."""

    def opening(self, session: Session, dirty: Dirty) -> None:
        if dirty.everything or dirty.objects:
            self._budgets = {}
            for budget in session.cluster.objects.budgets.values():
                if budget.spec.selector not in (None, _EMPTY_SELECTOR):
                    self._budgets.setdefault(budget.namespace, []).append(budget)

    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return self._allowed(_labelled(candidates))

    def reclaimable(self, task: Task, candidates: list[Task]) -> list[Task]:
        return self._allowed(_labelled(candidates))

    def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task] | None:
        """Volcano's gang-aware actions ignore budgets."""
        return self._allowed(candidates) if eviction.kind == "consolidate" else None

    def why_spared(self, task: Task, candidates: Sequence[Task]) -> str:
        return "a PodDisruptionBudget protects its pods"

    def victim_bound(self, point: str, task: Task) -> Bound:
        return _ANY_JOB

    def victim_limits(self, tasks: list[Task]) -> list[Task]:
        return self._allowed(tasks)

    def _allowed(self, tasks: list[Task]) -> list[Task]:
        """Tasks that may be evicted together, in order; even a refused one counts against its budgets."""
        left: dict[str, int] = {}
        allowed = []
        for task in tasks:
            own = [budget for budget in self._budgets.get(task.namespace, ()) if _protects(budget, task)]
            for budget in own:
                left[budget.key] = left.get(budget.key, budget.status.disruptions_allowed) - 1
            if all(left[budget.key] >= 0 for budget in own):
                allowed.append(task)
        return allowed


_ANY_JOB = Bound(None, lambda job: True, lambda queue: None)


def _labelled(candidates: list[Task]) -> list[Task]:
    """# quirk: spec 03 14: a pod without labels is never a victim, although no budget selects it."""
    return [task for task in candidates if task.label_set.labels]


def _protects(budget: PodDisruptionBudget, task: Task) -> bool:
    """Whether a budget counts a task; one that is being disrupted is already counted."""
    return matches_labels(budget.spec.selector, task.label_set.labels) and (
        task.name not in budget.status.disrupted_pods
    )
