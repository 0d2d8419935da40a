"""The pods that a job of a trace becomes: equal ones that add up to its processors and find room on the nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class NodeRoom(NamedTuple):
    """What a node has for the jobs of a trace."""

    cpus: int
    pods: int


class GangShape(NamedTuple):
    """So many pods with so many CPUs each."""

    pods: int
    cpus: int


class GangShapes:
    """The shapes of gangs on some nodes: no pod is larger than the smallest node, nor than is wanted."""

    def __init__(self, nodes: Iterable[NodeRoom], cpus_per_pod: int | None = None) -> None:
        self._rooms = Counter(nodes)
        smallest = min(room.cpus for room in self._rooms)
        self._most = min(smallest, cpus_per_pod or smallest)
        self._known: dict[int, GangShape | None] = {}
        self.processors = sum(room.cpus * count for room, count in self._rooms.items())

    def of(self, processors: int) -> GangShape | None:
        """Pods as large as may be, exactly so many processors together; None if the empty nodes cannot hold them."""
        if processors not in self._known:
            sizes = range(min(self._most, processors), 0, -1) if processors <= self.processors else ()
            shapes = (GangShape(processors // cpus, cpus) for cpus in sizes if processors % cpus == 0)
            self._known[processors] = next(filter(self._have_room, shapes), None)
        return self._known[processors]

    def _have_room(self, shape: GangShape) -> bool:
        most = sum(min(room.cpus // shape.cpus, room.pods) * count for room, count in self._rooms.items())
        return shape.pods <= most
