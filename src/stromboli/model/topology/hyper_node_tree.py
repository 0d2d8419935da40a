"""The tree of HyperNodes (spec 01 7).

A HyperNode that cannot be part of a tree (its members form a loop, two parents claim it, a pattern is invalid) is left
out and named in `problems`; all others are valid. Its nodes are part of no HyperNode above it, and its children are
below the top. Changes of nodes and HyperNodes are recorded, and applied to what they affect when a session opens.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.model.topology.display_names import DisplayNames
from stromboli.model.topology.domain import Domain
from stromboli.model.topology.domain_sums import DomainSums, RowGroups
from stromboli.model.topology.member_selection import rows_of
from stromboli.model.topology.membership import TOP, Declared, Membership, shortened

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import HyperNode
    from stromboli.model.node_columns import Columns, Ints, Node
    from stromboli.model.topology.member_selection import Age


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
        self._too_low: dict[str, str] = {}
        """HyperNodes whose tier is not above those of their members, by name, with a sentence that names these."""
        self.top = Domain(TOP, 1)
        """The whole cluster, one tier above the highest HyperNode, including those that are left out."""
        self.titles = DisplayNames()
        """Display names of HyperNodes, including those that are left out."""
        self.domains: dict[str, Domain] = {}
        """The HyperNodes by name, in order of names, without the top."""
        self.tiers: list[int] = [1]
        """All tiers, ascending, that of the top included."""
        self._tier_index = TierIndex()
        self.tier_of_name: Mapping[str, int] = self._tier_index.of_name
        """Tiers by their names; if HyperNodes of different tiers share a name, that of the youngest."""
        self._inside: dict[Domain, int] = {}
        """The nodes of each domain."""
        self._stale: set[Domain] = set()
        """Domains whose children changed."""
        self._sorted = True
        """Whether `domains` is in order of names."""
        self._layout = -1
        self._numbers: Ints = np.zeros(0, dtype=np.int64)
        """The number of the node in each row."""
        self._leaves: tuple[int, Ints, list[Domain]] | None = None
        self._sums: tuple[tuple[Columns, int, int], DomainSums] | None = None
        self._lookup: tuple[int, DomainLookup] | None = None

    def __bool__(self) -> bool:
        return bool(self.domains)

    # -- lookups

    def notices(self, name: str) -> dict[str, str]:
        """Problems of a HyperNode, its members or its tier: sentences by the reasons of their events."""
        if problem := self.problems.get(name):
            return {names.EVENT_HYPER_NODE_LEFT_OUT: f"left out: {problem}"}
        sentences = {
            names.EVENT_UNKNOWN_MEMBERS: self.membership.unknown_members.get(name, ""),
            names.EVENT_TIER_NOT_ABOVE_MEMBERS: self._too_low.get(name, ""),
            names.EVENT_AMBIGUOUS_TIER_NAME: self._tier_index.ambiguous.get(name, ""),
        }
        return {reason: sentence for reason, sentence in sentences.items() if sentence}

    def with_notices(self) -> list[str]:
        """HyperNodes with a problem, in order of their names."""
        unknown, ambiguous = self.membership.unknown_members, self._tier_index.ambiguous
        return sorted({*self.problems, *unknown, *self._too_low, *ambiguous})

    def domain(self, name: str) -> Domain | None:
        """The HyperNode of a name, or the top; none if the name is unknown."""
        return self.top if name == TOP else self.domains.get(name)

    def leaf_of(self, row: int) -> Domain | None:
        """The HyperNode of the lowest tier that has a node; none if the node is in none of that tier."""
        if self._leaves is None or self._leaves[0] != self.version:
            lowest = [domain for domain in self.domains.values() if domain.tier == self.tiers[0]]
            places = np.full(len(self.top.rows), -1, dtype=np.int64)
            for place in reversed(range(len(lowest))):  # of several, the first by name
                places[lowest[place].rows] = place
            self._leaves = self.version, places, lowest
        place = int(self._leaves[1][row])
        return self._leaves[2][place] if place >= 0 else None

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
        """Capacity and use of the HyperNodes and the top, by the columns that the tree was built over."""
        key = (columns, columns.layout, self.version)
        if self._sums is None or self._sums[0] != key:
            self._sums = key, DomainSums([*self.domains.values(), self.top], columns)
        return self._sums[1]

    # -- upkeep

    def update(self, objects: Mapping[str, HyperNode], nodes: Mapping[str, Node], columns: Columns) -> None:
        """Apply recorded changes; the columns must be laid out."""
        moved, membership = columns.layout != self._layout, self.membership
        if not moved and not membership.changed:
            return
        moved |= not membership.declared
        membership.apply(objects, nodes)
        relinked, membership.relinked = membership.relinked, set()
        if relinked:
            self._relink(relinked)
        self.unreported.update(dict.fromkeys(sorted(membership.with_other_unknown)))
        membership.with_other_unknown = set()
        changed = self._unite()
        if moved:
            self._arrange(columns, changed)
        for domain in changed:
            domain.rows = rows_of(self._inside[domain], self._numbers)
        if changed or relinked or moved:
            self.version += 1

    def _relink(self, names: Collection[str]) -> None:
        """Insert these HyperNodes into the tree, or leave them out."""
        declared, claims = self.membership.declared, self.membership.claims
        renamed: set[str] = set()
        for name in names:
            known = declared.get(name)
            renamed |= self.titles.set(name, known.label if known else None, known is not None)
        affected = claims.with_descendants(names)
        problems = claims.problems(affected)
        for name in names:
            self._retire(name)
            if name not in declared:
                self._set_problem(name, "")
        for name in affected:
            problem = declared[name].fault or problems.get(name, "")
            self._set_problem(name, problem)
            if problem:
                self._retire(name)
            elif name not in self.domains:
                self._establish(name, declared[name])
        for name in affected:
            if name in self.domains:
                self._set_parent(self.domains[name], self.domains.get(claims.parent(name) or "", self.top))
        for name in renamed & self.domains.keys():
            self.domains[name].title = self.titles.of(name)
        for domain in sorted(self._stale & self._inside.keys(), key=_name):  # valid HyperNodes
            self._compare_tiers(domain)
        self.unreported.update(dict.fromkeys(sorted(self._tier_index.update())))
        left_out = (declared[name].spec.tier for name in self.problems)
        self.top.tier = max(self._tier_index.highest, *left_out, 0) + 1
        self.tiers = [*self._tier_index.all(), self.top.tier]
        if not self._sorted:
            self.domains = dict(sorted(self.domains.items()))
            self._sorted = True

    def _set_problem(self, name: str, problem: str) -> None:
        if problem != self.problems.pop(name, ""):
            self.unreported[name] = None
        if problem:
            self.problems[name] = problem

    def _establish(self, name: str, declared: Declared) -> None:
        """Insert a valid HyperNode."""
        domain = self.domains[name] = Domain(
            name, declared.spec.tier, declared.spec.tier_name, title=self.titles.of(name)
        )
        self._tier_index.add(domain, declared.age)
        self._inside[domain] = 0
        self._stale.add(domain)
        self._sorted = False

    def _retire(self, name: str) -> None:
        """Remove a HyperNode."""
        domain = self.domains.pop(name, None)
        if domain is not None:
            self._set_parent(domain, None)
            self._tier_index.remove(domain)
            del self._inside[domain]
            self._stale.discard(domain)
            if self._too_low.pop(name, ""):
                self.unreported[name] = None

    def _compare_tiers(self, domain: Domain) -> None:
        """Check whether the tier of a domain is above those of its children."""
        before = self._too_low.pop(domain.name, "")
        low = [child for child in domain.children if child.tier >= domain.tier]
        if low:
            members = shortened([f"HyperNode {child.title} (tier {child.tier})" for child in low])
            self._too_low[domain.name] = (
                f"its tier {domain.tier} is not above those of members: {members}; give it a higher tier"
            )
        if before != self._too_low.get(domain.name, ""):
            self.unreported[domain.name] = None

    def _set_parent(self, domain: Domain, parent: Domain | None) -> None:
        before, domain.parent = domain.parent, parent
        if before is parent:
            return
        if before is not None:
            del before.children[bisect_left(before.children, domain.name, key=_name)]
            self._stale.add(before)
        if parent is not None:
            insort(parent.children, domain, key=_name)
            self._stale.add(parent)

    # -- the nodes of domains

    def _unite(self) -> list[Domain]:
        """Unite the nodes of children in their parents, from changed domains upwards; the domains that changed."""
        reselected, self.membership.reselected = self.membership.reselected, set()
        stale = self._stale | {self.domains[name] for name in reselected if name in self.domains}
        self._stale = set()
        waiting: dict[Domain, int] = {}
        """Domains to update, with the number of their children to update first."""
        for start in stale & self._inside.keys():
            for domain in start.ancestors():
                if domain in waiting or domain is self.top:
                    break
                waiting[domain] = 0
        for domain in waiting:
            if domain.parent in waiting:
                waiting[domain.parent] += 1
        ready = [domain for domain, children in waiting.items() if not children]
        changed = []
        for domain in ready:  # the loop appends to it
            if self._unite_children(domain):
                changed.append(domain)
            parent = domain.parent
            if parent in waiting:
                waiting[parent] -= 1
                if not waiting[parent]:
                    ready.append(parent)
        return changed

    def _unite_children(self, domain: Domain) -> bool:
        inside = self.membership.declared[domain.name].named
        for child in domain.children:
            inside |= self._inside[child]
        changed, self._inside[domain] = inside != self._inside[domain], inside
        return changed

    def _arrange(self, columns: Columns, changed: Collection[Domain]) -> None:
        """The columns were laid out again: translate rows; those of changed domains are computed anyway."""
        before, count = self._numbers, len(columns)
        self._layout = columns.layout
        self.top.rows = np.arange(count, dtype=np.int64)
        if not self.membership.declared:
            return
        self._numbers = self.membership.numbers(columns.nodes)
        row_of_number = np.full(max(before.max(initial=0), self._numbers.max(initial=0)) + 1, -1)
        row_of_number[self._numbers] = self.top.rows
        new_row = row_of_number[before]
        kept = new_row[new_row >= 0]
        in_order = bool(np.all(kept[1:] > kept[:-1]))
        for domain in self._inside.keys() - set(changed):
            rows = new_row[domain.rows]
            domain.rows = rows if in_order else np.sort(rows)


def _name(domain: Domain) -> str:
    return domain.name


# -- which domains have which nodes, and sums over them of any numbers by node


class DomainLookup:
    """Domains by their nodes; valid as long as domains and columns keep their layout."""

    def __init__(self, domains: Iterable[Domain], count: int):
        self.domains = sorted(domains, key=lambda domain: (domain.tier, domain.name))
        """The lowest first."""
        self.place = {domain: place for place, domain in enumerate(self.domains)}
        """The place of each domain among them."""
        self.count = len(self.domains)
        self._groups = RowGroups([domain.rows for domain in self.domains], count)

    def containing(self, rows: Iterable[int]) -> list[Domain]:
        """The domains that have all of these nodes, the lowest first."""
        wanted = set(rows)
        if not wanted:
            return list(self.domains)
        owners = np.concatenate([self._groups.of_row(row) for row in wanted])
        having_all = np.bincount(owners, minlength=len(self.domains)) == len(wanted)
        return [self.domains[place] for place in np.flatnonzero(having_all)]

    def sums(self, values: Ints) -> Ints:
        """Values by node summed over each domain."""
        return self._groups.sums(values)


# -- the tiers of valid HyperNodes, by number and by name


class TierIndex:
    """The number of HyperNodes of each tier, and the tiers by name."""

    def __init__(self) -> None:
        self.of_name: dict[str, int] = {}
        """Tiers by their names; if HyperNodes of different tiers share a name, that of the youngest."""
        self.ambiguous: dict[str, str] = {}
        """HyperNodes whose tier has the name of another tier, by name: the first of each tier, with a sentence."""
        self._ambiguous_by_name: dict[str, list[str]] = {}
        """The same HyperNodes by the name of the tier."""
        self._counts: dict[int, int] = {}
        self._ages: dict[Domain, Age] = {}
        """The HyperNodes whose tiers have names."""
        self._by_name: dict[str, dict[int, dict[Domain, None]]] = {}
        """Those HyperNodes by the name of their tier, and by the tier."""
        self._touched: dict[str, None] = {}
        """Names whose tier may have changed since the last update."""

    def add(self, domain: Domain, age: Age) -> None:
        """Add a valid HyperNode."""
        self._counts[domain.tier] = self._counts.get(domain.tier, 0) + 1
        if domain.tier_name:
            self._ages[domain] = age
            tiers = self._by_name.setdefault(domain.tier_name, {})
            tiers.setdefault(domain.tier, {})[domain] = None
            self._touched[domain.tier_name] = None

    def remove(self, domain: Domain) -> None:
        """Remove a HyperNode."""
        self._counts[domain.tier] -= 1
        if not self._counts[domain.tier]:
            del self._counts[domain.tier]
        if domain.tier_name:
            tiers = self._by_name[domain.tier_name]
            del self._ages[domain], tiers[domain.tier][domain]
            if not tiers[domain.tier]:
                del tiers[domain.tier]
            self._touched[domain.tier_name] = None

    def update(self) -> set[str]:
        """Update the tiers by name; return the HyperNodes whose report about that changed."""
        before, now = dict[str, str](), dict[str, str]()
        for name in self._touched:
            for told in self._ambiguous_by_name.pop(name, ()):
                before[told] = self.ambiguous.pop(told)
        for name in self._touched:
            if tiers := self._by_name[name]:
                self.of_name[name] = next(iter(tiers)) if len(tiers) == 1 else self._youngest(name)
                now |= self._ambiguity(name)
            else:
                del self._by_name[name]
                self.of_name.pop(name, None)
        self.ambiguous |= now
        self._touched = {}
        return {told for told in before.keys() | now.keys() if before.get(told) != now.get(told)}

    def _youngest(self, name: str) -> int:
        """Among the tiers of a name, that of the youngest HyperNode."""
        domains = (domain for tier in self._by_name[name].values() for domain in tier)
        return max(domains, key=self._ages.__getitem__).tier

    def _ambiguity(self, name: str) -> dict[str, str]:
        """The first HyperNode of each tier of an ambiguous name, with a sentence about it."""
        tiers = self._by_name[name]
        if len(tiers) == 1:
            return {}
        first = {tier: min(domain.name for domain in tiers[tier]) for tier in sorted(tiers)}
        owners = shortened([f"HyperNode {owner} (tier {tier})" for tier, owner in first.items()])
        meaning = f"it means tier {self.of_name[name]}, that of the youngest"
        sentence = f'the tier name "{name}" is that of several tiers: {owners}; {meaning}'
        self._ambiguous_by_name[name] = list(first.values())
        return dict.fromkeys(first.values(), sentence)

    @property
    def highest(self) -> int:
        """The highest tier; 0 if there is none."""
        return max(self._counts, default=0)

    def all(self) -> list[int]:
        """All tiers, ascending."""
        return sorted(self._counts)
