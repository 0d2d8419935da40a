"""The plugin `nodeorder`: the node scores of a task and their weights."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from stromboli.api.types.meta import LabelSelector
from stromboli.engine.placement.node_functions import NodeScore
from stromboli.engine.placement.score_normalisation import InProportion, between_extremes
from stromboli.engine.plugin import Plugin
from stromboli.model.requirements.placement_requirement import NODE_PREFERENCES
from stromboli.model.task import Task
from stromboli.plugins.nodeorder import allocation_scores, node_scores
from stromboli.plugins.nodeorder.pod_affinity_score import pod_preferences, preference_key
from stromboli.plugins.nodeorder.siblings import Siblings
from stromboli.plugins.nodeorder.topology_spread_score import soft_spreading, soft_spreading_key
from stromboli.policy.arguments import arg


@dataclass(frozen=True, slots=True)
class Weights:
    """Whole weights; 0 switches a score off."""

    least_requested: int = arg("leastrequested.weight", 1, "Prefer nodes with much free cpu and memory.")
    most_requested: int = arg("mostrequested.weight", 0, "Prefer nodes with little free cpu and memory.")
    balanced: int = arg("balancedresource.weight", 1, "Prefer nodes whose cpu, memory and GPUs fill evenly.")
    node_affinity: int = arg("nodeaffinity.weight", 2, "Honour preferred node affinity.")
    pod_affinity: int = arg("podaffinity.weight", 2, "Honour preferred pod affinity and anti-affinity.")
    taints: int = arg("tainttoleration.weight", 3, "Avoid nodes with PreferNoSchedule taints.")
    spreading: int = arg("podtopologyspread.weight", 2, "Honour ScheduleAnyway spread constraints.")
    images: int = arg("imagelocality.weight", 1, "Prefer nodes that have the pod's images.")


class NodeOrder(Plugin):
    """Kubernetes' own node scores, weighted and added."""

    name = "nodeorder"
    honours = frozenset({NODE_PREFERENCES.name})
    Arguments = Weights
    arguments: Weights

    def __init__(self, arguments: Any, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._siblings = Siblings()

    def shape_key(self, task: Task) -> Hashable:
        weights, cluster = self.arguments, self.session.cluster
        preferences = preference_key(cluster, task) if weights.pod_affinity else None
        spread = soft_spreading_key(task, self._siblings_of(task)) if weights.spreading else None
        return (preferences, spread)

    def _siblings_of(self, task: Task) -> LabelSelector | None:
        return self._siblings.selector(self.session.cluster.objects, task)

    def node_scores(self, task: Task) -> list[NodeScore]:
        return [score for score in self._scores(task) if score.weight]

    def _scores(self, task: Task) -> Iterator[NodeScore]:
        weights, cluster = self.arguments, self.session.cluster
        batch = partial(NodeScore, plugin=self.name, batch=True)
        yield NodeScore(node_scores.image_locality, self.name, "static", weight=weights.images)
        yield batch(allocation_scores.least_allocated, reads="usage", weight=weights.least_requested)
        yield batch(allocation_scores.most_allocated, reads="usage", weight=weights.most_requested)
        if allocation_scores.asks_for_balance(task):
            yield batch(allocation_scores.balanced_allocation, reads="usage", weight=weights.balanced)
        if node_scores.preferred_terms(task.shape.spec):
            score, weight = node_scores.preferred_nodes, weights.node_affinity
            yield batch(score, reads="static", weight=weight, finish=InProportion())
        fewest_taints = InProportion(reverse=True)
        yield batch(node_scores.soft_taints, reads="static", weight=weights.taints, finish=fewest_taints)
        pods = partial(batch, reads="pods")
        if preferences := pod_preferences(cluster, task):
            score, version = preferences.score, preferences.version
            yield pods(score, version=version, weight=weights.pod_affinity, finish=between_extremes)
        if spread := soft_spreading(cluster, task, self._siblings_of(task)):
            yield pods(spread.score, version=spread.version, weight=weights.spreading, finish=spread.finish)
