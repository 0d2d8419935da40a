"""Remedies for one job, tried one after the other within bounds: what helps is kept, and what was in vain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stromboli.model.cluster import Cluster
from stromboli.model.job import Job
from stromboli.model.shape import Shape
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.policy import Policy
from stromboli.simulator.explain.changed_cycles import StartTrials
from stromboli.simulator.explain.eviction_answers import EVICTING
from stromboli.simulator.explain.explanation_document import ObjectChange, Remedy
from stromboli.simulator.explain.room_by_nodes import slots_for
from stromboli.simulator.explain.wait_clues import WaitClues

MOST_TRIALS = 24
FEWEST_TRIALS = 3
WORK = 50_000
"""What all trials together may look at: nodes, jobs, and four times the pods that wait; about a quarter of a second."""
MOST_WORK = 100_000
"""What the fewest trials may look at, but for the first."""


@dataclass(slots=True)
class Remedies:
    """What helps, what was tried in vain, and how much was not tried."""

    helpful: list[Remedy] = field(default_factory=list)
    in_vain: list[str] = field(default_factory=list)
    untried: int = 0


class RemedyTrials:
    """Tries remedies for one job."""

    def __init__(
        self, cluster: Cluster, trials: StartTrials, policy: Policy, clues: WaitClues, now: float
    ) -> None:
        self.cluster = cluster
        self.now = now
        self.policy = policy
        self.clues = clues
        self.remedies = Remedies()
        self._trials = trials
        waiting = sum(job.counts[Status.PENDING] for job in cluster.backlog)
        self._cost = max(len(cluster.nodes) + len(cluster.jobs) + 4 * waiting, 1)
        if any(action in policy.actions for action in EVICTING):
            self._cost *= 2  # victims are sought too
        self._work = max(WORK, min(FEWEST_TRIALS * self._cost, MOST_WORK), self._cost)
        self._left = MOST_TRIALS
        self._left_of_family = MOST_TRIALS

    @property
    def job(self) -> Job:
        return self.cluster.jobs[self.clues.id]

    def begin_family(self, families: int) -> None:
        """Remedies of one kind follow; where fewer trials are left than kinds, each kind has one of them."""
        left = min(self._left, self._work // self._cost)
        self._left_of_family = 1 if left < families else left

    def attempt(self, remedy: Remedy, in_vain: str = "") -> bool:
        """Whether the job starts with a remedy, which is then kept; `in_vain` names it if it does not help."""
        cost = self._cost + (len(self.cluster.tasks) if remedy.actions else 0)  # victims are sought among all
        if min(self._left, self._left_of_family) <= 0 or cost > self._work:
            self.remedies.untried += 1
            return False
        self._left -= 1
        self._left_of_family -= 1
        self._work -= cost
        trial = self._trials.run(self.clues.id, remedy.changes, remedy.actions)
        if trial.starts:
            remedy.cycles, remedy.evicts = trial.cycles, trial.evicts
            self.remedies.helpful.append(remedy)
        elif in_vain:
            self.remedies.in_vain.append(in_vain)
        return trial.starts

    def leave_out(self) -> None:
        """A remedy is too large to be tried."""
        self.remedies.untried += 1

    @property
    def exhausted(self) -> bool:
        """Whether remedies were left out, so that what did not help may not have been tried."""
        return self.remedies.untried > 0

    def tasks_by_shape(self) -> list[list[Task]]:
        """The tasks that wait, equal ones together."""
        by_shape: dict[Shape, list[Task]] = {}
        for task in self.clues.tasks:
            by_shape.setdefault(task.shape, []).append(task)
        return list(by_shape.values())

    def pods_with_room(self) -> int:
        """How many of the pods that wait have room, each kind by itself."""
        return slots_for(self.clues.kinds).total


def pods_patch(tasks: Sequence[Task], patch: dict[str, Any]) -> ObjectChange:
    return ObjectChange("patch", "Pod", [task.name for task in tasks], tasks[0].namespace, patch)


def listed(amounts: dict[str, str]) -> str:
    """`cpu 4, memory 8Gi`."""
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items())
