"""Placement as one would explain it on a blackboard: node by node, in plain Python, from the tasks alone.

The oracle of `engine.evaluation`: no columns, no memory, no shapes. A node function of a test says what it does twice:
once for the engine, over arrays, and once here, for one node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stromboli.api import names
from stromboli.model.cluster import Cluster
from stromboli.model.node_columns import Node
from stromboli.model.status import Status
from stromboli.model.task import Task

HOLDS = (
    Status.ALLOCATED,
    Status.BINDING,
    Status.BOUND,
    Status.RUNNING,
    Status.UNKNOWN,
    Status.RELEASING,
)


@dataclass
class NaiveFilter:
    passes: Callable[[Task, Node], bool]


@dataclass
class NaiveScore:
    score: Callable[[Task, Node], float]
    weight: float = 1.0
    finish: Callable[[dict[Node, float]], dict[Node, float]] = field(default=lambda raw: raw)
    """Normalisation over the candidates."""


def used(node: Node, resource: int) -> int:
    return sum(int(t.request.get(resource, 0)) for t in node.tasks if t.status in HOLDS)


def leaving(node: Node, resource: int) -> int:
    return sum(int(t.request.get(resource, 0)) for t in node.tasks if t.status is Status.RELEASING)


def promised(node: Node, resource: int) -> int:
    return sum(int(t.request.get(resource, 0)) for t in node.tasks if t.status is Status.PIPELINED)


def idle(node: Node, resource: int) -> int:
    return int(node.allocatable.get(resource, 0)) - used(node, resource)


def future_idle(node: Node, resource: int) -> int:
    return idle(node, resource) + leaving(node, resource) - promised(node, resource)


def fits(task: Task, node: Node, free: Callable[[Node, int], int]) -> bool:
    """cpu and memory always, other resources only where the pod names them."""
    return all(free(node, dim) >= task.request.get(dim, 0) for dim in {0, 1, *task.request})


def seen(node: Node) -> list[Task]:
    """The pods that Kubernetes' filters see there."""
    return [task for task in node.tasks if task.status is not Status.RELEASING or task.terminating]


def zone(node: Node) -> str:
    return node.labels.get(names.ZONE, "")


def ranked(cluster: Cluster) -> list[Node]:
    nodes = [node for node in cluster.nodes.values() if node.object is not None]
    return sorted(nodes, key=lambda node: (node.created, node.name))


def choose(
    cluster: Cluster,
    task: Task,
    filters: Sequence[NaiveFilter],
    scores: Sequence[NaiveScore],
    within: set[str] | None = None,
    resource_fit: bool = True,
) -> tuple[str, bool] | None:
    """The best node by name and whether the task fits there now; none where there is none."""
    possible = [
        node
        for node in ranked(cluster)
        if (within is None or node.name in within)
        and (not resource_fit or fits(task, node, future_idle))
        and all(node_filter.passes(task, node) for node_filter in filters)
    ]
    now = [node for node in possible if not resource_fit or fits(task, node, idle)]
    for group, fits_now in ((now, True), (possible, False)):
        if group:
            return best_of(task, group, scores).name, fits_now
    return None


def best_of(task: Task, group: list[Node], scores: Sequence[NaiveScore]) -> Node:
    """The highest total, the first of equals; a group of one is not scored."""
    if len(group) == 1:
        return group[0]
    total = dict.fromkeys(group, 0.0)
    for score in scores:
        final = score.finish({node: score.score(task, node) for node in group})
        for node in group:
            total[node] += score.weight * final[node]
    return max(group, key=lambda node: total[node])


def reasons(cluster: Cluster, task: Task, filters: Sequence[tuple[NaiveFilter, str]]) -> dict[str, int]:
    """How many nodes refuse for which reason: what does not fit first, then the first filter that fails."""
    counts: dict[str, int] = {}
    order = cluster.dims.ordered({0, 1, *task.request})
    for node in ranked(cluster):
        short = next((dim for dim in order if future_idle(node, dim) < task.request.get(dim, 0)), None)
        if short is not None:
            why: Any = f"Insufficient {cluster.dims.names[short]}"
        else:
            why = next((text for node_filter, text in filters if not node_filter.passes(task, node)), None)
        if why is not None:
            counts[why] = counts.get(why, 0) + 1
    return counts
