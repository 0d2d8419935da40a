"""The plugin `nodeorder`: the node scores of a task and their weights."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stromboli.api.types.meta import LabelSelector, Requirement
from stromboli.api.types.workloads import ReplicationController
from stromboli.engine.placement.node_functions import NodeScore
from stromboli.engine.placement.scoring import InProportion, between_extremes
from stromboli.engine.plugin import Plugin
from stromboli.model.constraints.node_selection import matching_term, untolerated_soft_taints
from stromboli.model.constraints.pod_affinity import (
    incoming_pod_term,
    matching_pods,
    pods_with_term,
    preferred_terms,
)
from stromboli.model.constraints.topology_spread import is_empty
from stromboli.model.requirements.placement_requirement import NODE_PREFERENCES
from stromboli.model.shape import (
    VIEW_CPU,
    VIEW_GPU,
    VIEW_MEMORY,
    VIEW_NONZERO_CPU,
    VIEW_NONZERO_MEMORY,
)
from stromboli.model.task import Task
from stromboli.plugins.nodeorder.topology_spread_score import soft_spreading, soft_spreading_key
from stromboli.policy.arguments import arg

if TYPE_CHECKING:
    from stromboli.api.types.pod import PodSpec, PreferredNodeTerm
    from stromboli.engine.placement.node_functions import Column, Nodes
    from stromboli.model.cluster import Cluster
    from stromboli.model.constraints.pod_affinity import AffinityTerm
    from stromboli.model.constraints.pod_counts import PodCount
    from stromboli.model.lookup_objects import LookupObjects
    from stromboli.model.node_columns import Columns, Ints, Node


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
    """Kubernetes' own node scores, weighted."""

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
        yield NodeScore(image_locality, self.name, "static", weight=weights.images)
        yield batch(least_allocated, reads="usage", weight=weights.least_requested)
        yield batch(most_allocated, reads="usage", weight=weights.most_requested)
        if asks_for_balance(task):
            yield batch(balanced_allocation, reads="usage", weight=weights.balanced)
        if preferred_node_terms(task.shape.spec):
            score, weight = preferred_nodes, weights.node_affinity
            yield batch(score, reads="static", weight=weight, finish=InProportion())
        fewest_taints = InProportion(reverse=True)
        yield batch(soft_taints, reads="static", weight=weights.taints, finish=fewest_taints)
        pods = partial(batch, reads="pods")
        if preferences := pod_preferences(cluster, task):
            score, version = preferences.score, preferences.version
            yield pods(score, version=version, weight=weights.pod_affinity, finish=between_extremes)
        if spread := soft_spreading(cluster, task, self._siblings_of(task)):
            yield pods(spread.score, version=spread.version, weight=weights.spreading, finish=spread.finish)


# -- scores of how full a node would be: least, most and evenly allocated (spec 04 3.3, 3.4)


Floats = NDArray[np.float64]
_WITHOUT_AND_WITH = np.array([0, 1])[:, None, None]
_NONZERO = slice(VIEW_NONZERO_CPU, VIEW_NONZERO_MEMORY + 1)


def least_allocated(task: Task, nodes: Nodes) -> Column:
    """100 on an empty node, 0 on a full one; the mean of cpu and memory."""
    return _mean_share(task, nodes, least=True)


def most_allocated(task: Task, nodes: Nodes) -> Column:
    """100 on a full node, 0 on an empty one; the mean of cpu and memory."""
    return _mean_share(task, nodes, least=False)


def _mean_share(task: Task, nodes: Nodes, least: bool) -> Ints:
    sizes = nodes.view_allocatable[_NONZERO]
    full = np.minimum(nodes.view[_NONZERO] + task.shape.incoming[_NONZERO, None], sizes)
    full = np.maximum(full, 0)  # a pod may request more than any sum can hold
    cpu, memory = (sizes - full if least else full) * 100 // np.maximum(sizes, 1)
    has_cpu, has_memory = np.minimum(sizes, 1)
    mean: Ints = (cpu + memory) // np.maximum(has_cpu + has_memory, 1)
    return mean


def asks_for_balance(task: Task) -> bool:
    """Best-effort pods are not balanced."""
    return bool(task.shape.incoming[VIEW_CPU : VIEW_GPU + 1].any())


