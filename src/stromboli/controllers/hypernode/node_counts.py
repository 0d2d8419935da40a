"""How many nodes HyperNodes have (spec 06 10.3): nodes that exist, their own and those of the HyperNodes below them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stromboli.api.patterns import PatternError, matches, program_size
from stromboli.api.selectors import matches_labels
from stromboli.api.types.meta import LabelSelector
from stromboli.api.types.scheduling import HyperNodeMember
from stromboli.controllers.watched_kinds import HyperNode, Node

MAX_STEPS = 1_000_000_000
"""Bytes of all nodes' names times instructions of a pattern; one that takes more matches nothing."""


def node_counts(hyper_nodes: Mapping[str, HyperNode], nodes: Iterable[Node]) -> dict[str, int]:
    """By name of the HyperNode. A member that is not valid, or not there, counts nothing."""
    labels = {node.name: node.metadata.labels for node in nodes}
    own = {name: _own_nodes(hyper_node, labels) for name, hyper_node in hyper_nodes.items()}
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
    return [
        member.selector.exact_match.name
        for member in hyper_node.spec.members
        if member.type == "HyperNode" and member.selector.exact_match is not None
    ]


def _own_nodes(hyper_node: HyperNode, labels: Mapping[str, Mapping[str, str]]) -> set[str]:
    nodes: set[str] = set()
    for member in hyper_node.spec.members:
        if member.type == "Node":
            nodes |= _matching(member, labels)
    return nodes


def _matching(member: HyperNodeMember, labels: Mapping[str, Mapping[str, str]]) -> set[str]:
    selector = member.selector
    if selector.exact_match is not None:
        return {selector.exact_match.name} & labels.keys()
    if selector.regex_match is not None:
        return _matching_names(selector.regex_match.pattern, labels)
    if selector.label_match is None or _is_empty(selector.label_match):
        return set()
    return {name for name in labels if matches_labels(selector.label_match, labels[name])}


def _matching_names(pattern: str, nodes: Iterable[str]) -> set[str]:
    try:
        if program_size(pattern) * sum(map(len, nodes)) > MAX_STEPS:
            return set()
        return {name for name in nodes if matches(pattern, name)}
    except PatternError:
        return set()


def _is_empty(selector: LabelSelector) -> bool:
    return not selector.match_labels and not selector.match_expressions
