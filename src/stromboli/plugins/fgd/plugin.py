"""The plugin `fgd`: fragmentation gradient descent (Weng et al., "Beware of Fragmentation", ATC '23)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from stromboli.engine.placement.node_functions import Column, Nodes, NodeScore
from stromboli.engine.plugin import Plugin
from stromboli.model.cards.fragmentation import NodeFragmentation
from stromboli.model.cards.gpu_columns import GpuColumns, free_shares
from stromboli.model.cards.gpu_demands import GpuDemand, GpuDemands
from stromboli.model.cards.typical_tasks import (
    MOST_TYPICAL_TASKS,
    WeightedTask,
    counted_tasks,
    most_frequent,
)
from stromboli.plugins.fgd.fgd_arguments import FgdArguments, listed_tasks
from stromboli.plugins.fgd.fragmentation_scores import FragmentationScores, GradientScore

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.cards.node_cards import NodeCards
    from stromboli.model.cluster import Dirty
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task

MOST_SCORES = 512
"""Demands whose scores are remembered at a time; a bound on memory, not on what may be scheduled."""


class Fgd(Plugin):
    """Prefers the node, and its GPU, where a task leaves the fewest free GPUs that typical tasks cannot use."""

    name = "fgd"
    Arguments = FgdArguments
    arguments: FgdArguments

    def __init__(self, arguments: FgdArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._typical = most_frequent(listed_tasks(arguments.tasks), arguments.covered)
        self._counted = -1
        """How many tasks there were when they were counted last."""
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
        """Count tasks anew where their number has changed by a tenth, or after a while."""
        count = len(session.cluster.tasks)
        if 10 * abs(count - self._counted) <= self._counted and not session.has_come(self._next_count):
            return
        gpus = self._columns()
        counts = counted_tasks(session.cluster, gpus, self._demands)
        self._use(most_frequent(counts, self.arguments.covered, MOST_TYPICAL_TASKS))
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

    # -- what tasks ask for

    def _scores_of(self, demand: GpuDemand) -> FragmentationScores:
        scores = self._scores.get(demand)
        if scores is None:
            scores = self._scores[demand] = FragmentationScores(self._gradient, demand)
            if len(self._scores) > MOST_SCORES:
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
        """The best GPU where it takes one; else, and after it, those with the least that is free."""
        demand, free = self._demands.of(task), free_shares(cards)
        order = sorted(range(len(free)), key=lambda index: (free[index], index))
        if demand.gpus == 1 and node.row >= 0:
            scores = self._scores_of(demand)
            scores.update()
            order.sort(key=lambda index: index != int(scores.cards[node.row]))
        return order
