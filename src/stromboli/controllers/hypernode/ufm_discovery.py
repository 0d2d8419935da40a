"""HyperNodes from the ports that NVIDIA's Unified Fabric Manager lists (spec 06 10.5).

Leaf switches that share a node are one HyperNode of tier 1, and all of these are below one of tier 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

import msgspec

from stromboli.api import names
from stromboli.api.name_rules import dns_subdomain_errors
from stromboli.controllers.hypernode.discovered_hyper_nodes import (
    DiscoveredHyperNode,
    check_count,
    exact_members,
    member_names,
)
from stromboli.controllers.hypernode.discovery_config import UFM
from stromboli.controllers.watched_kinds import HyperNode

LEAF, SPINE = "leaf-hn-", "spine-hn"


class Port(msgspec.Struct, gc=False):
    """A port of the fabric; those of nodes are described as computers."""

    description: str | None = None
    system_name: str | None = None
    """The node, or the switch."""
    peer_node_name: str | None = None
    """What is at the other end, a leaf switch."""


def discover(groups: list[set[str]], existing: Mapping[str, HyperNode]) -> list[DiscoveredHyperNode]:
    """The HyperNodes of groups of leaf switches; a group keeps the name that most of its nodes have."""
    check_count(len(groups) + 1)
    chosen = _choose_names(groups, existing)
    leaves = [
        DiscoveredHyperNode(name, 1, exact_members("Node", nodes)) for name, nodes in sorted(chosen.items())
    ]
    if not leaves:
        return []
    return [*leaves, DiscoveredHyperNode(SPINE, 2, exact_members("HyperNode", chosen))]


def _nodes_by_leaf(ports: Iterable[Port]) -> dict[str, set[str]]:
    """Ports that are not connected, and those of what cannot be a node, do not count."""
    leaves: dict[str, set[str]] = {}
    for port in ports:
        node = (port.system_name or "").lower()
        if "Computer" in (port.description or "") and port.peer_node_name and not dns_subdomain_errors(node):
            leaves.setdefault(port.peer_node_name, set()).add(node)
    return leaves


def leaf_groups(ports: Iterable[Port]) -> list[set[str]]:
    """The nodes of leaf switches that are connected through shared nodes, in the order of the first switch's name."""
    leaves = _nodes_by_leaf(ports)
    leaves_of: dict[str, list[str]] = {}
    for leaf, nodes in leaves.items():
        for node in nodes:
            leaves_of.setdefault(node, []).append(leaf)
    groups: list[set[str]] = []
    seen: set[str] = set()
    for first in sorted(leaves):
        waiting, group = [first], set[str]()
        while waiting:
            leaf = waiting.pop()
            if leaf not in seen:
                seen.add(leaf)
                group |= leaves[leaf]
                waiting += (other for node in leaves[leaf] for other in leaves_of[node] if other not in seen)
        if group:
            groups.append(group)
    return groups


def _choose_names(groups: list[set[str]], existing: Mapping[str, HyperNode]) -> dict[str, set[str]]:
    """The nodes of each group by name: first the names with the most nodes in common, then the lowest free numbers."""
    known = {
        name: member_names(hyper_node.spec.members)
        for name, hyper_node in existing.items()
        if name.startswith(LEAF) and hyper_node.metadata.labels.get(names.TOPOLOGY_SOURCE) == UFM
    }
    chosen: dict[str, set[str]] = {}
    named: set[int] = set()
    for _, index, name in sorted(_shared_nodes(groups, known)):
        if index not in named and name not in chosen:
            chosen[name] = groups[index]
            named.add(index)
    taken = {*chosen, *(existing.keys() - known.keys())}
    free = (name for number in count() if (name := f"{LEAF}{number}") not in taken)
    for index, group in enumerate(groups):
        if index not in named:
            chosen[next(free)] = group
    return chosen


def _shared_nodes(groups: list[set[str]], known: Mapping[str, set[str]]) -> list[tuple[int, int, str]]:
    """How many nodes groups share with HyperNodes, negative; index of the group; name of the HyperNode."""
    group_of = {node: index for index, group in enumerate(groups) for node in group}
    shared: dict[tuple[int, str], int] = {}
    for name, nodes in known.items():
        for node in nodes:
            if node in group_of:
                key = group_of[node], name
                shared[key] = shared.get(key, 0) + 1
    return [(-count, index, name) for (index, name), count in shared.items()]
