"""HyperNodes that cannot be used are reported once, on themselves and on the jobs that they affect."""

from __future__ import annotations

from typing import Any

from stromboli.engine.decisions import Event
from stromboli.engine.topology.left_out_hyper_nodes import MAX_EVENTS
from stromboli.testing import Result, World
from tests.manifests import Manifest, hyper_node

POLICY = "gang | predicates network-topology-aware"
TWO_PARENTS = [
    hyper_node("s0", 1, nodes=["a", "b"], tier_name="rack"),
    hyper_node("t0", 2, children=["s0"]),
    hyper_node("t1", 2, children=["s0"]),
]
WHY = "HyperNode s0 is left out (more than one HyperNode has it as a member: t0, t1)"


def world(*hyper_nodes: Manifest) -> World:
    return World(nodes="a cpu=4\nb cpu=4").add(*hyper_nodes)


def events(result: Result) -> list[tuple[str, str, str]]:
    return [
        (event.name, event.reason, event.message)
        for event in result.decisions
        if isinstance(event, Event) and event.kind == "HyperNode"
    ]


def test_an_event_on_a_bad_hyper_node_says_why_it_is_left_out_and_is_not_repeated() -> None:
    made = world(*TWO_PARENTS)
    problem = "left out: more than one HyperNode has it as a member: t0, t1"
    assert events(made.run("allocate", POLICY)) == [("s0", "HyperNodeLeftOut", problem)]
    made.add(hyper_node("other", 1, nodes=["a"]))
    assert events(made.run("allocate", POLICY, cycles=2)) == []
    made.remove(TWO_PARENTS[2])
    well = "all problems are resolved: it is part of the tree with all of its members"
    assert events(made.run("allocate", POLICY)) == [("s0", "HyperNodeUsed", well)]
    made.remove(TWO_PARENTS[0])
    unknown = "members that do not exist are left out: HyperNode s0"
    assert events(made.run("allocate", POLICY)) == [("t0", "UnknownMembers", unknown)]


def test_events_about_thousands_of_bad_hyper_nodes_are_spread_over_cycles() -> None:
    made = world(*(hyper_node(f"h{number}", 1, nodes=["x"]) for number in range(MAX_EVENTS + 5)))
    told = [events(made.run("allocate", POLICY)) for _ in range(3)]
    assert [len(each) for each in told] == [MAX_EVENTS, 5, 0]


def test_members_of_kind_hyper_node_by_pattern_are_reported_as_left_out() -> None:
    switch = hyper_node("t0", 2)
    switch["spec"]["members"] = [{"type": "HyperNode", "selector": {"regexMatch": {"pattern": "^s"}}}]
    told = "HyperNodes are members by exactMatch alone; those by pattern or labels are left out"
    made = world(hyper_node("s0", 1, nodes=["a"]), switch)
    assert events(made.run("allocate", POLICY)) == [("t0", "UnknownMembers", told)]


def test_a_tier_that_is_not_above_those_of_its_members_is_reported_and_the_hyper_node_stays() -> None:
    upside_down = hyper_node("t0", 1, children=["s0"])
    made = world(hyper_node("s0", 1, nodes=["a"]), upside_down, hyper_node("u0", 2, children=["t0"]))
    told = "its tier 1 is not above those of members: HyperNode s0 (tier 1); give it a higher tier"
    assert events(made.run("allocate", POLICY)) == [("t0", "TierNotAboveMembers", told)]
    assert set(made.cluster.hyper_nodes.domains) == {"s0", "t0", "u0"}
    made.add(hyper_node("s0", 1, nodes=["a", "b"]))
    assert events(made.run("allocate", POLICY)) == []
    made.add(hyper_node("t0", 2, children=["s0"]), hyper_node("u0", 3, children=["t0"]))
    assert [event[:2] for event in events(made.run("allocate", POLICY))] == [("t0", "HyperNodeUsed")]
    made.add(hyper_node("s0", 5, nodes=["a", "b"]))
    assert [event[:2] for event in events(made.run("allocate", POLICY))] == [("t0", "TierNotAboveMembers")]


