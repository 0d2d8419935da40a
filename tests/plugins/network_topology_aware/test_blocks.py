"""Keep blocks whole: a gang takes the capacity that is worth least to the gangs that are likely to arrive."""

from __future__ import annotations

import math
from typing import Any

import pytest

from stromboli.model.cluster import Dirty
from stromboli.plugins.network_topology_aware.block_worth import GangKinds
from stromboli.testing import World
from tests.manifests import hyper_node, policy
from tests.plugins.network_topology_aware.topology_worlds import PLUGIN, hyper_node_scores, job_of, topology

PLACE = "enqueue, allocate"
NAMES = [f"n{number:02}" for number in range(16)]
TREE = [
    *(hyper_node(f"s{number}", nodes=NAMES[4 * number : 4 * number + 4]) for number in range(4)),
    hyper_node("x0", 2, children=["s0", "s1"]),
    hyper_node("x1", 2, children=["s2", "s3"]),
]
"""Four switches of four nodes, below two spines; a pod of four cpus takes a node."""


def world_with(used: str, **arguments: Any) -> World:
    """The tree with some nodes in use, by their numbers."""
    text = policy(PLACE, "gang predicates binpack", (PLUGIN, arguments))
    world = World("; ".join(f"{name} cpu=4" for name in NAMES), policy=text).add(*TREE)
    for number in used.split():
        world.job(f"on-{number}", running_on=f"n{int(number):02}", cpu=4)
    return world


def switch_of(world: World, used_by: str = "j") -> str:
    world.rehearsal.sync()
    node = next(iter(job_of(world, used_by).tasks.values())).node
    assert node is not None
    leaf = world.cluster.hyper_nodes.leaf_of(node.row)
    assert leaf is not None
    return leaf.name


@pytest.mark.parametrize(("keep", "switch"), [(False, "s0"), (True, "s2")])
def test_a_small_gang_spares_the_spine_that_a_large_one_needs(keep: bool, switch: str) -> None:
    """Of four empty switches the first is taken, unless the spine of the first is whole and that counts."""
    world = world_with("12", keepBlocksWhole=keep, gangSizes=[8, 4])
    world.job("j", pods=4, cpu=4, group=topology(1)).step()
    assert switch_of(world) == switch
    world.job("large", pods=8, cpu=4, group=topology(2))
    assert (world.step().bound_per_job == {"default/large": 8}) is keep


FULL = "8 9 10 11 12 13 14 15"


@pytest.mark.parametrize(("keep", "switch"), [(False, "s0"), (True, "s1")])
def test_room_for_a_gang_of_two_is_not_broken_where_a_single_node_is_left_over(
    keep: bool, switch: str
) -> None:
    """Two nodes are free in one switch, three in another; the fullest would be the first."""
    world = world_with(f"0 1 4 {FULL}", keepBlocksWhole=keep, gangSizes=[2])
    world.job("j", pods=1, cpu=4, group=topology(1)).step()
    assert switch_of(world) == switch


@pytest.mark.parametrize(("size", "switch"), [(2, "s1"), (3, "s0")])
def test_likely_gangs_are_learned_from_the_gangs_that_exist(size: int, switch: str) -> None:
    nodes = FULL.split()
    world = world_with(" ".join(["0 1 4", *nodes[size:]]), keepBlocksWhole=True)
    world.job("seen", pods=size, running_on=NAMES[8 : 8 + size], cpu=4, group=topology(1))
    world.job("j", pods=1, cpu=4, group=topology(1)).step()
    assert switch_of(world) == switch


def test_kinds_learned_bit_by_bit_are_those_learned_afresh() -> None:
    world = world_with("", keepBlocksWhole=True)
    for step in range(4):
        world.job(f"j{step}", pods=step + 1, cpu=1, group=topology(2)).job(f"alone{step}", pods=2, cpu=1)
        world.step()
        if step == 2:
            world.remove({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "j0-0"}})
        afresh = GangKinds()
        plugin = world.plugin(PLUGIN)
        world.step()
        afresh.update(world.cluster, Dirty(everything=True))
        assert plugin._blocks._seen.shares() == afresh.shares()
    assert [kind.pods for kind, _ in afresh.shares()] == [2, 3, 4]


def test_scores_are_finite_whatever_sizes_are_given() -> None:
    world = world_with("3 9", keepBlocksWhole=True, gangSizes=[1, 2**62, 7])
    world.job("j", pods=3, cpu=1, group=topology(2)).step()
    for domains in (["s0"], ["s0", "s1", "x0", "x1"]):
        assert all(math.isfinite(score) for score in hyper_node_scores(world, "j", *domains).values())


def test_sizes_that_are_none_are_left_out_with_a_warning() -> None:
    assert world_with("", keepBlocksWhole=True, gangSizes=[8, 0]).plugin(PLUGIN).arguments.gang_sizes == ()
