"""The occupancy of tiers, and the largest gang that still fits below one switch of each."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.model.topology.tier_occupancy import (
    GPUS,
    NODES,
    ResourceOccupancy,
    TierOccupancies,
    TierOccupancy,
)
from stromboli.testing import World
from tests.manifests import Manifest, hyper_node, node, pod
from tests.number_of_examples import scaled

NAMES = [f"n{number}" for number in range(8)]
RACKS = [
    hyper_node(f"r{rack}", 1, nodes=NAMES[2 * rack : 2 * rack + 2], tier_name="rack") for rack in range(4)
]
ROWS = [hyper_node(f"row{row}", 2, children=[f"r{2 * row}", f"r{2 * row + 1}"]) for row in range(2)]


def cluster(*others: Manifest, gpus: int = 8) -> World:
    """Eight nodes in four racks, two racks in a row."""
    nodes = (node(name, **{"nvidia.com/gpu": gpus} if gpus else {}) for name in NAMES)
    return World().add(*nodes, *RACKS, *ROWS, *others)


def tiers(world: World) -> dict[int, TierOccupancy]:
    return {tier.tier: tier for tier in TierOccupancies(world.cluster).current()}


def test_an_empty_cluster_takes_gangs_as_large_as_its_switches() -> None:
    rack, row = tiers(cluster()).values()
    assert (rack.name, rack.free, rack.partly_free, rack.full) == ("rack", 4, 0, 0)
    assert (rack.resources[NODES].largest, row.resources[NODES].largest) == (2, 4)
    assert (rack.resources[GPUS].largest, row.resources[GPUS].largest) == (16, 32)
    assert [tier.resources[GPUS].fragmentation for tier in (rack, row)] == [0, 0]
    assert rack.resources["cpu"] == ResourceOccupancy(32, 32, 8, 8)


def test_a_pod_in_every_rack_leaves_as_much_free_and_no_whole_rack() -> None:
    scattered = cluster().job("j", pods=4, cpu=1, gpu=8, running_on="n0 n2 n4 n6")
    rack, row = tiers(scattered).values()
    assert (rack.free, rack.partly_free, rack.full) == (0, 4, 0)
    assert rack.resources[NODES] == ResourceOccupancy(8, 4, 1, 2)
    assert (rack.resources[NODES].occupancy, rack.resources[NODES].fragmentation) == (0.5, 0.5)
    assert (row.resources[NODES].largest, row.resources[NODES].fragmentation) == (2, 0.5)
    together = cluster().job("j", pods=4, cpu=1, gpu=8, running_on="n0 n1 n2 n3")
    rack, row = tiers(together).values()
    assert (rack.free, rack.partly_free, rack.full) == (2, 0, 2)
    assert (rack.resources[NODES].occupancy, rack.resources[NODES].fragmentation) == (0.5, 0)
    assert (row.resources[GPUS].largest, row.resources[GPUS].fragmentation) == (32, 0)


def test_gpus_of_nodes_in_part_are_free_though_the_nodes_are_not() -> None:
    rack = tiers(cluster().job("j", pods=8, cpu=1, gpu=6, running_on=" ".join(NAMES)))[1]
    assert (rack.resources[NODES].free, rack.resources[NODES].largest, rack.full) == (0, 0, 4)
    assert (rack.resources[GPUS].free, rack.resources[GPUS].largest) == (16, 4)
    assert rack.resources[NODES].fragmentation == 0  # nothing is free that could lie together


def test_pods_of_others_leave_a_node_free_and_take_their_gpus() -> None:
    """Pods of DaemonSets are on every node."""
    daemons = [pod(f"d{name}", on=name, scheduler="other", **{"nvidia.com/gpu": 1}) for name in NAMES]
    rack = tiers(cluster(*daemons))[1]
    assert (rack.resources[NODES].free, rack.resources[GPUS].free) == (8, 56)


def test_what_unusable_nodes_have_is_not_free() -> None:
    made = cluster()
    made.add(node("n0", spec={"unschedulable": True}, **{"nvidia.com/gpu": 8}))
    rack = tiers(made)[1]
    assert rack.resources[NODES] == ResourceOccupancy(8, 7, 2, 2)
    assert (rack.free, rack.partly_free) == (3, 1)
    assert rack.resources[GPUS].free == 56


def test_a_node_that_becomes_unready_is_free_no_more_and_later_again() -> None:
    made = cluster()
    kept = TierOccupancies(made.cluster)
    changing = node("n0", **{"nvidia.com/gpu": 8})
    for ready, free in (("True", 8), ("False", 7), ("True", 8)):
        changing["status"]["conditions"] = [{"type": "Ready", "status": ready}]
        made.add(changing)
        rack = kept.current()[0]
        assert rack.resources[NODES].free == free


def test_every_hyper_node_has_total_and_free_amounts() -> None:
    amounts = TierOccupancies(cluster().job("j", pods=1, cpu=1, gpu=8, running_on="n0").cluster).by_domain()
    assert set(amounts) == {"r0", "r1", "r2", "r3", "row0", "row1"}
    assert amounts["r0"] == {NODES: (2, 1), GPUS: (16, 8), "cpu": (8, 7), "memory": (2**37, 2**37)}
    assert (amounts["row0"][GPUS], amounts["row1"][GPUS]) == ((32, 24), (32, 32))
    assert TierOccupancies(World().add(node("n0")).cluster).by_domain() == {}


def test_without_gpus_none_are_reported() -> None:
    assert list(tiers(cluster(gpus=0))[1].resources) == [NODES, "cpu", "memory"]


def test_without_hyper_nodes_no_tier_is_reported() -> None:
    assert tiers(World(nodes="a cpu=1")) == {}
    assert list(tiers(World(nodes="a cpu=1").add(hyper_node("empty", 1)))) == []


MOVES = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 8), st.booleans()), max_size=6)


@settings(max_examples=scaled(20))
@given(moves=MOVES)
def test_the_occupancy_follows_every_change(moves: list[tuple[str, int, bool]]) -> None:
    made = cluster()
    kept = TierOccupancies(made.cluster)
    for number, (name, gpus, cordoned) in enumerate(moves):
        made.job(f"j{number}", cpu=1, gpu=gpus, running_on=name)
        made.add(node(name, spec={"unschedulable": cordoned}, **{"nvidia.com/gpu": 8}))
        assert made.cluster is not None
        assert kept.current() == TierOccupancies(made.cluster).current()


@pytest.mark.parametrize("resource", [ResourceOccupancy(0, 0, 0, 0), ResourceOccupancy(4, 0, 0, 2)])
def test_where_nothing_is_free_nothing_is_fragmented(resource: ResourceOccupancy) -> None:
    assert resource.fragmentation == 0
