"""The plugin `drf`: jobs and victims by dominant share, and queues by their hierarchy (spec 03 4, 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import Any, NamedTuple

from stromboli.api import names
from stromboli.api.object_bounds import MAX_QUEUE_DEPTH
from stromboli.engine.plugin import Key, Plugin
from stromboli.engine.points import depends, in_turn
from stromboli.engine.session import Session
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
from stromboli.model.cluster import Change, Dirty
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.task import Task

EPSILON = 1e-6


class Drf(Plugin):
    """Dominant resource fairness: jobs with a smaller share come first and may preempt those with a larger one."""

    name = "drf"

    @classmethod
    def build(cls, arguments: Any, switches: dict[str, bool]) -> Plugin:
        return (HierarchicalDrf if switches.get("enableHierarchy") else Drf)(arguments, switches)

    def job_order(self, job: Job) -> float:
        return dominant_share(job.held, self.session.total)

    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        if task.job is None:
            return []
        total = self.session.total
        own_share = dominant_share(plus(task.job.held, task.request), total)
        left: dict[Job, Amounts] = {}
        victims = []
        for candidate in candidates:
            if candidate.job is not None:
                held = left.setdefault(candidate.job, dict(candidate.job.held))
                shift(held, candidate.request, -1)
                remaining = dominant_share(held, total)
                if own_share < remaining or abs(own_share - remaining) <= EPSILON:
                    victims.append(candidate)
        return victims

    def why_spared(self, task: Task, candidates: Sequence[Task]) -> str:
        return "its share of the cluster is not larger"


class HierarchicalDrf(Drf):
    """DRF along the paths in the annotations of queues."""

    def opening(self, session: Session, dirty: Dirty) -> None:
        self._tree: JobTree | None = None
        self._moved: dict[Job, None] = {}

    def on_move(self, change: Change) -> str | None:
        if change.task.job is not None:
            self._moved[change.task.job] = None
        return None

    @depends("everything")
    def queue_order(self, queue: Queue) -> Key:
        return _by_tree(QueueInTree(self._current(), queue))

    @in_turn
    def reclaimable(self, task: Task, candidates: list[Task]) -> list[Task]:
        """Victims, each judged by itself: without it, its queue would still come after the reclaimer's."""
        job = task.job
        if job is None or job.queue is None:
            return []
        tree, victims = self._current(), []
        with tree.holding(job, task.request):
            for candidate in candidates:
                other = candidate.job
                if other is not None and other.queue is not None:
                    with tree.holding(other, times(candidate.request, -1)):
                        if compare(tree, job.queue, other.queue) < 0:
                            victims.append(candidate)
        return victims

    def _current(self) -> JobTree:
        """The current tree; built on first use, then updated with what moved."""
        if self._tree is None:
            self._tree = JobTree(self.session.jobs(), self.session.total)
        for job in self._moved:
            self._tree.set_held(job, dict(job.held))
        self._moved.clear()
        return self._tree


class QueueInTree(NamedTuple):
    """A queue in the current tree."""

    tree: JobTree
    queue: Queue


def _compare(left: QueueInTree, right: QueueInTree) -> int:
    order = compare(left.tree, left.queue, right.queue)
    return (order > 0) - (order < 0)


_by_tree = cmp_to_key(_compare)


# -- the hierarchy of queues, with what each part of it holds (spec 03 5)


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
        """Change what a job holds by an amount, within a `with`."""
        leaf = self._leaves.get(job)
        before = leaf.held if leaf is not None else {}
        self.set_held(job, plus(before, more))
        try:
            yield
        finally:
            self.set_held(job, before)

    def _compute_free_dims(self) -> set[int]:
        """The resources with a free amount."""
        used, total = self._used, self._total
        return {dim for dim in positive_dimensions(total) if used.get(dim, 0) < total[dim]}

    def _update(self) -> None:
        """Update all nodes, children first; without recursion, since paths may be long."""
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
        """Whether a job holds its whole request of some resource, or requests a resource without a free amount."""
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
    """A queue's path and the weight of each step; a step without a valid weight has weight 1.

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
