"""Evict pods from nodes with high measured load while others are idle, at intervals (spec 03 17)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any

from stromboli.api import go_scalars, names
from stromboli.api.resources.qos import BEST_EFFORT, BURSTABLE, GUARANTEED, qos_class
from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.model.cluster import Dirty
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.node_columns import Node
from stromboli.model.node_usage import measured_capacity
from stromboli.model.shape import VIEW_CPU, VIEW_MEMORY
from stromboli.model.task import Task
from stromboli.policy.arguments import arg, arg_map

LOW_NODE_UTILIZATION = "lowNodeUtilization"
MEASURED_PERIOD = "10m"
"""The only period over which measurements are averaged."""
DIMS = ((names.CPU, CPU, VIEW_CPU), (names.MEMORY, MEMORY, VIEW_MEMORY))
INTERVAL = 300.0
NO_EFFECT = "Accepted without effect, as in Volcano."


@dataclass(frozen=True, slots=True)
class LowNodeUtilization:
    """When a node counts as idle and when as busy."""

    thresholds: Mapping[str, int] = arg_map(
        "thresholds", {}, "A node below all of these percentages (`cpu`, `memory`; 100 by default) is idle."
    )
    targets: Mapping[str, int] = arg_map(
        "targetThresholds",
        {},
        "A node above any of these percentages is busy; its pods are evicted until it is below.",
    )
    node_fit: Any = arg("nodeFit", None, NO_EFFECT)
    number_of_nodes: Any = arg("numberOfNodes", None, NO_EFFECT)
    priority_class: Any = arg("thresholdPriorityClassName", None, NO_EFFECT)
    queue_selector: Any = arg("queueSelector", None, NO_EFFECT)
    label_selector: Any = arg("labelSelector", None, NO_EFFECT)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to choose the pods to evict."""

    name: str = arg(
        "name",
        "",
        "`lowNodeUtilization`, the only strategy.",
        check=lambda name: None if name == LOW_NODE_UTILIZATION else f"must be {LOW_NODE_UTILIZATION}",
    )
    params: LowNodeUtilization = arg_map("params", LowNodeUtilization(), "Parameters of the strategy.")


@dataclass(frozen=True, slots=True)
class ReschedulingArguments:
    """How often pods may be evicted, and why."""

    interval: str = arg("interval", "5m", "Interval between evaluations; an invalid duration counts as 5m.")
    period: str = arg(
        "metricsPeriod",
        "5m",
        "Averaging period of measurements; only `10m` exists, with any other no pod is evicted.",
    )
    strategies: tuple[Strategy, ...] = arg(
        "strategies", (), "Eviction strategies; `lowNodeUtilization` by default, unknown names are ignored."
    )


@dataclass(slots=True, eq=False)
class NodeLoad:
    """A node with its load in percent by resource, which evictions lower."""

    node: Node
    percent: dict[str, float]
    size: dict[str, int]


class Rescheduling(Plugin):
    """Selects pods on busy nodes for eviction by shuffle, as many as fit on idle nodes."""

    name = "rescheduling"
    Arguments = ReschedulingArguments
    arguments: ReschedulingArguments

    def __init__(self, arguments: ReschedulingArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        interval = go_scalars.duration(arguments.interval)
        self._interval = INTERVAL if interval is None else interval
        self._due = False

    def opening(self, session: Session, dirty: Dirty) -> None:
        """Evictions are due once the interval has passed; the first interval starts with the process."""
        memory = session.cluster.memory
        before = memory.get(self.name)
        last = _last_run(before, session)
        self._due = last is not None and session.has_come(nextafter(last + self._interval, inf))
        if self._due or last is None:
            session.restore_if_lost(memory, self.name, before)
            memory[self.name] = {"last": session.now}

    def victim_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        if not self._due or self.arguments.period != MEASURED_PERIOD:
            return []  # quirk: spec 03 17: measurements of any other period read as 0 %
        victims: dict[Task, None] = {}
        for strategy in self.arguments.strategies:
            if strategy.name == LOW_NODE_UTILIZATION:
                victims |= dict.fromkeys(self._low_node_utilization(strategy.params, tasks))
        return list(victims)

    def _low_node_utilization(self, params: LowNodeUtilization, tasks: Sequence[Task]) -> list[Task]:
        """Victims on busy nodes until those are below their targets, or idle nodes have no capacity left."""
        targets = _percentages(params.targets)
        nodes = self._measured()
        idle = {load for load in nodes if _idle(load, _percentages(params.thresholds))}
        busy = [
            load for load in nodes if load not in idle and any(load.percent[r] > targets[r] for r in targets)
        ]
        if not idle or len(idle) == len(nodes) or not busy:
            return []
        budget = {
            resource: sum(
                _of(targets[resource], load, row) - _of(load.percent[resource], load, row) for load in idle
            )
            for resource, _, row in DIMS
        }
        running, victims = set(tasks), list[Task]()
        for load in sorted(busy, key=lambda load: -sum(load.percent.values())):
            for task in sorted(running.intersection(load.node.tasks), key=_victim_order):
                # quirk: spec 03 17: a budget below zero stops no eviction, only one of exactly zero does
                if all(load.percent[r] < targets[r] for r in targets) or 0 in budget.values():
                    break
                victims.append(task)
                _evict(task, load, budget)
        return victims

    def _measured(self) -> list[NodeLoad]:
        """Nodes with fresh measurements; others are neither idle nor busy."""
        cluster, now = self.session.cluster, self.session.now
        return [
            NodeLoad(node, {names.CPU: usage.cpu, names.MEMORY: usage.memory}, measured_capacity(node))
            for node in cluster.columns.nodes
            if (usage := cluster.usage.get(node.name)) is not None and usage.fresh(now)
        ]


def _last_run(memory: Any, session: Session) -> float | None:
    """When evictions were last due; None if unknown or in the future."""
    last = memory.get("last") if isinstance(memory, dict) else None
    return last if isinstance(last, int | float) and session.has_come(last) else None


def _percentages(given: Mapping[str, int]) -> dict[str, int]:
    return {resource: given.get(resource, 100) for resource, *_ in DIMS}


def _idle(load: NodeLoad, thresholds: Mapping[str, int]) -> bool:
    schedulable = load.node.object is not None and not load.node.object.spec.unschedulable
    return schedulable and all(load.percent[resource] < thresholds[resource] for resource in thresholds)


def _of(percent: float, load: NodeLoad, row: int) -> int:
    """So many percent of what is allocatable on a node (of its capacity, if nothing is)."""
    size = load.node.view_allocatable[row] or load.size[names.CPU if row == VIEW_CPU else names.MEMORY]
    return int(percent / 100 * size)


def _evict(task: Task, load: NodeLoad, budget: dict[str, int]) -> None:
    for resource, dim, _ in DIMS:
        request = int(task.request.get(dim, 0))
        budget[resource] -= request
        if load.size[resource] > 0:
            load.percent[resource] -= request / load.size[resource] * 100


def _victim_order(task: Task) -> tuple[int, int, float, str]:
    """Lower priority first, then the lower quality of service."""
    quality = (BEST_EFFORT, BURSTABLE, GUARANTEED).index(qos_class(task.shape.spec))
    return (task.priority, quality, task.created, task.uid)
