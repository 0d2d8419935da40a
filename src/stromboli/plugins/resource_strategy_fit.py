"""Pack some resources, spread others, and keep nodes with scarce resources for tasks that request them (spec 04 5)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stromboli.api import names
from stromboli.engine.placement.node_functions import Check, Column, NodeFilter, Nodes, NodeScore
from stromboli.engine.placement.scoring import Part, utilisation
from stromboli.engine.plugin import Plugin
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.requirements.placement_requirement import RESOURCE_STRATEGY
from stromboli.model.task import Task
from stromboli.policy.argument_checks import at_least
from stromboli.policy.arguments import arg, arg_map

log = logging.getLogger(__name__)

LEAST, MOST = "LeastAllocated", "MostAllocated"


@dataclass(frozen=True, slots=True)
class Strategy:
    """Whether one resource is packed or spread, and how much that counts."""

    type: str = arg(
        "type",
        LEAST,
        "MostAllocated packs, LeastAllocated spreads.",
        check=lambda type: None if type in (LEAST, MOST) else f"must be {LEAST} or {MOST}",
    )
    weight: int = arg(
        "weight",
        1,
        "Weight of this resource.",
        check=lambda weight: None if weight > 0 else "must be above zero",
    )


@dataclass(frozen=True, slots=True)
class ScarceResources:
    """Scarce resource avoidance: tasks that do not need them prefer nodes without."""

    enable: bool = arg("enable", False, "Whether tasks avoid scarce resources that they do not request.")
    resources: str = arg("resources", "", "The scarce resources, comma-separated.")
    weight: int = arg("weight", 0, "Weight of this score; 0 disables it.")
    resource_weight: Mapping[str, int] = arg_map(
        "resourceWeight", {}, "Weight of each resource; 1 by default and for negative values."
    )


@dataclass(frozen=True, slots=True)
class Proportional:
    """Cpu and memory that stay free for each free unit of a resource."""

    enable: bool = arg("enable", False, "Whether cpu and memory are reserved.")
    resources: str = arg("resources", "", "Resources for which cpu and memory are reserved.")
    resource_proportion: Mapping[str, float] = arg_map(
        "resourceProportion",
        {},
        "Cores (`<resource>.cpu`) and GB (`<resource>.memory`) per unit; 1 by default and for negative values.",
    )


@dataclass(frozen=True, slots=True)
class StrategyFitArguments:
    """Resources to pack, to spread, to avoid, and to keep cpu and memory for."""

    weight: int = arg(
        "resourceStrategyFitWeight",
        10,
        "Weight of packing and spreading; 0 disables it.",
        check=at_least(0),
    )
    resources: Mapping[str, Strategy] = arg_map(
        "resources", {}, "Strategy of each resource; a name may end in * to match a prefix."
    )
    sra: ScarceResources = arg_map("sra", ScarceResources(), "Scarce resource avoidance.")
    proportional: Proportional = arg_map(
        "proportional", Proportional(), "Cpu and memory reserved for devices."
    )


class ResourceStrategyFit(Plugin):
    """Scores nodes by a strategy per resource; may reserve cpu and memory for free devices."""

    name = "resource-strategy-fit"
    honours = frozenset({RESOURCE_STRATEGY.name})
    Arguments = StrategyFitArguments
    arguments: StrategyFitArguments

    def __init__(self, arguments: StrategyFitArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._strategies = _usable(arguments.resources or {names.CPU: Strategy(), names.MEMORY: Strategy()})
        sra, proportional = arguments.sra, arguments.proportional
        self._scarce_weight = max(sra.weight, 0) if sra.enable else 0
        self._scarce = {name: _or_one(sra.resource_weight.get(name)) for name in _listed(sra.resources)}
        rates = proportional.resource_proportion
        self._proportions = {
            name: (_or_one(rates.get(f"{name}.cpu")), _or_one(rates.get(f"{name}.memory")))
            for name in _listed(proportional.resources)
            if proportional.enable and name not in (names.CPU, names.MEMORY)
        }

    def shape_key(self, task: Task) -> tuple[str | None, str | None]:
        annotations = task.annotations
        keys = (names.RESOURCE_STRATEGY_SCORING_TYPE, names.RESOURCE_STRATEGY_WEIGHT)
        return annotations.get(keys[0]), annotations.get(keys[1])

    # -- scores

    def node_scores(self, task: Task) -> Iterable[NodeScore]:
        if self.arguments.weight or self._scarce_weight:
            yield NodeScore(self._score, plugin=self.name, reads="usage")

    def _score(self, task: Task, nodes: Nodes) -> Column:
        score: Column = nodes.zeros()
        if self.arguments.weight:
            score += utilisation(task, nodes, self._parts(task)) * (100 * self.arguments.weight)
        if self._scarce_weight:
            score += self._scarcity_score(task, nodes) * (100 * self._scarce_weight)
        return score

    def _parts(self, task: Task) -> Iterator[Part]:
        dims, strategies = self.session.cluster.dims, _own_strategies(task)
        for dim in _requested(task, dims.ordered(task.request)):
            name = dims.names[dim]
            type, weight = self._strategy(name) if strategies is None else strategies.get(name, ("", 0))
            if type:
                yield Part(dim, weight, pack=type == MOST)

    def _strategy(self, resource: str) -> tuple[str, int]:
        """As configured for this name, else for its longest prefix."""
        strategy = self._strategies.get(resource)
        if strategy is None:
            prefixes = [
                name for name in self._strategies if name[-1] == "*" and resource.startswith(name[:-1])
            ]
            strategy = self._strategies[max(prefixes, key=len)] if prefixes else None
        return (strategy.type, strategy.weight) if strategy else ("", 0)

    def _scarcity_score(self, task: Task, nodes: Nodes) -> Column:
        """How few scarce resources a node has, from 0 to 1; 0 where it lacks what the task requests."""
        total_weight = sum(self._scarce.values())
        if total_weight == 0:
            return nodes.zeros()
        present = nodes.zeros()
        index = self.session.cluster.dims.index
        for name, weight in self._scarce.items():
            if name in index:
                present += np.where(nodes.allocatable[index[name]] > 0, weight, 0.0)
        suitable = nodes.all()
        for dim in _requested(task, task.request):
            suitable &= nodes.allocatable[dim] != 0
        return np.where(suitable, 1.0 - present / total_weight, 0.0)

    # -- the filter

    def node_filters(self, task: Task) -> Iterable[NodeFilter]:
        if self._proportions:
            yield NodeFilter(self._checks, plugin=self.name, reads="usage")

    def _checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """# quirk: spec 04 5: what is idle now counts, not what will be; nor could evicting help."""
        index = self.session.cluster.dims.index
        reserving = {name: index[name] for name in self._proportions if name in index}
        if any(task.request.get(dim, 0) > 0 for dim in reserving.values()):
            return
        cpu = nodes.idle[CPU] - int(task.request.get(CPU, 0))
        memory = nodes.idle[MEMORY] - int(task.request.get(MEMORY, 0))
        for name, dim in reserving.items():
            cores, gigabytes = self._proportions[name]
            free = nodes.idle[dim].astype(np.float64)
            absent = (nodes.allocatable[dim] == 0) & (free == 0)
            enough = (cpu >= free * cores) & (memory >= free * gigabytes * 1000 * 1000)
            yield Check(absent | enough, names.PROPORTION_CHECK_FAILED.format(resource=name))


