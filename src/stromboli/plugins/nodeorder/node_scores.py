"""Scores that look at a node by itself: preferred labels, soft taints, images at hand (spec 04 3.5, 3.6, 3.9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stromboli.model.constraints.node_selection import matching_term
from stromboli.model.constraints.taints import untolerated_soft_taints

if TYPE_CHECKING:
    from stromboli.api.types.pod import PodSpec, PreferredNodeTerm
    from stromboli.engine.placement.node_functions import Column, Nodes
    from stromboli.model.node_columns import Columns, Ints, Node
    from stromboli.model.task import Task

MEBI = 1024 * 1024
FEW_IMAGES = 23 * MEBI
MANY_IMAGES = 1000 * MEBI
Images = dict[str, tuple[int, "Ints"]]
"""By name: how large it is, and the rows of the nodes that have it."""


def preferred_terms(spec: PodSpec) -> tuple[PreferredNodeTerm, ...]:
    """The preferred node affinity of a pod."""
    affinity = spec.affinity
    return affinity.node_affinity.preferred if affinity and affinity.node_affinity else ()


def preferred_nodes(task: Task, nodes: Nodes) -> Column:
    """The sum of the weights of all preferred node terms that match."""
    total = np.zeros(len(nodes.columns), dtype=np.int64)
    for preferred in preferred_terms(task.shape.spec):
        # An invalid term is worth nothing; Volcano would not place such a pod (no API server admits one).
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
