"""HyperNodes from labels of nodes (spec 06 10.4).

Nodes with the same value of a tier's label are below one switch. Names follow from what HyperNodes are for, so that a
HyperNode cannot be made twice, whatever was lost or happened at once; a HyperNode that is there keeps its name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from stromboli.api import names
from stromboli.controllers.hypernode.discovered_hyper_nodes import (
    DiscoveredHyperNode,
    DiscoveryFailed,
    check_count,
    exact_members,
)
from stromboli.controllers.hypernode.discovery_config import LABEL, TopologyType
from stromboli.controllers.watched_kinds import HyperNode, Node

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Of suffixes, as Kubernetes has it for random ones: it spells no words."""
SUFFIX_LENGTH, ATTEMPTS = 5, 20


class Place(NamedTuple):
    """A label with its value: all nodes that have it are below one switch."""

    key: str
    value: str


@dataclass(slots=True)
class _Group:
    """The members of a place: nodes in tier 1, else places of the tier below."""

    type: TopologyType
    tier: int
    nodes: set[str] = field(default_factory=set)
    places: set[Place] = field(default_factory=set)


def discover(
    nodes: Iterable[Node], types: Iterable[TopologyType], existing: Mapping[str, HyperNode]
) -> list[DiscoveredHyperNode]:
    """The HyperNodes of these nodes; `existing` are those that there are, by name."""
    groups = _groups(list(nodes), types)
    check_count(len(groups))
    chosen = _choose_names(groups, existing)
    return [
        DiscoveredHyperNode(
            chosen[place],
            group.tier,
            exact_members("Node", group.nodes)
            if group.tier == 1
            else exact_members("HyperNode", (chosen[below] for below in group.places)),
            place.key,
            {place.key: place.value},
        )
        for place, group in sorted(groups.items())
    ]


def _groups(nodes: list[Node], types: Iterable[TopologyType]) -> dict[Place, _Group]:
    """By place; a place that several types have is named after the first of them. A missing label ends a type."""
    groups: dict[Place, _Group] = {}
    for type_ in types:
        for node in nodes:
            below: Place | None = None
            for tier, key in enumerate(type_.tiers, 1):
                value = node.metadata.labels.get(key)
                if value is None:
                    break
                place = Place(key, value)
                group = groups.setdefault(place, _Group(type_, tier))
                if below is None:
                    group.nodes.add(node.name)
                else:
                    group.places.add(below)
                below = place
    return groups


# -- names


def _choose_names(groups: Mapping[Place, _Group], existing: Mapping[str, HyperNode]) -> dict[Place, str]:
    """Names of HyperNodes that are there, then new ones for the rest, in the order of places."""
    chosen = _existing_names(groups, existing)
    taken = {*chosen.values()}
    for place, group in sorted(groups.items()):
        if place not in chosen:
            name = next((name for name in _new_names(place, group) if _is_free(name, taken, existing)), None)
            if name is None:
                raise DiscoveryFailed(f"no name is free for the HyperNode of {place.key}={place.value}")
            chosen[place] = name
            taken.add(name)
    return chosen


def _existing_names(groups: Mapping[Place, _Group], existing: Mapping[str, HyperNode]) -> dict[Place, str]:
    """The first by name, of a place's label and type and tier, if there is any."""
    chosen: dict[Place, str] = {}
    keys = {place.key for place in groups}
    for name, hyper_node in sorted(existing.items()):
        labels = hyper_node.metadata.labels
        if labels.get(names.TOPOLOGY_SOURCE) != LABEL:
            continue
        for key in sorted(keys & labels.keys()):
            place = Place(key, labels[key])
            group = groups.get(place)
            if group is not None and place not in chosen and _has_prefix(name, group):
                chosen[place] = name
                break
    return chosen


def _has_prefix(name: str, group: _Group) -> bool:
    prefix = group.type.prefix(group.tier)
    return name.startswith(prefix) and "-" not in name.removeprefix(prefix)


def _is_free(name: str, taken: set[str], existing: Mapping[str, HyperNode]) -> bool:
    """Whether nobody has a name but, perhaps, a HyperNode of this source whose place is no more."""
    current = existing.get(name)
    ours = current is None or current.metadata.labels.get(names.TOPOLOGY_SOURCE) == LABEL
    return ours and name not in taken


def _new_names(place: Place, group: _Group) -> Iterator[str]:
    for attempt in range(ATTEMPTS):
        yield group.type.prefix(group.tier) + _suffix(group.type.name, group.tier, *place, attempt)


def _suffix(*parts: object) -> str:
    number = int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest())
    characters = []
    for _ in range(SUFFIX_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[digit])
    return "".join(characters)
