"""The plugin `nodeorder`: the node scores of a task and their weights."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from stromboli.api.types.meta import LabelSelector
from stromboli.engine.placement.node_functions import NodeScore
from stromboli.engine.plugin import Plugin
from stromboli.model.task import Task
from stromboli.plugins.nodeorder import allocation_scores, node_scores
from stromboli.plugins.nodeorder.pod_affinity_score import pod_preferences, preference_key
from stromboli.plugins.nodeorder.score_normalisation import between_extremes, down_from_worst, up_to_best
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
        weights, name, cluster = self.arguments, self.name, self.session.cluster
        yield NodeScore(node_scores.image_locality, name, "static", weight=weights.images)
        yield NodeScore(
            allocation_scores.least_allocated, name, "usage", weight=weights.least_requested, batch=True
        )
        yield NodeScore(
            allocation_scores.most_allocated, name, "usage", weight=weights.most_requested, batch=True
        )
        if allocation_scores.asks_for_balance(task):
            yield NodeScore(
                allocation_scores.balanced_allocation, name, "usage", weight=weights.balanced, batch=True
            )
        if node_scores.preferred_nodes(task.shape.spec):
            preferred = node_scores.PreferredNodes(cluster)
            yield NodeScore(
                preferred.score,
                name,
                "static",
                weight=weights.node_affinity,
                finish=up_to_best,
                batch=True,
            )
        yield NodeScore(
            node_scores.soft_taints, name, "static", weight=weights.taints, finish=down_from_worst, batch=True
        )
        if preferences := pod_preferences(cluster, task):
            yield NodeScore(
                preferences.score,
                name,
                "pods",
                preferences.version,
                weight=weights.pod_affinity,
                finish=between_extremes,
                batch=True,
            )
        if spread := soft_spreading(cluster, task, self._siblings_of(task)):
            yield NodeScore(
                spread.score,
                name,
                "pods",
                spread.version,
                weight=weights.spreading,
                finish=spread.finish,
                batch=True,
            )
