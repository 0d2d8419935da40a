"""What is short and who holds it, as numbers; and amounts as users write them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from stromboli.api.resources.resource_lists import resource_list
from stromboli.model.cluster import Cluster
from stromboli.model.dimensions import PODS, Dimensions

MOST_HOLDERS = 3


class Shortage(NamedTuple):
    """A resource of which more is asked for than there is."""

    resource: str
    asked: int
    available: int

    @property
    def missing(self) -> int:
        return self.asked - self.available


class Holder(NamedTuple):
    """A queue that holds some of what is short."""

    queue: str
    resource: str
    amount: int


class WayOut(NamedTuple):
    """The next step for a job that waits, with the numbers it goes by."""

    text: str = ""
    shortages: tuple[Shortage, ...] = ()
    holders: tuple[Holder, ...] = ()


def shortage(dims: Dimensions, dim: int, asked: float, available: float) -> Shortage:
    return Shortage(dims.names[dim], int(asked), max(int(available), 0))


def largest_holders(cluster: Cluster, dims: Iterable[int]) -> tuple[Holder, ...]:
    """The queues that hold most of each resource."""
    holders: list[Holder] = []
    for dim in dims:
        name = cluster.dims.names[dim]
        held = [Holder(queue.name, name, int(queue.held.get(dim, 0))) for queue in cluster.queues.values()]
        largest = heapq.nlargest(MOST_HOLDERS, held, key=lambda holder: holder.amount)
        holders += [holder for holder in largest if holder.amount > 0]
    return tuple(holders)


def amounts_text(dims: Dimensions, amounts: Mapping[int, float]) -> str:
    """`cpu 4, memory 8Gi`."""
    return ", ".join(amount_text(dims, dim, amounts[dim]) for dim in dims.ordered(amounts) if dim != PODS)


def resources_text(dims: Dimensions, rows: Iterable[int]) -> str:
    """`cpu and memory`."""
    return " and ".join(dims.names[dim] for dim in dims.ordered(rows) if dim != PODS)


def amount_text(dims: Dimensions, dim: int, amount: float) -> str:
    name = dims.names[dim]
    return f"{name} {resource_list({name: int(amount)})[name]}"
