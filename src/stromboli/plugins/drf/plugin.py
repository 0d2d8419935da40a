"""The plugin `drf`: the order of jobs and queues, and the victims, by dominant share."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any, NamedTuple

from stromboli.engine.plugin import Key, Plugin
from stromboli.engine.points import depends, in_turn
from stromboli.engine.session import Session
from stromboli.model.amounts import Amounts, dominant_share, plus, shift, times
from stromboli.model.cluster import Change, Dirty
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.task import Task
from stromboli.plugins.drf.job_tree import JobTree, compare

EPSILON = 1e-6


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


class HierarchicalDrf(Drf):
    """DRF along the paths that queues are annotated with."""

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
