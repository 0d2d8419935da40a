"""How close the leaves of the tree are to a domain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Floats
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.topology.domain import Domain
    from stromboli.model.topology.hyper_node_tree import HyperNodeTree


class LeafDistances:
    """The HyperNodes of the lowest tier, which node is in which, and how close each is to a domain."""

    def __init__(self, tree: HyperNodeTree, count: int):
        self._tiers, self._top = tree.tiers, tree.top
        self._leaves = [domain for domain in tree.domains.values() if domain.tier == tree.tiers[0]]
        self._place = {leaf: place for place, leaf in enumerate(self._leaves)}
        places = (self._place.get(leaf, -1) if (leaf := tree.leaf_of(row)) else -1 for row in range(count))
        self.of_row: Ints = np.fromiter(places, dtype=np.int64, count=count)
        """The leaf of each node by its place; -1: it is in none."""
        self._below: dict[Domain, Ints] = {}
        self._closeness: dict[Domain, Floats] = {}

    @property
    def count(self) -> int:
        """How many leaves there are."""
        return len(self._leaves)

    def leaf_of(self, node: Node | None) -> int:
        """The leaf of a node by its place; -1: it is in none."""
        return int(self.of_row[node.row]) if node is not None and node.row >= 0 else -1

    def is_leaf(self, domain: Domain) -> bool:
        """Whether a domain is of the lowest tier."""
        return domain in self._place

    def place(self, leaf: Domain) -> int:
        """The place of a leaf among all."""
        return self._place[leaf]

    def above(self, leaf: int) -> Iterator[Domain]:
        """A leaf and all domains around it, or just the top if there is no leaf at this place."""
        return self._leaves[leaf].ancestors() if leaf >= 0 else iter([self._top])

    def closeness(self, domain: Domain) -> Floats:
        """From 1 for the domain itself down to 0, by the tier of the lowest common domain; last, for no leaf, 0."""
        known = self._closeness.get(domain)
        if known is None:
            known = np.zeros(self.count + 1)
            for ancestor in reversed(list(domain.ancestors())):
                known[self.leaves_below(ancestor)] = self._score(ancestor.tier)
            if domain in self._place:
                known[self._place[domain]] = 1.0
            self._closeness[domain] = known
        return known

    def _score(self, tier: int) -> float:
        lowest, highest = self._tiers[0], self._tiers[-1]
        if lowest == highest:
            return 1.0
        return (highest - tier) / (highest - lowest) if lowest <= tier <= highest else 0.0

    def leaves_below(self, domain: Domain) -> Ints:
        """The leaves at and below a domain."""
        known = self._below.get(domain)
        if known is None:
            own = [self._place[domain]] if domain in self._place else []
            parts = [np.array(own, dtype=np.int64), *map(self.leaves_below, domain.children)]
            known = self._below[domain] = np.concatenate(parts)
        return known
