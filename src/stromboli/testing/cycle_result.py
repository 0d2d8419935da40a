"""What the cycles of a test decided, for assertions."""

from __future__ import annotations

from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Decision
from stromboli.engine.explanation.wait_explanation import WaitExplanation
from stromboli.engine.placement.verdict import Verdict
from stromboli.model.task import Task
from stromboli.simulator.cycle_report import Report


class Result:
    """The decisions of one run: of all its cycles together, with `cycles` for each one alone."""

    def __init__(self, outcomes: list[Outcome], reports: list[Report], warnings: list[str]) -> None:
        self.outcome = outcomes[-1]
        """The last cycle in full: its session, seconds and verdicts."""
        self.cycles = reports
        self.warnings = warnings
        """What is odd about the policy."""
        self.decisions: list[Decision] = [decision for outcome in outcomes for decision in outcome.decisions]
        """Everything decided: binds, evictions, statuses, conditions, events."""
        self._whole = Report.together(reports)

    @property
    def binds(self) -> dict[str, str]:
        """Pod to node, in the order of binding."""
        return self._whole.binds

    @property
    def bound_per_job(self) -> dict[str, int]:
        return self._whole.bound_per_job

    @property
    def evicted(self) -> list[str]:
        """Pods, sorted."""
        return self._whole.evicted

    @property
    def pipelined(self) -> dict[str, str]:
        """Pods held for a node that is still being freed when the last cycle ends."""
        return self._whole.pipelined

    @property
    def phases(self) -> dict[str, str]:
        """Of every PodGroup, after the last cycle."""
        return self._whole.phases

    @property
    def pending(self) -> dict[str, WaitExplanation]:
        """Jobs that wait after the last cycle, each with its reason."""
        return self._whole.pending

    @property
    def lost(self) -> str:
        """Why a cycle came to nothing; empty if none did."""
        return self._whole.lost

    @property
    def failures(self) -> list[str]:
        """Plugins that raised, each in a sentence."""
        return self._whole.failures

    def why(self, pod: str) -> str:
        """Why a pod was not placed in the last cycle, as its user reads it; empty if it was."""
        return self.outcome.explain_task(self._task(pod))

    def verdict(self, pod: str) -> Verdict | None:
        """The same as data: reasons, nodes and plugins."""
        task = self._task(pod)
        return self.outcome.session.verdicts.get(task.job, {}).get(task) if task.job else None

    def _task(self, pod: str) -> Task:
        tasks = self.outcome.session.cluster.tasks.values()
        named = [task for task in tasks if pod in (task.key, task.name)]
        if not named:
            raise LookupError(
                f"there is no pod {pod!r}; there are: {', '.join(sorted(t.key for t in tasks))}"
            )
        return named[0]

    def __repr__(self) -> str:
        return f"Result(binds={self.binds}, evicted={self.evicted}, pending={list(self.pending)}, lost={self.lost!r})"
