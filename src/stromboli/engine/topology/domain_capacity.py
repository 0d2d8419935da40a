"""How many tasks fit into domains, at most: by what each node will have free, whatever other pods may do about it.

A domain with room for fewer tasks than a gang needs cannot serve, so it need not be tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Ints
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


class DomainCapacity:
    """Slots for tasks of each kind, by node and summed over domains; counted anew when nodes changed."""

    def __init__(self, session: Session):
        self._session = session
        self._cluster = session.cluster
        self._moment: tuple[int, int] = (-1, -1)
        self._slots: dict[Hashable, tuple[Ints, Ints]] = {}

    def of(self, tasks: Sequence[Task]) -> TaskRoom:
        """How many of these tasks fit into each domain, at most, by what they request."""
        return self._room(
            tasks, [task.shape for task in tasks], lambda task: _slots(self._cluster, task.shape)
        )

    def of_usable_nodes(self, tasks: Sequence[Task]) -> TaskRoom:
        """The same by what they request and by the nodes that they may use at all; it costs more."""
        keys = [(task.shape, self._session.shape_key(task)) for task in tasks]
        return self._room(
            tasks, keys, lambda task: _slots(self._cluster, task.shape) * self._session.usable(task)
        )

    def _room(
        self, tasks: Sequence[Task], keys: Sequence[Hashable], count_slots: Callable[[Task], Ints]
    ) -> TaskRoom:
        moment = (self._cluster.columns.clock, self._cluster.hyper_nodes.version)
        if moment != self._moment:
            self._moment, self._slots = moment, {}
        for key, task in dict(zip(keys, tasks, strict=True)).items():
            if key not in self._slots:
                slots = count_slots(task)
                self._slots[key] = (slots, self._cluster.hyper_nodes.lookup.sums(slots))
        parts = [(*self._slots[key], count) for key, count in Counter(keys).items()]
        return TaskRoom(self._cluster, parts, _reserved(self._cluster, tasks))


class TaskRoom:
    """How many of some tasks fit into each domain, at most."""

    def __init__(self, cluster: Cluster, parts: list[tuple[Ints, Ints, int]], reserved: int):
        """The parts are slots by node, slots by domain and how many tasks there are, for each kind of task."""
        self._lookup = cluster.hyper_nodes.lookup
        self._parts = parts
        self._reserved = reserved
        self._most: Ints = np.full(len(self._lookup.domains), reserved)
        for _, by_domain, count in parts:
            self._most += np.minimum(by_domain, count)

    def most(self, domain: Domain) -> int:
        """How many of the tasks fit into a domain, at most."""
        place = self._lookup.place.get(domain)
        if place is not None:
            return int(self._most[place])
        return self._reserved + sum(
            min(int(slots[domain.rows].sum()), count) for slots, _, count in self._parts
        )

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
