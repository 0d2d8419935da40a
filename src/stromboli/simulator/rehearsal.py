"""A world in memory: what is decided in one cycle has come true by the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stromboli.api.meta import Object, ObjectMeta
from stromboli.api.pod import Pod
from stromboli.engine.decisions import Bind, Decision, Evict
from stromboli.model.cluster import Cluster
from stromboli.model.intake import Intake
from stromboli.model.status import Status
from stromboli.model.task import Task


class Rehearsal:
    """A cluster without machines: bound pods run, evicted pods vanish, time passes when somebody sleeps."""

    def __init__(self, intake: Intake | None = None, now: float = 0.0) -> None:
        self.intake = intake or Intake()
        self._now = now
        self._decided: list[Decision] = []

    # -- the world as a scheduler sees it

    @property
    def cluster(self) -> Cluster:
        return self.intake.cluster

    def news(self) -> None:
        """Everything decided so far comes true."""
        decided, self._decided = self._decided, []
        for decision in decided:
            effect = _EFFECTS.get(type(decision))
            task = self.cluster.tasks.get(decision.uid) if isinstance(decision, Bind | Evict) else None
            if effect is not None and task is not None:
                effect(self, task)

    def carry_out(self, decisions: Sequence[Decision]) -> None:
        self._decided.extend(decisions)

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds

    # -- what else may happen in it

    def put(self, thing: Object) -> None:
        """An object is new, or changed."""
        self.intake.put(thing)

    def drop(self, thing: Object) -> None:
        """An object is gone."""
        self.intake.drop(thing)

    def start(self, task: Task) -> None:
        """A bound pod runs."""
        task.started = self._now
        self.cluster.move(task, Status.RUNNING, task.node)

    def finish(self, task: Task, failed: bool = False) -> None:
        """A running pod is done, well or badly, and holds nothing any more."""
        self.cluster.move(task, Status.FAILED if failed else Status.SUCCEEDED, None)

    def vanish(self, task: Task) -> None:
        """A pod is gone, as after an eviction."""
        self.intake.drop(Pod(metadata=ObjectMeta(name=task.name, namespace=task.namespace, uid=task.uid)))


_EFFECTS: dict[type[Decision], Callable[[Rehearsal, Task], None]] = {
    Bind: Rehearsal.start,
    Evict: Rehearsal.vanish,
}
