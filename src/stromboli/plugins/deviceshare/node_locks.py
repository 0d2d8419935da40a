"""Nodes that are locked: their device plugin is still serving the pod before (spec 04 10.7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import card_reasons as reasons
from stromboli.engine.placement.node_functions import Bools, Check, Nodes
from stromboli.model.cards.card_grants import CardGrant, lock_counts
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Node
    from stromboli.model.task import Task

_ON_THE_WAY = (Status.ALLOCATED, Status.BINDING)


class NodeLocks:
    """The locks of a session: those on nodes that are young enough to count, and those that its own binds will take."""

    def __init__(self, cluster: Cluster, now: float):
        self._cluster = cluster
        self.held = frozenset(
            (node, lock)
            for node, locks in cluster.cards.locks.items()
            for lock, since in locks.items()
            if lock_counts(since, now)
        )
        """Node and name of the locks that somebody has set and that are not left behind."""
        self._free: dict[str, tuple[Bools, int]] = {}
        """Of each lock, where it is free, as of a version of the ledger."""

    def is_locked(self, task: Task, node: Node, lock: str) -> bool:
        """Whether a pod of another job has the lock of a node, or is about to; the pods of a gang share it."""
        if (node.name, lock) in self.held:
            return True
        return any(other.job is not task.job for other in self._takers(node, lock))

    def _takers(self, node: Node, lock: str) -> Iterator[Task]:
        """The tasks that take a lock of a node with their binds."""
        for cards in self._cluster.cards.nodes.get(node.name, {}).values():
            for task in cards.tasks:
                if task.status in _ON_THE_WAY and any(
                    isinstance(grant, CardGrant) and grant.lock == lock for grant in task.grants
                ):
                    yield task

    def check(self, lock: str, task: Task, nodes: Nodes) -> Check:
        """Which nodes are free for a task."""
        free, job = self._unlocked(lock), task.job
        siblings = (sibling for status in _ON_THE_WAY for sibling in job.by_status[status]) if job else ()
        shared = {sibling.node for sibling in siblings if sibling.node is not None and sibling.node.row >= 0}
        if shared:
            free = free.copy()
            for node in shared:
                free[node.row] = not self.is_locked(task, node, lock)
        return Check(nodes.pick(free), reasons.LOCKED.of())

    def _unlocked(self, lock: str) -> Bools:
        """Where nobody has a lock, nor is about to."""
        columns, ledger = self._cluster.columns, self._cluster.cards
        free, version = self._free.get(lock, (None, 0))
        changed = ledger.changes.since(version)
        if free is None or changed is None or len(free) != len(columns):
            free = np.ones(len(columns), dtype=bool)
            changed = set(ledger.nodes)
        for name in changed:
            node = self._cluster.nodes.get(name)
            if node is not None and node.row >= 0:
                taken = (name, lock) in self.held or any(self._takers(node, lock))
                free[node.row] = not taken
        self._free[lock] = (free, ledger.changes.position)
        return free
