"""How many nodes HyperNodes have (spec 06 10.3): nodes that exist, their own and those of the HyperNodes below them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from stromboli.api.patterns import PatternError, matching_texts, program_size
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector
from stromboli.api.types.scheduling import MemberSelector
from stromboli.controllers.watched_kinds import HyperNode, Node

MAX_STEPS = 1_000_000_000
"""Bytes of all nodes' names times instructions of a pattern; one that takes more matches nothing."""


class _Nodes:
    """Names of nodes, and which of them have a label."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.labels: dict[str, Mapping[str, str]] = {node.name: node.metadata.labels for node in nodes}
        self._labelled: dict[tuple[str, str], set[str]] = defaultdict(set)
        for name, labels in self.labels.items():
            for label in labels.items():
                self._labelled[label].add(name)

    def selected(self, selector: LabelSelector) -> set[str]:
        """Nodes that a selector matches; an empty one matches none."""
        if not selector.match_labels and not selector.match_expressions:
            return set()
        names = set(self.labels)
        for label in selector.match_labels.items():
            names &= self._labelled.get(label, set())
        return {name for name in names if matches_labels(selector, self.labels[name])}

    def named(self, pattern: str) -> set[str]:
        """Nodes whose names a pattern matches; one that is invalid, or takes too long, matches none."""
        try:
            if program_size(pattern) * sum(map(len, self.labels)) > MAX_STEPS:
                return set()
            return set(matching_texts(pattern, self.labels))
        except PatternError:
            return set()


def node_counts(hyper_nodes: Mapping[str, HyperNode], nodes: Iterable[Node]) -> dict[str, int]:
    """By name of the HyperNode. A member that is not valid, or not there, counts nothing."""
    known = _Nodes(nodes)
    own = {name: _own_nodes(hyper_node, known) for name, hyper_node in hyper_nodes.items()}
    children = {name: _children(hyper_node) for name, hyper_node in hyper_nodes.items()}
    return {name: len(_all_nodes(name, own, children)) for name in hyper_nodes}


def _all_nodes(name: str, own: Mapping[str, set[str]], children: Mapping[str, list[str]]) -> set[str]:
    """Own nodes and those of all HyperNodes below, each of which is looked at once, as members may form loops."""
    below = children[name]
    if not below:
        return own[name]
    nodes, seen, waiting = set(own[name]), {name}, list(below)
    while waiting:
        child = waiting.pop()
        if child in own and child not in seen:
            seen.add(child)
            nodes |= own[child]
            waiting += children[child]
    return nodes


def _children(hyper_node: HyperNode) -> list[str]:
    """HyperNodes can be members by name alone."""
    return [member.selector.exact_name for member in hyper_node.spec.members if member.type == "HyperNode"]


def _own_nodes(hyper_node: HyperNode, known: _Nodes) -> set[str]:
    members = (member for member in hyper_node.spec.members if member.type == "Node")
    return {name for member in members for name in _matching(member.selector, known)}


def _matching(selector: MemberSelector, known: _Nodes) -> set[str]:
    if selector.exact_match is not None:
        return {selector.exact_name} & known.labels.keys()
    if selector.regex_match is not None:
        return known.named(selector.regex_match.pattern)
    if selector.label_match is not None:
        return known.selected(selector.label_match)
    return set()
