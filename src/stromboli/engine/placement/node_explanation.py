"""Why no node takes a task: every filter asked again, reason by reason, node by node, as Kubernetes users know it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.engine.placement.node_functions import Bools, NodeFilter, Nodes, checked
from stromboli.engine.placement.verdict import FIT, Reason, Verdict

if TYPE_CHECKING:
    from stromboli.model.task import Task


def explain(
    nodes: Nodes, task: Task, filters: Sequence[NodeFilter], resource_fit: bool, within: Bools | None
) -> Verdict:
    """Count the reasons over all nodes, or those within."""
    counts = _ReasonCounts(nodes, task, within)
    if resource_fit:
        counts.add_resources()
    for plugin in dict.fromkeys(filter.plugin for filter in filters):
        counts.add_plugin(plugin, [filter for filter in filters if filter.plugin == plugin])
    return counts.verdict()


class _ReasonCounts:
    """Reasons of the fit test, then of plugin by plugin; a node counts only for the first that refuses it."""

    def __init__(self, nodes: Nodes, task: Task, within: Bools | None):
        self._nodes = nodes
        self._task = task
        self._asked = nodes.all() if within is None else within
        self._open = self._asked.copy()
        self._hopeless = np.zeros(len(nodes), dtype=bool)
        self._reasons: list[Reason] = []

    def add_resources(self) -> None:
        """The first resource of which a node has too little, even once all that is leaving has left."""
        shape, dims = self._task.shape, self._nodes.columns.dims
        for dim in dims.ordered(shape.dims):
            short = self._open & (self._nodes.future_idle[dim] < shape.request.get(dim, 0))
            self._count(names.INSUFFICIENT.format(dims.names[dim]), FIT, True, short)
            self._open &= ~short

    def add_plugin(self, plugin: str, filters: Sequence[NodeFilter]) -> None:
        """One plugin's filters in order: curable reasons add up on a node, an incurable one ends it there."""
        passing, asking = self._nodes.all(), self._open.copy()
        for filter in filters:
            undecided = asking.copy()
            for check in checked(filter, self._task, self._nodes):
                failed = undecided & ~check.passes
                self._count(check.reason, plugin, check.curable, failed)
                undecided &= ~failed
                passing &= ~failed
                if not check.curable:
                    asking &= ~failed
        self._open &= passing

    def _count(self, reason: str, plugin: str, curable: bool, failed: Bools) -> None:
        if count := int(np.count_nonzero(failed)):
            self._reasons.append(Reason(reason, count, plugin, curable))
        if not curable:
            self._hopeless |= failed

    def verdict(self) -> Verdict:
        return Verdict(int(np.count_nonzero(self._asked)), tuple(self._reasons), hopeless=self._hopeless)
