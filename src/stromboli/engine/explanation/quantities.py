"""Amounts and times of the model as users read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from stromboli.api import names
from stromboli.api.go_scalars import rfc3339
from stromboli.api.node_state import is_gpu
from stromboli.api.resources.resource_lists import resource_list
from stromboli.model.cluster import Cluster
from stromboli.model.dimensions import PODS, Dimensions
from stromboli.model.node_columns import Node

INSTANCE_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
LATEST_TIME = 253402300799.0
"""The last second of the year 9999, which is as far as times can be written."""


def time_text(seconds: float) -> str:
    """A moment as Kubernetes writes it."""
    return rfc3339(datetime.fromtimestamp(int(min(seconds, LATEST_TIME)), UTC))


def amounts_text(dims: Dimensions, amounts: Mapping[int, float]) -> str:
    """`cpu 4, memory 8Gi`."""
    return ", ".join(amount_text(dims, dim, amounts[dim]) for dim in dims.ordered(amounts) if dim != PODS)


def resources_text(dims: Dimensions, rows: Iterable[int]) -> str:
    """`cpu and memory`."""
    return " and ".join(dims.names[dim] for dim in dims.ordered(rows) if dim != PODS)


def amount_text(dims: Dimensions, dim: int, amount: float) -> str:
    name = dims.names[dim]
    return f"{name} {resource_list({name: int(amount)})[name]}"


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
