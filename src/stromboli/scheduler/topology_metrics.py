"""Fills the metrics of tiers of HyperNodes: how full they are, and how large a gang would still fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stromboli.daemon.metric_types import forget
from stromboli.model.cluster import Cluster
from stromboli.model.topology.tier_occupancy import GPUS, NODES, TierOccupancies, TierOccupancy
from stromboli.scheduler.scheduler_metrics import Metrics

PAUSE = 5.0
"""Seconds between two looks at a cluster that changes all the time."""


Series = tuple[str, str, str]
"""A gauge, a tier, and a state, resource or unit."""


class TopologyMetrics:
    """A series for each tier, not for each HyperNode; they go with their tier."""

    def __init__(self, metrics: Metrics, wall: Callable[[], float]):
        self._wall = wall
        self._looked = float("-inf")
        self._occupancies: TierOccupancies | None = None
        self._tiers: list[TierOccupancy] = []
        """What is shown."""
        self._shown: dict[Series, float] = {}
        self._left_out = metrics.left_out
        self._gauges = {
            "hyper_nodes": metrics.tier_hyper_nodes,
            "occupancy": metrics.tier_occupancy,
            "largest_gang": metrics.largest_gang,
            "fragmentation": metrics.fragmentation,
        }

    def update(self, cluster: Cluster) -> None:
        """A cycle ended. Without HyperNodes, or if nothing changed, this costs nothing."""
        now, tree = self._wall(), cluster.hyper_nodes
        self._left_out.set(len(tree.problems))
        if (not tree and not self._shown) or abs(now - self._looked) < PAUSE:
            return
        self._looked = now
        if self._occupancies is None or self._occupancies.cluster is not cluster:
            self._occupancies = TierOccupancies(cluster)
        tiers = self._occupancies.current()
        if tiers is not self._tiers:
            self._tiers = tiers
            self._show({series: value for tier in tiers for series, value in _values(tier)})

    def _show(self, values: dict[Series, float]) -> None:
        for (gauge, *labels), value in values.items():
            self._gauges[gauge].labels(*labels).set(value)
        for gauge, *labels in self._shown.keys() - values.keys():
            forget(self._gauges[gauge], *labels)
        self._shown = values


def _values(tier: TierOccupancy) -> Iterator[tuple[Series, float]]:
    label = str(tier.tier)
    for state, count in (("free", tier.free), ("partly_free", tier.partly_free), ("full", tier.full)):
        yield ("hyper_nodes", label, state), count
    for resource, room in tier.rooms.items():
        yield ("occupancy", label, resource), room.occupancy
        if resource in (NODES, GPUS):
            yield ("largest_gang", label, resource), room.largest
            yield ("fragmentation", label, resource), room.fragmentation
