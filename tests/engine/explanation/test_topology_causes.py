"""Why a gang that must keep to a domain waits: one sentence that stays, and on request who holds what is short."""

from __future__ import annotations

from typing import Any

from stromboli.engine.catalog import action
from stromboli.engine.decisions import Event, PodCondition
from stromboli.engine.explanation.closest_domain import DomainHolder
from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.engine.session import Session
from stromboli.testing import World
from tests.manifests import (
    Manifest,
    decoded,
    discovered,
    group,
    hyper_node,
    native_group,
    node,
    pod,
    policy,
    queue,
    sub_group_policy,
)
from tests.properties.living import LivingWorld, engine, events

PLUGINS = "priority gang conformance | predicates proportion nodeorder network-topology-aware"
POLICY = policy("enqueue, allocate, backfill", PLUGINS)
WAYS = (
    "wait until one has capacity, allow a higher tier or set mode: soft, or add gangpreempt or "
    "consolidate to the policy actions"
)
RACKS = [hyper_node(f"r{rack}", 1, nodes=[f"{rack}1", f"{rack}2"], tier_name="rack") for rack in "abcd"]
ROWS = [hyper_node("left", 2, children=["ra", "rb"]), hyper_node("right", 2, children=["rc", "rd"])]


def world(*objects: Manifest) -> World:
    """Four racks of two nodes with four CPUs, two of which are in use everywhere but on d2."""
    nodes = [node(f"{rack}{place}", labels={"rack": rack}) for rack in "abcd" for place in (1, 2)]
    busy = [pod(f"old-{name}", "old", on=name, cpu=2) for name in ("a1", "a2", "b1", "b2", "c1", "c2", "d1")]
    return World().add(*nodes, *RACKS, *ROWS, group("old", 1), *busy, *objects)


def gang(name: str, count: int, tier: int | str = 1, **terms: Any) -> list[Manifest]:
    field = "highestTierName" if isinstance(tier, str) else "highestTierAllowed"
    topology = {"networkTopology": {"mode": "hard", field: tier}}
    return [group(name, count, **topology), *(pod(f"{name}-{n}", name, **terms) for n in range(count))]


def why(made: World, name: str = "g", config: str = POLICY) -> Diagnosis:
    return made.run(policy=config).pending[f"default/{name}"]


# -- which HyperNode comes closest


def test_the_sentence_names_the_tier_and_the_pods_and_no_number_that_moves() -> None:
    explanation = why(world(*gang("g", 7)))
    assert explanation.gate == "topology"
    assert explanation.reason == "No HyperNode with room"
    assert explanation.sentence == (
        f"PodGroup g waits: no HyperNode of tier 1 or below has capacity for 7 pods; {WAYS}"
    )


def test_the_closest_domain_is_named_with_what_it_lacks_and_the_holders() -> None:
    explanation = why(world(*gang("g", 7)))
    closest = explanation.closest
    assert closest is not None
    assert (closest.name, closest.tier, closest.fits, closest.needed) == ("rd", 1, 6, 7)
    assert closest.lacks == {"cpu": "1"}
    assert closest.holders == (DomainHolder("default/old", "cpu", "2"),)
    assert explanation.message.endswith(
        "; closest: HyperNode rd (tier 1) has capacity for 6 of 7 pods and lacks cpu 1, held there "
        "by default/old (cpu 2)"
    )
    assert explanation.hint.startswith("tier 2 has capacity (HyperNode left): wait until one has capacity, ")


def test_the_way_out_says_how_far_one_would_have_to_go() -> None:
    assert why(world(*gang("g", 11))).hint.startswith("all nodes together have capacity: ")


def test_without_capacity_in_any_tier_the_remedy_has_the_capacity_of_all_nodes() -> None:
    made = world(*gang("g", 10, cpu=2))
    assert why(made).hint.startswith("all nodes together have capacity for 9 of 10 pods: ")


def test_a_tier_by_name_is_reported_by_name() -> None:
    assert "no HyperNode of tier 1 (rack) or below has capacity" in why(world(*gang("g", 7, "rack"))).sentence


def test_the_message_stays_while_free_resources_change() -> None:
    made = world(*gang("g", 7))
    first = why(made)
    made.remove(pod("old-a1")).add(pod("new", "old", on="d2"))
    second = made.step().pending["default/g"]
    assert second.sentence == first.sentence
    assert (first.closest and first.closest.name, second.closest and second.closest.name) == ("rd", "ra")


