"""Find the node for a task: filter, score and choose among all nodes, with results shared by equal tasks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from stromboli.api import names
from stromboli.engine.placement.evaluation import Evaluation
from stromboli.engine.placement.node_functions import Bools, Check, NodeFilter, Nodes, NodeScore, Refusal
from stromboli.engine.placement.verdict import Verdict, verdict_everywhere

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.task import Task


MAX_BYTES = 512 * 2**20
"""Memory of cached evaluations; a bound on memory, not on what may be scheduled."""


class Place(NamedTuple):
    """A node for a task: it fits now, or once releasing tasks have left."""

    node: Node
    """The node for the task."""
    now: bool
    """Whether it fits now; if not, it fits once releasing tasks have left."""


class NodeRules(Protocol):
    """The plugin calls about nodes (`engine.rules.Rules`)."""

    prefilter: Callable[[Task], Refusal | None]
    shape_key: Callable[[Task], tuple[Any, ...]]
    node_filters: Callable[[Task], list[NodeFilter]]
    node_scores: Callable[[Task], list[NodeScore]]
    best_node: Callable[[Task, dict[str, float]], str | None]

    def has(self, point: str) -> bool:
        """Whether any plugin implements an extension point."""
        ...


class Placement:
    """Evaluations of recent shapes."""

    def __init__(self, rules: NodeRules, timer: Callable[[], float] = lambda: 0.0):
        self._rules = rules
        self._timer = timer
        self._known: OrderedDict[Any, Evaluation] = OrderedDict()
        """Evaluations of some nodes, by the identity of the rows, which they keep alive, for one cycle."""
        self._bytes = 0
        """Their memory."""
        self._used: set[Hashable] = set()
        """The shapes evaluated in this cycle."""
        self._cycle = 0
        self.is_repeatable = True
        """Whether all results of this cycle about a task and nodes stay the same until one of them changes."""
        self.filtering: list[float] = []
        """Seconds that each search of this cycle spent on updating filters and scores."""
        self.scoring: list[float] = []
        """Seconds that each of them spent on the choice."""

    def opening(self) -> None:
        """Start a cycle: what depends on time or on external state is evaluated again, the unused is dropped."""
        for key, evaluation in list(self._known.items()):
            if key not in self._used or evaluation.rows is not None:
                del self._known[key]
        self._used.clear()
        self._bytes = sum(evaluation.counted for evaluation in self._known.values())
        self.filtering, self.scoring = [], []
        self._cycle += 1
        self.is_repeatable = True

    def refused(self, task: Task, nodes: int) -> Verdict | None:
        """Why no node can accept the task, decided before any node is evaluated."""
        refusal = self._rules.prefilter(task)
        return verdict_everywhere(refusal, nodes) if refusal else None

    def find(
        self,
        cluster: Cluster,
        task: Task,
        within: Bools | None = None,
        resource_fit: bool = True,
        rows: Ints | None = None,
    ) -> Place | Verdict:
        """The best node, or why there is none. Ties fall to the lowest (creation time, name).

        For few nodes, `rows` cost less than `within`.
        """
        evaluation = self._caught_up(cluster, task, resource_fit, rows)
        place = self._best(cluster, task, evaluation, within)
        if place is None:
            return evaluation.verdict(task, within, cluster.reservations.own_reservation(task))
        return place

    def find_quietly(self, cluster: Cluster, task: Task, within: Bools | None = None) -> Place | None:
        """As `find`, without the reasons if there is none, which cost as much as the search."""
        return self._best(cluster, task, self._caught_up(cluster, task), within)

    def _caught_up(
        self, cluster: Cluster, task: Task, resource_fit: bool = True, rows: Ints | None = None
    ) -> Evaluation:
        begin = self._timer()
        evaluation = self.evaluate(cluster, task, resource_fit, rows)
        evaluation.catch_up(task)
        self.filtering.append(self._timer() - begin)
        return evaluation

    def _best(
        self, cluster: Cluster, task: Task, evaluation: Evaluation, within: Bools | None
    ) -> Place | None:
        begin = self._timer()
        own = cluster.reservations.own_reservation(task)
        row, now, group = evaluation.best(task, own_nodes_first(cluster, within), own)
        self.scoring.append(self._timer() - begin)
        if row < 0:
            return None
        if self._rules.has("best_node"):
            row = self._preferred(cluster, task, evaluation.group(task, now, group, own), row)
        return Place(cluster.columns.nodes[row], now)

    def _preferred(self, cluster: Cluster, task: Task, scores: dict[int, float], best: int) -> int:
        """The candidate that a plugin chooses, if any does; else the best by score."""
        rows = {cluster.columns.nodes[row].name: row for row in scores}
        picked = self._rules.best_node(task, {name: scores[row] for name, row in rows.items()})
        return best if picked is None else rows.get(picked, best)

    def key(self, task: Task) -> Hashable:
        """Everything that node functions read of a task: tasks with equal keys share their evaluation."""
        return (task.shape.id, self._rules.shape_key(task))

    def evaluate(
        self, cluster: Cluster, task: Task, resource_fit: bool = True, rows: Ints | None = None
    ) -> Evaluation:
        """The evaluation of the task's shape for all nodes, or those of some rows, up to date."""
        key = (resource_fit, self.key(task), None if rows is None else id(rows))
        known = self._known
        self._used.add(key)
        evaluation = known.get(key)
        if evaluation is None:
            evaluation = known[key] = Evaluation(
                cluster.columns,
                task,
                [*own_nodes_only(cluster), *self._rules.node_filters(task)],
                self._rules.node_scores(task),
                resource_fit,
                rows,
            )
        else:
            known.move_to_end(key)
        self.is_repeatable &= evaluation.is_repeatable
        try:
            evaluation.refresh(task, self._cycle)
        except BaseException:
            del known[key]  # a partly refreshed evaluation must not be used
            self._bytes -= evaluation.counted
            raise
        if evaluation.usage.bytes != evaluation.counted:
            self._count(evaluation)
        return evaluation

    def _count(self, evaluation: Evaluation) -> None:
        """Count the memory of an evaluation, the last one that was used, and forget others if it is too much."""
        self._bytes += evaluation.count()
        while self._bytes > MAX_BYTES and len(self._known) > 1:
            self._bytes -= self._known.popitem(last=False)[1].counted


# -- a scheduler with nodes of its own: it uses no others, or others only if its own do not suffice (spec 05 11.3)


def own_nodes_only(cluster: Cluster) -> list[NodeFilter]:
    """The filter for all tasks, if there is one. A change of the shard counts as a change of node objects."""

    def checks(task: Task, nodes: Nodes) -> Iterable[Check]:
        shard = cluster.shard
        if shard is not None and shard.strict:
            yield Check(nodes.pick(shard.inside(cluster.columns)), names.NOT_IN_SHARD)

    return [NodeFilter(checks, "sharding", "static")] if cluster.shard is not None else []


def own_nodes_first(cluster: Cluster, candidates: Bools | None) -> list[Bools | None]:
    """The candidates in the groups that are tried in turn: all of them, or the scheduler's own and then the others."""
    shard = cluster.shard
    if shard is None or shard.strict:
        return [candidates]
    inside = shard.inside(cluster.columns)
    if candidates is None:
        return [inside, ~inside]
    return [candidates & inside, candidates & ~inside]
