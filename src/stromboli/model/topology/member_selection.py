"""Which nodes HyperNodes name as members: by exact name, by pattern, by labels (spec 01 7.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api.types.meta import LabelSelector
from stromboli.model.topology.label_index import LabelIndex
from stromboli.model.topology.name_patterns import Age, NamePatterns
from stromboli.model.topology.node_bits import NodeNumbers

if TYPE_CHECKING:
    from stromboli.api.types.scheduling import HyperNodeMember


class Members(NamedTuple):
    """The members of a HyperNode, each once."""

    names: tuple[str, ...]
    """Nodes by name."""
    patterns: tuple[str, ...]
    """Nodes by pattern."""
    selectors: tuple[LabelSelector, ...]
    """Nodes by labels."""
    children: tuple[str, ...]
    """HyperNodes by name; other selectors of HyperNodes are skipped."""

    @staticmethod
    def of(members: Iterable[HyperNodeMember]) -> Members:
        names, patterns, children = dict[str, None](), dict[str, None](), dict[str, None]()
        selectors = []
        for type, selector in ((member.type, member.selector) for member in members):
            if selector.exact_name:
                (names if type == "Node" else children)[selector.exact_name] = None
            if type == "Node" and selector.regex_match is not None and selector.regex_match.pattern:
                patterns[selector.regex_match.pattern] = None
            if type == "Node" and selector.label_match is not None:
                selectors.append(selector.label_match)
        return Members(tuple(names), tuple(patterns), tuple(selectors), tuple(children))


class MemberSelection:
    """The nodes of each HyperNode, without those of its child HyperNodes; follows nodes and members."""

    def __init__(self) -> None:
        self.nodes = NodeNumbers()
        self.patterns = NamePatterns()
        self._labels: dict[int, Mapping[str, str]] = {}
        """The labels of nodes by their numbers."""
        self._label_index = LabelIndex()
        self._members: dict[str, Members] = {}
        self._namers: dict[str, dict[str, None]] = {}
        """HyperNodes that name a node, by the name of the node."""
        self._concerned: set[str] = set()
        self._new: dict[str, None] = {}
        """Nodes that came since `concerned` was last asked."""
        self._removed: dict[str, None] = {}
        """Nodes that went, and may have come again."""
        self._freed = 0
        """The numbers that they had."""

    # -- HyperNodes

    def set_members(self, hyper_node: str, age: Age, members: Members) -> None:
        """A HyperNode has these members now."""
        self.drop_members(hyper_node)
        self._members[hyper_node] = members
        self._concerned.add(hyper_node)
        for name in members.names:
            self._namers.setdefault(name, {})[hyper_node] = None
        if members.selectors:
            self._label_index.ask(hyper_node, members.selectors, self._labels)
        if members.patterns:
            self.patterns.ask(hyper_node, age, members.patterns)

    def drop_members(self, hyper_node: str) -> None:
        """A HyperNode is gone."""
        members = self._members.pop(hyper_node, None)
        self._concerned.discard(hyper_node)
        if members is not None:
            for name in members.names:
                del self._namers[name][hyper_node]
                if not self._namers[name]:
                    del self._namers[name]
            self._label_index.forget(hyper_node)
            self.patterns.forget(hyper_node)

    # -- nodes

    def set_node(self, name: str, labels: Mapping[str, str]) -> None:
        """A node has come, or has these labels now."""
        number = self.nodes.number.get(name)
        before = self._labels[number] if number is not None else None
        if number is None:
            number = self.nodes.add(name)
            self._new[name] = None
            self._concerned.update(self._namers.get(name, ()))
        self._labels[number] = labels
        self._label_index.change(number, before, labels)

    def drop_node(self, name: str) -> None:
        """A node is gone."""
        if name in self.nodes.number:
            number = self.nodes.remove(name)
            if name in self._new:
                del self._new[name]
            else:
                self._removed[name] = None
                self._freed |= 1 << number
            self._concerned.update(self._namers.get(name, ()))
            self._label_index.change(number, self._labels.pop(number), None)

    # -- the selection

    def concerned(self) -> set[str]:
        """HyperNodes whose nodes, or whose faults, may have changed since this was last asked."""
        concerned, self._concerned = self._concerned, set()
        concerned.update(self._label_index.concerned())
        concerned |= self.patterns.update(self.nodes, self._new, self._removed, self._freed)
        self._new, self._removed, self._freed = {}, {}, 0
        return concerned

    def select(self, hyper_node: str) -> int:
        """The nodes that a HyperNode names itself."""
        members = self._members[hyper_node]
        bits = self.nodes.bits(members.names) | self.patterns.select(hyper_node)
        for selector in members.selectors:
            bits |= self._label_index.select(selector, self.nodes.everyone)
        return bits

    def unknown(self, hyper_node: str) -> Iterator[str]:
        """Names of nodes among the members that are no nodes of the cluster."""
        return (name for name in self._members[hyper_node].names if name not in self.nodes.number)
