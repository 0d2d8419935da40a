"""The gate lets those through who could start by eviction, and nobody else (beyond Volcano)."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.testing import Result, World
from tests.manifests import events, hyper_node, node, policy

TIERS = "priority gang conformance | overcommit predicates proportion nodeorder"
THROUGH = {"letUrgentThrough": True}


def full(queues: str = "", **terms: Any) -> World:
    world = World(nodes="n1 cpu=4", queues=queues)
    return world.job(
        "old", **{"pods": 4, "minimum": 1, "cpu": 1, "priority": 1, "running_on": "n1 n1 n1 n1", **terms}
    )


def gate(
    world: World, actions: str = "enqueue, allocate, preempt, reclaim", tiers: str = TIERS, **more: Any
) -> Result:
    return world.run(policy=policy(actions, tiers, enqueue={**THROUGH, **more}))


def gate_for_topology_jobs(world: World, action: str) -> Result:
    enqueue, only = THROUGH, {"onlyTopologyJobs": True}
    return world.run(policy=policy(f"enqueue, {action}", TIERS, enqueue=enqueue, **{action: only}))


def let_in(result: Result, job: str = "new") -> bool:
    return result.phases[f"default/{job}"] == "Inqueue"


def urgent(world: World, name: str = "new", cpu: int = 2, **terms: Any) -> World:
    return world.job(name, **{"pods": cpu, "cpu": 1, "priority": 9, "min_resources": {"cpu": cpu}, **terms})


def test_an_urgent_gang_is_let_in_on_a_full_cluster_and_makes_its_room() -> None:
    result = gate(urgent(full()))
    assert let_in(result)
    assert len(result.evicted) == 2
    assert not let_in(gate(urgent(full()), letUrgentThrough=False)), "as in Volcano"


def test_a_capability_of_zero_cpu_is_no_limit_here_either() -> None:
    result = gate(urgent(full("default capability=cpu:0,memory:1Gi")))
    assert let_in(result)
    assert len(result.evicted) == 2


@pytest.mark.parametrize(
    "actions", ["enqueue, allocate", "enqueue, allocate, reclaim", "enqueue, allocate, shuffle"]
)
def test_only_if_the_policy_has_an_action_that_could_evict_the_holder(actions: str) -> None:
    assert not let_in(gate(urgent(full()), actions))


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_either_kind_of_preemption_will_do(action: str) -> None:
    assert let_in(gate(urgent(full()), f"enqueue, {action}"))


@pytest.mark.parametrize("terms", [{"priority": 1}, {"priority": 0}])
def test_a_job_that_is_not_more_urgent_waits(terms: dict[str, Any]) -> None:
    assert not let_in(gate(urgent(full(), **terms)))


def test_a_job_that_needs_more_than_evictions_could_free_waits() -> None:
    assert not let_in(gate(urgent(full(), cpu=5)))


def test_pods_that_may_not_be_preempted_leave_nothing() -> None:
    assert not let_in(gate(urgent(full(annotations={"volcano.sh/preemptable": "false"}))))


def test_what_one_counts_on_is_no_longer_there_for_the_next() -> None:
    world = urgent(urgent(urgent(full(), "first", 2), "second", 2), "third", 2)
    result = gate(world)
    assert [let_in(result, name) for name in ("first", "second", "third")] == [True, True, False]


def test_a_starving_queue_is_let_in_if_reclaim_could_serve_it() -> None:
    def result(queues: str, actions: str = "enqueue, allocate, reclaim") -> Result:
        return gate(urgent(full(queues, queue="theirs"), queue="mine", priority=1), actions)

    assert let_in(result("mine; theirs"))
    assert not let_in(result("mine; theirs reclaimable=false"))
    assert not let_in(result("mine; theirs", "enqueue, allocate, preempt"))


def test_a_queue_gets_no_more_than_its_share_that_way() -> None:
    world = urgent(full("mine; theirs", queue="theirs"), queue="mine", cpu=3)
    assert not let_in(gate(world))


@pytest.mark.parametrize("queue", ["small capability=cpu:1", "small state=Closed"])
def test_limits_of_a_queue_and_closed_doors_hold(queue: str) -> None:
    """Only want of room is overruled."""
    world = World(nodes="n1 cpu=4", queues=queue)
    world.job("old", pods=4, minimum=1, cpu=1, priority=1, running_on="n1 n1 n1 n1", queue="small")
    assert not let_in(gate(urgent(world, queue="small")))


def test_a_job_without_minimum_resources_is_admitted_as_before() -> None:
    assert let_in(gate(full().job("new", cpu=1, priority=1)))


def test_looking_for_victims_leaves_no_trace() -> None:
    world = full()
    before = [(task.name, task.status, task.node) for task in world.cluster.tasks.values()]
    gate(urgent(world, cpu=5))
    assert [
        (t.name, t.status, t.node) for t in world.cluster.tasks.values() if t.name.startswith("old")
    ] == before


@pytest.mark.parametrize(("action", "admitted"), [("preempt", False), ("gangpreempt", True)])
def test_a_gang_with_a_topology_is_let_in_where_an_action_preempts_for_it(
    action: str, admitted: bool
) -> None:
    """preempt leaves it out (spec 02 6.1), so it would only wait inside."""
    world = full().add(hyper_node("s0", nodes=("n1",)))
    urgent(world, group={"networkTopology": {"mode": "hard", "highestTierAllowed": 1}})
    result = gate(world, f"enqueue, allocate, {action}", f"{TIERS} network-topology-aware")
    assert let_in(result) is admitted
    assert bool(result.evicted) is admitted


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
def test_no_job_is_admitted_for_an_action_that_would_not_serve_it(action: str) -> None:
    def admitted(**terms: Any) -> bool:
        preempts = action == "gangpreempt"
        world = full("mine; theirs", queue="mine" if preempts else "theirs")
        return let_in(gate_for_topology_jobs(urgent(world, queue="mine", **terms), action))

    assert not admitted()
    assert admitted(group={"networkTopology": {"mode": "soft"}})


@pytest.mark.parametrize("arguments", [{}, {"respectPriority": True}, {"protectFor": "9000h"}])
def test_a_starving_queue_is_admitted_beside_protected_pods(arguments: dict[str, Any]) -> None:
    """Its demand must count, so that it gets the capacity of pods that end."""
    world = urgent(full("mine; theirs", queue="theirs", priority=10), queue="mine")
    text = policy("enqueue, reclaim", TIERS, enqueue=THROUGH, reclaim=arguments)
    assert let_in(world.run(policy=text))


CAPACITY = "priority gang conformance | overcommit predicates capacity nodeorder"
DESERVED = "mine deserved=cpu:2; theirs deserved=cpu:2"


def starving(world: World, name: str = "new", cpu: int = 2, pods: int = 0) -> World:
    """A job of the queue `mine`, of which this many pods exist."""
    return urgent(world, name, cpu, queue="mine", priority=1, pods=pods, minimum=cpu)


@pytest.mark.parametrize("tiers", [TIERS, CAPACITY])
@pytest.mark.parametrize("pods", [0, 1, 2])
def test_a_starving_queue_is_judged_by_what_its_job_asks_for_whichever_pods_exist(
    tiers: str, pods: int
) -> None:
    def admitted(cpu: int) -> bool:
        world = starving(full(DESERVED, queue="theirs"), cpu=cpu, pods=pods)
        return let_in(gate(world, tiers=tiers))

    assert admitted(2)
    assert not admitted(3), "more than its share"


@pytest.mark.parametrize("tiers", [TIERS, CAPACITY])
def test_jobs_of_a_queue_are_not_admitted_beyond_its_share_together(tiers: str) -> None:
    world = starving(starving(full(DESERVED, queue="theirs"), "first"), "second")
    result = gate(world, tiers=tiers)
    assert [let_in(result, name) for name in ("first", "second")] == [True, False]


def test_a_pod_on_a_node_that_shrank_frees_no_more_than_the_node_has() -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=4")
    world.job("old", pods=2, minimum=1, cpu=4, priority=1, running_on="n1 n2")
    world.add(node("n1", cpu="1"))
    assert not let_in(gate(urgent(world, cpu=6)))
    assert let_in(gate(urgent(world, "smaller", cpu=5)), "smaller")


def test_an_urgent_job_reads_nothing_of_a_full_cluster() -> None:
    result = gate(urgent(full()))
    assert "new" not in events(result, "Unschedulable")
    assert events(gate(urgent(full(), priority=1)), "Unschedulable")["new"].startswith("resource in cluster")


def test_a_queue_below_its_share_is_admitted_to_free_capacity_that_waits_for_others() -> None:
    """A gang of another queue was admitted for more than its share and than is free."""

    def admitted(cpu: int) -> bool:
        world = World(nodes="n1 cpu=8", queues="mine deserved=cpu:5; theirs deserved=cpu:3")
        world.job("first", pods=4, cpu=1, queue="mine", running_on=["n1"] * 4)
        world.job("evicted", pods=5, cpu=1, queue="theirs", phase="Inqueue", min_resources={"cpu": 5})
        urgent(world, cpu=cpu, queue="mine", priority=0, pods=0, minimum=cpu)
        return let_in(gate(world, tiers=CAPACITY))

    assert admitted(1)
    assert not admitted(2), "more than its share"
