"""Where gangs keep to HyperNodes more strictly than in Volcano: docs/deviations.md, one test per row."""

from __future__ import annotations

from stromboli.testing import World
from tests.manifests import group, hyper_node, pod, sub_group_policy

POLICY = "gang | predicates network-topology-aware"
HARD = {"mode": "hard", "highestTierAllowed": 1}


def two_racks(nodes: str) -> World:
    return World(nodes=nodes).add(
        hyper_node("left", 1, nodes=["a", "b"]), hyper_node("right", 1, nodes=["c", "d"])
    )


def test_a_best_effort_pod_of_a_hard_gang_stays_in_its_hyper_node() -> None:
    """In Volcano backfill does not look at topologies."""
    world = two_racks("a cpu=4,pods=1; b cpu=4,pods=1; c cpu=4; d cpu=4")
    world.add(group("train", 2, networkTopology=HARD), pod("train-0", "train", on="a"), pod("x", on="b"))
    world.add(pod("train-1", "train", cpu=0))
    assert world.run("allocate, backfill", POLICY).binds == {}
    assert world.remove(pod("x", on="b")).step().binds == {"default/train-1": "b"}


def test_best_effort_pods_of_a_gang_that_lies_too_far_apart_go_anywhere() -> None:
    """As in Volcano: such a gang has no HyperNode to keep to, and the pods use no capacity."""
    world = two_racks("a cpu=4; b cpu=4; c cpu=4; d cpu=4")
    world.add(group("train", 0, phase="Running", networkTopology=HARD))
    world.add(pod("train-0", "train", on="a"), pod("train-1", "train", on="c"))
    world.add(pod("train-2", "train", cpu=0), pod("train-3", "train"))
    assert set(world.run("allocate, backfill", POLICY).binds) == {"default/train-2"}


def test_best_effort_pods_of_a_gang_outside_of_all_hyper_nodes_go_anywhere() -> None:
    """As in Volcano: one pod on a node that no HyperNode has leaves its gang no HyperNode to keep to."""
    world = two_racks("a cpu=4; b cpu=4; c cpu=4; d cpu=4; e cpu=4,pods=1")
    world.add(group("train", 0, phase="Running", networkTopology=HARD), pod("train-0", "train", on="e"))
    world.add(pod("train-1", "train", cpu=0), pod("train-2", "train"))
    assert set(world.run("allocate, backfill", POLICY).binds) == {"default/train-1"}


def test_best_effort_pods_of_a_sub_group_go_anywhere_only_if_it_lies_too_far_apart_itself() -> None:
    world = two_racks("a cpu=4,pods=2; b cpu=4,pods=1; c cpu=4; d cpu=4")
    policy = {**sub_group_policy("slice", "slice"), "networkTopology": HARD}
    world.add(group("train", 0, phase="Running", subGroupPolicy=(policy,)), pod("x", on="b"))
    for number, (node, part) in enumerate([("a", "0"), ("c", "1"), ("a", "1")]):
        world.add(pod(f"train-{number}", "train", on=node, labels={"slice": part}))
    world.add(pod("train-3", "train", cpu=0, labels={"slice": "0"}))
    world.add(pod("train-4", "train", cpu=0, labels={"slice": "1"}))
    assert set(world.run("allocate, backfill", POLICY).binds) == {"default/train-4"}


def test_the_replacement_of_a_lost_pod_follows_its_gang_or_waits() -> None:
    world = two_racks("a cpu=2; b cpu=2; c cpu=4; d cpu=4")
    world.add(group("train", 2, phase="Running", networkTopology=HARD), pod("x", on="a", cpu=1))
    world.add(*(pod(f"train-{number}", "train", on=node) for number, node in enumerate("ab")))
    world.run("allocate, backfill", POLICY)
    world.remove({"kind": "Node", "metadata": {"name": "b"}}).remove(pod("train-1", "train"))
    assert world.add(pod("train-2", "train")).step().binds == {}
    assert world.remove(pod("x", on="a")).step().binds == {"default/train-2": "a"}


def test_new_pods_wait_when_the_hyper_node_of_their_gang_is_divided() -> None:
    """Volcano keeps the HyperNode that it remembers, whatever nodes it has by now."""
    world = two_racks("a cpu=4; b cpu=4; c cpu=4; d cpu=4")
    world.add(group("train", 2, phase="Running", networkTopology=HARD))
    world.add(*(pod(f"train-{number}", "train", on=node) for number, node in enumerate("ab")))
    world.run("allocate", POLICY)
    world.add(hyper_node("left", 1, nodes=["a"]), hyper_node("middle", 1, nodes=["b"]))
    assert world.add(pod("train-2", "train")).step().binds == {}
    world.remove(pod("train-1", "train", on="b"))
    assert world.step().binds == {"default/train-2": "a"}


def test_a_restarted_scheduler_keeps_sub_groups_to_the_hyper_node_of_their_job() -> None:
    """Volcano recovers it only from sub-groups with a topology of their own."""
    world = two_racks("a cpu=1; b cpu=1; c cpu=4; d cpu=4")
    policy = sub_group_policy("slice", "slice", size=1)
    world.add(group("train", 1, phase="Running", networkTopology=HARD, subGroupPolicy=(policy,)))
    for number, node in enumerate("ab"):
        world.add(pod(f"train-{number}", "train", on=node, labels={"slice": str(number)}))
    world.add(pod("train-2", "train", labels={"slice": "2"}))
    assert world.run("allocate", POLICY).binds == {}
