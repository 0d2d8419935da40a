"""Dominant resource fairness between jobs, flat or along a hierarchy of queues (spec 03 4, 5)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cmp_to_key
from typing import Any

from stromboli.api import names
from stromboli.engine.plugin import Key, Plugin
from stromboli.engine.points import depends
from stromboli.engine.session import Session
from stromboli.model.amounts import Amounts, Vector, dominant_share, minus, plus, shift, times
from stromboli.model.amounts import names as dimensions
from stromboli.model.cluster import Change, Dirty
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.task import Task

CLOSE = 1e-6


class Drf(Plugin):
    """The job with the smaller dominant share comes first, and may take from one with a larger."""

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
        wanted = dominant_share(plus(task.job.held, task.request), total)
        left: dict[Job, Amounts] = {}
        victims = []
        for candidate in candidates:
            if candidate.job is not None:
                held = left.setdefault(candidate.job, dict(candidate.job.held))
                shift(held, candidate.request, -1)
                remaining = dominant_share(held, total)
                if wanted < remaining or abs(wanted - remaining) <= CLOSE:
                    victims.append(candidate)
        return victims


class HierarchicalDrf(Drf):
    """DRF along the paths that queues are annotated with; the tree is made anew when something moved."""

    def opening(self, session: Session, dirty: Dirty) -> None:
        self._tree: Branch | None = None

    def on_move(self, change: Change) -> str | None:
        self._tree = None
        return None

    @depends("everything")
    def queue_order(self, queue: Queue) -> Key:
        return _by_tree(QueueInTree(self._current(), queue))

    def reclaimable(self, task: Task, candidates: list[Task]) -> list[Task]:
        """Victims one by one: whose queue would still come after the reclaimer's without it."""
        if task.job is None or task.job.queue is None:
            return []
        mine = task.job.queue
        held = {task.job: plus(task.job.held, task.request)}
        victims = []
        for candidate in candidates:
            if candidate.job is None or candidate.job.queue is None:
                continue
            without = dict(held)
            without[candidate.job] = minus(without.get(candidate.job, candidate.job.held), candidate.request)
            if compare(self._grow(without), mine, candidate.job.queue) < 0:
                victims.append(candidate)
        return victims

    def _current(self) -> Branch:
        if self._tree is None:
            self._tree = self._grow({})
        return self._tree

    def _grow(self, instead: Mapping[Job, Amounts]) -> Branch:
        """The whole tree, with some jobs holding something else."""
        total = self.session.total
        root, used = Branch("root", 1.0), Amounts()
        for job in sorted(self.session.jobs(), key=lambda job: (job.created, job.id)):
            held = instead.get(job, job.held)
            shift(used, held)
            root.graft(job, held, total)
        demanding = {dim for dim in dimensions(total) if used.get(dim, 0) < total[dim]}
        root.update(total, demanding)
        return root


class Branch:
    """A step of a queue's path, or (as a leaf) a job."""

    __slots__ = ("children", "held", "name", "request", "saturated", "share", "weight")

    def __init__(self, name: str, weight: float):
        self.name = name
        self.weight = weight
        self.children: dict[Any, Branch] = {}
        self.held: Amounts = {}
        self.request: Vector = {}
        self.share = 0.0
        self.saturated = False

    def graft(self, job: Job, held: Amounts, total: Vector) -> None:
        """Hang a job under the path of its queue; whoever made a step first fixed its weight."""
        branch = self
        path, weights = path_of(job.queue) if job.queue else ([], [])
        for step, name in enumerate(path[1:], 1):
            if name not in branch.children:
                branch.children[name] = Branch(name, weights[step])
            branch = branch.children[name]
        leaf = branch.children[job.id] = Branch(job.name, 1.0)
        leaf.held, leaf.request, leaf.share = held, job.total, dominant_share(held, total)

    def update(self, total: Vector, demanding: set[int]) -> None:
        """Shares and saturation of all below, children first (and not by recursion: a path may be of any length)."""
        branches = [self]
        for branch in branches:
            branches.extend(branch.children.values())
        for branch in reversed(branches):
            if branch.children:
                branch._gather(total)
            else:
                branch.saturated = branch._is_served(demanding)

    def _is_served(self, demanding: set[int]) -> bool:
        """Whether a job has all it asks for of something, or asks for something of which nothing is left."""
        return any(
            self.request.get(dim, 0) != 0
            and (self.held[dim] >= self.request.get(dim, 0) or dim not in demanding)
            for dim in dimensions(self.held)
        )

    def _gather(self, total: Vector) -> None:
        """What the children hold, scaled down to the least of those that want more."""
        holding = [child for child in self.children.values() if child.share != 0]
        least = min([1.0, *(child.share for child in holding if not child.saturated)])
        self.held = {}
        for child in holding:
            shift(self.held, child.held if child.saturated else times(child.held, least / child.share))
        self.share = dominant_share(self.held, total)
        self.saturated = all(child.saturated for child in self.children.values())


def path_of(queue: Queue) -> tuple[list[str], list[float]]:
    """A queue's path and the weight of each step; a step without a usable weight has weight 1."""
    path = [step for step in queue.annotations.get(names.HIERARCHY, "").split("/") if step]
    given = queue.annotations.get(names.HIERARCHY_WEIGHTS, "").split("/")
    return path, [_weight(given[step]) if step < len(given) else 1.0 for step in range(len(path))]


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 1.0 <= weight < float("inf") else 1.0


class QueueInTree:
    """A queue as the tree of the moment sees it."""

    __slots__ = ("queue", "tree")

    def __init__(self, tree: Branch, queue: Queue):
        self.tree = tree
        self.queue = queue


def compare(tree: Branch, left: Queue, right: Queue) -> float:
    """Below zero if left comes first: unsaturated before saturated, then the smaller share by weight, step by step."""
    left_path, right_path = path_of(left)[0], path_of(right)[0]
    one: Branch | None = tree
    other: Branch | None = tree
    for step in range(min(len(left_path), len(right_path))):
        if one is None or other is None:
            break
        if one.saturated != other.saturated:
            return 1 if one.saturated else -1
        if one.share / one.weight != other.share / other.weight:
            return one.share / one.weight - other.share / other.weight
        if step + 1 < min(len(left_path), len(right_path)):
            one = one.children.get(left_path[step + 1])
            other = other.children.get(right_path[step + 1])
    return 0


def _first(left: QueueInTree, right: QueueInTree) -> int:
    return _sign(compare(left.tree, left.queue, right.queue))


_by_tree = cmp_to_key(_first)


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)
