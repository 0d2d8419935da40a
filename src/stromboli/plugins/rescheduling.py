"""Move pods away from nodes that are really busy while others are idle, every now and then (spec 03 17)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from stromboli.api import go_scalars, names
from stromboli.api.resources.quantity import Quantity, QuantityError, exact
from stromboli.api.resources.resource_lists import amounts
from stromboli.api.types.pod import PodSpec
from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.model.cluster import Dirty
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.node_columns import Node
from stromboli.model.shape import VIEW_CPU, VIEW_MEMORY
from stromboli.model.task import Task
from stromboli.policy.arguments import arg, arg_map

LOW_NODE_UTILIZATION = "lowNodeUtilization"
MEASURED = "10m"
"""The one period that measurements are averaged over."""
DIMS = ((names.CPU, CPU, VIEW_CPU), (names.MEMORY, MEMORY, VIEW_MEMORY))
INTERVAL = 300.0
NO_EFFECT = "Accepted; has no effect, as in Volcano."


@dataclass(frozen=True, slots=True)
class LowNodeUtilization:
    """When a node counts as idle and when as busy."""

    thresholds: Mapping[str, int] = arg_map(
        "thresholds", {}, "Below all of these percentages (`cpu`, `memory`; 100 unless given) a node is idle."
    )
    targets: Mapping[str, int] = arg_map(
        "targetThresholds",
        {},
        "Above any of these percentages a node is busy, and pods leave it until below.",
    )
    node_fit: Any = arg("nodeFit", None, NO_EFFECT)
    number_of_nodes: Any = arg("numberOfNodes", None, NO_EFFECT)
    priority_class: Any = arg("thresholdPriorityClassName", None, NO_EFFECT)
    queue_selector: Any = arg("queueSelector", None, NO_EFFECT)
    label_selector: Any = arg("labelSelector", None, NO_EFFECT)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to choose who moves."""

    name: str = arg(
        "name",
        "",
        "`lowNodeUtilization`; there is no other.",
        check=lambda name: None if name == LOW_NODE_UTILIZATION else f"must be {LOW_NODE_UTILIZATION}",
    )
    params: LowNodeUtilization = arg_map("params", LowNodeUtilization(), "Its terms.")


@dataclass(frozen=True, slots=True)
class ReschedulingArguments:
    """How often somebody may be moved, and why."""

    interval: str = arg("interval", "5m", "How often to look; what is no duration counts as 5m.")
    period: str = arg(
        "metricsPeriod",
        "5m",
        "What measurements are averaged over; only `10m` exists, anything else moves nobody.",
    )
    strategies: tuple[Strategy, ...] = arg(
        "strategies", (), "Who moves: `lowNodeUtilization` unless given; an unknown name is ignored."
    )


@dataclass(slots=True, eq=False)
class Loaded:
    """A node with how busy it is, in percent by resource; eviction lowers that."""

    node: Node
    percent: dict[str, float]
    size: dict[str, int]


