"""Amounts and times of the model as users read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from stromboli.api.go_scalars import rfc3339
from stromboli.api.resources.resource_lists import resource_list
from stromboli.model.cluster import Cluster
from stromboli.model.dimensions import PODS, Dimensions

LATEST_TIME = 253402300799.0
"""The last second of the year 9999, which is the latest time that RFC 3339 can express."""


def time_text(seconds: float) -> str:
    """A time as Kubernetes writes it."""
    return rfc3339(datetime.fromtimestamp(int(min(seconds, LATEST_TIME)), UTC))


def amounts_text(dims: Dimensions, amounts: Mapping[int, float]) -> str:
    """`cpu 4, memory 8Gi`."""
    return ", ".join(f"{name} {text}" for name, text in _quantities(dims, amounts).items())


def resources_text(dims: Dimensions, rows: Iterable[int]) -> str:
    """`cpu and memory`."""
    return " and ".join(dims.names[dim] for dim in dims.ordered(rows) if dim != PODS)


def quantities(
    cluster: Cluster, amounts: Mapping[int, float], among: Iterable[int] | None = None
) -> dict[str, str]:
    """Amounts by resource name, of all dimensions or those `among` some; unlimited amounts are left out."""
    if among is not None:
        amounts = {dim: amounts[dim] for dim in among if dim in amounts}
    return _quantities(cluster.dims, amounts)


def quantity(cluster: Cluster, dim: int, amount: float) -> str:
    """`4`, or `8Gi`."""
    name = cluster.dims.names[dim]
    return resource_list({name: int(amount)})[name]


def _quantities(dims: Dimensions, amounts: Mapping[int, float]) -> dict[str, str]:
    finite = {dim: int(amount) for dim, amount in amounts.items() if dim != PODS and math.isfinite(amount)}
    texts = resource_list({dims.names[dim]: amount for dim, amount in finite.items()})
    return {dims.names[dim]: texts[dims.names[dim]] for dim in dims.ordered(finite)}
