"""The plugin `usage`: filters and scores nodes by their measured load (spec 03 18)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.resources.pod_totals import spec_total
from stromboli.api.resources.quantity import QuantityError, milli, whole
from stromboli.api.resources.resource_lists import amounts
from stromboli.api.types.meta import Quantity
from stromboli.api.types.pod import PodSpec
from stromboli.engine.placement.node_functions import (
    Bools,
    Check,
    Column,
    Floats,
    NodeFilter,
    Nodes,
    NodeScore,
)
from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.model.cluster import Change, Dirty
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.node_columns import Columns, Node
from stromboli.model.node_usage import FRESH, NodeUsage, interval, measured_capacity
from stromboli.model.shape import Shape
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.argument_checks import at_least, between
from stromboli.policy.arguments import arg, arg_map

# -- the estimated load of one pod that is too new to show in measurements


MIB = 1024 * 1024


class Load(NamedTuple):
    """Milli-CPU and bytes, whole numbers, so that sums can be undone exactly."""

    cpu: int
    memory: int


def _amount(value: int | str) -> str | None:
    try:
        return None if memory_of(value) >= 0 else "must not be negative"
    except QuantityError as error:
        return str(error)


def cpu_of(value: int | str) -> int:
    """Milli-CPU: a whole number is that, a text is a quantity."""
    return value if isinstance(value, int) else milli(value)


def memory_of(value: int | str) -> int:
    """Bytes: a whole number is MiB, a text is a quantity."""
    return value * MIB if isinstance(value, int) else whole(value)


@dataclass(frozen=True, slots=True)
class EstimatorArguments:
    """The fraction of its request that a pod is expected to use."""

    request_ratio: float = arg(
        "request_ratio", 0.7, "Fraction of its request that a pod is expected to use.", check=between(0, 1)
    )
    burst_ratio: float = arg(
        "burst_ratio",
        0.0,
        "Expected fraction of the difference between its limit and its request.",
        check=between(0, 1),
    )
    risk_threshold: float = arg(
        "risk_threshold",
        0.6,
        "Utilization of a node above which pods are expected to use more.",
        check=between(0, 1),
    )
    risk_factor: float = arg(
        "risk_factor",
        1.2,
        "Factor of the estimate above `risk_threshold`.",
        check=at_least(1),
    )
    best_effort_cpu: int | str = arg(
        "be_cpu",
        "250m",
        "Expected CPU usage of a pod without requests: milli-CPU, or a quantity.",
        check=_amount,
    )
    best_effort_memory: int | str = arg(
        "be_mem",
        "200Mi",
        "Expected memory usage of a pod without requests: MiB, or a quantity.",
        check=_amount,
    )


class Estimator:
    """Two estimates per shape: the usual one, and one for nodes that are full."""

    def __init__(self, arguments: EstimatorArguments):
        self._arguments = arguments
        self._best_effort = Load(cpu_of(arguments.best_effort_cpu), memory_of(arguments.best_effort_memory))
        self._known: WeakKeyDictionary[Shape, tuple[Load, Load]] = WeakKeyDictionary()

    def load(self, task: Task, risky: bool) -> Load:
        known = self._known.get(task.shape)
        if known is None:
            known = self._known[task.shape] = (
                self._estimate(task.shape, 1.0),
                self._estimate(task.shape, self._arguments.risk_factor),
            )
        return known[risky]

    def _estimate(self, shape: Shape, risk: float) -> Load:
        if shape.best_effort:
            return Load(round(self._best_effort.cpu * risk), round(self._best_effort.memory * risk))
        most = limits(shape.spec)
        return Load(
            self._expect(int(shape.request.get(CPU, 0)), most.get(names.CPU, 0), risk),
            self._expect(int(shape.request.get(MEMORY, 0)), most.get(names.MEMORY, 0), risk),
        )

    def _expect(self, request: int, limit: int, risk: float) -> int:
        most = max(limit, request)
        ratios = self._arguments
        expected = (request * ratios.request_ratio + (most - request) * ratios.burst_ratio) * risk
        return round(min(max(expected, 0.0), most))


def limits(spec: PodSpec) -> dict[str, int]:
    """The limits of a pod as a whole."""
    return spec_total(spec, lambda resources: _amounts(resources.limits))


def _amounts(stated: Mapping[str, Quantity]) -> dict[str, int]:
    """Cpu and memory; an invalid limit counts as missing."""
    readable: dict[str, int] = {}
    for name in (names.CPU, names.MEMORY):
        if name in stated:
            try:
                readable |= amounts({name: stated[name]}, "limits")
            except BadObject:
                continue
    return readable


# -- the plugin


_NEVER = NodeUsage(0.0, 0.0, -np.inf)
_UNMEASURED = (Status.ALLOCATED, Status.BINDING, Status.BOUND)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The maximum load of a node that accepts pods, in percent."""

    cpu: int = arg("cpu", 80, "Nodes that use more of their cpu accept no pods.", check=between(0, 100))
    memory: int = arg("mem", 80, "Nodes that use more of their memory accept no pods.", check=between(0, 100))


