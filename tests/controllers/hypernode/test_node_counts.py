"""How many nodes HyperNodes have, whatever their members are."""

from __future__ import annotations

import time

import pytest

from stromboli.api.types.meta import LabelSelector, ObjectMeta, Requirement
from stromboli.api.types.scheduling import (
    ExactMatch,
    HyperNodeMember,
    HyperNodeSpec,
    MemberSelector,
    RegexMatch,
)
from stromboli.controllers.hypernode import node_counts as module
from stromboli.controllers.hypernode.node_counts import node_counts
from stromboli.controllers.watched_kinds import HyperNode, Node

NODES = [
    Node(metadata=ObjectMeta(f"node-{number}", labels={"rack": f"r{number // 2}", "number": str(number)}))
    for number in range(6)
]


def exact(name: str) -> HyperNodeMember:
    return HyperNodeMember("Node", MemberSelector(exact_match=ExactMatch(name)))


def child(name: str) -> HyperNodeMember:
    return HyperNodeMember("HyperNode", MemberSelector(exact_match=ExactMatch(name)))


def pattern(text: str) -> HyperNodeMember:
    return HyperNodeMember("Node", MemberSelector(regex_match=RegexMatch(text)))


def labelled(selector: LabelSelector) -> HyperNodeMember:
    return HyperNodeMember("Node", MemberSelector(label_match=selector))


def counts(**hyper_nodes: list[HyperNodeMember]) -> dict[str, int]:
    objects = {
        name: HyperNode(metadata=ObjectMeta(name), spec=HyperNodeSpec(1, "", tuple(members)))
        for name, members in hyper_nodes.items()
    }
    return node_counts(objects, NODES)


RACK_0 = LabelSelector({"rack": "r0"})


@pytest.mark.parametrize(
    ("members", "count"),
    [
        ([exact("node-0"), exact("node-1"), exact("node-0")], 2),
        ([exact("no-such-node"), exact(""), exact("node-3")], 1),
        ([pattern("^node-[0-3]$"), exact("node-0"), exact("node-5")], 5),
        ([pattern("-")], 6),
        ([pattern("(")], 0),
        ([pattern("("), exact("node-0")], 1),
        ([labelled(RACK_0), pattern("node-1")], 2),
        ([labelled(LabelSelector())], 0),
        ([labelled(LabelSelector({}, (Requirement("rack", "NotIn", ("r0",)),)))], 4),
        ([labelled(LabelSelector({}, (Requirement("rack", "Sideways", ("r0",)),)))], 0),
        ([HyperNodeMember("Node")], 0),
        ([HyperNodeMember("HyperNode", MemberSelector(regex_match=RegexMatch(".")))], 0),
        ([], 0),
    ],
)
def test_nodes_that_exist_count_once(members: list[HyperNodeMember], count: int) -> None:
    assert counts(h=members) == {"h": count}


def test_a_hyper_node_has_the_nodes_of_those_below_it() -> None:
    """In Volcano it has as many as it has members."""
    assert counts(
        rack0=[labelled(RACK_0)],
        rack1=[exact("node-2"), exact("node-3")],
        switch=[child("rack0"), child("rack1"), child("missing")],
        top=[child("switch"), exact("node-5"), exact("node-0")],
    ) == {"rack0": 2, "rack1": 2, "switch": 4, "top": 5}


def test_loops_end() -> None:
    assert counts(a=[child("b"), exact("node-0")], b=[child("a"), exact("node-1")], c=[child("c")]) == {
        "a": 2,
        "b": 2,
        "c": 0,
    }


def test_a_pattern_that_would_take_long_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_STEPS", 100)
    assert counts(h=[pattern("^node-(0|1|2|3|4|5|6|7)(a|b|c)?$"), exact("node-0")]) == {"h": 1}


def test_a_large_cluster_takes_no_second() -> None:
    nodes = [Node(metadata=ObjectMeta(f"node-{number}")) for number in range(5000)]
    racks = {
        f"rack{rack}": [exact(f"node-{number}") for number in range(rack * 16, rack * 16 + 16)]
        for rack in range(312)
    }
    members = {
        **racks,
        "top": [child(name) for name in racks],
        **{f"p{number}": [pattern(f"^node-{number}..$")] for number in range(20)},
    }
    objects = {
        name: HyperNode(metadata=ObjectMeta(name), spec=HyperNodeSpec(1, "", tuple(each)))
        for name, each in members.items()
    }
    begin = time.process_time()
    assert node_counts(objects, nodes)["top"] == 4992
    assert time.process_time() - begin < 3
