"""Free CPUs after grants, listed pods and restarts; and bad objects."""

import pytest

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.model.cpus.cpu_topology import format_cpu_set
from stromboli.model.feed import MAX_LOG
from stromboli.testing import World
from tests.manifests import node
from tests.plugins.numa_aware.numa_worlds import numa_pod, numa_topology, numa_world


def free(world: World) -> str:
    return format_cpu_set(world.cluster.cpus.free("n") or 0)


def bound(name: str, cpus: str, size: int = 2) -> dict:
    decision = f'{{"numa":{{"0":{{"cpu":"{size}"}}}},"cpus":"{cpus}"}}'
    return numa_pod(name, size, on="n", annotations={names.TOPOLOGY_DECISION: decision})


@pytest.mark.parametrize("listed", [{"uid": "Pod/default/p"}, {"namespace": "default", "name": "p"}])
def test_a_pod_that_is_listed_counts_no_longer(listed: dict) -> None:
    """The kubelet gave it other CPUs, which are not allocatable any more."""
    world = numa_world(numa_pod("p", 2), numa_topology("n"))
    world.step()
    assert free(world) == "2-7"
    world.add(numa_topology("n", allocatable="0-5", listed=[listed]))
    assert free(world) == "0-5"


@pytest.mark.parametrize(
    "other", [{"uid": "another", "namespace": "default", "name": "p"}, {"namespace": "x", "name": "p"}, {}]
)
def test_a_pod_of_another_uid_or_namespace_is_another_pod(other: dict) -> None:
    world = numa_world(numa_pod("p", 2), numa_topology("n", listed=[other]))
    world.step()
    assert free(world) == "2-7"


def test_each_pod_counts_until_it_is_listed_itself() -> None:
    world = numa_world(numa_pod("p", 2), numa_pod("q", 2), numa_topology("n"))
    world.step()
    world.add(numa_topology("n", allocatable="2-7", listed=[{"namespace": "default", "name": "p"}]))
    assert free(world) == "4-7"


def test_cpus_that_a_listed_pod_took_from_one_that_waits_are_made_up_for() -> None:
    """p was to have 0-1 and got 2-3, which q was to have; q will get 0-1 or some others."""
    world = numa_world(numa_pod("p", 2), numa_pod("q", 2), numa_topology("n"))
    world.step()
    world.add(numa_topology("n", allocatable="0-1,4-7", listed=[{"namespace": "default", "name": "p"}]))
    assert free(world) == "4-7"


def test_a_restart_finds_the_same_free_cpus_in_the_annotations() -> None:
    before = numa_world(numa_pod("p", 2), numa_pod("q", 3), numa_topology("n"))
    before.step()
    after = numa_world(numa_topology("n"))
    for name, size in (("p", 2), ("q", 3)):
        (grant,) = before.task(name).grants
        after.add(numa_pod(name, size, on="n", annotations=grant.annotations))
    assert free(after) == free(before) == "2-3,7"


def test_an_annotation_may_not_take_more_than_its_pod_asks_for() -> None:
    assert free(numa_world(bound("p", "0-7", size=1), numa_topology("n"))) == ""
    assert free(numa_world(bound("p", "0-8", size=1), numa_topology("n"))) == "0-7"


def test_a_pod_that_is_not_guaranteed_takes_no_cpus_by_annotation() -> None:
    pod = bound("p", "0-1")
    del pod["spec"]["containers"][0]["resources"]["limits"]
    assert free(numa_world(pod, numa_topology("n"))) == "0-7"


def test_without_a_numatopology_a_guaranteed_pod_is_like_any_other() -> None:
    world = numa_world(bound("p", "0-1"))
    cluster, task = world.cluster, world.task("p")
    assert cluster.ledgers_of(task.shape) == ()
    world.add(numa_topology("n"))
    assert cluster.ledgers_of(task.shape) == (cluster.cpus,)
    assert free(world) == "2-7"
    world.remove(numa_topology("n"))
    assert cluster.ledgers_of(task.shape) == ()
    world.add(bound("q", "2-4", size=3)).remove(bound("p", "0-1"))
    world.add(numa_topology("n"))
    assert free(world) == "0-1,5-7"


def test_a_bad_first_numatopology_changes_nothing() -> None:
    world = numa_world(bound("p", "0-1"))
    bad = numa_topology("n")
    bad["spec"]["numares"] = {"cpu": {"allocatable": "none"}}
    with pytest.raises(BadObject):
        world.add(bad)
    assert world.cluster.ledgers_of(world.task("p").shape) == ()


def test_nodes_that_are_alike_share_their_topology() -> None:
    world = World()
    world.add(*(node(name) for name in "abc"))
    world.add(numa_topology("a"), numa_topology("b", "best-effort"), numa_topology("c", each=8))
    cpus = world.cluster.cpus.nodes
    assert cpus["a"].topology is cpus["b"].topology is not cpus["c"].topology


def test_a_ledger_that_forgot_its_changes_says_so() -> None:
    world = numa_world(numa_topology("n"))
    ledger = world.cluster.cpus
    position = ledger.changes.position
    assert ledger.changes.since(position) == set()
    world.add(numa_topology("n", each=5))
    assert ledger.changes.since(position) == {"n"}
    for number in range(MAX_LOG):
        world.add(numa_topology(f"gone-{number}"))
        world.remove(numa_topology(f"gone-{number}"))
    assert ledger.changes.since(position) is None
    assert ledger.changes.since(ledger.changes.position) == set()


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"numares": {"cpu": {"allocatable": "0-1000000000"}}},
            "spec.numares.cpu.allocatable: '0-1000000000' is no CPU",
        ),
        ({"numares": {"cpu": {"allocatable": "0-99999"}}}, "99999 is above 8191"),
        ({"cpuDetail": {"x": {}}}, 'spec.cpuDetail: "x" is not the number of a CPU, 0 to 8191'),
        ({"cpuDetail": {"99999": {}}}, "is not the number of a CPU"),
        (
            {"cpuDetail": {"0": {"numa": 64}}},
            "spec.cpuDetail.0.numa: 64 is not the number of a NUMA node, 0 to 63",
        ),
        (
            {"cpuDetail": {"0": {"core": -1}}},
            "spec.cpuDetail.0: the numbers of socket and core are 0 or more",
        ),
        ({"cpuDetail": {str(cpu): {} for cpu in range(9000)}}, "9000 CPUs, at most 8192"),
        (
            {"policies": {"TopologyManagerPolicy": "odd"}},
            'TopologyManagerPolicy: "odd" is none of none, best-effort',
        ),
        ({"resReserved": {"cpu": "much"}}, 'spec.resReserved.cpu: bad quantity "much"'),
        ({"resReserved": {"cpu": "-1"}}, "spec.resReserved.cpu: expected 0 to 8192 CPUs"),
        ({"podAllocations": [{}] * 20_000}, "20000 pods, at most 16384 are read"),
    ],
)
def test_a_bad_numatopology_is_refused_and_leaves_its_node_as_it_was(spec: dict, problem: str) -> None:
    world = numa_world(numa_topology("n"))
    bad = numa_topology("n")
    bad["spec"] = {**bad["spec"], **spec}
    with pytest.raises(BadObject, match=r"^Numatopology n: ") as error:
        world.add(bad)
    assert problem in str(error.value)
    assert free(world) == "0-7"


def test_a_large_core_number_costs_nothing() -> None:
    topology = numa_topology("n")
    topology["spec"]["cpuDetail"]["0"].update(core=2**60, socket=2**60)
    world = numa_world(topology, numa_pod("p", 5))
    assert world.step().binds == {"default/p": "n"}