def test_a_pending_gang_writes_nothing_while_free_resources_change() -> None:
    nodes = [node(f"{rack}{place}") for rack in "abcd" for place in (1, 2)]
    running = [group("old", 1), *(pod(f"old-{number}", "old", on="d1") for number in range(3))]
    objects = [queue(), *nodes, *RACKS, *ROWS, *running, *gang("g", 8), *gang("f", 24, 2)]
    tiers = [tier.replace(" ", ", ") for tier in PLUGINS.split(" | ")]
    living = LivingWorld(objects, lambda: engine(*tiers, actions="enqueue, allocate, backfill"))
    first = living.step()  # g starts
    assert any("no HyperNode of tier 2 or below" in event.message for event in events(first.decisions))
    living.step()
    living.drop(decoded(pod("old-0")))
    assert not [
        decision
        for decision in living.step().decisions
        if isinstance(decision, Event | PodCondition) and decision.name.startswith("f")
    ]


def test_free_resources_in_too_small_fragments_are_no_capacity() -> None:
    explanation = why(world(*gang("g", 2, cpu=3)))
    assert explanation.closest is not None
    assert (explanation.closest.fits, explanation.closest.lacks) == (1, {"cpu": "3"})


def test_actions_that_the_policy_has_are_no_way_out() -> None:
    config = policy("enqueue, allocate, gangpreempt, consolidate", PLUGINS)
    assert why(world(*gang("g", 7)), config=config).sentence.endswith("allow a higher tier or set mode: soft")


def test_nodes_that_filters_exclude_are_no_capacity() -> None:
    made = world(*gang("g", 3, cpu=2, spec={"nodeSelector": {"rack": "c"}}))
    closest = why(made).closest
    assert closest is not None
    assert (closest.name, closest.fits) == ("rc", 2)


def test_other_causes_are_reported_as_for_any_job() -> None:
    assert why(world(*gang("g", 3, spec={"nodeSelector": {"rack": "x"}}))).gate == "nodes"
    assert why(world(*gang("g", 2, cpu=5))).reason == "Larger than any node"
    assert why(world(queue("default", capability={"cpu": "15"}), *gang("g", 2))).gate != "topology"


def test_a_soft_gang_waits_for_nodes() -> None:
    soft = group("g", 10, networkTopology={"mode": "soft"})
    explanation = why(world(soft, *(pod(f"g-{n}", "g", cpu=2) for n in range(10))))
    assert explanation.sentence == (
        "PodGroup g waits: nodes are unavailable: Insufficient cpu; wait until enough cpu is free, "
        "add nodes or request less"
    )
    assert explanation.message == "all nodes together have capacity for 9 of 10 pods and lack cpu 2"


@action("compact", evicts_by="unified_evictable", preempts=True)
def compact(session: Session) -> None:
    """Stands in for an action of a third party that frees a domain for a gang."""


def test_the_remedy_names_every_action_that_frees_a_domain() -> None:
    made = world(*gang("g", 2, cpu=4))
    explanation = made.run(policy=POLICY, action_functions=[compact]).pending["default/g"]
    assert "or add compact or gangpreempt or consolidate to the policy actions" in explanation.hint
    result = made.run(policy=POLICY.replace("backfill", "backfill, compact"), action_functions=[compact])
    assert "or add gangpreempt or consolidate to" in result.pending["default/g"].hint


def test_the_remedy_of_a_gang_that_fits_nowhere_is_not_a_higher_tier() -> None:
    assert why(world(*gang("g", 2, cpu=4))).hint == (
        "all nodes together have capacity for 1 of 2 pods: wait until one has capacity, request "
        "less, or add gangpreempt or consolidate to the policy actions"
    )
    assert why(world(*gang("g", 10, cpu=2))).hint == (
        "all nodes together have capacity for 9 of 10 pods: request less, or allow a higher tier "
        "or set mode: soft and wait"
    )


def test_the_topology_of_a_job_is_changed_in_its_pod_group() -> None:
    podgroup, *pods = gang("g", 7)
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "g",
        "uid": "1",
        "controller": True,
    }
    podgroup["metadata"]["ownerReferences"] = [job]
    sentence = why(world(podgroup, *pods)).sentence
    assert "allow a higher tier or set mode: soft (in PodGroup g or in a new Job)" in sentence


