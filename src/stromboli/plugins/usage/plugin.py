"""Place by real load: keep away from nodes that are busy, prefer those that are not (spec 03 18)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from stromboli.api import names
from stromboli.api.resources.resource_lists import amounts
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
from stromboli.model.node_columns import Columns, Node
from stromboli.model.node_usage import FRESH, NodeUsage, interval
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.plugins.usage.unmeasured_load import Shadow
from stromboli.plugins.usage.usage_estimator import Estimator, EstimatorArguments, Load
from stromboli.policy.arguments import arg, arg_map

_NEVER = NodeUsage(0.0, 0.0, -np.inf)
_UNSEEN = (Status.ALLOCATED, Status.BINDING, Status.BOUND)


def _not_negative(weight: int) -> str | None:
    return "must not be negative" if weight < 0 else None


def _percent(threshold: int) -> str | None:
    return None if 0 <= threshold <= 100 else "must be from 0 to 100"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How busy a node may be and still take pods, in percent."""

    cpu: int = arg("cpu", 80, "Nodes that use more of their cpu take no pods.", check=_percent)
    memory: int = arg("mem", 80, "Nodes that use more of their memory take no pods.", check=_percent)


@dataclass(frozen=True, slots=True)
class UsageArguments:
    """How much real load counts, and what is expected of pods that are too new to be measured."""

    weight: int = arg("usage.weight", 5, "How much the whole score counts.", check=_not_negative)
    cpu: int = arg("cpu.weight", 1, "How much cpu counts.", check=_not_negative)
    memory: int = arg("memory.weight", 1, "How much memory counts.", check=_not_negative)
    thresholds: Thresholds = arg_map("thresholds", Thresholds(), "How busy a node may be.")
    estimator: EstimatorArguments = arg_map(
        "estimator", EstimatorArguments(), "What a new pod is expected to use."
    )


