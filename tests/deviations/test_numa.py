"""CPUs of NUMA nodes: where we count otherwise than Volcano."""

import pytest

from stromboli.api.errors import BadObject
from stromboli.model.cpus.cpu_topology import format_cpu_set
from stromboli.model.status import Status
from stromboli.testing import World
from tests.manifests import binds, node
from tests.plugins.numa_aware.numa_worlds import numa_pod, numa_topology, numa_world


def _free(world: World) -> str:
    return format_cpu_set(world.cluster.cpus.free("n") or 0)


def test_a_pod_counts_until_it_is_listed_itself() -> None:
    """Volcano goes on counting it until all pods of the node are listed."""
    world = numa_world(numa_pod("p", 2), numa_pod("q", 2), numa_topology("n"))
    world.step()
    world.add(numa_topology("n", allocatable="0-3", listed=[{"uid": "Pod/default/q"}]))
    assert _free(world) == "2-3"
    world.add(numa_topology("n", allocatable="0-3", listed=[{"uid": "Pod/default/p"}]))
    assert _free(world) == "0-1"
    world.add(numa_topology("n", allocatable="0-1,4-5", listed=[{"uid": "Pod/default/p"}]))
    assert _free(world) == "4-5", "p got what q was to have, so q will get something else"


def test_chosen_cpus_survive_a_restart() -> None:
    """Volcano remembers them in memory alone."""
    world = numa_world(numa_pod("p", 2), numa_topology("n"))
    world.step()
    (grant,) = world.task("p").grants
    restarted = numa_world(numa_pod("p", 2, on="n", annotations=dict(grant.annotations)), numa_topology("n"))
    assert restarted.task("p").grants == (grant,)
    assert _free(restarted) == "2-7"


def test_a_pod_that_is_placed_elsewhere_holds_no_cpus_where_it_waited() -> None:
    """In Volcano they stay taken until the pod is gone."""
    leaving = numa_pod("old", 14, on="n", terminating=True, group="")
    world = numa_world(leaving, numa_pod("p", 4, policy="restricted"), numa_topology("n"))
    world.step()
    assert world.task("p").status is not Status.RUNNING
    world.add(node("m", cpu=16), numa_topology("m"))
    assert binds(world.step()) == {"p": "m"}
    assert _free(world) == "0-7"


def test_a_numatopology_that_cannot_be_read_is_left_out() -> None:
    """In Volcano its CPUs count as none, and a reservation of something unknown loses that of CPUs, too."""
    world = numa_world(numa_pod("p", 2, policy="restricted"))
    with pytest.raises(BadObject, match=r"spec\.numares\.cpu\.allocatable: '0-x' is no CPU number"):
        world.add(numa_topology("n", allocatable="0-x"))
    assert binds(world.step()) == {}
    assert world.refusals("numa-aware", "p") == {"n": "numa info is empty"}
    topology = numa_topology("n", reserved="4")
    topology["spec"]["resReserved"]["hugepages-2Mi"] = "0"
    world.add(topology)
    assert binds(world.step()) == {"p": "n"}
    assert _free(world) == "0-3,6-7"
