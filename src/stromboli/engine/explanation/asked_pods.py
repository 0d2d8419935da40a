"""For how many pods of a gang a domain must have room: its minimum, or by the rule of Volcano all that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stromboli.engine.explanation.closest_domain import pods
from stromboli.engine.topology.confinement import placed
from stromboli.engine.topology.label_topology import label_key
from stromboli.model.job import SubJob
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.job import Job
    from stromboli.model.task import Task

PLUGIN = "network-topology-aware"
"""It asks a HyperNode for room for all pods that wait, unless an argument says otherwise (spec 04 9)."""
SET_MINIMUM = f"set startWithMinimum of {PLUGIN}"


class Asked(NamedTuple):
    """The pods of a job or a sub-group for which a domain must have room."""

    tasks: list[Task]
    needed: int
    """How many of them it has to have to start."""
    text: str
    """`16 pods`, `4 pods of subgroup worker`, `all 4 pending pods, although 1 would be enough to start`."""

    @property
    def more_than_needed(self) -> bool:
        return len(self.tasks) > self.needed


class AskedPods:
    """The pods for which domains must have room, by job or sub-group, when the actions of a cycle have run."""

    def __init__(self, session: Session):
        self._session = session
        self._known: dict[Job | SubJob, Asked] = {}
        entries = (entry for entry in session.policy.plugins if entry.name == PLUGIN)
        self._all = any(not getattr(entry.arguments, "start_with_minimum", False) for entry in entries)

    def of(self, unit: Job | SubJob) -> Asked:
        if unit not in self._known:
            self._known[unit] = self._of(unit)
        return self._known[unit]

    def _of(self, unit: Job | SubJob) -> Asked:
        tasks = unit.tasks if isinstance(unit, SubJob) else unit.tasks.values()
        waiting = [task for task in tasks if task.status is Status.PENDING and not task.gates]
        needed = min(self._session.rules.tasks_needed(unit), len(waiting))
        if needed < len(waiting):
            waiting.sort(key=lambda task: task.order)
            if not self._asks_for_all(unit):
                waiting = waiting[:needed]
        return Asked(waiting, needed, _text(unit, len(waiting), needed))

    def _asks_for_all(self, unit: Job | SubJob) -> bool:
        """Not of a job with sub-groups, of which each is asked for, nor of a gang that knows its domain."""
        whole = isinstance(unit, SubJob) or not unit.policies
        return self._all and whole and not label_key(unit) and not any(placed(unit))


def _text(unit: Job | SubJob, asked: int, needed: int) -> str:
    text = f"all {asked} pending pods" if asked > needed else pods(max(unit.minimum, 1))
    if isinstance(unit, SubJob) and unit.policy is not None:
        text += f" of subgroup {unit.policy.name}"
    return f"{text}, although {needed} would be enough to start" if asked > needed else text