def test_unusable_nodes_are_distinguished_from_hyper_nodes_that_are_too_small() -> None:
    cordoned = [node(f"{rack}1", labels={"rack": rack}, spec={"unschedulable": True}) for rack in "abcd"]
    explanation = why(world(*cordoned, *gang("g", 7)))
    assert explanation.summary == ("no HyperNode of tier 1 or below has enough usable nodes for 7 pods")
    assert explanation.message.endswith("; 1 of its 2 nodes are unusable (d1)")
    assert "uncordon nodes" in explanation.hint
    assert "is large enough for 9 pods" in why(world(*cordoned, *gang("g", 9))).summary
    label = why(world(*cordoned, *near(7))).summary
    assert label == "no value of node label rack has enough usable nodes for 7 pods"


RESERVING = policy("enqueue, allocate", PLUGINS, enqueue={"reserveMinimum": True})


def test_a_gang_larger_than_each_hyper_node_is_not_said_to_have_used_up_its_share() -> None:
    """It counts in no share while its minimum is reserved, so its queue deserves nothing for it."""
    gpus = {"nvidia.com/gpu": 1}
    nodes = [node(f"{rack}{place}", **gpus) for rack in "abcd" for place in (1, 2)]
    explanation = why(world(*nodes, *gang("g", 3, **gpus)), config=RESERVING)
    assert (explanation.gate, explanation.summary) == (
        "topology",
        "no HyperNode of tier 1 or below is large enough for 3 pods",
    )
    fits = why(world(*nodes, *gang("g", 2, **gpus), *gang("h", 9)), "h", RESERVING)
    assert fits.summary == "no HyperNode of tier 1 or below is large enough for 9 pods"


def test_so_is_one_whose_pods_do_not_exist_yet() -> None:
    limit = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    waiting = group("g", 9, phase="Pending", minResources={"cpu": "9"}, **limit)
    explanation = why(world(waiting), config=RESERVING)
    assert explanation.summary == "no HyperNode of tier 1 or below is large enough for its minResources"
    assert explanation.hint == "request less, allow a higher tier or set mode: soft, or add nodes"


def test_hyper_nodes_without_nodes_are_named_where_none_is_large_enough() -> None:
    spine = hyper_node("spine", 3, children=["gone"])
    summary = why(world(spine, *gang("g", 17, 3))).summary
    assert summary.endswith(
        "is large enough for 17 pods, and HyperNode spine has no nodes "
        "(members that do not exist are left out: HyperNode gone)"
    )
    pattern = {"type": "HyperNode", "selector": {"regexMatch": {"pattern": "("}}}
    spine["spec"]["members"] = [pattern]
    summary = why(world(spine, *gang("g", 17, 3))).summary
    assert "HyperNode spine has no nodes (HyperNodes are members by exactMatch alone; " in summary


# -- gangs that may start with fewer pods than they have


def elastic(mode: dict[str, Any], count: int, minimum: int) -> list[Manifest]:
    pods = [pod(f"g-{number}", "g", cpu=2) for number in range(count)]
    return [group("g", minimum, networkTopology=mode), *pods]


def test_a_gang_that_needs_capacity_for_all_its_pods_is_explained() -> None:
    explanation = why(world(*elastic({"mode": "hard", "highestTierAllowed": 1}, 4, 2)))
    assert explanation.summary == (
        "no HyperNode of tier 1 or below has capacity for all 4 pending pods, although 2 would be enough to start"
    )
    assert (
        "wait until one has capacity, set startWithMinimum of network-topology-aware, allow"
        in explanation.sentence
    )
    assert explanation.closest is not None
    assert (explanation.closest.fits, explanation.closest.needed) == (3, 4)


def test_so_is_a_soft_one() -> None:
    explanation = why(world(*elastic({"mode": "soft"}, 12, 2)))
    assert explanation.summary == (
        "all nodes together have no capacity for all 12 pending pods, although 2 would be enough "
        "to start: Insufficient cpu"
    )
    assert explanation.hint.startswith(
        "set startWithMinimum of network-topology-aware, wait until enough cpu"
    )
    assert explanation.message.startswith(
        "all nodes together have capacity for 9 of 12 pods and lack cpu 6; "
    )


def test_hyper_nodes_that_are_left_out_are_named() -> None:
    twice = hyper_node("other", 2, children=["ra"])
    assert (
        "has capacity for 7 pods, and HyperNode ra is left out (" in why(world(twice, *gang("g", 7))).summary
    )


def test_hyper_nodes_from_labels_are_named_by_the_value_of_the_label() -> None:
    rack = discovered("hypernode-racks-tier1-5q82h", "topology/rack", "rack-1", nodes=["a1", "a2"])
    made = World().add(node("a1"), node("a2"), rack, group("old", 1), pod("old-0", "old", on="a1", cpu=3))
    waits = made.add(*gang("g", 8)).run(policy=POLICY)
    closest = waits.pending["default/g"].closest
    assert closest is not None
    assert closest.name == "hypernode-racks-tier1-5q82h"
    assert closest.text.startswith("HyperNode rack-1 (tier 1) has capacity for 5 of 8 pods")


