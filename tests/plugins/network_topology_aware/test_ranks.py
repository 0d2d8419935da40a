"""Ranks side by side: pods of a gang fill one leaf before the next, in order of their index."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.testing import World
from tests.manifests import hyper_node, pod, policy
from tests.number_of_examples import scaled
from tests.plugins.network_topology_aware.topology_worlds import (
    NAMES,
    PLUGIN,
    TREE,
    job_of,
    node_text,
    topology,
    tree_world,
)

PLACE = "enqueue, allocate"


def placing(**arguments: bool) -> str:
    """A policy that would rather spread pods over nodes."""
    return policy(PLACE, "gang predicates nodeorder", (PLUGIN, arguments))


def world_with(used: list[int]) -> World:
    """The tree with so many cpus of four used on each node."""
    world = World(node_text(), policy=placing(ranksSideBySide=True)).add(*TREE)
    for name, cpus in zip(NAMES, used, strict=False):
        if cpus:
            world.job(f"on-{name}", running_on=name, cpu=cpus)
    return world


def leaves(world: World, job: str = "j") -> list[str]:
    """The leaf of each pod of a job in order of its index."""
    world.rehearsal.sync()
    tree = world.cluster.hyper_nodes
    tasks = sorted(job_of(world, job).tasks.values(), key=lambda task: task.order)
    placed = [tree.leaf_of(task.node.row) for task in tasks if task.node is not None]
    return [leaf.name if leaf is not None else "outside" for leaf in placed]


def runs(leaves: list[str]) -> list[str]:
    return [leaf for leaf, _ in groupby(leaves)]


def test_neighbours_share_a_leaf_where_without_the_argument_many_do_not() -> None:
    crossings = {}
    for on in (False, True):
        world = world_with([3, 0, 2, 2, 0, 3, 1, 1]).job("j-w", pods=14, cpu=1, group=topology(mode="soft"))
        world.run(policy=placing(ranksSideBySide=on))
        crossings[on] = len(runs(leaves(world, "j-w"))) - 1
    assert crossings[True] == 2 < crossings[False]


def test_a_leaf_that_holds_all_is_taken_and_of_several_the_tightest() -> None:
    world = world_with([0, 0, 4, 0, 4, 1, 0, 0]).job("j-w", pods=4, cpu=1, group=topology(mode="soft"))
    world.step()
    assert leaves(world, "j-w") == ["s1"] * 4


def test_if_no_leaf_holds_all_the_freest_is_first_and_the_tightest_for_the_remainder_last() -> None:
    world = world_with([2, 2, 1, 1, 4, 2, 3, 1]).job("j-w", pods=10, cpu=1, group=topology(mode="soft"))
    world.step()
    assert leaves(world, "j-w") == ["s1"] * 6 + ["s0"] * 4, "s0 has room for four, as s3, and is nearer"


def test_the_next_leaf_is_the_nearest_to_the_last_rank() -> None:
    world = world_with([4, 4, 4, 2]).job("j-w", pods=14, cpu=1, group=topology(mode="soft"))
    world.step()
    assert runs(leaves(world, "j-w")) == ["s2", "s3"]


def test_the_replacement_of_a_lost_pod_is_placed_near_its_neighbours() -> None:
    world = world_with([0] * 8).job("j-w", pods=12, cpu=1, group=topology(mode="soft"))
    world.step()
    assert runs(before := leaves(world, "j-w")) == [before[0], before[-1]]
    lost = world.task("j-w-9")
    world.remove({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": lost.name}})
    world.add(pod("j-w-9", "j-w", cpu="1"))
    world.step()
    assert leaves(world, "j-w") == before


def test_the_neighbour_of_a_pod_is_the_placed_one_of_the_nearest_rank() -> None:
    world = tree_world(ranksSideBySide=True)
    world.job("j-w", pods=4, running_on="n0 n0", cpu=1, group=topology(mode="soft"))
    world.add(pod("j-w-4", "j-w", on="n2")).step()
    tree, plugin = world.cluster.hyper_nodes, world.plugin(PLUGIN)
    for name, near in (("j-w-2", "n1"), ("j-w-3", "n3")):
        task = world.task(name)
        leaf = tree.leaf_of(world.cluster.nodes[near].row)
        assert plugin._ranks.leaf_of_neighbour(task, task.sub_job) == plugin._distances.place(leaf)


def test_roles_follow_each_other_into_the_same_leaves() -> None:
    world = world_with([0] * 8)
    world.job("j", roles={"ps": 2, "worker": 6}, cpu=1, group=topology(mode="soft")).step()
    assert len(set(leaves(world))) == 1


def test_a_job_without_topology_is_not_touched() -> None:
    world = world_with([0] * 8).job("j-w", pods=8, cpu=1)
    world.step()
    assert len(set(leaves(world, "j-w"))) > 2


def test_a_gang_outside_of_all_leaves_is_placed_all_the_same() -> None:
    world = World(node_text(), policy=placing(ranksSideBySide=True)).add(hyper_node("far", nodes=["none"]))
    world.job("j-w", pods=3, cpu=1, group=topology(mode="soft")).step()
    assert leaves(world, "j-w") == ["outside"] * 3


@settings(max_examples=scaled(20))
@given(used=st.lists(st.integers(0, 4), min_size=8, max_size=8), pods=st.integers(1, 12))
def test_no_leaf_is_left_while_it_has_capacity(used: list[int], pods: int) -> None:
    world = world_with([*used, 4]).job("j-w", pods=pods, cpu=1, group=topology(mode="soft"))
    world.step()
    visited = runs(leaves(world, "j-w"))
    assert len(visited) == len(set(visited))
    assert len(leaves(world, "j-w")) in (0, pods)
    if pods <= 32 - sum(used):
        assert visited
