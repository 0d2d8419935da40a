"""Buckets and scores as the specification tells them: every bucket looked at for every task, every node by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.task import Task

ROLE = "volcano.sh/task-spec"


class Wishes(NamedTuple):
    """The lists of a PodGroup, each a list of groups."""

    affinity: Sequence[Sequence[str]]
    anti_affinity: Sequence[Sequence[str]]
    order: Sequence[str]

    def related(self, groups: Sequence[Sequence[str]], one: str, other: str) -> bool:
        if one == other:
            return any(list(group) == [one] for group in groups)
        return any(one in group and other in group for group in groups)

    def drawn(self, one: str, other: str) -> int:
        return self.related(self.affinity, one, other) - self.related(self.anti_affinity, one, other)

    def priority(self, role: str) -> int:
        found = [0]
        for groups, alone, among in ((self.anti_affinity, 4, 1), (self.affinity, 2, 3)):
            found += [alone if len(group) == 1 else among for group in groups if role in group]
        return max(found)

    def rank(self, role: str) -> int:
        return len(self.order) - list(self.order).index(role) if role in self.order else 0


class NaiveBucket:
    def __init__(self) -> None:
        self.members: list[Task] = []

    def drawn(self, wishes: Wishes, role: str) -> int:
        return sum(wishes.drawn(role, each.annotations[ROLE]) for each in self.members)

    @property
    def load(self) -> float:
        return sum(load(task) for task in self.members if task.node is None)

    @property
    def unbound(self) -> list[Task]:
        return [task for task in self.members if task.node is None]


def load(task: Task) -> float:
    others = sum(amount for dim, amount in task.request.items() if dim not in (CPU, MEMORY))
    return task.request.get(CPU, 0) + task.request.get(MEMORY, 0) / 1024 / 1024 + others


def naive_buckets(wishes: Wishes, tasks: Sequence[Task]) -> list[NaiveBucket]:
    """The buckets of tasks, of which some are on nodes."""
    taking_part = [task for task in tasks if wishes.priority(task.annotations.get(ROLE, "")) > 0]
    bound = sorted((task for task in taking_part if task.node), key=lambda task: task.node.name)  # type: ignore[union-attr]
    waiting = [task for task in taking_part if not task.node]
    waiting.sort(
        key=lambda task: (
            -wishes.rank(task.annotations[ROLE]),
            -wishes.priority(task.annotations[ROLE]),
            task.name,
        )
    )
    buckets: list[NaiveBucket] = []
    by_node: dict[Any, NaiveBucket] = {}
    for task in bound:
        if task.node not in by_node:
            by_node[task.node] = NaiveBucket()
            buckets.append(by_node[task.node])
        by_node[task.node].members.append(task)
    for task in waiting:
        best: NaiveBucket | None = None
        for bucket in buckets:
            drawn = bucket.drawn(wishes, task.annotations[ROLE])
            most = best.drawn(wishes, task.annotations[ROLE]) if best else None
            if best is None or most is None or drawn > most or (drawn == most and bucket.load < best.load):
                best = bucket
        if best is None or best.drawn(wishes, task.annotations[ROLE]) < 0:
            best = NaiveBucket()
            buckets.append(best)
        best.members.append(task)
    return buckets


def naive_score(
    wishes: Wishes,
    bucket: NaiveBucket,
    task: Task,
    available: Mapping[int, int],
    node: str,
    placed: Counter[str],
) -> int:
    """The score of one node before weight and size; `placed` counts the roles placed there in this session."""
    if any(available.get(dim, 0) < amount for dim, amount in task.request.items()):
        return 0
    if any(amount < 0 for amount in available.values()):
        return 0
    score = sum(each.node is not None and each.node.name == node for each in bucket.members)
    role = task.annotations[ROLE]
    score += min(
        0, -sum(count for other, count in placed.items() if wishes.related(wishes.anti_affinity, role, other))
    )
    score += len(bucket.unbound)
    kept = sorted(bucket.unbound, key=lambda each: each.uid)
    for other in list(kept):
        total: Counter[int] = Counter()
        for each in kept:
            total.update({dim: int(amount) for dim, amount in each.request.items()})
        if all(amount <= available.get(dim, 0) for dim, amount in total.items()):
            break
        if other is not task:
            kept.remove(other)
            score -= 1
    return score