def _usable(resources: Mapping[str, Strategy]) -> dict[str, Strategy]:
    """The strategies whose names are a resource or a prefix of one."""
    usable = {}
    for name, strategy in resources.items():
        if name == "*" or "*" in name[:-1]:
            log.warning("resource-strategy-fit: resource %r is ignored: one * may stand at the end", name)
        elif name:
            usable[name] = strategy
    return usable


def _own_strategies(task: Task) -> dict[str, tuple[str, int]] | None:
    """The strategies of a pod's annotations, instead of the configured ones; none where they are invalid."""
    type = task.annotations.get(names.RESOURCE_STRATEGY_SCORING_TYPE)
    if type is None:
        return None
    weights = _weights(task.annotations.get(names.RESOURCE_STRATEGY_WEIGHT, ""))
    return {name: (type, weight) for name, weight in weights.items()} if type in (LEAST, MOST) else {}


def _weights(text: str) -> dict[str, int]:
    try:
        weights: Any = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    valid = isinstance(weights, dict) and all(map(_is_whole, weights.values()))
    return weights if valid else {}


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _requested(task: Task, dims: Iterable[int]) -> list[int]:
    return [dim for dim in dims if task.request[dim] > 0]


def _listed(text: str) -> list[str]:
    return list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def _or_one(weight: float | None) -> float:
    """A weight; 1 where none is given, or a negative one."""
    return 1 if weight is None or weight < 0 else weight
