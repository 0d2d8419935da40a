"""Where evicting differs from Volcano on purpose: docs/deviations.md, one test per row."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stromboli.api.manifests.case_files import read_case
from stromboli.engine.decisions import PodCondition
from stromboli.extensions import load_catalog
from stromboli.model.intake.object_intake import Intake
from stromboli.policy.policy import load_policy
from stromboli.scheduling_loop import Scheduler
from stromboli.simulator.cycle_report import Report
from stromboli.simulator.job_manifests import merged
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing import Result, World
from stromboli.testing.policy_text import policy_text
from stromboli.testing.world import NOON
from tests.manifests import hyper_node

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
CASES = Path(__file__).parents[1] / "conformance" / "cases"
URGENT = {"priority": 1000}
STOCK = "priority gang conformance | predicates nodeorder"


def policy(actions: str, plugins: str = STOCK, **arguments: object) -> str:
    """The last of the actions gets the arguments."""
    name = actions.rsplit(", ", maxsplit=1)[-1]
    return f"{policy_text(actions, plugins)}configurations:\n- name: {name}\n  arguments: {json.dumps(arguments)}\n"


def decide(case: str) -> Report:
    """What we make of a case of tests/conformance."""
    catalog, read, intake = load_catalog(), read_case(str(CASES / f"{case}.json")), Intake()
    for obj in read.objects:
        intake.put(obj)
    return Report.of(
        Scheduler(Rehearsal(intake, NOON), load_policy(read.config or "", catalog), catalog).cycle()
    )


# -- who may be a victim


def test_nobody_goes_whom_one_plugin_of_the_tier_spares() -> None:
    """Volcano evicts both (spec 02 D4, wart preempt/empty-intersection-lets-the-next-plugin-start-anew)."""
    world = World(nodes="n1 cpu=4")
    world.job("bare", minimum=0, pods=1, cpu=2, priority=10, running_on="n1")
    world.job("lofty", minimum=0, pods=1, cpu=2, priority=1000, running_on="n1", labels={"app": "x"})
    world.job("new", cpu=4, priority=500)
    result = world.run("enqueue, preempt", "priority pdb conformance gang | predicates nodeorder")
    assert (result.evicted, result.pipelined) == ([], {})


@pytest.mark.parametrize(
    ("case", "evicted"),
    [
        ("random-preempt/15", []),
        ("random-preempt/18", ["default/old14-w-0", "default/old14-w-1", "default/old7-w-0"]),
    ],
)
def test_gang_keeps_its_gangs_whole_beside_two_other_plugins_of_its_tier(
    case: str, evicted: list[str]
) -> None:
    """Volcano forgets that nothing was left, and breaks gangs (spec 02 D4, warts random-preempt/15 and 18)."""
    report = decide(case)
    assert report.evicted == evicted
    lost = Counter(pod.rsplit("-w-", 1)[0] for pod in evicted)
    whole = json.loads((CASES / f"{case}.json").read_text())["objects"]
    assert all(minimum(whole, job) <= members(whole, job) - count for job, count in lost.items())


def minimum(objects: list[dict[str, Any]], job: str) -> int:
    groups = [
        obj for obj in objects if obj["kind"] == "PodGroup" and f"default/{obj['metadata']['name']}" == job
    ]
    return int(groups[0]["spec"]["minMember"])


def members(objects: list[dict[str, Any]], job: str) -> int:
    return sum(
        obj["kind"] == "Pod" and f"default/{obj['metadata']['name']}".startswith(f"{job}-w-")
        for obj in objects
    )


def test_victims_leave_in_a_fixed_order_the_last_of_the_last_job_first() -> None:
    """Volcano takes them out of a map (spec 02 D12)."""

    def evicted(names: list[str]) -> list[str]:
        world = World(nodes="n1 cpu=4")
        for name in names:
            world.job(name, pods=2, minimum=1, cpu=1, priority={"a": 3, "b": 1}[name], running_on="n1 n1")
        world.job("urgent", cpu=1, priority=9)
        return world.run("enqueue, preempt", STOCK).evicted

    assert evicted(["a", "b"]) == evicted(["b", "a"]) == ["default/b-1"]


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_a_pod_that_may_never_preempt_evicts_nobody(action: str) -> None:
    """Volcano's gang pair does not ask (spec 02 D6, wart gangpreempt/preemption-policy-never-is-ignored)."""
    world = World(nodes="n1 cpu=4")
    world.job("old", pods=2, minimum=0, cpu=2, priority=10, running_on="n1 n1")
    world.job("new", cpu=2, priority=1000, spec={"preemptionPolicy": "Never"})
    result = world.run(f"enqueue, {action}", STOCK)
    assert (result.evicted, result.pipelined) == ([], {})


