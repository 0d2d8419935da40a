"""What a Guaranteed pod that waits is told: what nodes lack, and what would help."""

import pytest

from stromboli.testing import World
from tests.manifests import group, policy
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
            "set topologyPolicy of the task to what the kubelets of the nodes have",
        ),
        ([numa_topology("n", allocatable=None)], "containers have all CPUs for themselves"),
    ],
)
def test_what_the_nodes_lack_is_told(topologies: list, helps: str) -> None:
    assert helps in hint(numa_world(numa_pod("p", 3, policy="restricted"), *topologies))


def test_a_container_that_finds_no_cpus_is_told_how_many_there_are_and_where() -> None:
    world = numa_world(
        numa_pod("p", 1, 6, policy="single-numa-node"),
        numa_topology("m", "single-numa-node"),
        numa_topology("n", "single-numa-node", each=5),
        nodes="m n",
    )
    assert hint(world) == (
        "it asks for 6 CPUs of one NUMA node (single-numa-node on 2 nodes), and the most that one has free is 5 "
        "(node n): wait, ask for less, or use best-effort"
    )


def test_the_policies_of_the_nodes_count_where_the_pod_has_none() -> None:
    world = numa_world(numa_pod("p", 12), numa_topology("n", "restricted"))
    assert "of as few NUMA nodes as can hold them (restricted on 1 node)" in hint(world)


def test_without_the_plugin_the_way_out_is_to_add_it() -> None:
    world = World("n cpu=8", policy=policy("enqueue, allocate", "gang predicates"))
    world.add(group("j", 1), numa_pod("p", 2, policy="restricted"))
    assert "add numa-aware to the policy" in hint(world)