@dataclass(frozen=True, slots=True)
class UsageArguments:
    """The weight of measured load, and the expected load of pods that are too new to be measured."""

    weight: int = arg("usage.weight", 5, "Weight of the score.", check=at_least(0))
    cpu: int = arg("cpu.weight", 1, "Weight of cpu.", check=at_least(0))
    memory: int = arg("memory.weight", 1, "Weight of memory.", check=at_least(0))
    thresholds: Thresholds = arg_map("thresholds", Thresholds(), "Maximum usage of nodes, in percent.")
    estimator: EstimatorArguments = arg_map(
        "estimator", EstimatorArguments(), "Estimate of a new pod's usage."
    )


class Usage(Plugin):
    """Excludes busy nodes and prefers idle ones, by measured usage and an estimate for new pods."""

    name = "usage"
    Arguments = UsageArguments
    arguments: UsageArguments

    def __init__(self, arguments: UsageArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self.unmeasured = UnmeasuredLoad(self._estimate)
        self._estimator = Estimator(arguments.estimator)
        self._measured: Mapping[str, NodeUsage] = {}
        self._layout = -1
        self._clock = -1
        self._cpu = self._memory = self._at = np.zeros(0)
        self._fresh: Bools = np.zeros(0, dtype=bool)
        self._load: Floats = np.zeros((2, 0))
        self._scores: Floats | None = None
        self._filter_version = self._score_version = 0

    # -- sessions

    def opening(self, session: Session, dirty: Dirty) -> None:
        columns, cluster = session.cluster.columns, session.cluster
        self.unmeasured.begin()
        new_measurements = self._measured is not cluster.usage or self._layout != columns.layout
        if new_measurements or dirty.everything:
            self._measured, self._layout = cluster.usage, columns.layout
            self._read_measurements(columns.nodes)
        fresh = session.now - self._at <= FRESH
        if new_measurements or dirty.everything or not np.array_equal(fresh, self._fresh):
            self._fresh = fresh
            self._filter_version += 1
        self._update_estimates(session, dirty)
        self._score_changed()

    def _read_measurements(self, nodes: list[Node]) -> None:
        """Measurements as columns."""
        measured = [self._measured.get(node.name, _NEVER) for node in nodes]
        self._cpu, self._memory, self._at = np.array(measured, dtype=np.float64).reshape(len(measured), 3).T

    def _update_estimates(self, session: Session, dirty: Dirty) -> None:
        """Estimate again for tasks that changed, and for tasks that may now show in measurements."""
        columns, known = session.cluster.columns, session.cluster.nodes
        if dirty.everything:
            self.unmeasured = UnmeasuredLoad(self._estimate)
            nodes = dict.fromkeys(columns.nodes)
        else:
            nodes = dict.fromkeys(columns.nodes[row] for row in np.flatnonzero(columns.version > self._clock))
            nodes |= dict.fromkeys(self.unmeasured.loaded)
        self._clock = columns.clock
        horizon = session.now - interval(session.policy.metrics)
        for node in nodes:
            tasks = node.tasks if known.get(node.name) is node and node.row >= 0 else ()
            unmeasured = [task for task in tasks if _is_unmeasured(task, horizon)]
            self.unmeasured.recount(node, sorted(unmeasured, key=lambda task: (task.created, task.uid)))
        self._load = np.zeros((2, len(columns)))
        for node, load in self.unmeasured.nodes.items():
            self._load[:, node.row] = load

    def on_move(self, change: Change) -> None:
        for node in self.unmeasured.move(change):
            if node.row >= 0:
                self._load[:, node.row] = self.unmeasured.on(node)
                self._score_changed()

    def _score_changed(self) -> None:
        self._scores = None
        self._score_version += 1

    # -- utilization

    def _estimate(self, task: Task, node: Node) -> Load:
        """The expected load of a task; higher if the node is full with all other unmeasured load."""
        return self._estimator.load(task, self._fullness(node) >= self.arguments.estimator.risk_threshold)

    def _fullness(self, node: Node) -> float:
        arguments = self.arguments
        if node.row < 0 or not arguments.cpu + arguments.memory:
            return 0.0
        size = _capacity(self.session.cluster.columns)[:, node.row]
        load = self.unmeasured.on(node)
        measured = self._measured.get(node.name, _NEVER)
        cpu = _utilization(measured.cpu, load.cpu, int(size[0]))
        memory = _utilization(measured.memory, load.memory, int(size[1]))
        return (cpu * arguments.cpu + memory * arguments.memory) / (arguments.cpu + arguments.memory)

    # -- filter and score

    def node_filters(self, task: Task) -> Iterable[NodeFilter]:
        yield NodeFilter(
            self._checks, plugin=self.name, reads="pods", version=lambda task: self._filter_version
        )

    def _checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """Scores by measurements alone, without estimates."""
        most = self.arguments.thresholds
        for measured, limit, reason in (
            (self._cpu, most.cpu, names.CPU_LOAD_TOO_HIGH),
            (self._memory, most.memory, names.MEMORY_LOAD_TOO_HIGH),
        ):
            yield Check(nodes.pick(~self._fresh | (measured <= limit)), reason)

    def node_scores(self, task: Task) -> Iterable[NodeScore]:
        arguments = self.arguments
        if arguments.weight and arguments.cpu + arguments.memory:
            yield NodeScore(
                self._score, plugin=self.name, reads="pods", version=lambda task: self._score_version
            )

    def _score(self, task: Task, nodes: Nodes) -> Column:
        """The same for every task, so it is computed once per change."""
        if self._scores is None:
            arguments, size = self.arguments, _capacity(nodes.columns)
            cpu = 1 - _utilizations(self._cpu, self._load[0], size[0])
            memory = 1 - _utilizations(self._memory, self._load[1], size[1])
            score = (cpu * arguments.cpu + memory * arguments.memory) / (arguments.cpu + arguments.memory)
            self._scores = np.where(self._fresh, score * 100 * arguments.weight, 0.0)
        return nodes.pick(self._scores)


def _is_unmeasured(task: Task, horizon: float) -> bool:
    """Whether a task on a node is too new to show in measurements."""
    if task.status is Status.RUNNING:
        return task.started is None or task.started > horizon
    return task.status in _UNMEASURED


def _capacity(columns: Columns) -> Floats:
    """Milli-CPU and bytes of every node by its status.capacity, not what is allocatable."""
    return columns.derived(_capacities)


def _capacities(columns: Columns) -> Floats:
    sizes = [tuple(measured_capacity(node).values()) for node in columns.nodes]
    return np.array(sizes, dtype=np.float64).reshape(len(sizes), 2).T


def _utilization(percent: float, load: float, size: float) -> float:
    """The utilization of a node from 0 to 1, with its unmeasured load."""
    percent = min(max(percent, 0.0), 100.0)
    return min(max((percent / 100 * size + load) / size, 0.0), 1.0) if size > 0 else 0.0


def _utilizations(percent: Floats, load: Floats, size: Floats) -> Floats:
    utilization: Floats = np.zeros(len(size))
    percent = np.clip(percent, 0.0, 100.0)
    np.divide(percent / 100 * size + load, size, out=utilization, where=size > 0)
    return np.clip(utilization, 0.0, 1.0)


# -- the estimated load of pods that are too new to show in measurements


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
        """Start a session: there are no moves to undo."""
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
