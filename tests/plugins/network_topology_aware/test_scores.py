"""The fuller HyperNode for a gang, nodes near its other pods, and used HyperNodes for single pods."""

import math

import pytest

from stromboli.plugins.network_topology_aware.plugin import TierWeights
from tests.manifests import hyper_node
from tests.plugins.network_topology_aware.topology_worlds import (
    hyper_node_scores,
    job_of,
    node_scores,
    node_text,
    topology,
    tree_world,
)

# -- HyperNodes


def test_the_score_of_a_hyper_node_is_the_weighted_mean_of_what_would_be_used() -> None:
    world = tree_world(weight=2, **{"hypernode.binpack.cpu": 3})
    world.job("old", pods=1, running_on="n2", cpu=2, memory="4Gi")
    world.job("j", pods=2, cpu=2, memory="2Gi", group=topology(1)).step()
    cpu, memory = (2 + 4) / 8, (4 + 4) / 16
    assert hyper_node_scores(world, "j", "s0", "s1") == {
        "s0": 200 * (3 * 4 / 8 + 4 / 16) / 4,
        "s1": 200 * (3 * cpu + memory) / 4,
    }


def test_a_hyper_node_that_would_overflow_scores_nothing() -> None:
    world = tree_world().job("old", pods=1, running_on="n0", cpu=3)
    world.job("j", pods=2, cpu=3, group=topology(1)).step()
    assert hyper_node_scores(world, "j", "s0", "s1") == {"s0": 0, "s1": 75}


def test_among_the_best_hyper_nodes_those_with_pods_of_the_gang_score_higher() -> None:
    world = tree_world().job("j", pods=4, running_on="n2", cpu=1, group=topology(2))
    world.job("old", pods=1, running_on="n0", cpu=1).step()
    assert hyper_node_scores(world, "j", "s0", "s1", "s2") == {
        "s0": 100 * 5 / 8,
        "s1": pytest.approx(100 * (5 / 8 + 1 / 4)),
        "s2": 100 * 4 / 8,
    }


def test_resources_without_weight_do_not_count() -> None:
    listed = {
        "hypernode.binpack.resources": "nvidia.com/gpu",
        "hypernode.binpack.resources.nvidia.com/gpu": 3,
    }
    for arguments, score in (({}, 25), (listed, (0.25 + 3 * 0.5) / 4 * 100)):
        world = tree_world(node_text("cpu=4,memory=8Gi,nvidia.com/gpu=8"), **arguments)
        world.job("j", pods=2, cpu=1, gpu=4, group=topology(1)).step()
        assert hyper_node_scores(world, "j", "s0") == {"s0": score}


# -- nodes of a gang


def gang_at(allocated: str, running_on: str = "", pods: int = 4, **arguments: int):
    world = tree_world(**arguments).job("j", pods=pods, running_on=running_on, cpu=1, group=topology(2))
    world.step()
    (sub_job,) = job_of(world, "j").sub_jobs.values()
    sub_job.allocated_hyper_node = allocated
    return world


def test_while_a_gang_is_nowhere_all_nodes_are_equal() -> None:
    assert set(node_scores(gang_at(""), "j-0").values()) == {0}


def test_nodes_score_by_the_tier_of_the_lowest_common_hyper_node() -> None:
    world = gang_at("s1", weight=3)
    scores = {"s1": 300, "x0": 150, "top": 0, "outside": 0}
    expected = {"n0": "x0", "n1": "x0", "n2": "s1", "n3": "s1", **dict.fromkeys(["n4", "n7"], "top")}
    for node, where in {**expected, "outside": "outside"}.items():
        assert node_scores(world, "j-0")[node] == scores[where], node


def test_below_the_domain_of_a_gang_all_leaves_are_equally_far() -> None:
    scores = node_scores(gang_at("x0"), "j-0")
    assert [scores[f"n{number}"] for number in range(8)] == [50] * 4 + [0] * 4


def test_among_the_nearest_nodes_leaves_with_more_of_the_gang_score_higher() -> None:
    world = gang_at("x0", running_on="n0 n2 n3")
    assert node_scores(world, "j-3", "n1", "n3", "n4") == {"n1": 75, "n3": 100, "n4": 0}


def test_a_nearest_node_that_is_alone_gets_nothing_added() -> None:
    world = gang_at("s0", running_on="n0 n2 n3")
    assert node_scores(world, "j-3", "n1", "n3", "n4") == {"n1": 100, "n3": 50, "n4": 0}


def test_the_part_in_a_leaf_follows_moves_and_their_undo() -> None:
    world = gang_at("x0", running_on="n0")
    assert node_scores(world, "j-1", "n1", "n3") == {"n1": 75, "n3": 50}
    task, cluster = world.task("j-2"), world.cluster
    cluster.listeners = [world.plugin("network-topology-aware")]
    change = cluster.move(task, task.status.ALLOCATED, cluster.nodes["n2"])
    assert node_scores(world, "j-1", "n1", "n3") == {"n1": 75, "n3": 75}
    cluster.undo(change)
    assert node_scores(world, "j-1", "n1", "n3") == {"n1": 75, "n3": 50}