def test_a_name_of_several_tiers_is_reported_on_the_first_hyper_node_of_each() -> None:
    racks = [hyper_node(f"r{number}", 1, nodes=["a"], tier_name="rack") for number in range(3)]
    made = world(*racks, hyper_node("s0", 2, nodes=["b"], tier_name="rack"))
    owners = "HyperNode r0 (tier 1), HyperNode s0 (tier 2)"
    told = f'the tier name "rack" is that of several tiers: {owners}; it means tier 2, that of the youngest'
    assert events(made.run("allocate", POLICY)) == [
        ("r0", "AmbiguousTierName", told),
        ("s0", "AmbiguousTierName", told),
    ]
    made.remove(racks[1])
    assert events(made.run("allocate", POLICY)) == []
    made.add(hyper_node("s0", 2, nodes=["b"], tier_name="switch"))
    assert [event[:2] for event in events(made.run("allocate", POLICY))] == [
        ("r0", "HyperNodeUsed"),
        ("s0", "HyperNodeUsed"),
    ]


def waits(made: World, **topology: Any) -> str:
    made.job("j", pods=2, cpu=1, group={"networkTopology": {"mode": "hard", **topology}})
    result = made.run("enqueue, allocate", POLICY)
    assert result.binds == {}
    return result.pending["default/j"].message


def test_the_way_out_names_the_hyper_nodes_to_correct() -> None:
    made = world(*TWO_PARENTS)
    made.job("j", pods=2, cpu=1, group={"networkTopology": {"mode": "hard", "highestTierAllowed": 1}})
    assert made.run("enqueue, allocate", POLICY).pending["default/j"].hint == (
        "correct HyperNode s0, or allow a higher tier"
    )
    loops = [hyper_node(f"h{number}", 1, children=[f"h{number}"]) for number in range(4)]
    made = world(*loops)
    made.job("j", pods=2, cpu=1, group={"networkTopology": {"mode": "hard", "highestTierAllowed": 1}})
    assert made.run("enqueue, allocate", POLICY).pending["default/j"].hint == (
        "correct HyperNode h0, h1, h2 and others, or set mode: soft to allow any placement"
    )


def test_a_gang_that_needs_a_tier_hears_which_hyper_nodes_of_it_are_left_out() -> None:
    message = waits(world(*TWO_PARENTS), highestTierAllowed=1)
    assert f"highestTierAllowed 1): the lowest tier of a HyperNode is 2, and {WHY}" in message


def test_a_gang_that_needs_a_tier_below_all_others_hears_so() -> None:
    assert "the lowest tier of a HyperNode is 2" in waits(
        world(hyper_node("t", 2, nodes=["a", "b"])), highestTierAllowed=1
    )


def test_a_limit_holds_though_all_hyper_nodes_of_its_tier_are_left_out() -> None:
    racks = [hyper_node("r0", 1, nodes=["a"]), hyper_node("r1", 1, nodes=["b"])]
    made = world(*racks, hyper_node("spine", 2, children=["r0", "r1", "spine"]))
    made.job("j", pods=2, cpu=3, group={"networkTopology": {"mode": "hard", "highestTierAllowed": 2}})
    result = made.run("enqueue, allocate", POLICY)
    assert result.binds == {}
    assert "and HyperNode spine is left out (it is a member of itself: spine > spine)" in (
        result.pending["default/j"].message
    )


def test_a_gang_that_names_a_tier_hears_that_its_hyper_nodes_are_left_out() -> None:
    message = waits(world(*TWO_PARENTS), highestTierName="rack")
    assert f'highestTierName "rack"): no HyperNode has a tier with that name and {WHY}' in message


def test_a_gang_hears_that_all_hyper_nodes_are_left_out() -> None:
    loop = [hyper_node("x", 1, children=["y"]), hyper_node("y", 2, children=["x"])]
    message = waits(world(*loop), highestTierAllowed=1)
    assert (
        "the cluster has no HyperNodes and HyperNode x is left out (it is a member of itself: x > y > x)"
        in message
    )


def test_a_bad_hyper_node_holds_no_other_job() -> None:
    good = hyper_node("good", 1, nodes=["a", "b"])
    made = world(*TWO_PARENTS, good)
    made.job("hard", pods=2, cpu=1, group={"networkTopology": {"mode": "hard", "highestTierAllowed": 1}})
    made.job("soft", pods=2, cpu=1, group={"networkTopology": {"mode": "soft"}})
    made.job("plain", pods=2, cpu=1)
    assert len(made.run("enqueue, allocate", POLICY).binds) == 6
