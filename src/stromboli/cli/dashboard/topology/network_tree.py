"""The tree of HyperNodes over the nodes of some records, resolved by the code of the scheduler itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.node import Node
from stromboli.api.types.scheduling import HyperNode
from stromboli.cli.live.cluster_records import ClusterRecords
from stromboli.model.intake.object_intake import Intake
from stromboli.model.topology.domain import Domain
from stromboli.model.topology.hyper_node_tree import HyperNodeTree


class NetworkTree:
    """A model of nodes by name and labels and of HyperNodes, and of nothing else; follows records."""

    def __init__(self) -> None:
        self._intake = Intake()
        self._version = -1
        self._labels: dict[str, Mapping[str, str]] = {}
        self._hyper_nodes: dict[str, HyperNode] = {}
        self.names: tuple[str, ...] = ()
        """The nodes in the order of the rows of domains."""
        self.row: dict[str, int] = {}
        self.domains: list[Domain] = []
        """The HyperNodes that stand, in the order of `sums`: by tier, then by name."""

    @property
    def tree(self) -> HyperNodeTree:
        return self._intake.cluster.hyper_nodes

    def follow(self, records: ClusterRecords) -> None:
        """Apply the nodes and HyperNodes that came, went or changed since the last time."""
        if self._version == records.network_version:
            return
        self._version = records.network_version
        self._follow_nodes(records)
        self._follow_hyper_nodes(records)
        self._intake.cluster.settle()
        self.names = tuple(node.name for node in self._intake.cluster.columns.nodes)
        self.row = {name: row for row, name in enumerate(self.names)}
        self.domains = self.tree.lookup.domains[:-1]  # without the top

    def _follow_nodes(self, records: ClusterRecords) -> None:
        for name in self._labels.keys() - records.nodes.keys():
            self._intake.drop(_node(name, self._labels.pop(name)))
        for name, record in records.nodes.items():
            if self._labels.get(name) != record.labels:
                self._labels[name] = record.labels
                self._intake.put(_node(name, record.labels))

    def _follow_hyper_nodes(self, records: ClusterRecords) -> None:
        for name in self._hyper_nodes.keys() - records.hyper_nodes.keys():
            self._intake.drop(self._hyper_nodes.pop(name))
        for name, hyper_node in records.hyper_nodes.items():
            if self._hyper_nodes.get(name) is not hyper_node:
                self._hyper_nodes[name] = hyper_node
                self._intake.put(hyper_node)

    # -- lookups

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values by node, in the last axis, summed over each HyperNode."""
        return self.tree.lookup.sums(values)[..., :-1]

    @property
    def tiers(self) -> list[int]:
        """Those of HyperNodes, the lowest first."""
        return self.tree.tiers[:-1] if self.tree else []

    def tier_name(self, tier: int) -> str:
        """The name that HyperNodes of a tier give it; empty if none does."""
        return next((domain.tier_name for domain in self.of_tier(tier) if domain.tier_name), "")

    def of_tier(self, tier: int) -> list[Domain]:
        """The HyperNodes of a tier, in order of their names."""
        return [domain for domain in self.domains if domain.tier == tier]

    def in_tier(self, tier: int) -> NDArray[np.bool_]:
        """Whether a node is in any HyperNode of a tier, by row."""
        return self.tree.lookup.of_tier(tier) >= 0

    def containing(self, node: str) -> list[Domain]:
        """The HyperNodes that have a node, the lowest first."""
        if node not in self.row or not self.tree:
            return []
        return [domain for domain in self.tree.containing([self.row[node]]) if domain is not self.tree.top]


def _node(name: str, labels: Mapping[str, str]) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=dict(labels)))
