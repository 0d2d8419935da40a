"""HyperNodes as their objects declare them: the nodes and the HyperNodes that each has as members.

A HyperNode is left out if two others list it, if its members form a loop, or if it is nested too deeply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api.selectors import valid_label_requirement
from stromboli.api.types.meta import Requirement
from stromboli.api.types.pod import NodeSelectorTerm
from stromboli.model.constraints.node_selection import matching_term
from stromboli.model.node_columns import Ints
from stromboli.model.topology.display_names import discovered_label
from stromboli.model.topology.name_patterns import NamePatterns

if TYPE_CHECKING:
    from stromboli.api.types.meta import LabelSelector
    from stromboli.api.types.scheduling import HyperNode, HyperNodeMember, HyperNodeSpec
    from stromboli.model.node_columns import Columns, Node


TOP = "<cluster-top-hypernode>"
"""The name of the domain above all HyperNodes."""
MAX_MEMBERSHIPS = 1_000_000
"""Maximum nodes that all HyperNodes select directly; each node is usually selected once."""
_TOO_MANY = (
    f"all HyperNodes together have more than {MAX_MEMBERSHIPS} nodes as members of their own, and it is one of the "
    "youngest: let each node be a member of a single HyperNode, and that of others"
)
_IS_TOP = "this is the name of the whole cluster"
_NO_ROWS: Ints = np.zeros(0, dtype=np.int64)
_BY_NAME_ALONE = "HyperNodes are members by exactMatch alone; those by pattern or labels are left out"


# -- what an object declares


class Members(NamedTuple):
    """The members of a HyperNode, each once."""

    names: tuple[str, ...]
    """Nodes by name."""
    patterns: tuple[str, ...]
    """Nodes by patterns of their names."""
    terms: tuple[NodeSelectorTerm, ...]
    """Nodes by labels."""
    children: tuple[str, ...]
    """HyperNodes by name; other selectors of HyperNodes are skipped."""
    skips_any: bool
    """Whether any selector of HyperNodes is skipped."""

    @staticmethod
    def of(members: Iterable[HyperNodeMember]) -> Members:
        names, patterns, children = dict[str, None](), dict[str, None](), dict[str, None]()
        terms, skips_any = list[NodeSelectorTerm](), False
        for type, selector in ((member.type, member.selector) for member in members):
            if selector.exact_name:
                (names if type == "Node" else children)[selector.exact_name] = None
            elif type == "HyperNode":
                skips_any = True
            if type == "Node" and selector.regex_match is not None and selector.regex_match.pattern:
                patterns[selector.regex_match.pattern] = None
            if type == "Node" and selector.label_match is not None:
                terms += _terms(selector.label_match)
        return Members(tuple(names), tuple(patterns), tuple(terms), tuple(children), skips_any)


def _terms(selector: LabelSelector) -> list[NodeSelectorTerm]:
    """A label selector as a term for nodes; none if it is empty or invalid, as it then selects none (spec 01 7.1)."""
    labels = (Requirement(key, "In", (value,)) for key, value in selector.match_labels.items())
    requirements = (*labels, *selector.match_expressions)
    valid = requirements and all(map(valid_label_requirement, requirements))
    return [NodeSelectorTerm(match_expressions=requirements)] if valid else []


@dataclass(slots=True, eq=False)
class Declared:
    """A HyperNode as its object declares it, valid or not."""

    spec: HyperNodeSpec
    age: tuple[float, str]
    """When it was created, and its name."""
    label: tuple[str, str] | None
    """The node label and the value for which it was discovered; none otherwise."""
    members: Members
    nodes: Ints = field(default_factory=lambda: _NO_ROWS)
    """The rows of the nodes that it selects directly, ascending."""
    fault: str = ""
    """Why it is invalid, independent of its place in the tree."""


class Membership:
    """All HyperNodes that exist, and the nodes that they select. Changes are recorded, and applied together."""

    def __init__(self) -> None:
        self.declared: dict[str, Declared] = {}
        """All HyperNodes by name."""
        self._patterns = NamePatterns()
        self._label_keys: set[str] = set()
        """The labels of nodes that selectors read."""
        self._changed_objects: dict[str, None] = {}
        self._changed_labels = False

    def note_object(self, name: str) -> None:
        """Record that a HyperNode was added, removed or changed."""
        self._changed_objects[name] = None

    def note_labels(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Record that the labels of a node changed."""
        changed = (key for key, _ in before.items() ^ after.items())
        self._changed_labels |= not self._label_keys.isdisjoint(changed)

    @property
    def changed(self) -> bool:
        """Whether any change is recorded."""
        return self._changed_labels or bool(self._changed_objects)

    def apply(
        self, objects: Mapping[str, HyperNode], nodes: Mapping[str, Node], columns: Columns, moved: bool
    ) -> bool:
        """Apply the recorded changes and, with `moved`, other rows of nodes; return whether HyperNodes changed."""
        changed = False
        for name in self._changed_objects:
            changed |= self._apply_object(name, objects.get(name))
        if changed:
            terms = (term for known in self.declared.values() for term in known.members.terms)
            self._label_keys = {each.key for term in terms for each in term.match_expressions}
        if changed or moved or self._changed_labels:
            changed |= self._select(nodes, columns)
        self._changed_objects, self._changed_labels = {}, False
        return changed

    def _apply_object(self, name: str, obj: HyperNode | None) -> bool:
        known = self.declared.get(name)
        if obj is None:
            return self.declared.pop(name, None) is not None
        age, label = (obj.metadata.created, obj.name), discovered_label(obj)
        if known is not None and (known.spec, known.age, known.label) == (obj.spec, age, label):
            return False
        self.declared[name] = Declared(obj.spec, age, label, Members.of(obj.spec.members))
        return True

    # -- the nodes that HyperNodes select

    def _select(self, nodes: Mapping[str, Node], columns: Columns) -> bool:
        """Find the nodes and the faults of all HyperNodes, the oldest first; return whether any fault changed."""
        by_age = dict(sorted(self.declared.items(), key=lambda item: item[1].age))
        patterns = {name: known.members.patterns for name, known in by_age.items() if known.members.patterns}
        self._patterns.update(patterns, {node.name for node in columns.nodes} if patterns else frozenset())
        changed, left = False, MAX_MEMBERSHIPS
        for name, known in by_age.items():
            fault = _IS_TOP if name == TOP else self._patterns.faults.get(name, "")
            known.nodes = _NO_ROWS if fault or left < 0 else self._nodes_of(known.members, nodes, columns)
            left -= len(known.nodes)
            if not fault and left < 0:
                fault = _TOO_MANY
            changed |= fault != known.fault
            known.fault = fault
        return changed

    def _nodes_of(self, members: Members, nodes: Mapping[str, Node], columns: Columns) -> Ints:
        """The rows of the nodes that are members by name, by pattern or by labels."""
        names = chain(members.names, *map(self._patterns.matched, members.patterns))
        rows = {nodes[name].row for name in names if name in nodes} - {-1}
        for term in members.terms:
            rows.update(np.flatnonzero(matching_term(columns, term)).tolist())
        return np.array(sorted(rows), dtype=np.int64)

    def unknown_members(self, name: str, nodes: Mapping[str, Node]) -> str:
        """A sentence about members of a HyperNode that do not exist or that are skipped; empty if there are none."""
        members = self.declared[name].members
        unknown = [f"HyperNode {child}" for child in members.children if child not in self.declared]
        unknown += (f"Node {node}" for node in members.names if node not in nodes or nodes[node].row < 0)
        sentences = [f"members that do not exist are left out: {shortened(unknown)}"] if unknown else []
        if members.skips_any:
            sentences.append(_BY_NAME_ALONE)
        return "; ".join(sentences)


