"""HyperNodes from labels: a tree of places, with names that stay."""

from __future__ import annotations

import re

import pytest

from stromboli.api.types.meta import ObjectMeta
from stromboli.controllers.hypernode import discovered_hyper_nodes, label_discovery
from stromboli.controllers.hypernode.discovered_hyper_nodes import (
    DiscoveredHyperNode,
    DiscoveryFailed,
    member_names,
)
from stromboli.controllers.hypernode.discovery_config import TopologyType
from stromboli.controllers.hypernode.label_discovery import discover
from stromboli.controllers.watched_kinds import HyperNode, Node

SOURCE = "volcano.sh/network-topology-source"
RACKS = TopologyType("gpu", ("rack", "switch"))
"""Tier 1 by the label `rack`, tier 2 by `switch`."""


def node(name: str, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name, labels=labels))


def hyper_node(name: str, **labels: str) -> HyperNode:
    return HyperNode(metadata=ObjectMeta(name, labels=labels))


def cluster(racks: int = 4, switches: int = 2, per_rack: int = 2) -> list[Node]:
    return [
        node(f"n{rack * per_rack + number}", rack=f"r{rack}", switch=f"s{rack * switches // racks}")
        for rack in range(racks)
        for number in range(per_rack)
    ]


def tree(*discovered: DiscoveredHyperNode) -> dict[str, set[str]]:
    """Members by the value of the label; HyperNodes as members by that too."""
    places = {hyper_node.name: value for hyper_node in discovered for value in hyper_node.labels.values()}
    return {
        places[hyper_node.name]: {places.get(name, name) for name in member_names(hyper_node.members)}
        for hyper_node in discovered
    }


def test_nodes_with_the_same_label_are_below_one_hyper_node() -> None:
    discovered = discover(cluster(), [RACKS], {})
    assert tree(*discovered) == {
        "r0": {"n0", "n1"},
        "r1": {"n2", "n3"},
        "r2": {"n4", "n5"},
        "r3": {"n6", "n7"},
        "s0": {"r0", "r1"},
        "s1": {"r2", "r3"},
    }
    racks, switches = discovered[:4], discovered[4:]
    assert {(rack.tier, rack.tier_name) for rack in racks} == {(1, "rack")}
    assert {(switch.tier, switch.tier_name) for switch in switches} == {(2, "switch")}
    assert {member.type for rack in racks for member in rack.members} == {"Node"}
    assert {member.type for switch in switches for member in switch.members} == {"HyperNode"}
    assert all(re.fullmatch("hypernode-gpu-tier1-[a-z0-9]{5}", rack.name) for rack in racks)
    assert all(re.fullmatch("hypernode-gpu-tier2-[a-z0-9]{5}", switch.name) for switch in switches)
    assert racks[0].labels == {"rack": "r0"}


def test_a_missing_label_ends_the_way_up() -> None:
    nodes = [node("a", rack="r", switch="s"), node("b", rack="r"), node("c", switch="s"), node("d")]
    assert tree(*discover(nodes, [RACKS], {})) == {"r": {"a", "b"}, "s": {"r"}}


def test_an_empty_value_is_a_value() -> None:
    assert tree(*discover([node("a", rack=""), node("b", rack="")], [RACKS], {})) == {"": {"a", "b"}}


def test_types_share_what_has_the_same_label_and_the_first_names_it() -> None:
    tor, nvl = TopologyType("tor", ("tor", "spine")), TopologyType("nvl", ("nvl", "spine"))
    nodes = [
        node("a", tor="t", spine="s"),
        node("b", nvl="v", spine="s"),
        node("c", tor="t", nvl="v", spine="s"),
    ]
    for types in ([tor, nvl], [nvl, tor]):
        discovered = discover(nodes, types, {})
        assert tree(*discovered) == {"t": {"a", "c"}, "v": {"b", "c"}, "s": {"t", "v"}}
        (spine,) = (each for each in discovered if each.tier == 2)
        assert spine.name.startswith(f"hypernode-{types[0].name}-tier2-")


def test_names_are_the_same_whoever_asks_and_in_whatever_order() -> None:
    """So that a HyperNode is not made twice after a crash or by two who ask at once."""
    nodes = cluster()
    once, again = discover(nodes, [RACKS], {}), discover(nodes[::-1], [RACKS], {})
    assert once == again
    assert len({each.name for each in once}) == 6


def test_hyper_nodes_that_are_there_keep_their_names() -> None:
    """Those that Volcano made have random ones."""
    there = {
        "hypernode-gpu-tier1-zzzzz": hyper_node("hypernode-gpu-tier1-zzzzz", rack="r0", **{SOURCE: "label"}),
        "hypernode-gpu-tier1-yyyyy": hyper_node("hypernode-gpu-tier1-yyyyy", rack="r0", **{SOURCE: "label"}),
        "hypernode-gpu-tier2-wwwww": hyper_node(
            "hypernode-gpu-tier2-wwwww", switch="s1", **{SOURCE: "label"}
        ),
        "hypernode-gpu-tier10-xx": hyper_node("hypernode-gpu-tier10-xx", rack="r1", **{SOURCE: "label"}),
        "mine": hyper_node("mine", rack="r1"),
    }
    names = {
        value: each.name for each in discover(cluster(), [RACKS], there) for value in each.labels.values()
    }
    assert names["r0"] == "hypernode-gpu-tier1-yyyyy"
    assert names["s1"] == "hypernode-gpu-tier2-wwwww"
    assert re.fullmatch("hypernode-gpu-tier1-[a-z0-9]{5}", names["r1"])


def test_a_name_that_somebody_else_has_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = discover([node("a", rack="r")], [RACKS], {})
    (second,) = discover([node("a", rack="r")], [RACKS], {first.name: hyper_node(first.name)})
    assert second.name != first.name
    ours = hyper_node(first.name, **{SOURCE: "label"})
    assert discover([node("a", rack="r")], [RACKS], {first.name: ours}) == [first]
    monkeypatch.setattr(label_discovery, "_suffix", lambda *parts: "same")
    with pytest.raises(DiscoveryFailed, match="no name is free for the HyperNode of rack=r1"):
        discover([node("a", rack="r0"), node("b", rack="r1")], [RACKS], {})


def test_two_places_whose_names_collide_get_different_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_discovery, "_suffix", lambda *parts: f"x{parts[-1]}")
    names = [each.name for each in discover([node("a", rack="r0"), node("b", rack="r1")], [RACKS], {})]
    assert names == ["hypernode-gpu-tier1-x0", "hypernode-gpu-tier1-x1"]


def test_too_many_places_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovered_hyper_nodes, "MAX_HYPER_NODES", 3)
    with pytest.raises(DiscoveryFailed, match="6 HyperNodes, and at most 3 of a source are kept"):
        discover(cluster(), [RACKS], {})
