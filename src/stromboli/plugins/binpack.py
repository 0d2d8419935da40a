"""Prefer fuller nodes (spec 04 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from stromboli.api import names
from stromboli.engine.placement.node_functions import Column, Nodes, NodeScore
from stromboli.engine.placement.scoring import Part, utilisation
from stromboli.engine.plugin import Plugin
from stromboli.model.task import Task
from stromboli.policy.argument_checks import at_least
from stromboli.policy.arguments import arg, arg_prefix


@dataclass(frozen=True, slots=True)
class BinpackArguments:
    """How much each resource counts. A weight below zero counts as 1."""

    weight: int = arg("binpack.weight", 1, "Weight of the score; 0 disables it.")
    cpu: int = arg("binpack.cpu", 1, "Weight of cpu.", check=at_least(0))
    memory: int = arg("binpack.memory", 1, "Weight of memory.", check=at_least(0))
    resources: str = arg("binpack.resources", "", "Other resources that count, comma-separated.")
    weights: Mapping[str, int] = arg_prefix(
        "binpack.resources.", 1, "Weight of one of the other resources.", check=at_least(0)
    )


class Binpack(Plugin):
    """Scores a node by how full it would be with the task, over the requested resources."""

    name = "binpack"
    Arguments = BinpackArguments
    arguments: BinpackArguments

    def __init__(self, arguments: BinpackArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        listed = filter(None, map(str.strip, arguments.resources.split(",")))
        self._weights = {name: arguments.weights[name] for name in listed}
        self._weights |= {names.CPU: arguments.cpu, names.MEMORY: arguments.memory}

    def node_scores(self, task: Task) -> Iterable[NodeScore]:
        if self.arguments.weight:
            yield NodeScore(partial(self._score, self._parts(task)), plugin=self.name, reads="usage")

    def _score(self, parts: Sequence[Part], task: Task, nodes: Nodes) -> Column:
        return utilisation(task, nodes, parts) * (100 * self.arguments.weight)

    def _parts(self, task: Task) -> list[Part]:
        dims = self.session.cluster.dims
        return [
            Part(dim, self._weights[dims.names[dim]])
            for dim in dims.ordered(task.request)
            if task.request[dim] > 0 and dims.names[dim] in self._weights
        ]
