"""The plugin `fgd`: fragmentation gradient descent (Weng et al., "Beware of Fragmentation", ATC '23).

It places a task where it leaves the fewest free GPUs that typical tasks cannot use.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.engine.placement.node_functions import Column, Nodes, NodeScore
from stromboli.engine.plugin import Plugin
from stromboli.model.cards.fragmentation import (
    COVERED,
    MAX_TYPICAL_TASKS,
    NodeFragmentation,
    TypicalTask,
    WeightedTask,
    counted_tasks,
    most_frequent,
)
from stromboli.model.cards.gpu_columns import (
    ANY_MODEL,
    WHOLE,
    GpuColumns,
    GpuDemand,
    GpuDemands,
    GpuModels,
    free_shares,
)
from stromboli.policy.argument_checks import at_least
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Floats
    from stromboli.engine.session import Session
    from stromboli.model.cards.node_cards import NodeCards
    from stromboli.model.cluster import Dirty
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.task import Task


# -- arguments


def _covers(value: float) -> str | None:
    return None if 0 < value <= 1 else "must be above 0 and at most 1"


@dataclass(frozen=True, slots=True)
class FgdArguments:
    """The typical tasks, and how the score is derived from the fragmentation."""

    weight: int = arg("fgd.weight", 1, "Weight of the score; 0 disables it.", check=at_least(0))
    tasks: tuple[Mapping[str, object], ...] = arg(
        "fgd.tasks",
        (),
        "The tasks of the workload: maps of `cpu` (a quantity), `gpus`, `gpuMilli` (of each GPU, 1000 by default), "
        "`models` (a list; any by default) and `count` (1 by default). "
        "Default: the running and pending tasks of the cluster.",
    )
    covered: float = arg(
        "fgd.covered",
        COVERED,
        "Fraction of all tasks that the typical ones cover, the most frequent first.",
        check=_covers,
    )
    recount: float = arg(
        "fgd.recountSeconds",
        3600.0,
        "Count tasks again after this many seconds, or once their number has changed by a tenth.",
        check=at_least(1),
    )
    best_fit: float = arg(
        "fgd.bestFit",
        0.02,
        "Weight of best fit relative to fragmentation, to choose among nearly equal nodes.",
        check=at_least(0),
    )
    published: bool = arg(
        "fgd.published",
        False,
        "Score as in the paper: whole points, without best fit, ties to the oldest node.",
    )
    resource: str = arg(
        "fgd.resource", names.NVIDIA_GPU, "Resource of whole GPUs, on nodes without shared cards."
    )

    def __post_init__(self) -> None:
        listed_tasks(self.tasks)


def listed_tasks(tasks: tuple[Mapping[str, object], ...]) -> Counter[TypicalTask]:
    """The tasks of a list, with the count of each; raises ValueError for an invalid one."""
    counts: Counter[TypicalTask] = Counter()
    for place, task in enumerate(tasks):
        if unknown := sorted(task.keys() - {"cpu", "gpus", "gpuMilli", "models", "count"}):
            raise ValueError(f"fgd.tasks[{place}]: unknown key {unknown[0]!r}")
        gpus = _whole(task, "gpus", 0, place)
        share = _whole(task, "gpuMilli", WHOLE, place) if gpus else 0
        if share > WHOLE or (gpus and not share):
            raise ValueError(f"fgd.tasks[{place}].gpuMilli: {share} is not between 1 and {WHOLE}")
        models = _models(task.get("models"), place)
        counts[TypicalTask(_cpu(task.get("cpu", 0), place), share, gpus, models)] += _whole(
            task, "count", 1, place
        )
    return +counts


def _whole(task: Mapping[str, object], key: str, default: int, place: int) -> int:
    value = task.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise ValueError(f"fgd.tasks[{place}].{key}: {value!r:.63} is not a whole number from 0")
    return value


def _cpu(value: object, place: int) -> int:
    try:
        milli = exact(value) * 1000 if isinstance(value, str | int | float) else -1
    except QuantityError:
        milli = -1
    if not 0 <= milli < 2**52:
        raise ValueError(f"fgd.tasks[{place}].cpu: {value!r:.63} is not a quantity from 0")
    return int(-(-milli // 1))


def _models(value: object, place: int) -> GpuModels:
    if value is None or value == ():
        return ANY_MODEL
    if isinstance(value, list | tuple) and all(isinstance(model, str) for model in value):
        return GpuModels(tuple(value)) if value else ANY_MODEL
    raise ValueError(f"fgd.tasks[{place}].models: {value!r:.63} is not a list of texts")


# -- the plugin


MAX_SCORES = 512
"""Maximum demands whose scores are cached; a bound on memory, not on what may be scheduled."""


class Fgd(Plugin):
    """Prefers the node and GPU where a task leaves the fewest free GPUs that typical tasks cannot use."""

    name = "fgd"
    Arguments = FgdArguments
    arguments: FgdArguments

    def __init__(self, arguments: FgdArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._typical = most_frequent(listed_tasks(arguments.tasks), arguments.covered)
        self._counted = -1
        """The number of tasks when they were last counted."""
        self._next_count = 0.0
        self._gpus: GpuColumns | None = None
        self._scores: OrderedDict[GpuDemand, FragmentationScores] = OrderedDict()
        self._version = 0

    # -- life

    def opening(self, session: Session, dirty: Dirty) -> None:
        if self._gpus is None or dirty.everything:
            self._gpus = GpuColumns(session.cluster, self.arguments.resource)
            self._demands = GpuDemands(session.cluster, self.arguments.resource)
            self._use(self._typical)
        if not self.arguments.tasks:
            self._count_tasks(session)

    def _count_tasks(self, session: Session) -> None:
        """Count tasks again if their number has changed by a tenth, or after some time."""
        count = len(session.cluster.tasks)
        if 10 * abs(count - self._counted) <= self._counted and not session.has_come(self._next_count):
            return
        gpus = self._columns()
        counts = counted_tasks(session.cluster, gpus, self._demands)
        self._use(most_frequent(counts, self.arguments.covered, MAX_TYPICAL_TASKS))
        self._counted, self._next_count = count, session.now + self.arguments.recount

    def _use(self, typical: Sequence[WeightedTask]) -> None:
        """Score by these typical tasks from now on."""
        gpus = self._columns()
        self._typical = tuple(typical)
        self._gradient = GradientScore(NodeFragmentation(gpus, self._typical), self.arguments)
        self._scores.clear()
        self._version += 1

    def _columns(self) -> GpuColumns:
        assert self._gpus is not None
        self._gpus.update()
        return self._gpus

    # -- requests of tasks

    def _scores_of(self, demand: GpuDemand) -> FragmentationScores:
        scores = self._scores.get(demand)
        if scores is None:
            scores = self._scores[demand] = FragmentationScores(self._gradient, demand)
            if len(self._scores) > MAX_SCORES:
                self._scores.popitem(last=False)
        else:
            self._scores.move_to_end(demand)
        return scores

    # -- nodes

    def node_scores(self, task: Task) -> Iterator[NodeScore]:
        if self.arguments.weight:
            yield NodeScore(
                partial(self._score, self._demands.of(task)),
                self.name,
                "pods",
                self._state,
                float(self.arguments.weight),
            )

    def _state(self, task: Task) -> Hashable:
        cluster = self.session.cluster
        return cluster.columns.clock, cluster.columns.layout, cluster.cards.changes.position, self._version

    def _score(self, demand: GpuDemand, task: Task, nodes: Nodes) -> Column:
        scores = self._scores_of(demand)
        scores.update()
        return nodes.pick(scores.values)

    def card_order(self, task: Task, node: Node, cards: NodeCards) -> Sequence[int] | None:
        """The best GPU if the task needs one; otherwise, and after it, those with the least free capacity."""
        demand, free = self._demands.of(task), free_shares(cards)
        order = sorted(range(len(free)), key=lambda index: (free[index], index))
        if demand.gpus == 1 and node.row >= 0:
            scores = self._scores_of(demand)
            scores.update()
            order.sort(key=lambda index: index != int(scores.cards[node.row]))
        return order


# -- scores by the gradient of fragmentation, kept for each demand and node until the node changes


ROUNDED_TO = 6
"""Digits of a score: fewer than float noise reaches, so that equal nodes are equal."""


class GradientScore:
    """Converts the reduced fragmentation into points, and adds those of the best fit."""

    def __init__(self, nodes: NodeFragmentation, arguments: FgdArguments):
        self.nodes = nodes
        self.arguments = arguments

    def points(self, gain: Floats) -> Floats:
        """A score from 0 to 100 for the thousandths of a GPU that are no longer lost."""
        score = 100 * (1 / (1 + np.exp(-gain / 1000)))
        if self.arguments.published:
            return np.floor(score)
        rounded: Floats = np.round(score, ROUNDED_TO)
        return rounded

    def best_fit(self, demand: GpuDemand, rows: Ints, asked: Ints) -> Floats:
        """Points for how little of a node would be left, CPU and GPUs alike, measured by the largest node."""
        if self.arguments.published or not self.arguments.best_fit:
            return np.zeros(len(rows))
        gpus = self.nodes.gpus
        cpu, count = max(int(gpus.cpu_sizes.max(initial=0)), 1), max(int(gpus.count.max(initial=0)), 1)
        left_cpu = (gpus.cpu[rows] - demand.cpu) / cpu
        left_gpu = (gpus.free[rows].sum(axis=1) - asked * demand.gpus) / (WHOLE * count)
        points: Floats = np.round(100 * (1 - left_cpu / 2 - left_gpu / 2), ROUNDED_TO)
        return self.arguments.best_fit * points


class FragmentationScores:
    """The score of each node for a demand, and its best GPU for a part of one."""

    def __init__(self, score: GradientScore, demand: GpuDemand):
        self._gradient = score
        self._nodes = score.nodes
        self._demand = demand
        self._position = -1
        self.values: Floats = np.zeros(0)
        self.cards: Ints = np.zeros(0, dtype=np.int64)

    def update(self) -> None:
        """Score nodes that changed since the last call again."""
        self._nodes.update()
        gpus = self._nodes.gpus
        changed = gpus.changes.since(self._position)
        if changed is None:
            self.values = np.zeros(len(gpus.cpu))
            self.cards = np.zeros(len(gpus.cpu), dtype=np.int64)
            self._score(np.arange(len(gpus.cpu)))
        elif changed:
            self._score(np.fromiter(changed, dtype=np.int64))
        self._position = gpus.changes.position

    def _score(self, rows: Ints) -> None:
        gpus, demand = self._nodes.gpus, self._demand
        asked = gpus.shares_of(demand, rows)
        if demand.gpus == 1:
            best = self._best_gpus(rows, asked)
        else:
            best = self._points(rows, self._taken(gpus.free[rows], asked))
        self.values[rows] = best + self._gradient.best_fit(demand, rows, asked)

    def _points(self, rows: Ints, left: Ints) -> Floats:
        """Points of nodes by what is left of each GPU with the task."""
        cpu = self._nodes.gpus.cpu[rows] - self._demand.cpu
        return self._gradient.points(self._nodes.values[rows] - self._nodes.of(rows, cpu, left))

    def _taken(self, free: Ints, asked: Ints) -> Ints:
        """What is left of GPUs after taking a part of some of them, those with the least free first."""
        if not self._demand.gpus:
            return free
        places = np.arange(free.shape[1])
        fitting = free >= asked[:, None]
        order = np.argsort(np.where(fitting, free, 2 * WHOLE), axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, places[None, :], axis=1)
        return np.where(fitting & (rank < self._demand.gpus), free - asked[:, None], free)

    def _best_gpus(self, rows: Ints, asked: Ints) -> Floats:
        """The best score over the GPUs of nodes with enough free; records the GPU."""
        free = self._nodes.gpus.free[rows]
        trials = (free >= asked[:, None]) & ~_repeats(free)
        node, card = np.nonzero(trials)
        scores = np.zeros(len(rows))
        if not len(node):
            return scores
        left = free[node]
        left[np.arange(len(node)), card] -= asked[node]
        points = self._points(rows[node], left)
        order = self._preference(node, card, points, free)
        first = order[np.flatnonzero(np.diff(node[order], prepend=-1))]
        scores[node[first]] = points[first]
        self.cards[rows[node[first]]] = card[first]
        return scores

    def _preference(self, node: Ints, card: Ints, points: Floats, free: Ints) -> Ints:
        """Trials node by node, the best GPU first: among equals the lowest or, in production, the fullest."""
        if self._gradient.arguments.published:
            return np.lexsort((card, -points, node))
        return np.lexsort((card, free[node, card], -points, node))


def _repeats(free: Ints) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Where a GPU has as much free as one before it on the same node, so that the result is the same."""
    width = free.shape[1]
    earlier = np.tri(width, k=-1, dtype=bool)
    same = (free[:, :, None] == free[:, None, :]) & earlier
    repeats: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = same.any(axis=2)
    return repeats