@pytest.mark.parametrize(("switch", "evicted"), [(True, ["default/low-0"]), (False, [])])
def test_reclaim_within_a_queue_if_asked_to(switch: bool, evicted: list[str]) -> None:
    """Volcano reclaims across queues only (spec 02 D3)."""
    world = World(nodes="n1 cpu=2", queues="q")
    world.job("same", pods=1, minimum=0, cpu=1, priority=5, running_on="n1", queue="q")
    world.job("low", pods=1, minimum=0, cpu=1, priority=1, running_on="n1", queue="q")
    world.job("new", cpu=1, priority=5, queue="q")
    result = world.run(policy=policy("enqueue, reclaim", "gang conformance", enableSameQueueReclaim=switch))
    assert result.evicted == evicted


# -- what eviction cures


def test_evicting_the_shunned_pod_cures_anti_affinity() -> None:
    """In Volcano its count is older than the eviction (wart preempt/anti-affinity-is-not-cured)."""
    rule = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "noisy"}}}
    shy = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    world = World(nodes="n1 cpu=16")
    world.job("noisy", pods=1, minimum=0, cpu=1, priority=10, running_on="n1", labels={"app": "noisy"})
    world.job("new", cpu=1, priority=1000, spec={"affinity": shy})
    assert_takes_the_place(world.run("enqueue, preempt", STOCK), "default/noisy-0")


def test_evicting_who_fills_the_skew_cures_topology_spread() -> None:
    """In Volcano its count is older than the eviction (wart preempt/topology-spread-is-not-cured)."""
    evenly = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "even"}},
    }
    world = World(nodes=f"n1 cpu=8 {ZONE}=east; n2 cpu=1 {ZONE}=west")
    world.job("wall", cpu=1, priority=1000, running_on="n2")
    world.job("old", pods=1, minimum=0, cpu=1, priority=10, running_on="n1", labels={"app": "even"})
    world.job(
        "new", cpu=1, priority=1000, labels={"app": "even"}, spec={"topologySpreadConstraints": [evenly]}
    )
    assert_takes_the_place(world.run("enqueue, preempt", STOCK), "default/old-0")


def assert_takes_the_place(result: Result, victim: str) -> None:
    assert (result.evicted, result.pipelined) == ([victim], {"default/new-0": "n1"})


# -- topology-aware preemption


def test_nobody_goes_where_another_node_has_room() -> None:
    """Volcano's topology-aware search passes over a node that loses nobody (wart preempt/aware-no-victim-needed)."""
    world = World(nodes="n1 cpu=4; n2 cpu=8")
    world.job("old", pods=2, minimum=0, cpu=2, priority=10, running_on="n1 n1")
    world.job("new", cpu=2, priority=1000)
    aware = policy("enqueue, preempt", enableTopologyAwarePreemption=True, minCandidateNodesPercentage=100)
    result = world.run(policy=aware)
    assert (result.evicted, result.pipelined) == ([], {"default/new-0": "n2"})


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize(("limit", "evicted"), [(1, []), (4, ["default/old-0"])])
def test_nobody_goes_for_a_pod_that_its_queue_may_not_take_even_then(
    aware: bool, limit: int, evicted: list[str]
) -> None:
    """Volcano's topology-aware search evicts everybody and calls it a success (spec 02 D7)."""
    world = World(nodes="n1 cpu=4", queues=f"q capability=cpu:{limit}")
    world.job("old", pods=1, minimum=0, cpu=1, priority=10, running_on="n1", queue="q")
    world.job("new", cpu=4, priority=1000, queue="q", phase="Inqueue")
    plugins = "priority gang conformance | predicates capacity nodeorder"
    result = world.run(policy=policy("preempt", plugins, enableTopologyAwarePreemption=aware))
    assert result.evicted == evicted


# -- nominations


