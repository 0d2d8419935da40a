"""Guaranteed pods get CPUs of few NUMA nodes, each CPU once."""

import pytest

from stromboli.api import names
from stromboli.engine.decisions import Bind
from tests.manifests import binds, group, node, pod
from tests.plugins.numa_aware.numa_worlds import cpus_of, numa_pod, numa_topology, numa_world

EMPTY = "numa info is empty"


# -- the filter


@pytest.mark.parametrize(
    ("topology", "asked", "refusal"),
    [
        (None, "restricted", EMPTY),
        (numa_topology("n", manager="none"), "restricted", "cpu manager policy isn't static"),
        (numa_topology("n", "none", manager="none"), "restricted", "cpu manager policy isn't static"),
        (
            numa_topology("n", "best-effort"),
            "restricted",
            "task topology policy[restricted] is different with node[best-effort]",
        ),
        (numa_topology("n", ""), "restricted", "task topology policy[restricted] is different with node[]"),
        (numa_topology("n", allocatable=None), "restricted", "cpu allocatable map is empty"),
        (numa_topology("n"), "restricted", ""),
        (numa_topology("n", each=1), "restricted", "container c0 cannot be assigned by numa"),
        (
            numa_topology("n", "single-numa-node", each=1),
            "single-numa-node",
            "container c0 cannot be assigned by numa",
        ),
        (numa_topology("n", "best-effort", each=1), "best-effort", ""),
        (None, "", ""),
        (None, "none", ""),
        (numa_topology("n", manager="none"), "none", ""),
        (numa_topology("n", "none", each=1), "", ""),
        (numa_topology("n", "restricted", each=1), "", "container c0 cannot be assigned by numa"),
        (numa_topology("n", "restricted", allocatable=None), "", ""),
    ],
)
def test_a_node_is_refused_for_the_first_reason_there_is(topology, asked, refusal) -> None:
    world = numa_world(numa_pod("p", 3, policy=asked), *([topology] if topology else []), actions="enqueue")
    world.step()

    assert world.refusals("numa-aware", "p") == {"n": refusal}


def test_pods_that_are_not_guaranteed_are_not_looked_at() -> None:
    burstable = pod("p", "j", cpu=1, annotations={"volcano.sh/numa-topology-policy": "restricted"})
    assert binds(numa_world(burstable).step()) == {"p": "n"}


def test_a_part_of_a_cpu_may_be_anywhere_but_the_policies_must_agree() -> None:
    world = numa_world(
        numa_pod("p", "1.5", policy="single-numa-node"),
        numa_topology("strict", "single-numa-node", each=1),
        numa_topology("loose", "best-effort"),
        nodes="loose strict",
    )
    assert binds(world.step()) == {"p": "strict"}
    assert cpus_of(world, "p") == ""


def test_what_the_system_keeps_is_not_given_out() -> None:
    world = numa_world(
        numa_pod("p", 4, policy="single-numa-node"),
        numa_topology("small", "single-numa-node", reserved="0.5"),
        numa_topology("large", "single-numa-node", each=5, reserved="1"),
        nodes="small large",
    )
    world.add(numa_pod("q", 4, policy="single-numa-node"))
    assert binds(world.step()) == {"p": "small", "q": "large"}
    assert (cpus_of(world, "p"), cpus_of(world, "q")) == ("4-7", "1-4")


def test_containers_are_served_one_after_the_other() -> None:
    fits = numa_world(numa_pod("p", 3, 2, 1, policy="restricted"), numa_topology("n"))
    assert binds(fits.step()) == {"p": "n"}
    assert cpus_of(fits, "p") == "0-5"

    world = numa_world(numa_pod("p", 3, 2, 3, policy="restricted"), numa_topology("n"))
    assert binds(world.step()) == {}
    assert world.refusals("numa-aware", "p") == {"n": "container c2 cannot be assigned by numa"}


# -- the score


def test_nodes_that_serve_a_pod_from_fewer_numa_nodes_are_preferred() -> None:
    world = numa_world(
        numa_pod("p", 6, policy="best-effort"),
        numa_topology("narrow", "best-effort"),
        numa_topology("wide", "best-effort", each=8),
        nodes="narrow wide",
    )
    assert binds(world.step()) == {"p": "wide"}


def test_only_a_policy_of_its_own_gives_a_pod_preferences() -> None:
    world = numa_world(
        numa_pod("p", 6),
        numa_topology("narrow", "best-effort"),
        numa_topology("wide", "best-effort", each=8),
        nodes="narrow wide",
    )
    assert binds(world.step()) == {"p": "narrow"}
    assert cpus_of(world, "p") == "0-5"


# -- grants


def test_a_bind_has_the_cpus_and_their_numa_nodes() -> None:
    result = numa_world(numa_pod("p", 5, policy="restricted"), numa_topology("n")).step()
    (bind,) = (decision for decision in result.decisions if isinstance(decision, Bind))
    (grant,) = bind.grants
    assert grant.annotations == {
        names.TOPOLOGY_DECISION: '{"numa":{"0":{"cpu":"4"},"1":{"cpu":"1"}},"cpus":"0-4"}'
    }


def test_pods_of_a_cycle_get_different_cpus_and_so_do_those_of_the_next() -> None:
    world = numa_world(
        *(numa_pod(f"p-{index}", 2) for index in range(3)), numa_topology("n", "single-numa-node")
    )
    world.step()
    world.add(numa_pod("q", 2), numa_pod("r", 2))
    world.step()
    given = [cpus_of(world, name) for name in ("p-0", "p-1", "p-2", "q", "r")]
    assert given == ["0-1", "2-3", "4-5", "6-7", ""]


def test_a_gang_that_does_not_fit_leaves_no_cpu_taken() -> None:
    world = numa_world(*(numa_pod(f"p-{index}", 3) for index in range(3)), numa_topology("n", "restricted"))
    world.add(group("j", 3))
    assert binds(world.step()) == {}
    assert world.cluster.cpus.free("n") == 0xFF


def test_cpus_are_free_again_when_the_pod_is_deleted() -> None:
    world = numa_world(numa_pod("p", 8), numa_topology("n", "restricted"))
    world.step()
    assert world.cluster.cpus.free("n") == 0
    world.finish("p")
    assert world.cluster.cpus.free("n") == 0xFF


def test_a_node_that_gets_its_numatopology_later_takes_pods_from_then_on() -> None:
    world = numa_world(numa_pod("p", 2, policy="restricted"))
    assert binds(world.step()) == {}
    world.add(numa_topology("n"))
    assert binds(world.step()) == {"p": "n"}
    world.remove(numa_topology("n"))
    world.add(numa_pod("q", 2, policy="restricted"))
    assert binds(world.step()) == {}


def test_new_nodes_are_looked_at_and_the_others_keep_their_places() -> None:
    world = numa_world(numa_pod("p", 8, policy="restricted"), numa_topology("n"))
    world.step()
    world.add(numa_pod("q", 8, policy="restricted"))
    assert binds(world.step()) == {}
    world.add(node("a", cpu=16, created=-5), numa_topology("a"))
    assert binds(world.step()) == {"q": "a"}