def balanced_allocation(task: Task, nodes: Nodes) -> Column:
    """How much more evenly a node's resources would be used with the pod than without: 50 to 100."""
    rows = slice(VIEW_CPU, (VIEW_GPU if task.shape.incoming[VIEW_GPU] else VIEW_MEMORY) + 1)
    sizes = nodes.view_allocatable[rows]
    used = nodes.view[rows]
    incoming = task.shape.incoming[rows, None]
    before, after = _balance(used + incoming * _WITHOUT_AND_WITH, sizes)
    score: Ints = 50 + (50 + after - before) // 2
    return score


def _balance(used: Ints, sizes: Ints) -> Ints:
    """100 where all resources are used to the same fraction, less the more these fractions deviate.

    Of several states of the same nodes at once: (state, resource, node).
    """
    has = sizes > 0
    fractions = np.maximum(np.minimum(used / np.maximum(sizes, 1), 1.0), 0.0) * has
    deviation = (
        _of_two(fractions, has)
        if len(sizes) == 2
        else np.stack([_of_three(state, has) for state in fractions])
    )
    return ((1 - deviation) * 100).astype(np.int64)


def _of_two(fractions: Floats, has: NDArray[np.bool_]) -> Floats:
    deviation: Floats = np.abs(fractions[:, 0] - fractions[:, 1]) / 2 * (has[0] & has[1])
    return deviation


def _of_three(fractions: Floats, has: NDArray[np.bool_]) -> Floats:
    """The standard deviation; of two resources, where a node lacks the third, half the difference."""
    mean = ((fractions[0] + fractions[1]) + fractions[2]) / 3
    first, second, third = (fractions - mean) ** 2
    deviation = np.sqrt(((first + second) + third) / 3)
    for missing, left, right in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
        pair = ~has[missing] & has[left] & has[right]
        deviation = np.where(pair, np.abs((fractions[left] - fractions[right]) / 2), deviation)
    return np.where(has.sum(axis=0) < 2, 0.0, deviation)


# -- scores of a node by itself: preferred labels, soft taints, images (spec 04 3.5, 3.6, 3.9)


MEBI = 1024 * 1024
FEW_IMAGES = 23 * MEBI
MANY_IMAGES = 1000 * MEBI
Images = dict[str, tuple[int, "Ints"]]
"""By name: how large it is, and the rows of the nodes that have it."""


def preferred_node_terms(spec: PodSpec) -> tuple[PreferredNodeTerm, ...]:
    """The preferred node affinity of a pod."""
    affinity = spec.affinity
    return affinity.node_affinity.preferred if affinity and affinity.node_affinity else ()


def preferred_nodes(task: Task, nodes: Nodes) -> Column:
    """The sum of the weights of all preferred node terms that match."""
    total = np.zeros(len(nodes.columns), dtype=np.int64)
    for preferred in preferred_node_terms(task.shape.spec):
        # An invalid term scores 0; Volcano would not place such a pod (no API server admits one).
        total += preferred.weight * matching_term(nodes.columns, preferred.preference)
    return nodes.pick(total)


def soft_taints(task: Task, nodes: Nodes) -> Column:
    """How many PreferNoSchedule taints the pod does not tolerate."""
    return nodes.pick(untolerated_soft_taints(nodes.columns, task.shape.spec.tolerations))