# -- the parent of each HyperNode


MAX_LEVELS = 32
"""Levels of HyperNodes above each other; networks have five or so."""
_SHOWN = 3


class Parents:
    """The HyperNodes that list others as members. A claim counts even if its HyperNode is invalid otherwise."""

    def __init__(self, declared: Mapping[str, Declared]):
        self._declared = declared
        self._claimants: dict[str, list[str]] = {}
        """The HyperNodes that list a HyperNode, by its name; it need not exist."""
        for name, known in declared.items():
            for child in known.members.children:
                self._claimants.setdefault(child, []).append(name)

    def of(self, name: str) -> str | None:
        """The parent of a HyperNode; none unless exactly one HyperNode lists it."""
        claimants = self._claimants.get(name, ())
        return claimants[0] if len(claimants) == 1 else None

    def problems(self) -> dict[str, str]:
        """Why HyperNodes cannot be used because of their place, by name."""
        problems: dict[str, str] = {}
        levels: dict[str, int] = {}
        for name in self._declared:
            if len(claimants := self._claimants.get(name, ())) > 1:
                problems[name] = f"more than one HyperNode has it as a member: {shortened(sorted(claimants))}"
            if name not in levels:
                path, loop = self._climb(name, levels)
                problems |= dict.fromkeys(loop, _loop(loop) if loop else "")
                levels |= dict.fromkeys(loop, 1)
                for step in reversed(path):
                    above = self.of(step)
                    levels[step] = 1 if above is None else levels[above] + 1
        for name, level in levels.items():
            if level > MAX_LEVELS:
                problems.setdefault(name, f"it lies below more than {MAX_LEVELS - 1} other HyperNodes")
        return problems

    def _climb(self, name: str, levels: Mapping[str, int]) -> tuple[list[str], list[str]]:
        """A HyperNode and those above it up to one with a known level; and the loop in which they end, if any."""
        path: dict[str, None] = {}
        step: str | None = name
        while step is not None and step not in levels:
            if step in path:
                steps = list(path)
                start = steps.index(step)
                return steps[:start], steps[start:]
            path[step] = None
            step = self.of(step)
        return list(path), []


def _loop(loop: list[str]) -> str:
    """From the first by name downwards: a has the member b, which has the member a."""
    first = loop.index(min(loop))
    downwards = [*loop[first::-1], *loop[:first:-1]]
    return f"it is a member of itself: {shortened([*downwards, downwards[0]], ' > ')}"


def shortened(names: list[str], separator: str = ", ") -> str:
    """The first few of many names."""
    more = f"{separator}{len(names) - _SHOWN} more" if len(names) > _SHOWN + 1 else ""
    return separator.join(names[: _SHOWN if more else None]) + more