def test_hard_without_a_tier_is_no_limit_but_a_preference() -> None:
    world = tree_world().job("j", pods=2, cpu=1, group=topology())
    world.step()
    next(iter(job_of(world, "j").sub_jobs.values())).allocated_hyper_node = "s0"
    assert node_scores(world, "j-0")["n1"] == 100


# -- pods without a topology


def test_pods_without_a_topology_prefer_hyper_nodes_that_are_in_use() -> None:
    world = tree_world().job("old", pods=1, running_on="n0", cpu=3)
    world.job("p", pods=1, cpu=1).step()
    weights = [1, 0.8, 0.8**2]
    fullness = {
        "n1": [4 / 8, 4 / 16, 4 / 36],
        "n2": [1 / 8, 4 / 16, 4 / 36],
        "n7": [1 / 8, 1 / 16, 4 / 36],
        "outside": [1, 1, 4 / 36],
    }
    for node, parts in fullness.items():
        mean = sum(w * part for w, part in zip(weights, parts, strict=True)) / sum(weights)
        assert node_scores(world, "p-0")[node] == pytest.approx(100 * mean), node


def test_a_full_hyper_node_scores_nothing_in_its_tier() -> None:
    world = tree_world(**{"hypernode.binpack.normal-pod.fading": 0})
    world.job("old", pods=2, running_on="n0 n1", cpu=4).job("p", pods=1, cpu=1).step()
    scores = node_scores(world, "p-0")
    assert (scores["n1"], scores["n2"], scores["outside"]) == (0, 12.5, 100), "the lowest tier alone counts"


def test_packing_can_be_switched_off_and_weight_zero_switches_all_off() -> None:
    for arguments in ({"hypernode.binpack.normal-pod.enable": False}, {"weight": 0}):
        world = tree_world(**arguments).job("p", pods=1, cpu=1)
        world.step()
        assert node_scores(world, "p-0") == {}


def test_without_hyper_nodes_nothing_is_scored() -> None:
    world = tree_world(tree=()).job("p", pods=1, cpu=1).job("j", pods=1, cpu=1, group=topology(mode="soft"))
    world.step()
    assert node_scores(world, "p-0") == node_scores(world, "j-0") == {}


def test_what_is_promised_counts_as_used_and_what_is_evicted_does_not() -> None:
    world = tree_world(**{"hypernode.binpack.normal-pod.fading": 0})
    world.job("old", pods=2, running_on="n0 n2", cpu=2).job("p", pods=2, cpu=1).step()
    old, promised, cluster = world.task("old-0"), world.task("p-1"), world.cluster
    assert node_scores(world, "p-0")["n1"] == node_scores(world, "p-0")["n3"] == 100 * 3 / 8
    cluster.move(old, old.status.RELEASING, old.node)
    cluster.move(promised, promised.status.PIPELINED, cluster.nodes["n2"])
    assert node_scores(world, "p-0")["n1"] == 100 * 1 / 8
    assert node_scores(world, "p-0")["n3"] == 100 * 4 / 8


# -- arguments and odd trees


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("weight", -1),
        ("hypernode.binpack.cpu", -2),
        ("hypernode.binpack.normal-pod.fading", -0.5),
        ("hypernode.gradient.evict.max-hypernodes", 0),
    ],
)
def test_values_out_of_range_count_as_the_default(argument: str, value: float) -> None:
    default = tree_world().plugin("network-topology-aware").arguments
    assert tree_world(**{argument: value}).plugin("network-topology-aware").arguments == default


@pytest.mark.parametrize("fading", [0, 5e-324, 1e-3, 0.8, 1 - 1e-16, 1, 1 + 1e-15, 7, 1e300])
@pytest.mark.parametrize("tiers", [[0, 1], [1, 2, 3], [1, 2**31], [5, 2**31, 2**31 + 1]])
def test_weights_of_tiers_stay_finite_and_add_up_to_one(tiers: list[int], fading: float) -> None:
    weights = TierWeights(tiers, fading)
    total = sum(weights.of_tier.values()) + weights.without_hyper_nodes
    assert all(math.isfinite(weight) and weight >= 0 for weight in weights.of_tier.values())
    assert total == pytest.approx(1) or (fading == 0 and tiers[0] != 1 and total in (0, 1))


def test_a_tier_without_hyper_nodes_counts_in_full() -> None:
    weights = TierWeights([1, 4], 0.5)
    assert weights.of_tier == {1: pytest.approx(8 / 15), 4: pytest.approx(1 / 15)}
    assert weights.without_hyper_nodes == pytest.approx((4 + 2) / 15)


def test_nodes_of_any_size_have_finite_scores() -> None:
    tree = [hyper_node("s0", nodes=["huge", "empty"]), hyper_node("s1", 2**31 - 2, nodes=["n0"])]
    world = tree_world("huge cpu=9e15,memory=7Ei; n0 cpu=4,memory=7Ei; empty cpu=0,memory=0", tree)
    world.job("p", pods=2, cpu=1, memory="1Gi", group=topology(mode="soft")).job("q", pods=1, cpu=1).step()
    assert all(math.isfinite(score) for score in hyper_node_scores(world, "p", "s0", "s1").values())
    assert all(0 <= score <= 100 for score in node_scores(world, "q-0").values())
