"""The tree of HyperNodes (spec 01 7).

A HyperNode that cannot be part of a tree (its members form a loop, two parents claim it, a pattern is invalid) is left
out and named in `problems`; all others are valid. Its nodes are part of no HyperNode above it, and its children are
below the top. The tree is built again when a session opens after HyperNodes or their nodes changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.model.topology.display_names import DisplayNames
from stromboli.model.topology.domain import Domain
from stromboli.model.topology.domain_sums import DomainLookup, DomainSums
from stromboli.model.topology.membership import TOP, Membership, Parents, shortened

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import HyperNode
    from stromboli.model.node_columns import Columns, Ints, Node


class HyperNodeTree:
    """All valid HyperNodes, below a virtual top that has every node."""

    def __init__(self) -> None:
        self.version = 0
        """Increases when domains or their nodes change."""
        self.membership = Membership()
        """All HyperNodes, including those that are left out."""
        self.problems: dict[str, str] = {}
        """HyperNodes that are left out, by name, with the reason."""
        self.unreported: dict[str, None] = {}
        """HyperNodes whose report may differ from `reported`."""
        self.reported: dict[str, dict[str, str]] = {}
        """What was last reported about HyperNodes, by name."""
        self.top = Domain(TOP, 1)
        """The whole cluster, one tier above the highest HyperNode, including those that are left out."""
        self.titles = DisplayNames({})
        """Display names of HyperNodes, including those that are left out."""
        self.domains: dict[str, Domain] = {}
        """The HyperNodes by name, in order of names, without the top."""
        self.tiers: list[int] = [1]
        """All tiers, ascending, that of the top included."""
        self.tier_of_name: dict[str, int] = {}
        """Tiers by their names; if HyperNodes of different tiers share a name, that of the youngest."""
        self._notices: dict[str, dict[str, str]] = {}
        self._layout = -1
        self._lookup: DomainLookup | None = None
        self._sums: DomainSums | None = None

    def __bool__(self) -> bool:
        return bool(self.domains)

    # -- lookups

    def notices(self, name: str) -> dict[str, str]:
        """Problems of a HyperNode, its members or its tier: sentences by the reasons of their events."""
        return self._notices.get(name, {})

    def with_notices(self) -> list[str]:
        """HyperNodes with a problem, in order of their names."""
        return list(self._notices)

    def domain(self, name: str) -> Domain | None:
        """The HyperNode of a name, or the top; none if the name is unknown."""
        return self.top if name == TOP else self.domains.get(name)

    def leaf_of(self, row: int) -> Domain | None:
        """The HyperNode of the lowest tier that has a node; none if the node is in none of that tier."""
        place = int(self.lookup.of_tier(self.tiers[0])[row]) if self.domains else -1
        return self.lookup.domains[place] if place >= 0 else None

    @property
    def lookup(self) -> DomainLookup:
        """The HyperNodes and the top by their nodes."""
        if self._lookup is None:
            self._lookup = DomainLookup([*self.domains.values(), self.top], len(self.top.rows))
        return self._lookup

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
        """Capacity and use of the HyperNodes and the top, by the columns that the tree was built over."""
        if self._sums is None:
            self._sums = DomainSums(self.lookup, columns)
        return self._sums

    # -- upkeep

    def update(self, objects: Mapping[str, HyperNode], nodes: Mapping[str, Node], columns: Columns) -> None:
        """Apply recorded changes; the columns must be laid out."""
        moved = columns.layout != self._layout
        if not moved and not self.membership.changed:
            return
        if linked := self.membership.apply(objects, nodes, columns, moved):
            self._link()
        if moved:
            self.top.rows = np.arange(len(columns), dtype=np.int64)
        before = [domain.rows for domain in self.domains.values()]
        for domain in self.top.children:
            self._set_rows(domain)
        changed = any(
            domain.rows is not rows for domain, rows in zip(self.domains.values(), before, strict=True)
        )
        if linked or moved:
            self._update_notices(nodes)
        if changed or linked or moved:
            self._lookup = self._sums = None
            self.version += 1
        self._layout = columns.layout

    def _link(self) -> None:
        """Build the tree of all valid HyperNodes, and its tiers."""
        declared, before = self.membership.declared, self.domains
        parents = Parents(declared)
        problems = parents.problems() | {name: known.fault for name, known in declared.items() if known.fault}
        self.problems = dict(sorted(problems.items()))
        self.titles = DisplayNames({name: known.label for name, known in declared.items()})
        self.domains = {}
        for name in sorted(declared.keys() - problems.keys()):
            spec = declared[name].spec
            domain = self.domains[name] = Domain(name, spec.tier, spec.tier_name, title=self.titles.of(name))
            if name in before:
                domain.rows = before[name].rows
        self.top.children = []
        for name, domain in self.domains.items():
            domain.parent = self.domains.get(parents.of(name) or "", self.top)
            domain.parent.children.append(domain)
        tiers = {domain.tier for domain in self.domains.values()}
        self.top.tier = max([0, *tiers, *(declared[name].spec.tier for name in problems)]) + 1
        self.tiers = [*sorted(tiers), self.top.tier]

    def _set_rows(self, domain: Domain) -> Ints:
        """Unite the nodes of a domain with those of all domains below it; equal rows remain the same object."""
        rows = self.membership.declared[domain.name].nodes
        below = [self._set_rows(child) for child in domain.children]
        if any(map(len, below)):
            inside = np.zeros(len(self.top.rows), dtype=bool)
            for part in (rows, *below):
                inside[part] = True
            rows = np.flatnonzero(inside)
        if not np.array_equal(rows, domain.rows):
            domain.rows = rows
        return domain.rows

    # -- notices

    def _update_notices(self, nodes: Mapping[str, Node]) -> None:
        before, self._notices = self._notices, {}
        ambiguous = self._name_tiers()
        for name in sorted(self.membership.declared):
            if problem := self.problems.get(name):
                sentences = {names.EVENT_HYPER_NODE_LEFT_OUT: f"left out: {problem}"}
            else:
                sentences = {
                    names.EVENT_UNKNOWN_MEMBERS: self.membership.unknown_members(name, nodes),
                    names.EVENT_TIER_NOT_ABOVE_MEMBERS: _too_low(self.domains[name]),
                    names.EVENT_AMBIGUOUS_TIER_NAME: ambiguous.get(name, ""),
                }
            if notices := {reason: sentence for reason, sentence in sentences.items() if sentence}:
                self._notices[name] = notices
        known = sorted(before.keys() | self._notices.keys())
        self.unreported |= {name: None for name in known if before.get(name) != self._notices.get(name)}

    def _name_tiers(self) -> dict[str, str]:
        """Find the tiers by name; for ambiguous names, the first HyperNode of each tier with a sentence about it."""
        by_name: dict[str, dict[int, list[Domain]]] = {}
        for domain in self.domains.values():
            if domain.tier_name:
                by_name.setdefault(domain.tier_name, {}).setdefault(domain.tier, []).append(domain)
        self.tier_of_name = {}
        ambiguous: dict[str, str] = {}
        for name, tiers in by_name.items():
            youngest = max(
                chain(*tiers.values()), key=lambda domain: self.membership.declared[domain.name].age
            )
            self.tier_of_name[name] = youngest.tier
            if len(tiers) > 1:
                first = {tier: tiers[tier][0].name for tier in sorted(tiers)}
                owners = shortened([f"HyperNode {owner} (tier {tier})" for tier, owner in first.items()])
                meaning = f"it means tier {youngest.tier}, that of the youngest"
                sentence = f'the tier name "{name}" is that of several tiers: {owners}; {meaning}'
                ambiguous |= dict.fromkeys(first.values(), sentence)
        return ambiguous


def _too_low(domain: Domain) -> str:
    """A sentence about a tier that is not above those of all members; empty if it is."""
    low = [child for child in domain.children if child.tier >= domain.tier]
    if not low:
        return ""
    members = shortened([f"HyperNode {child.title} (tier {child.tier})" for child in low])
    return f"its tier {domain.tier} is not above those of members: {members}; give it a higher tier"
