"""A tree of jobs below the paths of their queues, with what each part of it holds (spec 03 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from stromboli.api import names
from stromboli.api.object_bounds import MAX_QUEUE_DEPTH
from stromboli.model.amounts import (
    Amounts,
    Vector,
    dominant_share,
    minus,
    plus,
    positive_dimensions,
    shift,
    times,
)
from stromboli.model.job import Job
from stromboli.model.queue import Queue


class JobTree:
    """All jobs; a change of one job updates only the nodes above it."""

    def __init__(self, jobs: Iterable[Job], total: Vector):
        self.root = TreeNode(None, 1.0)
        self._total = total
        self._used: Amounts = {}
        self._leaves: dict[Job, TreeNode] = {}
        for job in sorted(jobs, key=lambda job: (job.created, job.id)):
            self._leaves[job] = leaf = self.root.add_job(job)
            leaf.held = dict(job.held)
            leaf.share = dominant_share(leaf.held, total)
            shift(self._used, leaf.held)
        self._free_dims = self._compute_free_dims()
        self._update()

    def set_held(self, job: Job, held: Amounts) -> None:
        """Change what a job holds."""
        leaf = self._leaves.get(job)
        if leaf is None or leaf.held == held:
            return
        shift(self._used, minus(held, leaf.held))
        leaf.held, leaf.share = held, dominant_share(held, self._total)
        free_dims = self._compute_free_dims()
        if free_dims != self._free_dims:
            self._free_dims = free_dims
            self._update()
            return
        leaf.saturated = leaf.is_saturated(free_dims)
        node = leaf.parent
        while node is not None:
            node.sum_up(self._total)
            node = node.parent

    @contextmanager
    def holding(self, job: Job, more: Vector) -> Iterator[None]:
        """Let a job hold that much more, or less, within a `with`."""
        leaf = self._leaves.get(job)
        before = leaf.held if leaf is not None else {}
        self.set_held(job, plus(before, more))
        try:
            yield
        finally:
            self.set_held(job, before)

    def _compute_free_dims(self) -> set[int]:
        """The resources of which something is free."""
        used, total = self._used, self._total
        return {dim for dim in positive_dimensions(total) if used.get(dim, 0) < total[dim]}

    def _update(self) -> None:
        """Update all nodes, children first; without recursion, as a path may be of any length."""
        nodes = [self.root]
        for node in nodes:
            nodes.extend(node.children.values())
        for node in reversed(nodes):
            if node.children:
                node.sum_up(self._total)
            else:
                node.saturated = node.is_saturated(self._free_dims)


@dataclass(slots=True, eq=False)
class TreeNode:
    """A step of a queue's path, or (as a leaf) a job."""

    parent: TreeNode | None
    weight: float
    request: Vector = field(default_factory=dict)
    children: dict[Any, TreeNode] = field(default_factory=dict)
    held: Amounts = field(default_factory=dict)
    share: float = 0.0
    saturated: bool = False

    def add_job(self, job: Job) -> TreeNode:
        """Add a job below the path of its queue; the first job on a step decides the step's weight."""
        node = self
        path, weights = path_of(job.queue) if job.queue else ([], [])
        for step, name in enumerate(path[1:], 1):
            if name not in node.children:
                node.children[name] = TreeNode(node, weights[step])
            node = node.children[name]
        leaf = node.children[job.id] = TreeNode(node, 1.0, job.total)
        return leaf

    def is_saturated(self, free_dims: set[int]) -> bool:
        """Whether a job has all it requests of some resource, or requests a resource of which nothing is free."""
        return any(
            self.request.get(dim, 0) != 0
            and (self.held[dim] >= self.request.get(dim, 0) or dim not in free_dims)
            for dim in positive_dimensions(self.held)
        )

    def sum_up(self, total: Vector) -> None:
        """The sum of the children, scaled down to the smallest share of those that are not saturated."""
        holding = [child for child in self.children.values() if child.share != 0]
        least = min([1.0, *(child.share for child in holding if not child.saturated)])
        self.held = {}
        for child in holding:
            shift(self.held, child.held if child.saturated else times(child.held, least / child.share))
        self.share = dominant_share(self.held, total)
        self.saturated = all(child.saturated for child in self.children.values())


def path_of(queue: Queue) -> tuple[list[str], list[float]]:
    """A queue's path and the weight of each step; a step without a usable weight has weight 1.

    A path ends after `MAX_QUEUE_DEPTH` steps, as a move of a task updates all of them.
    """
    path = [step for step in queue.annotations.get(names.HIERARCHY, "").split("/") if step][:MAX_QUEUE_DEPTH]
    given = queue.annotations.get(names.HIERARCHY_WEIGHTS, "").split("/")
    return path, [_weight(given[step]) if step < len(given) else 1.0 for step in range(len(path))]


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 1.0 <= weight < float("inf") else 1.0


def compare(tree: JobTree, left: Queue, right: Queue) -> float:
    """Below zero if left comes first: unsaturated before saturated, then the smaller share by weight, step by step."""
    left_path, right_path = path_of(left)[0], path_of(right)[0]
    left_node: TreeNode | None = tree.root
    right_node: TreeNode | None = tree.root
    for step in range(min(len(left_path), len(right_path))):
        if left_node is None or right_node is None:
            break
        if left_node.saturated != right_node.saturated:
            return 1 if left_node.saturated else -1
        if left_node.share / left_node.weight != right_node.share / right_node.weight:
            return left_node.share / left_node.weight - right_node.share / right_node.weight
        if step + 1 < min(len(left_path), len(right_path)):
            left_node = left_node.children.get(left_path[step + 1])
            right_node = right_node.children.get(right_path[step + 1])
    return 0
