"""Fills the metrics of GPUs that are shared out: what is given out of each card, and what each pod has of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from prometheus_client import Gauge

from stromboli.api import card_names
from stromboli.daemon.metric_types import forget
from stromboli.model.cards.card_ledger import CardLedger
from stromboli.model.cards.node_cards import NodeCards
from stromboli.model.cluster import Cluster
from stromboli.scheduler.scheduler_metrics import Metrics

Series = tuple[str, tuple[str, ...]]
"""A gauge and its labels."""


class CardMetrics:
    """A series for each card and for each pod on it; they go with the card, or with the pod."""

    def __init__(self, metrics: Metrics):
        self._gauges: dict[str, Gauge] = {
            "sharers": metrics.card_sharers,
            "memory": metrics.card_memory,
            "cores": metrics.card_cores,
            "size": metrics.card_size,
            "pod memory": metrics.pod_card_memory,
            "pod cores": metrics.pod_card_cores,
        }
        self._shown: dict[str, dict[Series, float]] = {}
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
            self._show(node, dict(_values(node, cards)) if cards is not None else {})

    def _show(self, node: str, values: dict[Series, float]) -> None:
        before = self._shown.pop(node, {})
        for series in before.keys() - values.keys():
            forget(self._gauges[series[0]], *series[1])
        for series, value in values.items():
            if before.get(series) != value:
                self._gauges[series[0]].labels(*series[1]).set(value)
        if values:
            self._shown[node] = values


def _values(node: str, cards: NodeCards) -> Iterator[tuple[Series, float]]:
    taken = cards.now
    for card in cards.cards:
        labels = (card.uuid, node)
        yield ("size", labels), card.memory
        yield ("sharers", labels), taken.sharers[card.index]
        yield ("memory", labels), taken.memory[card.index]
        yield ("cores", labels), taken.cores[card.index]
    of_pods: dict[Series, float] = defaultdict(float)
    for task in cards.tasks:
        for share in cards.shares_of(task):
            of_pod = (cards.cards[share.card].uuid, node, task.name)
            of_pods["pod memory", of_pod] += share.memory
            of_pods["pod cores", of_pod] += share.cores
    yield from of_pods.items()
