"""Gangs with more pods than their minimum: they start with what fits, and grow inside their limit."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from stromboli.policy.presets import PRESETS, preset
from stromboli.testing import World
from tests.manifests import hyper_node, pod, policy, sub_group_policy
from tests.plugins.network_topology_aware.topology_worlds import (
    PLUGIN,
    TREE,
    gradients,
    job_of,
    node_text,
    topology,
    tree_world,
)


def world(**arguments: Any) -> World:
    arguments.setdefault("startWithMinimum", True)
    return World(node_text(), policy=policy("enqueue, allocate", "gang predicates", (PLUGIN, arguments))).add(
        *TREE
    )


def places(world: World) -> Collection[str]:
    return sorted(world.step().binds.values())


def test_a_gang_starts_with_its_minimum_where_not_all_of_it_fits_and_grows_inside_its_limit() -> None:
    made = world().job("j", pods=4, minimum=1, cpu=3, group=topology(1))
    assert places(made) == ["n0", "n1"]
    assert places(made) == [], "the other pods wait for room below the same switch"


def test_by_default_it_waits_for_capacity_for_all_its_pods_as_with_volcano() -> None:
    assert places(world(startWithMinimum=False).job("j", pods=4, minimum=1, cpu=3, group=topology(1))) == []


def test_soft_means_anywhere_if_need_be() -> None:
    made = world().job("j", pods=12, minimum=1, cpu=3, group=topology(mode="soft"))
    assert len(places(made)) == 9, "all nodes, that outside of the tree too"


def test_a_hyper_node_in_which_all_pods_fit_is_first() -> None:
    made = world().job("used", pods=1, running_on="n0", cpu=3)
    made.job("j", pods=4, minimum=1, cpu=4, group=topology(2))
    assert places(made) == ["n4", "n5", "n6", "n7"]


def test_of_those_with_capacity_for_a_part_the_freest_is_first() -> None:
    made = world().job("used", pods=3, running_on="n0 n3 n4", cpu=3)
    made.job("j", pods=4, minimum=1, cpu=3, group=topology(1))
    assert places(made) == ["n6", "n7"]


def test_too_little_capacity_for_the_minimum_is_not_enough() -> None:
    assert places(world().job("j", pods=6, minimum=3, cpu=3, group=topology(1))) == []


def sub_job_gradients(made: World, name: str, purpose: str = "allocate") -> list[list[str]]:
    made.step()
    plugin, tree = made.plugin(PLUGIN), made.cluster.hyper_nodes
    (sub_job, *_) = job_of(made, name).sub_jobs.values()
    return [
        [each.name for each in group] for group in plugin.hyper_node_gradients(sub_job, tree.top, purpose)
    ]


@pytest.mark.parametrize(
    ("role_minimums", "tried"),
    [({"worker": 1}, [["s1", "s2", "s3"], ["s0"]]), ({"worker": 1, "server": 1}, [["s1", "s2", "s3"]])],
)
def test_each_role_counts_with_the_pods_that_it_lacks(role_minimums: dict[str, int], tried: list) -> None:
    made = tree_world(startWithMinimum=True).job("used", pods=2, running_on="n0 n1", cpu=2)
    group = {**topology(1), "minTaskMember": role_minimums}
    made.job("j", roles={"worker": 3, "server": 1}, minimum=2, cpu=2, group=group)
    server = made.task("j-3")
    made.add(pod("j-3", group="j", role=server.role, cpu=4))
    assert sub_job_gradients(made, "j") == tried


def test_a_sub_group_starts_with_its_size() -> None:
    parts = {**sub_group_policy("part", "part", size=2), **topology(1)}
    made = world().job("j", pods=0, minimum=2, group={"subGroupPolicy": [parts]})
    made.add(*(pod(f"p{number}", group="j", cpu=3, labels={"part": "a"}) for number in range(5)))
    assert places(made) == ["n0", "n1"]


def test_room_is_made_where_all_pods_would_fit_and_then_where_the_minimum_would() -> None:
    made = tree_world(startWithMinimum=True).add(hyper_node("big", 1, nodes=["n0", "n1", "n2", "n3"]))
    made.job("j", pods=4, minimum=2, cpu=4, group=topology(1))
    assert sub_job_gradients(made, "j", "evict") == [["big"], ["s0", "s1", "s2", "s3"]]
    assert sub_job_gradients(made, "j") == [["big"], ["s0", "s1", "s2", "s3"]]
    assert gradients(made, "j") == [["big"], ["s0", "s1", "s2", "s3"]]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_that_have_the_plugin_start_gangs_with_their_minimum(name: str) -> None:
    assert ("startWithMinimum: true" in preset(name)) is (PLUGIN in preset(name))
