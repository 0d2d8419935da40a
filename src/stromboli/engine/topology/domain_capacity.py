"""How many tasks fit into domains, at most: by what each node will have free, whatever else may keep them out.

A domain with room for fewer tasks than a gang needs cannot serve, so it need not be tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Ints
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


class DomainCapacity:
    """Slots for tasks of each shape, by node and summed over domains; counted anew when nodes changed."""

    def __init__(self, cluster: Cluster):
        self._cluster = cluster
        self._moment: tuple[int, int] = (-1, -1)
        self._slots: dict[Shape, tuple[Ints, Ints]] = {}

    def of(self, tasks: Sequence[Task]) -> TaskRoom:
        """How many of these tasks fit into each domain, at most."""
        moment = (self._cluster.columns.clock, self._cluster.hyper_nodes.version)
        if moment != self._moment:
            self._moment, self._slots = moment, {}
        shapes = Counter(task.shape for task in tasks)
        for shape in shapes:
            if shape not in self._slots:
                slots = _slots(self._cluster, shape)
                self._slots[shape] = (slots, self._cluster.hyper_nodes.lookup.sums(slots))
        return TaskRoom(self._cluster, shapes, self._slots, _reserved(self._cluster, tasks))


class TaskRoom:
    """How many of some tasks fit into each domain, at most."""

    def __init__(
        self, cluster: Cluster, shapes: Counter[Shape], slots: dict[Shape, tuple[Ints, Ints]], reserved: int
    ):
        self._lookup = cluster.hyper_nodes.lookup
        self._parts = [(slots[shape][0], count) for shape, count in shapes.items()]
        self._reserved = reserved
        self._most: Ints = np.full(len(self._lookup.domains), reserved)
        for shape, count in shapes.items():
            self._most += np.minimum(slots[shape][1], count)

    def most(self, domain: Domain) -> int:
        """How many of the tasks fit into a domain, at most."""
        place = self._lookup.place.get(domain)
        if place is not None:
            return int(self._most[place])
        return self._reserved + sum(min(int(slots[domain.rows].sum()), count) for slots, count in self._parts)

    def any_with(self, needed: int, highest_tier: int) -> bool:
        """Whether any HyperNode up to a tier could take so many of the tasks."""
        enough = np.flatnonzero(self._most >= needed)
        return len(enough) > 0 and self._lookup.domains[enough[0]].tier <= highest_tier


def _slots(cluster: Cluster, shape: Shape) -> Ints:
    """How many tasks of a shape fit on each node once what is leaving has left."""
    columns = cluster.columns
    slots: Ints = np.full(len(columns), len(cluster.tasks), dtype=np.int64)
    for dim, asked in shape.request.items():
        if asked > 0:
            free = columns.idle[dim] + columns.releasing[dim] - columns.pipelined[dim]
            np.minimum(slots, free // asked, out=slots)
    return np.maximum(slots, 0)


def _reserved(cluster: Cluster, tasks: Sequence[Task]) -> int:
    """How many tasks more may fit than nodes have slots: all, if any has room that is reserved for it."""
    if not cluster.reservations:
        return 0
    reserved = any(cluster.reservations.own_room(task) is not None for task in tasks)
    return len(tasks) if reserved else 0