class Usage(Plugin):
    """Keeps pods away from busy nodes and prefers idle ones, by what was measured and what is on its way there."""

    name = "usage"
    Arguments = UsageArguments
    arguments: UsageArguments

    def __init__(self, arguments: UsageArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self.shadow = Shadow(self._guess)
        self._estimator = Estimator(arguments.estimator)
        self._measured: Mapping[str, NodeUsage] = {}
        self._layout = -1
        self._clock = -1
        self._cpu = self._memory = self._at = np.zeros(0)
        self._fresh: Bools = np.zeros(0, dtype=bool)
        self._load: Floats = np.zeros((2, 0))
        self._scores: Floats | None = None
        self._filter_version = self._score_version = 0

    # -- keeping up

    def opening(self, session: Session, dirty: Dirty) -> None:
        columns, cluster = session.cluster.columns, session.cluster
        self.shadow.begin()
        measured_anew = self._measured is not cluster.usage or self._layout != columns.layout
        if measured_anew or dirty.everything:
            self._measured, self._layout = cluster.usage, columns.layout
            self._gather(columns.nodes)
        fresh = session.now - self._at <= FRESH
        if measured_anew or dirty.everything or not np.array_equal(fresh, self._fresh):
            self._fresh = fresh
            self._filter_version += 1
        self._catch_up(session, dirty)
        self._score_changed()

    def _gather(self, nodes: list[Node]) -> None:
        """What was measured, as columns."""
        found = [self._measured.get(node.name, _NEVER) for node in nodes]
        self._cpu, self._memory, self._at = np.array(found, dtype=np.float64).reshape(len(found), 3).T

    def _catch_up(self, session: Session, dirty: Dirty) -> None:
        """Guess afresh where tasks came or went, and where tasks may show in measurements by now."""
        columns, known = session.cluster.columns, session.cluster.nodes
        if dirty.everything:
            self.shadow = Shadow(self._guess)
            nodes = dict.fromkeys(columns.nodes)
        else:
            nodes = dict.fromkeys(columns.nodes[row] for row in np.flatnonzero(columns.version > self._clock))
            nodes |= dict.fromkeys(self.shadow.loaded)
        self._clock = columns.clock
        horizon = session.now - interval(session.policy.metrics)
        for node in nodes:
            here = node.tasks if known.get(node.name) is node and node.row >= 0 else ()
            unseen = [task for task in here if _unseen(task, horizon)]
            self.shadow.recount(node, sorted(unseen, key=lambda task: (task.created, task.uid)))
        self._load = np.zeros((2, len(columns)))
        for node, load in self.shadow.nodes.items():
            self._load[:, node.row] = load

    def on_move(self, change: Change) -> None:
        for node in self.shadow.move(change):
            if node.row >= 0:
                self._load[:, node.row] = self.shadow.on(node)
                self._score_changed()

    def _score_changed(self) -> None:
        self._scores = None
        self._score_version += 1

    # -- how full nodes are

    def _guess(self, task: Task, node: Node) -> Load:
        """What a task will use; more where the node is full with all that is on its way there already."""
        return self._estimator.load(task, self._fullness(node) >= self.arguments.estimator.risk_threshold)

    def _fullness(self, node: Node) -> float:
        given = self.arguments
        if node.row < 0 or not given.cpu + given.memory:
            return 0.0
        size = _capacity(self.session.cluster.columns)[:, node.row]
        load = self.shadow.on(node)
        measured = self._measured.get(node.name, _NEVER)
        cpu = _part(measured.cpu, load.cpu, int(size[0]))
        memory = _part(measured.memory, load.memory, int(size[1]))
        return (cpu * given.cpu + memory * given.memory) / (given.cpu + given.memory)

    # -- what it decides

    def node_filters(self, task: Task) -> Iterable[NodeFilter]:
        yield NodeFilter(
            self._checks, plugin=self.name, reads="pods", version=lambda task: self._filter_version
        )

    def _checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """By what was measured alone: what is on its way does not keep anybody away."""
        most = self.arguments.thresholds
        for measured, limit, reason in (
            (self._cpu, most.cpu, names.CPU_LOAD_TOO_HIGH),
            (self._memory, most.memory, names.MEMORY_LOAD_TOO_HIGH),
        ):
            yield Check(nodes.pick(~self._fresh | (measured <= limit)), reason)

    def node_scores(self, task: Task) -> Iterable[NodeScore]:
        given = self.arguments
        if given.weight and given.cpu + given.memory:
            yield NodeScore(
                self._score, plugin=self.name, reads="pods", version=lambda task: self._score_version
            )

    def _score(self, task: Task, nodes: Nodes) -> Column:
        """The same for every task, so it is worked out once per change."""
        if self._scores is None:
            given, size = self.arguments, _capacity(nodes.columns)
            cpu = 1 - _parts(self._cpu, self._load[0], size[0])
            memory = 1 - _parts(self._memory, self._load[1], size[1])
            score = (cpu * given.cpu + memory * given.memory) / (given.cpu + given.memory)
            self._scores = np.where(self._fresh, score * 100 * given.weight, 0.0)
        return nodes.pick(self._scores)


def _unseen(task: Task, horizon: float) -> bool:
    """Whether a task on a node is too new to show in measurements."""
    if task.status is Status.RUNNING:
        return task.started is None or task.started > horizon
    return task.status in _UNSEEN


def _capacity(columns: Columns) -> Floats:
    """Milli-CPU and bytes of every node as its status states them: its size, not what of it may be given away."""
    return columns.derived(_capacities)


def _capacities(columns: Columns) -> Floats:
    sizes = [_size(node) for node in columns.nodes]
    return np.array(sizes, dtype=np.float64).reshape(len(sizes), 2).T


def _size(node: Node) -> tuple[int, int]:
    stated = node.object.status.capacity if node.object is not None else {}
    known = amounts({name: stated[name] for name in (names.CPU, names.MEMORY) if name in stated}, "capacity")
    return known.get(names.CPU, 0), known.get(names.MEMORY, 0)


def _part(percent: float, load: float, size: float) -> float:
    """How much of a node is used, from 0 to 1, once what is on its way is there."""
    return min(max((percent / 100 * size + load) / size, 0.0), 1.0) if size > 0 else 0.0


def _parts(percent: Floats, load: Floats, size: Floats) -> Floats:
    part: Floats = np.zeros(len(size))
    np.divide(percent / 100 * size + load, size, out=part, where=size > 0)
    return np.clip(part, 0.0, 1.0)
