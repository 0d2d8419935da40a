"""The tree of HyperNodes (spec 01 7).

A HyperNode that cannot be part of a tree (its members form a loop, two parents claim it, a pattern is invalid) is left
out and named in `problems`; all others stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api.patterns import PatternError, matches
from stromboli.api.selectors import matches_labels
from stromboli.model.topology.domain import Domain
from stromboli.model.topology.domain_lookup import DomainLookup
from stromboli.model.topology.domain_sums import DomainSums

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import HyperNode, HyperNodeMember
    from stromboli.model.node_columns import Columns, Node

TOP = "<cluster-top-hypernode>"
"""The name of the domain above all HyperNodes."""


class HyperNodeTree:
    """All HyperNodes that stand, below a virtual top that has every node."""

    def __init__(self) -> None:
        self.version = 0
        """Grows when domains or their nodes change."""
        self.problems: dict[str, str] = {}
        """HyperNodes that are left out, by name, with the reason."""
        self._sums: tuple[tuple[Columns, int, int], DomainSums] | None = None
        self._lookup: tuple[int, DomainLookup] | None = None
        self._clear()

    def _clear(self) -> None:
        self.top = Domain(TOP, 1)
        """The whole cluster, one tier above the highest HyperNode."""
        self.domains: dict[str, Domain] = {}
        """The HyperNodes by name, without the top."""
        self.tiers: list[int] = []
        """All tiers, ascending, that of the top included."""
        self.tier_of_name: dict[str, int] = {}
        """Tiers by their names."""
        self._leaves: dict[int, Domain] = {}

    def __bool__(self) -> bool:
        return bool(self.domains)

    # -- lookups

    def domain(self, name: str) -> Domain | None:
        """The HyperNode of a name, or the top; none if there is none of that name."""
        return self.top if name == TOP else self.domains.get(name)

    def leaf_of(self, row: int) -> Domain | None:
        """The HyperNode of the lowest tier there is that has a node; none if the node is in none of that tier."""
        return self._leaves.get(row)

    @property
    def lookup(self) -> DomainLookup:
        """The HyperNodes and the top by their nodes."""
        if self._lookup is None or self._lookup[0] != self.version:
            lookup = DomainLookup([*self.domains.values(), self.top], len(self.top.rows))
            self._lookup = (self.version, lookup)
        return self._lookup[1]

    def containing(self, rows: Iterable[int]) -> list[Domain]:
        """The domains that have all of these nodes, the lowest first; the last is the top."""
        return self.lookup.containing(rows)

    def lowest_common(self, left: Domain | None, right: Domain | None) -> Domain | None:
        """The lowest domain that contains both; if either is none, the other."""
        if left is None or right is None:
            return left or right
        above = set(left.ancestors())
        return next((domain for domain in right.ancestors() if domain in above), None)

    def sums(self, columns: Columns) -> DomainSums:
        """What the HyperNodes and the top have and hold together, of the columns that the tree was built over."""
        key = (columns, columns.layout, self.version)
        if self._sums is None or self._sums[0] != key:
            self._sums = key, DomainSums([*self.domains.values(), self.top], columns)
        return self._sums[1]

    # -- building

    def build(self, objects: Mapping[str, HyperNode], columns: Columns) -> None:
        """Build the tree of these HyperNodes over these nodes."""
        self._clear()
        self.problems = {}
        self.version += 1
        for name, obj in sorted(objects.items()):
            self.domains[name] = Domain(name, obj.spec.tier, obj.spec.tier_name)
        for name, obj in sorted(objects.items()):
            for member in obj.spec.members:
                child = self._child(member)
                if child is not None and child.parent is None and not child.contains(self.domains[name]):
                    child.parent = self.domains[name]
                    self.domains[name].children.append(child)
        self._set_rows(objects, columns)
        tiers = {domain.tier for domain in self.domains.values()}
        self.top.tier = max([0, *tiers]) + 1
        self.tiers = sorted({*tiers, self.top.tier})
        self.tier_of_name = {
            domain.tier_name: domain.tier for domain in self.domains.values() if domain.tier_name
        }
        for domain in self.domains.values():
            if domain.parent is None:
                domain.parent = self.top
                self.top.children.append(domain)
        self._leaves = {
            int(row): domain
            for domain in reversed(self.domains.values())
            if domain.tier == self.tiers[0]
            for row in domain.rows
        }

    def _child(self, member: HyperNodeMember) -> Domain | None:
        exact = member.selector.exact_match
        return self.domains.get(exact.name) if member.type == "HyperNode" and exact is not None else None

    def _set_rows(self, objects: Mapping[str, HyperNode], columns: Columns) -> None:
        rows: dict[Domain, set[int]] = {domain: set() for domain in self.domains.values()}
        for name, obj in objects.items():
            for member in obj.spec.members:
                own = _rows(member, columns.nodes)
                for domain in self.domains[name].ancestors():
                    rows[domain] |= own
        for domain, inside in rows.items():
            domain.rows = np.array(sorted(inside), dtype=np.int64)
        self.top.rows = np.arange(len(columns), dtype=np.int64)


def _rows(member: HyperNodeMember, nodes: Iterable[Node]) -> set[int]:
    return {node.row for node in nodes if member.type == "Node" and _matches(member, node)}


def _matches(member: HyperNodeMember, node: Node) -> bool:
    selector = member.selector
    if selector.exact_match is not None:
        return selector.exact_match.name == node.name
    if selector.regex_match is not None:
        try:
            return matches(selector.regex_match.pattern, node.name)
        except PatternError:
            return False
    return selector.label_match is not None and matches_labels(selector.label_match, node.labels)
