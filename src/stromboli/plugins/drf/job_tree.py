"""Jobs under the paths of their queues, with what each branch holds and how much of its share that is (spec 03 5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stromboli.api import names
from stromboli.model.amounts import Amounts, Vector, dominant_share, minus, shift, times
from stromboli.model.amounts import names as dimensions
from stromboli.model.job import Job
from stromboli.model.queue import Queue


class Tree:
    """All jobs; when one holds something else, only the branches above it are worked out again."""

    def __init__(self, jobs: Iterable[Job], total: Vector):
        self.root = Branch(None, 1.0)
        self._total = total
        self._used: Amounts = {}
        self._leaves: dict[Job, Branch] = {}
        for job in sorted(jobs, key=lambda job: (job.created, job.id)):
            self._leaves[job] = leaf = self.root.graft(job)
            leaf.held = dict(job.held)
            leaf.share = dominant_share(leaf.held, total)
            shift(self._used, leaf.held)
        self._demanding = self._in_demand()
        self._update()

    def hold(self, job: Job, held: Amounts) -> None:
        """A job holds something else than before."""
        leaf = self._leaves.get(job)
        if leaf is None or leaf.held == held:
            return
        shift(self._used, minus(held, leaf.held))
        leaf.held, leaf.share = held, dominant_share(held, self._total)
        demanding = self._in_demand()
        if demanding != self._demanding:
            self._demanding = demanding
            self._update()
            return
        leaf.saturated = leaf.is_served(demanding)
        branch = leaf.parent
        while branch is not None:
            branch.gather(self._total)
            branch = branch.parent

    def _in_demand(self) -> set[int]:
        """The resources of which something is left."""
        used, total = self._used, self._total
        return {dim for dim in dimensions(total) if used.get(dim, 0) < total[dim]}

    def _update(self) -> None:
        """Everything, children first; not by recursion, as a path may be of any length."""
        branches = [self.root]
        for branch in branches:
            branches.extend(branch.children.values())
        for branch in reversed(branches):
            if branch.children:
                branch.gather(self._total)
            else:
                branch.saturated = branch.is_served(self._demanding)


class Branch:
    """A step of a queue's path, or (as a leaf) a job."""

    __slots__ = ("children", "held", "parent", "request", "saturated", "share", "weight")

    def __init__(self, parent: Branch | None, weight: float):
        self.parent = parent
        self.weight = weight
        self.children: dict[Any, Branch] = {}
        self.held: Amounts = {}
        self.request: Vector = {}
        self.share = 0.0
        self.saturated = False

    def graft(self, job: Job) -> Branch:
        """Hang a job under the path of its queue; whoever made a step first fixed its weight."""
        branch = self
        path, weights = path_of(job.queue) if job.queue else ([], [])
        for step, name in enumerate(path[1:], 1):
            if name not in branch.children:
                branch.children[name] = Branch(branch, weights[step])
            branch = branch.children[name]
        leaf = branch.children[job.id] = Branch(branch, 1.0)
        leaf.request = job.total
        return leaf

    def is_served(self, demanding: set[int]) -> bool:
        """Whether a job has all it asks for of something, or asks for something of which nothing is left."""
        return any(
            self.request.get(dim, 0) != 0
            and (self.held[dim] >= self.request.get(dim, 0) or dim not in demanding)
            for dim in dimensions(self.held)
        )

    def gather(self, total: Vector) -> None:
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


def compare(tree: Tree, left: Queue, right: Queue) -> float:
    """Below zero if left comes first: unsaturated before saturated, then the smaller share by weight, step by step."""
    left_path, right_path = path_of(left)[0], path_of(right)[0]
    one: Branch | None = tree.root
    other: Branch | None = tree.root
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