# -- gangs that run in part, and sub-groups


def test_a_replacement_must_stay_with_its_gang_and_the_message_has_that() -> None:
    running = [group("g", 2, networkTopology={"mode": "hard", "highestTierAllowed": 1})]
    running += [pod("g-0", "g", on="a1"), pod("g-1", "g", on="a2"), pod("g-2", "g", cpu=2)]
    explanation = why(world(*running))
    assert explanation.summary == (
        "it must stay in HyperNode ra, where its other pods are, which has no capacity for its remaining pods"
    )
    assert explanation.closest is not None
    assert explanation.closest.holders == (DomainHolder("default/old", "cpu", "4"),)


def test_a_gang_in_several_domains_is_explained() -> None:
    running = [group("g", 2, networkTopology={"mode": "hard", "highestTierAllowed": 1})]
    running += [pod("g-0", "g", on="a1"), pod("g-1", "g", on="c1"), pod("g-2", "g")]
    assert why(world(*running)).summary == "its running pods share no HyperNode of tier 1 or below"


def test_a_gang_whose_nodes_are_lost_is_explained() -> None:
    running = [group("g", 2, networkTopology={"mode": "hard", "highestTierAllowed": 1})]
    running += [pod("g-0", "g", on="gone"), pod("g-1", "g"), pod("g-2", "g")]
    lost = "the nodes of its other pods were deleted, so its domain is unknown"
    assert why(world(*running)).summary == lost
    assert why(world(*near(2, on="gone"), pod("more", native="g"))).summary == lost


def test_a_sub_group_is_reported_by_the_name_of_its_policy() -> None:
    topology = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    parts = {**sub_group_policy("part", "part", size=6, least=2), **topology}
    pods = [pod(f"g-{number}", "g", labels={"part": str(number // 6)}) for number in range(12)]
    explanation = why(world(group("g", 12, subGroupPolicy=[parts]), *pods))
    assert "tier 1 or below has capacity for 6 pods of subgroup part" in explanation.summary
    assert explanation.closest is not None
    assert explanation.closest.fits == 4  # rd would be the place of the other one


def in_halves(*limits: int, count: int = 8) -> list[Manifest]:
    """A gang of two halves, with the limits of the whole and of a half."""
    whole, half = ({"networkTopology": {"mode": "hard", "highestTierAllowed": limit}} for limit in limits)
    parts = {**sub_group_policy("part", "part", size=count // 2, least=2), **half}
    pods = [pod(f"g-{n}", "g", cpu=2, labels={"part": str(n // (count // 2))}) for n in range(count)]
    return [group("g", count, subGroupPolicy=[parts], **whole), *pods]


def test_a_higher_tier_is_no_way_out_where_the_sub_groups_keep_to_their_own() -> None:
    explanation = why(world(*in_halves(2, 1)))
    assert explanation.hint.startswith(
        "no higher tier has capacity within the other limits of its job and subgroups: "
        "wait until one has capacity, request"
    )
    roomy = why(world(*in_halves(2, 2, count=6)))
    assert roomy.hint.startswith(
        "all nodes together have capacity: wait until one has capacity, allow a higher tier"
    )


# -- native groups


def near(count: int, key: str = "rack", **terms: Any) -> list[Manifest]:
    near = native_group("g", count, schedulingConstraints={"topology": [{"key": key}]})
    return [near, *(pod(f"g-x-{number}", native="g", **terms) for number in range(count))]


def test_a_native_group_is_explained_by_its_label() -> None:
    explanation = why(world(*near(7)))
    assert explanation.summary == "no value of node label rack has nodes with capacity for 7 pods"
    assert explanation.message.endswith(
        "; closest: rack=d has capacity for 6 of 7 pods and lacks cpu 1, held there by default/old (cpu 2)"
    )
    assert why(world(*near(2, "zone"))).sentence == (
        "PodGroup g waits: no node has the label zone; label the nodes with zone, or create a new "
        "PodGroup without schedulingConstraints"
    )


def test_a_running_native_group_is_explained_by_its_domain() -> None:
    more = [pod("more", native="g", cpu=3)]
    assert "it must stay on nodes with rack=a" in why(world(*near(2, on="a1"), *more)).summary
    torn = [*near(1, on="a1"), pod("b", native="g", on="b1"), *more]
    assert why(world(*torn)).summary == "its running pods have no common value of node label rack"
