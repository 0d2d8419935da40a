"""HyperNodes as their objects declare them: the nodes of each, its parent, and why it cannot be used.

A HyperNode cannot be used if two others claim it, if its members form a loop, or if it is nested too deeply.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stromboli.model.topology.display_names import discovered_label
from stromboli.model.topology.member_selection import Age, Members, MemberSelection

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import HyperNode, HyperNodeMember, HyperNodeSpec
    from stromboli.model.node_columns import Ints, Node


TOP = "<cluster-top-hypernode>"
"""The name of the domain above all HyperNodes."""
MAX_MEMBERSHIPS = 1_000_000
"""Maximum nodes that all HyperNodes name directly; each node is usually named once."""
_TOO_MANY = (
    f"all HyperNodes together have more than {MAX_MEMBERSHIPS} nodes as members of their own, and it is one of the "
    "youngest: let each node be a member of a single HyperNode, and that of others"
)

_BY_NAME_ALONE = "HyperNodes are members by exactMatch alone; those by pattern or labels are left out"


@dataclass(slots=True, eq=False)
class Declared:
    """A HyperNode as its object declares it, valid or not."""

    spec: HyperNodeSpec
    age: Age
    label: tuple[str, str] | None = None
    """The node label and the value for which it was discovered; none otherwise."""
    named: int = 0
    """The nodes that it names directly."""
    fault: str = ""
    """Why it is invalid, independent of its place in the tree."""


class Membership:
    """All HyperNodes that exist. Changes of nodes and objects are recorded, and applied together."""

    def __init__(self) -> None:
        self.declared: dict[str, Declared] = {}
        """All HyperNodes by name."""
        self.unknown_members: dict[str, str] = {}
        """HyperNodes with missing or invalid members, by name, with a sentence that names these."""
        self.claims = ParentClaims()
        self.relinked: set[str] = set()
        """HyperNodes whose place in the tree may have changed, until the tree applies it."""
        self.reselected: set[str] = set()
        """HyperNodes whose nodes changed, until the tree applies it."""
        self.with_other_unknown: set[str] = set()
        """HyperNodes whose unknown members changed, until the tree applies it."""
        self._selection = MemberSelection()
        self._named_nodes = 0
        """The number of nodes that all HyperNodes name directly."""
        self._too_many: set[str] = set()
        """HyperNodes that are left out because of the maximum."""
        self._changed_objects: dict[str, None] = {}
        self._changed_nodes: dict[str, None] = {}
        self._incomplete: set[str] = set()
        """HyperNodes whose unknown members may have changed."""

    def note_object(self, name: str) -> None:
        """Record that a HyperNode was added, removed or changed."""
        self._changed_objects[name] = None

    def note_node(self, name: str) -> None:
        """Record that a node was added, removed or relabelled."""
        if self.declared:
            self._changed_nodes[name] = None

    @property
    def changed(self) -> bool:
        """Whether any change is recorded."""
        return bool(self._changed_objects or self._changed_nodes)

    def apply(self, objects: Mapping[str, HyperNode], nodes: Mapping[str, Node]) -> None:
        """Apply the recorded changes."""
        if not self.declared and self._changed_objects:  # until now the nodes were not needed
            self._selection = MemberSelection()
            self._changed_nodes = dict.fromkeys(nodes)
        for name in self._changed_nodes:
            node = nodes.get(name)
            if node is not None and node.object is not None:
                self._selection.set_node(name, node.labels)
            else:
                self._selection.drop_node(name)
        for name in self._changed_objects:
            self._apply_object(name, objects.get(name))
        self._changed_objects, self._changed_nodes = {}, {}
        self._reselect()

    def numbers(self, nodes: Collection[Node]) -> Ints:
        """The numbers that sets of nodes are made of, for these nodes."""
        return self._selection.nodes.in_order([node.name for node in nodes])

    # -- objects

    def _apply_object(self, name: str, obj: HyperNode | None) -> None:
        known = self.declared.get(name)
        if (obj is None) is not (known is None):
            self._incomplete.update(self.claims.claimants(name))
        if obj is None:
            if known is not None:
                self._drop(name, known)
        elif known is None or (known.spec, known.age, known.label) != (
            obj.spec,
            _age(obj),
            discovered_label(obj),
        ):
            self._put(obj)

    def _put(self, obj: HyperNode) -> None:
        name, age, members = obj.name, _age(obj), Members.of(obj.spec.members)
        known = self.declared.setdefault(name, Declared(obj.spec, age))
        known.spec, known.age, known.label = obj.spec, age, discovered_label(obj)
        self._selection.set_members(name, age, members)
        self.relinked |= self.claims.set(name, members)

    def _drop(self, name: str, known: Declared) -> None:
        self._named_nodes -= known.named.bit_count()
        self._too_many.discard(name)
        self._selection.drop_members(name)
        self.relinked |= self.claims.set(name, None)
        del self.declared[name]
        self.unknown_members.pop(name, None)

    # -- members

    def _reselect(self) -> None:
        """Find the nodes and the problems of the affected HyperNodes."""
        concerned = self._selection.concerned()
        for name in concerned:
            known, named = self.declared[name], self._selection.select(name)
            if named != known.named:
                self._named_nodes += named.bit_count() - known.named.bit_count()
                known.named = named
                self.reselected.add(name)
        for name in concerned | self._bound_memberships():
            fault = self._fault(name)
            if fault != self.declared[name].fault:
                self.declared[name].fault = fault
                self.relinked.add(name)
        for name in (concerned | self._incomplete) & self.declared.keys():
            self._name_unknown_members(name)
        self._incomplete = set()

    def _fault(self, name: str) -> str:
        if name == TOP:
            return "this is the name of the whole cluster"
        return self._selection.patterns.faults.get(name) or (_TOO_MANY if name in self._too_many else "")

    def _bound_memberships(self) -> set[str]:
        """Leave out the youngest HyperNodes if all name too many nodes; return those for which that changed."""
        too_many: set[str] = set()
        if self._named_nodes > MAX_MEMBERSHIPS:
            left = MAX_MEMBERSHIPS
            for name, known in sorted(self.declared.items(), key=lambda item: item[1].age):
                left -= known.named.bit_count()
                if left < 0:
                    too_many.add(name)
        changed, self._too_many = too_many ^ self._too_many, too_many
        return changed

    def _name_unknown_members(self, name: str) -> None:
        unknown = [f"HyperNode {child}" for child in self.claims.unknown(name)]
        unknown += (f"Node {node}" for node in self._selection.unknown(name))
        sentences = [f"members that do not exist are left out: {shortened(unknown)}"] if unknown else []
        if any(map(_is_skipped, self.declared[name].spec.members)):
            sentences.append(_BY_NAME_ALONE)
        before = self.unknown_members.pop(name, "")
        if sentences:
            self.unknown_members[name] = "; ".join(sentences)
        if before != self.unknown_members.get(name, ""):
            self.with_other_unknown.add(name)


def _is_skipped(member: HyperNodeMember) -> bool:
    """Whether it never selects a member: a selector of HyperNodes that is not by name."""
    return member.type == "HyperNode" and not member.selector.exact_name


def _age(obj: HyperNode) -> Age:
    return (obj.metadata.created, obj.name)


# -- the parent of each HyperNode


MAX_LEVELS = 32
"""Levels of HyperNodes above each other; networks have five or so."""
_SHOWN = 3


class ParentClaims:
    """The HyperNodes that list others as members. A claim counts even if its HyperNode is invalid otherwise."""

    def __init__(self) -> None:
        self._parents: dict[str, dict[str, None]] = {}
        """The HyperNodes that list a HyperNode, by its name; it need not exist."""
        self._children: dict[str, tuple[str, ...]] = {}
        """The HyperNodes that each HyperNode lists."""

    def set(self, name: str, members: Members | None) -> set[str]:
        """Set the children of a HyperNode, none if it is deleted; the HyperNodes whose parents may change."""
        old = self._children.pop(name, ())
        for child in old:
            del self._parents[child][name]
            if not self._parents[child]:
                del self._parents[child]
        new = members.children if members is not None else ()
        if members is not None:
            self._children[name] = new
            for child in new:
                self._parents.setdefault(child, {})[name] = None
        return {name, *old, *new}

    def claimants(self, name: str) -> Collection[str]:
        """All HyperNodes that list a HyperNode as a member."""
        return self._parents.get(name, {}).keys()

    def parent(self, name: str) -> str | None:
        """The parent of a HyperNode; none unless exactly one HyperNode lists it."""
        claimants = self._parents.get(name, ())
        return next(iter(claimants)) if len(claimants) == 1 else None

    def unknown(self, name: str) -> list[str]:
        """Children of a HyperNode that do not exist."""
        return [child for child in self._children[name] if child not in self._children]

    def with_descendants(self, names: Iterable[str]) -> dict[str, None]:
        """These HyperNodes and all below them that exist."""
        seen: dict[str, None] = {}
        waiting = sorted(names)
        while waiting:
            name = waiting.pop()
            if name not in seen and name in self._children:
                seen[name] = None
                waiting += (child for child in self._children[name] if self.parent(child) == name)
        return seen

    def problems(self, names: Collection[str]) -> Mapping[str, str]:
        """The problems of these HyperNodes, by name; with each of them, pass all below it."""
        problems: dict[str, str] = {}
        levels: dict[str, int] = {}
        for name in names:
            if len(self.claimants(name)) > 1:
                problems[name] = _two_parents(sorted(self.claimants(name)))
            if name not in levels:
                path, loop = self._climb(name, levels)
                problems |= dict.fromkeys(loop, _loop(loop) if loop else "")
                levels |= dict.fromkeys(loop, 1)
                for step in reversed(path):
                    above = self.parent(step)
                    levels[step] = 1 if above is None else levels[above] + 1
        for name in names:
            if levels[name] > MAX_LEVELS:
                problems.setdefault(name, f"it lies below more than {MAX_LEVELS - 1} other HyperNodes")
        return problems

    def _climb(self, name: str, levels: Mapping[str, int]) -> tuple[list[str], list[str]]:
        """A HyperNode and those above it up to one with a known level; and the loop in which they end, if any."""
        path: dict[str, None] = {}
        step: str | None = name
        while step is not None and step not in levels:
            if step in path:
                steps = list(path)
                begin = steps.index(step)
                return steps[:begin], steps[begin:]
            path[step] = None
            step = self.parent(step)
        return list(path), []


def _two_parents(claimants: list[str]) -> str:
    return f"more than one HyperNode has it as a member: {shortened(claimants)}"


def _loop(loop: list[str]) -> str:
    """From the first by name downwards: a has the member b, which has the member a."""
    first = loop.index(min(loop))
    downwards = [*loop[first::-1], *loop[:first:-1]]
    return f"it is a member of itself: {shortened([*downwards, downwards[0]], ' > ')}"


def shortened(names: list[str], separator: str = ", ") -> str:
    """The first few of many names."""
    more = f"{separator}{len(names) - _SHOWN} more" if len(names) > _SHOWN + 1 else ""
    return separator.join(names[: _SHOWN if more else None]) + more
