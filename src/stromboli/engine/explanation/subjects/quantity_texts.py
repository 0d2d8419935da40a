"""Amounts of the model as quantities that users read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from stromboli.api import names
from stromboli.api.node_state import is_gpu
from stromboli.api.resources.resource_lists import resource_list
from stromboli.model.cluster import Cluster
from stromboli.model.dimensions import PODS
from stromboli.model.node_columns import Node

INSTANCE_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")


def quantities(
    cluster: Cluster, amounts: Mapping[int, float], dims: Iterable[int] | None = None
) -> dict[str, str]:
    """Amounts by the names of resources, of these dimensions alone if any are given; what is without limit is not."""
    wanted = amounts.keys() if dims is None else [dim for dim in dims if dim in amounts]
    finite = {dim: int(amounts[dim]) for dim in wanted if dim != PODS and math.isfinite(amounts[dim])}
    texts = resource_list(cluster.dims.named(finite)) if finite else {}
    return {cluster.dims.names[dim]: texts[cluster.dims.names[dim]] for dim in cluster.dims.ordered(finite)}


def quantity(cluster: Cluster, dim: int, amount: float) -> str:
    """`4`, or `8Gi`."""
    name = cluster.dims.names[dim]
    return resource_list({name: int(amount)})[name]


class NodeGroupNames:
    """The names of groups of like nodes; nodes of a size are named once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_size: dict[tuple[tuple[int, float], ...], str] = {}

    def of(self, node: Node) -> str:
        """The instance type of a node, or else its size as `stromboli up --nodes` takes it."""
        for label in INSTANCE_TYPES:
            if node.labels.get(label):
                return node.labels[label]
        size = tuple(node.allocatable.items())
        if size not in self._by_size:
            self._by_size[size] = _size_name(self._cluster, node)
        return self._by_size[size]


def _size_name(cluster: Cluster, node: Node) -> str:
    sizes = quantities(cluster, node.allocatable)
    parts = [f"{sizes.pop(names.CPU, '0')}cpu", sizes.pop(names.MEMORY, "0")]
    gpus = [f"{amount}gpu" for name, amount in sizes.items() if is_gpu(name) and amount != "0"]
    return ",".join([*parts, *gpus])
