"""HyperNodes to try: the lowest first, only those with capacity, near the allocated ones."""

import pytest

from tests.manifests import hyper_node
from tests.plugins.network_topology_aware.topology_worlds import (
    gradients,
    job_of,
    topology,
    tree_world,
)

TOP = "<cluster-top-hypernode>"
SWITCHES, SPINES = ["s0", "s1", "s2", "s3"], ["x0", "x1"]


@pytest.mark.parametrize(
    ("asked", "tried"),
    [
        (topology(1), [SWITCHES]),
        (topology(2), [SWITCHES, SPINES]),
        (topology(9), [SWITCHES, SPINES, [TOP]]),
        (topology(mode="soft"), [SWITCHES, SPINES, [TOP]]),
        (topology(0), []),
        ({}, [[TOP]]),
        (topology(), [[TOP]]),
    ],
    ids=["tier 1", "tier 2", "beyond all tiers", "soft", "below all tiers", "no topology", "no tier"],
)
def test_tiers_up_to_the_highest_allowed_are_tried_from_below(asked: dict, tried: list) -> None:
    world = tree_world().job("j", pods=2, cpu=1, group=asked)
    world.step()
    assert gradients(world, "j") == tried


def test_hyper_nodes_without_capacity_for_the_minimum_resources_are_left_out() -> None:
    world = tree_world().job("big", pods=6, running_on="n0 n0 n2 n4 n4 n4", cpu=1)
    world.job("j", pods=2, cpu=4, group={**topology(2), "minResources": {"cpu": "7"}})
    world.step()
    assert gradients(world, "j") == [["s1", "s3"], SPINES]


def test_room_that_is_being_freed_counts_too() -> None:
    world = tree_world().job("big", pods=2, running_on="n0 n1", cpu=4)
    world.job("j", pods=2, cpu=4, group={**topology(1), "minResources": {"cpu": "8"}})
    world.step()
    assert gradients(world, "j") == [["s1", "s2", "s3"]]
    session = world.session()
    for name in ("big-0", "big-1"):
        session.cluster.move(world.task(name), world.task(name).status.RELEASING, world.task(name).node)
    world.step()
    assert gradients(world, "j") == [SWITCHES]


def test_room_is_that_of_the_beginning_of_the_cycle() -> None:
    world = tree_world().job("j", pods=2, cpu=4, group={**topology(1), "minResources": {"cpu": "8"}})
    world.job("other", pods=1, cpu=4)
    world.step()
    other = world.task("other-0")
    world.cluster.move(other, other.status.ALLOCATED, world.cluster.nodes["n0"])
    assert gradients(world, "j") == [SWITCHES]
    world.step()
    assert gradients(world, "j") == [["s1", "s2", "s3"]]


def test_eviction_looks_at_what_there_is_at_all_and_begins_with_the_widest() -> None:
    world = tree_world().job("big", pods=8, running_on=" ".join(f"n{n}" for n in range(8)), cpu=4)
    world.job("j", pods=2, cpu=4, group={**topology(2), "minResources": {"cpu": "8"}})
    world.step()
    assert gradients(world, "j") == []
    assert gradients(world, "j", purpose="evict") == [SPINES, SWITCHES]


def test_eviction_tries_so_many_hyper_nodes_and_cuts_off_the_first_of_a_tier() -> None:
    world = tree_world(**{"hypernode.gradient.evict.max-hypernodes": 3})
    world.job("j", pods=2, cpu=4, group=topology(2))
    world.step()
    assert gradients(world, "j", purpose="evict") == [SPINES, ["s3"]]


@pytest.mark.parametrize(
    ("tier", "allocated", "root", "tried"),
    [
        (1, "s1", "", [["s1"]]),
        (2, "s1", "", [["s0", "s1"], ["x0"]]),
        (2, "s1", "s0", [["s0"]]),
        (2, "s1", "x1", []),
        (1, "x0", "", []),
        (3, "s1", "x0", [["s0", "s1"], ["x0"]]),
    ],
)
def test_what_is_allocated_narrows_the_search(tier: int, allocated: str, root: str, tried: list) -> None:
    world = tree_world().job("j", pods=2, cpu=400, group={**topology(tier), "minResources": {"cpu": "800"}})
    world.step()
    job_of(world, "j").allocated_hyper_node = allocated
    assert gradients(world, "j", root) == tried, "and whether there is room is not asked"


def test_a_sub_group_needs_capacity_for_its_pending_tasks() -> None:
    world = tree_world().job("big", pods=3, running_on="n0 n1 n2", cpu=3)
    world.job("j", pods=2, cpu=3, group=topology(1))
    world.step()
    (sub_job,) = job_of(world, "j").sub_jobs.values()
    tree, plugin = world.cluster.hyper_nodes, world.plugin("network-topology-aware")
    assert [[d.name for d in g] for g in plugin.hyper_node_gradients(sub_job, tree.top, "allocate")] == [
        ["s2", "s3"]
    ]


def test_hyper_nodes_of_one_tier_are_sorted_by_name() -> None:
    tree = [
        hyper_node("b", nodes=["n0"]),
        hyper_node("a", nodes=["n1"]),
        hyper_node("c", nodes=["n2"]),
        hyper_node("x", 2, children=["c"]),
        hyper_node("y", 2, children=["b", "a"]),
    ]
    world = tree_world(tree=tree).job("j", pods=1, cpu=1, group=topology(1))
    world.step()
    assert gradients(world, "j") == [["a", "b", "c"]]