def image_locality(task: Task, nodes: Nodes) -> Column:
    """How much of the pod's images a node has already; an image that few nodes have counts for less."""
    spec, columns = task.shape.spec, nodes.columns
    known = columns.derived(_images)
    total = np.zeros(len(columns), dtype=np.int64)
    most = MANY_IMAGES * (len(spec.containers) + len(spec.init_containers))
    if most <= FEW_IMAGES:
        return nodes.zeros()
    for name in _images_of(spec):
        if name in known:
            size, rows = known[name]
            total[rows] += min(int(size * (len(rows) / len(columns))), most)
    return nodes.pick(100 * (np.clip(total, FEW_IMAGES, most) - FEW_IMAGES) // (most - FEW_IMAGES))


def _images_of(spec: PodSpec) -> Iterator[str]:
    for container in (*spec.init_containers, *spec.containers):
        yield _tagged(container.image)
    for volume in spec.volumes:
        if volume.image is not None:
            yield _tagged(volume.image.reference)


def _tagged(image: str) -> str:
    """An image without a tag is the latest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _images(columns: Columns) -> Images:
    sizes: dict[str, int] = {}
    rows: dict[str, list[int]] = {}
    for row, node in enumerate(columns.nodes):
        for name, size in _sizes(node).items():
            sizes.setdefault(name, size)
            rows.setdefault(name, []).append(row)
    return {name: (size, np.array(rows[name], dtype=np.int64)) for name, size in sizes.items()}


def _sizes(node: Node) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for image in node.object.status.images if node.object else ():
        for name in image.names:
            sizes.setdefault(name, image.size_bytes)
    return sizes


# -- preferred pod affinity and anti-affinity, of the incoming pod and of existing pods (spec 04 3.7)


def preference_key(cluster: Cluster, task: Task) -> Hashable:
    """What the score below reads of a task beyond its shape."""
    existing = cluster.affinity_terms.preferred_matching(task.label_set)
    spec = task.shape.spec
    own = spec.affinity is not None and any(preferred_terms(spec))
    return (existing, task.namespace) if own else existing or None


def pod_preferences(cluster: Cluster, task: Task) -> PodPreferences | None:
    """The score of a task, if any term concerns it."""
    score = PodPreferences(cluster, task)
    return score if score.own_terms or score.existing_terms else None


class PodPreferences:
    """The sum of the weights of all terms, once for each matching pod in the node's domain."""

    def __init__(self, cluster: Cluster, task: Task):
        self._cluster = cluster
        self.own_terms = [
            incoming_pod_term(term, task.namespace, weight)
            for term, weight in preferred_terms(task.shape.spec)
        ]
        self.existing_terms = cluster.affinity_terms.preferred_matching(task.label_set)

    def version(self, task: Task) -> tuple[int, ...]:
        return tuple([pods.version for _, pods in self._pods()])

    def score(self, task: Task, nodes: Nodes) -> Column:
        total = np.zeros(len(nodes.columns))  # floats: weights times pods may exceed 64 bits
        for term, pods in self._pods():
            total += term.weight * pods.in_domain_of_node(nodes.columns, term.topology_key)
        return nodes.pick(total)

    def _pods(self) -> Iterator[tuple[AffinityTerm, PodCount]]:
        """Pods that match the pod's own terms, and pods with terms that match it; required affinity adds nothing."""
        for term in self.own_terms:
            yield term, matching_pods(self._cluster, term.selector)
        for term in self.existing_terms:
            yield term, pods_with_term(self._cluster, term)


# -- pods of the same Service or controller, which are spread by default (spec 04 3.8)


CACHE_SIZE = 10_000
"""Label sets whose selector is cached at a time."""


class Siblings:
    """Finds the selector of a pod's siblings; its cache is valid until any lookup object changes."""

    def __init__(self) -> None:
        self._objects: LookupObjects | None = None
        self._version = -1
        self._services: dict[str, list[dict[str, str]]] = {}
        self._cache: dict[tuple[int, tuple[str, str] | None], LabelSelector | None] = {}

    def selector(self, objects: LookupObjects, task: Task) -> LabelSelector | None:
        """The selectors of all Services that select a pod and of its controller, as one; None where there are none."""
        self._refresh(objects)
        owner = task.owner if task.owner and (task.owner[0], _key(task)) in objects.controllers else None
        if owner is None and task.namespace not in self._services:
            return None
        key = (task.label_set.id, owner)
        if key not in self._cache:
            self._cache[key] = self._find(objects, task)
        return self._cache[key]

    def _refresh(self, objects: LookupObjects) -> None:
        version = objects.feed.objects.generation
        if self._objects is not objects or self._version != version:
            self._objects, self._version = objects, version
            self._cache.clear()
            self._services.clear()
            for service in objects.services.values():
                if service.spec.selector:
                    self._services.setdefault(service.namespace, []).append(service.spec.selector)
        elif len(self._cache) > CACHE_SIZE:
            self._cache.clear()

    def _find(self, objects: LookupObjects, task: Task) -> LabelSelector | None:
        labels: dict[str, str] = {}
        for selected in self._services.get(task.namespace, ()):
            if selected.items() <= task.label_set.labels.items():
                labels.update(selected)
        expressions: tuple[Requirement, ...] = ()
        owner = objects.controllers.get((task.owner[0], _key(task))) if task.owner else None
        if isinstance(owner, ReplicationController):
            labels.update(owner.spec.selector)
        elif owner is not None and owner.spec.selector is not None:
            match = owner.spec.selector
            pairs = [Requirement(key, "In", (value,)) for key, value in match.match_labels.items()]
            expressions = (*pairs, *match.match_expressions)
        selector = LabelSelector(labels, expressions)
        return None if is_empty(selector) else selector


def _key(task: Task) -> str:
    return f"{task.namespace}/{task.owner[1]}" if task.owner else ""