class Rescheduling(Plugin):
    """Names pods on busy nodes as victims for shuffle, as many as idle nodes have room for."""

    name = "rescheduling"
    Arguments = ReschedulingArguments
    arguments: ReschedulingArguments

    def __init__(self, arguments: ReschedulingArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        interval = go_scalars.duration(arguments.interval)
        self._interval = INTERVAL if interval is None else interval
        self._due = False

    def opening(self, session: Session, dirty: Dirty) -> None:
        """It is time once the interval has passed since the last look; the first one begins with the process."""
        last = _last_look(session.cluster.memory.get(self.name), session.now)
        self._due = last is not None and last + self._interval < session.now
        if self._due or last is None:
            self._remember(session)

    def _remember(self, session: Session) -> None:
        memory = session.cluster.memory
        before = dict(memory)

        def back() -> None:
            memory.pop(self.name)
            memory.update({name: known for name, known in before.items() if name == self.name})

        memory[self.name] = {"last": session.now}
        session.record(back, committed=True)

    def victim_tasks(self, tasks: list[Task]) -> list[Task]:
        if not self._due or self.arguments.period != MEASURED:
            return []  # quirk: spec 03 17: measurements of any other period read as 0 %
        victims: dict[Task, None] = {}
        for strategy in self.arguments.strategies:
            if strategy.name == LOW_NODE_UTILIZATION:
                victims |= dict.fromkeys(self._relieve(strategy.params, tasks))
        return list(victims)

    def _relieve(self, params: LowNodeUtilization, tasks: Sequence[Task]) -> list[Task]:
        """Pods that leave busy nodes until those are below their targets, or idle nodes have no room left."""
        targets = _percentages(params.targets)
        nodes = self._measured()
        idle = {one for one in nodes if _idle(one, _percentages(params.thresholds))}
        busy = [one for one in nodes if one not in idle and any(one.percent[r] > targets[r] for r in targets)]
        if not idle or len(idle) == len(nodes) or not busy:
            return []
        budget = {
            resource: sum(
                _of(targets[resource], one, row) - _of(one.percent[resource], one, row) for one in idle
            )
            for resource, _, row in DIMS
        }
        running, victims = set(tasks), list[Task]()
        for one in sorted(busy, key=lambda one: -sum(one.percent.values())):
            for task in sorted(running.intersection(one.node.tasks), key=_least_first):
                # quirk: spec 03 17: a budget below zero stops nobody, only one of exactly zero does
                if all(one.percent[r] < targets[r] for r in targets) or 0 in budget.values():
                    break
                victims.append(task)
                _leave(task, one, budget)
        return victims

    def _measured(self) -> list[Loaded]:
        """Nodes of which it is known how busy they are; others are neither idle nor busy."""
        cluster, now = self.session.cluster, self.session.now
        return [
            Loaded(node, {names.CPU: usage.cpu, names.MEMORY: usage.memory}, _capacity(node))
            for node in cluster.columns.nodes
            if (usage := cluster.usage.get(node.name)) is not None and usage.fresh(now)
        ]


def _last_look(memory: Any, now: float) -> float | None:
    """When it last looked; none if that is not known, or lies in the future."""
    last = memory.get("last") if isinstance(memory, dict) else None
    return last if isinstance(last, int | float) and last <= now else None


def _percentages(given: Mapping[str, int]) -> dict[str, int]:
    return {resource: given.get(resource, 100) for resource, *_ in DIMS}


def _idle(one: Loaded, thresholds: Mapping[str, int]) -> bool:
    schedulable = one.node.object is not None and not one.node.object.spec.unschedulable
    return schedulable and all(one.percent[resource] < thresholds[resource] for resource in thresholds)


def _of(percent: float, one: Loaded, row: int) -> int:
    """So many percent of what a node can give away (of its status, if that says nothing)."""
    size = one.node.view_allocatable[row] or one.size[names.CPU if row == VIEW_CPU else names.MEMORY]
    return int(percent / 100 * size)


def _leave(task: Task, one: Loaded, budget: dict[str, int]) -> None:
    for resource, dim, _ in DIMS:
        request = int(task.request.get(dim, 0))
        budget[resource] -= request
        if one.size[resource] > 0:
            one.percent[resource] -= request / one.size[resource] * 100


def _capacity(node: Node) -> dict[str, int]:
    stated = node.object.status.capacity if node.object is not None else {}
    known = amounts({name: stated[name] for name, *_ in DIMS if name in stated}, "status.capacity")
    return {name: known.get(name, 0) for name, *_ in DIMS}


def _least_first(task: Task) -> tuple[int, int, float, str]:
    """Lower priority first, then who was promised less."""
    return (task.priority, _promised(task.shape.spec), task.created, task.uid)


def _promised(spec: PodSpec) -> int:
    """Kubernetes' quality of service: 0 best effort, 1 burstable, 2 guaranteed."""
    stated, guaranteed = False, True
    for container in (*spec.containers, *spec.init_containers):
        requests, limits = container.resources.requests, container.resources.limits
        for name in (names.CPU, names.MEMORY):
            limit = _amount(limits.get(name, 0))
            request = _amount(requests[name]) if name in requests else limit
            stated = stated or request > 0 or limit > 0
            guaranteed = guaranteed and request == limit > 0
    return 0 if not stated else 2 if guaranteed else 1


def _amount(quantity: Quantity) -> Fraction:
    """What cannot be read counts as nothing."""
    try:
        return exact(quantity)
    except QuantityError:
        return Fraction(0)