def test_a_nominated_pod_is_left_to_allocate_whichever_action_comes_first() -> None:
    """Volcano's answer depends on who looked before (wart preempt/nominated-pod-before-allocate-saw-it)."""

    def run(actions: str) -> Result:
        world = World(nodes="n1 cpu=4; n2 cpu=2")
        world.job("old", pods=1, minimum=0, cpu=2, priority=10, running_on="n2")
        world.job("new", pods=0, minimum=1, priority=1000)
        world.add(pod("new-0", "new", cpu=2, spec=URGENT, status={"nominatedNodeName": "n1"}))
        return world.run(actions, STOCK)

    alone = run("enqueue, preempt")
    assert (alone.evicted, alone.pipelined) == ([], {})
    for actions in ("enqueue, allocate, preempt", "enqueue, preempt, allocate"):
        assert run(actions).binds == {"default/new-0": "n1"}


def test_a_pod_is_nominated_also_when_only_best_effort_pods_went() -> None:
    """Volcano looks at what was freed, and they free nothing (spec 02 D9)."""
    world = World(nodes="n1 cpu=4,pods=1")
    world.job("idle", pods=1, minimum=0, priority=10, running_on="n1")
    world.job("new", cpu=1, priority=1000)
    result = world.run("enqueue, preempt", STOCK)
    assert result.evicted == ["default/idle-0"]
    conditions = [decision for decision in result.decisions if isinstance(decision, PodCondition)]
    assert [condition.nominated_node for condition in conditions] == ["n1"]


# -- backfill


@pytest.mark.parametrize(("switch", "binds"), [(True, {"default/small-0": "n1"}), (False, {})])
def test_backfill_hands_on_what_a_waiting_gang_holds_if_asked_to(switch: bool, binds: dict[str, str]) -> None:
    """Volcano has no such stage (spec 02 D2)."""
    world = World(nodes="n1 cpu=2; n2 cpu=2").job("old", pods=0, phase="Running")
    there = {"spec": {"nodeName": "n2"}, "status": {"phase": "Running"}}
    world.add(pod("old-0", "old", cpu=2, metadata={"deletionTimestamp": "2026-11-01T12:00:30Z"}, **there))
    world.job("gang", pods=2, cpu=2)  # one fits on n1, the other will on n2
    world.job("small", cpu=1)
    actions = "enqueue, allocate, backfill"
    result = world.run(policy=policy(actions, "gang", enableBackFillNonBestEffortPods=switch))
    assert result.binds == binds


def pod(name: str, job: str, cpu: int, **more: dict[str, Any]) -> dict[str, Any]:
    base = {
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"scheduling.k8s.io/group-name": job}},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]},
    }
    return merged(base, more)


# -- room in the network's shape


def test_reclaim_evicts_nobody_for_a_hard_gang_that_no_switch_could_hold() -> None:
    """Volcano evicts both pods, and the gang waits all the same (spec 02 D19)."""
    report = decide("reclaim/topology-is-ignored")
    assert (report.evicted, report.pipelined) == ([], {})


def test_reclaim_makes_room_for_a_hard_gang_below_one_switch() -> None:
    world = World(nodes="; ".join(f"n{number} cpu=1" for number in range(4)), queues="mine; theirs")
    world.add(hyper_node("left", nodes=("n0", "n2")), hyper_node("right", nodes=("n1", "n3")))
    world.job("old", pods=4, minimum=1, cpu=1, queue="theirs", running_on="n0 n1 n2 n3")
    limit = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    world.job("new", pods=2, cpu=1, queue="mine", group=limit)
    plugins = "priority gang conformance | predicates proportion nodeorder network-topology-aware"
    result = world.run("enqueue, allocate, reclaim", plugins)
    assert sorted(result.pipelined.values()) in (["n0", "n2"], ["n1", "n3"])
    assert len(result.evicted) == 2


def test_a_job_that_lost_pods_evicts_no_others_for_a_while() -> None:
    """Volcano lets both queues take the node from each other in turn forever (spec 02 0.11)."""
    world = World(nodes="n1 cpu=1", queues="mine; theirs")
    world.job("old", minimum=0, cpu=1, queue="theirs", running_on="n1")
    world.job("new", minimum=0, cpu=1, queue="mine")
    in_turn = policy("enqueue, allocate, reclaim", "priority conformance | predicates")
    assert world.run(policy=in_turn).evicted == ["default/old-0"]
    world.task("new-0")  # the eviction has come true
    world.add(merged(pod("old-0", "old", 1), {"metadata": {"uid": "again"}}))
    assert world.step().binds == {"default/new-0": "n1"}
    assert world.step(2).evicted == []
    assert world.sleep(300).step().evicted == ["default/new-0"]
