"""The estimated load of pods that are too new to show in measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stromboli.model.cluster import Change
from stromboli.model.node_columns import Node
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.plugins.usage.usage_estimator import Load

NOTHING = Load(0, 0)
PLACED = (Status.ALLOCATED, Status.PIPELINED, Status.BINDING, Status.BOUND, Status.RUNNING)
Estimate = Callable[[Task, Node], Load]


class UnmeasuredLoad:
    """The estimated load of each task and its sum on each node; the undo of a move restores both exactly."""

    def __init__(self, estimate: Estimate):
        self.nodes: dict[Node, Load] = {}
        """Nodes with any unmeasured load."""
        self.tasks: dict[Task, tuple[Node, Load]] = {}
        self._estimate = estimate
        self._before: dict[Task, list[tuple[Node, Load] | None]] = {}
        self._on: dict[Node, dict[Task, None]] = {}

    @property
    def loaded(self) -> list[Node]:
        """Nodes with a task that has an estimate."""
        return list(self._on)

    def on(self, node: Node) -> Load:
        return self.nodes.get(node, NOTHING)

    def begin(self) -> None:
        """A session begins: there are no moves to undo."""
        self._before.clear()

    def recount(self, node: Node, tasks: Iterable[Task]) -> None:
        """Estimate these tasks of a node again, in this order, each on top of those before it."""
        for task in list(self._on.get(node, ())):
            self._set(task, None)
        for task in tasks:
            self._set(task, (node, self._estimate(task, node)))

    def move(self, change: Change) -> Iterable[Node]:
        """Follow a move or its undo; returns the nodes whose load changed."""
        task = change.task
        held = self.tasks.get(task)
        if change.undo:
            now = self._before[task].pop()
        else:
            self._before.setdefault(task, []).append(held)
            now = self._after(change, held)
        if now == held:
            return ()
        self._set(task, now)
        return [entry[0] for entry in (held, now) if entry is not None]

    def _after(self, change: Change, held: tuple[Node, Load] | None) -> tuple[Node, Load] | None:
        """A newly placed task gets an estimate; one that stays on its node keeps what it had."""
        if change.node is None or change.status not in PLACED:
            return None
        if change.node is change.old_node and change.old_status in PLACED:
            return held
        self._set(change.task, None)
        return (change.node, self._estimate(change.task, change.node))

    def _set(self, task: Task, now: tuple[Node, Load] | None) -> None:
        held = self.tasks.pop(task, None)
        if held is not None:
            self._add(held[0], held[1], -1)
            del self._on[held[0]][task]
            if not self._on[held[0]]:
                del self._on[held[0]]
        if now is not None:
            self.tasks[task] = now
            self._add(now[0], now[1], 1)
            self._on.setdefault(now[0], {})[task] = None

    def _add(self, node: Node, load: Load, sign: int) -> None:
        on = self.on(node)
        total = Load(on.cpu + sign * load.cpu, on.memory + sign * load.memory)
        if total == NOTHING:
            self.nodes.pop(node, None)
        else:
            self.nodes[node] = total
