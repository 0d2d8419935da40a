"""What the cycles of a test decided, for assertions."""

from __future__ import annotations

from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Decision
from stromboli.engine.placement.verdict import Verdict
from stromboli.model.cluster import Cluster
from stromboli.model.task import Task
from stromboli.simulator.cycle_report import Report


def task_named(cluster: Cluster, pod: str) -> Task:
    """A pod by `name` or `namespace/name`."""
    for task in cluster.tasks.values():
        if pod in (task.key, task.name):
            return task
    known = ", ".join(sorted(task.key for task in cluster.tasks.values()))
    raise LookupError(f"there is no pod {pod!r}; there are: {known}")


class Result(Report, kw_only=True):
    """The decisions of one run: of all its cycles together, with `cycles` for each one alone."""

    outcome: Outcome
    """The last cycle in full: its session, seconds and verdicts."""
    cycles: list[Report]
    warnings: list[str]
    """What is odd about the policy."""
    decisions: list[Decision]
    """Everything decided: binds, evictions, statuses, conditions, events."""

    def why(self, pod: str) -> str:
        """Why a pod was not placed in the last cycle, as its user reads it; empty if it was."""
        return self.outcome.explain_task(task_named(self.outcome.session.cluster, pod))

    def verdict(self, pod: str) -> Verdict | None:
        """The same as data: reasons, nodes and plugins."""
        task = task_named(self.outcome.session.cluster, pod)
        return self.outcome.session.attempts.verdicts.get(task.job, {}).get(task) if task.job else None

    def __repr__(self) -> str:
        return f"Result(binds={self.binds}, evicted={self.evicted}, pending={list(self.pending)}, lost={self.lost!r})"
