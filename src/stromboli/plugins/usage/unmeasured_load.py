"""The load that is on its way: what pods will use that measurements do not show yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stromboli.model.cluster import Change
from stromboli.model.node_columns import Node
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.plugins.usage.usage_estimator import Load

NOTHING = Load(0, 0)
PLACED = (Status.ALLOCATED, Status.PIPELINED, Status.BINDING, Status.BOUND, Status.RUNNING)
Guess = Callable[[Task, Node], Load]


class Shadow:
    """What is expected of each task and, added up, of each node; whatever a move does, its undo takes back exactly."""

    def __init__(self, guess: Guess):
        self.nodes: dict[Node, Load] = {}
        """Nodes with any load on its way."""
        self.tasks: dict[Task, tuple[Node, Load]] = {}
        self._guess = guess
        self._before: dict[Task, list[tuple[Node, Load] | None]] = {}
        self._on: dict[Node, dict[Task, None]] = {}

    @property
    def loaded(self) -> list[Node]:
        """Nodes with a task that is expected to add to their load."""
        return list(self._on)

    def on(self, node: Node) -> Load:
        return self.nodes.get(node, NOTHING)

    def begin(self) -> None:
        """A session begins: there is nothing that could be taken back."""
        self._before.clear()

    def recount(self, node: Node, tasks: Iterable[Task]) -> None:
        """Guess afresh for a node: these tasks, in this order, each seeing those before it."""
        for task in list(self._on.get(node, ())):
            self._set(task, None)
        for task in tasks:
            self._set(task, (node, self._guess(task, node)))

    def move(self, change: Change) -> Iterable[Node]:
        """Follow a move, or the taking back of one; the nodes whose load is another now."""
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
        return [one[0] for one in (held, now) if one is not None]

    def _after(self, change: Change, held: tuple[Node, Load] | None) -> tuple[Node, Load] | None:
        """Who is placed adds its load; who was there already keeps what was expected of it, if anything was."""
        if change.node is None or change.status not in PLACED:
            return None
        if change.node is change.old_node and change.old_status in PLACED:
            return held
        self._set(change.task, None)
        return (change.node, self._guess(change.task, change.node))

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
