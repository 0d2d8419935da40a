"""Explanations of pending Guaranteed pods: what nodes lack, and the remedy."""

import pytest

from stromboli.testing import World
from tests.manifests import group, node, policy
from tests.plugins.numa_aware.numa_worlds import numa_pod, numa_topology, numa_world


def hint(world: World) -> str:
    result = world.step()
    return result.pending["default/j"].hint


@pytest.mark.parametrize(
    ("topologies", "helps"),
    [
        ([], "run Volcano's resource exporter"),
        ([numa_topology("n", manager="none")], "cpuManagerPolicy: static"),
        (
            [numa_topology("n", "best-effort")],
            "set the task's topologyPolicy to the topologyManagerPolicy of the kubelets",
        ),
        ([numa_topology("n", allocatable=None)], "all CPUs are exclusively assigned to containers"),
    ],
)
def test_the_message_names_what_the_nodes_lack(topologies: list, helps: str) -> None:
    assert helps in hint(numa_world(numa_pod("p", 3, policy="restricted"), *topologies))


def test_a_container_without_cpus_is_explained_by_their_number_and_place() -> None:
    world = numa_world(
        numa_pod("p", 1, 6, policy="single-numa-node"),
        numa_topology("m", "single-numa-node"),
        numa_topology("n", "single-numa-node", each=5),
        nodes="m n",
    )
    assert hint(world) == (
        "it requests 6 CPUs from one NUMA node (single-numa-node on 2 nodes), and the largest has "
        "5 (node n): request less, or use best-effort"
    )


def test_nodes_without_a_numatopology_do_not_hide_what_those_with_one_lack() -> None:
    topology = numa_topology("m", "single-numa-node")
    world = numa_world(numa_pod("p", 6, policy="single-numa-node"), topology, nodes="m n o")
    world.add(node("small", cpu=2))
    explained = world.step().pending["default/j"]
    told = (
        "it requests 6 CPUs from one NUMA node (single-numa-node on 1 node), and the largest has 4 "
        "(node m): request less, or use best-effort"
    )
    assert explained.hint == told
    assert explained.sentence.endswith(f"; {told}")


def test_how_many_cpus_are_free_at_the_moment_stands_in_no_condition() -> None:
    topology = numa_topology("n", "single-numa-node")
    world = numa_world(numa_pod("p", 3, 3, policy="single-numa-node"), topology)
    assert world.step().binds
    world.add(group("k", 1), numa_pod("q", 2, group="k", policy="single-numa-node"))
    explained = world.step().pending["default/k"]
    assert "at most 1 are free on one (node n): wait" in explained.hint
    assert explained.sentence.endswith("(single-numa-node on 1 node): wait, request less, or use best-effort")


def test_the_policies_of_the_nodes_count_where_the_pod_has_none() -> None:
    world = numa_world(numa_pod("p", 12), numa_topology("n", "restricted"))
    assert "from the fewest possible NUMA nodes (restricted on 1 node)" in hint(world)


def test_without_the_plugin_the_way_out_is_to_add_it() -> None:
    world = World("n cpu=8", policy=policy("enqueue, allocate", "gang predicates"))
    world.add(group("j", 1), numa_pod("p", 2, policy="restricted"))
    assert "add numa-aware to the policy" in hint(world)
