"""Metrics of what nodes have: the cards that pods share, and the tiers of HyperNodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from stromboli.api import card_names
from stromboli.daemon.metric_types import OWN_PREFIX, MetricSet, forget
from stromboli.model.cards.card_ledger import CardLedger
from stromboli.model.cards.node_cards import NodeCards
from stromboli.model.cluster import Cluster
from stromboli.model.topology.tier_occupancy import GPUS, NODES, TierOccupancies, TierOccupancy

# -- shared cards: what is allocated of each, and what each pod has of it


CardSeries = tuple[str, tuple[str, ...]]
"""A gauge and its labels."""


class CardMetrics:
    """A series for each card and for each pod on it; they go with the card, or with the pod."""

    def __init__(self, metrics: MetricSet):
        card = ("devID", "NodeName")
        pod = (*card, "podName")
        declared = {
            "sharers": ("shared_number", "Shares given out of a card", card),
            "memory": ("allocated_memory", "Memory given out of a card", card),
            "cores": ("allocated_cores", "Cores given out of a card, in percent", card),
            "size": ("memory_limit", "Memory of a card", card),
            "pod memory": ("memory_allocation_for_a_certain_pod", "Memory of a card that a pod has", pod),
            "pod cores": (
                "core_allocation_for_a_certain_pod",
                "Cores of a card that a pod has, in percent",
                pod,
            ),
        }
        self._gauges = {
            key: metrics.gauge(f"vgpu_device_{name}", text, labels)
            for key, (name, text, labels) in declared.items()
        }
        self._shown: dict[str, dict[CardSeries, float]] = {}
        """By node."""
        self._ledger: CardLedger | None = None
        self._version = 0

    def update(self, cluster: Cluster) -> None:
        """A cycle ended. Only nodes whose cards changed are looked at."""
        ledger = cluster.cards
        changed = ledger.changes.since(self._version) if ledger is self._ledger else None
        self._ledger, self._version = ledger, ledger.changes.position
        for node in {*ledger.nodes, *self._shown} if changed is None else changed:
            cards = ledger.nodes.get(node, {}).get(card_names.VGPU)
            self._show(node, dict(_card_values(node, cards)) if cards is not None else {})

    def _show(self, node: str, values: dict[CardSeries, float]) -> None:
        before = self._shown.pop(node, {})
        for series in before.keys() - values.keys():
            forget(self._gauges[series[0]], *series[1])
        for series, value in values.items():
            if before.get(series) != value:
                self._gauges[series[0]].labels(*series[1]).set(value)
        if values:
            self._shown[node] = values


def _card_values(node: str, cards: NodeCards) -> Iterator[tuple[CardSeries, float]]:
    taken = cards.now
    for card in cards.cards:
        labels = (card.uuid, node)
        yield ("size", labels), card.memory
        yield ("sharers", labels), taken.sharers[card.index]
        yield ("memory", labels), taken.memory[card.index]
        yield ("cores", labels), taken.cores[card.index]
    of_pods: dict[CardSeries, float] = defaultdict(float)
    for task in cards.tasks:
        for share in cards.shares_of(task):
            of_pod = (cards.cards[share.card].uuid, node, task.name)
            of_pods["pod memory", of_pod] += share.memory
            of_pods["pod cores", of_pod] += share.cores
    yield from of_pods.items()


# -- tiers of HyperNodes: how full they are, and the largest gang that would still fit


PAUSE = 5.0
"""Seconds between two looks at a cluster that changes all the time."""


TierSeries = tuple[str, str, str]
"""A gauge, a tier, and a state, resource or unit."""


class TopologyMetrics:
    """A series for each tier, not for each HyperNode; they go with their tier."""

    def __init__(self, metrics: MetricSet, wall: Callable[[], float]):
        self._wall = wall
        self._looked = float("-inf")
        self._occupancies: TierOccupancies | None = None
        self._tiers: list[TierOccupancy] = []
        """What is shown."""
        self._shown: dict[TierSeries, float] = {}
        unit = ("tier", "unit")
        declared = {
            "hyper_nodes": ("HyperNodes by how many of their nodes are free", ("tier", "state")),
            "occupancy_ratio": ("Part of a tier that is in use", ("tier", "resource")),
            "largest_gang": ("What is free below one HyperNode of a tier at most", unit),
            "fragmentation_ratio": ("How much smaller the largest gang is than it could be", unit),
        }
        self._gauges = {
            name: metrics.gauge(f"topology_{name}", text, labels, OWN_PREFIX)
            for name, (text, labels) in declared.items()
        }
        self._left_out = metrics.gauge(
            "topology_left_out_hyper_nodes", "HyperNodes that are left out", (), OWN_PREFIX
        )

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
            self._show({series: value for tier in tiers for series, value in _tier_values(tier)})

    def _show(self, values: dict[TierSeries, float]) -> None:
        for (gauge, *labels), value in values.items():
            self._gauges[gauge].labels(*labels).set(value)
        for gauge, *labels in self._shown.keys() - values.keys():
            forget(self._gauges[gauge], *labels)
        self._shown = values


def _tier_values(tier: TierOccupancy) -> Iterator[tuple[TierSeries, float]]:
    label = str(tier.tier)
    for state, count in (("free", tier.free), ("partly_free", tier.partly_free), ("full", tier.full)):
        yield ("hyper_nodes", label, state), count
    for resource, room in tier.resources.items():
        yield ("occupancy_ratio", label, resource), room.occupancy
        if resource in (NODES, GPUS):
            yield ("largest_gang", label, resource), room.largest
            yield ("fragmentation_ratio", label, resource), room.fragmentation
