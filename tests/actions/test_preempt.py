"""preempt: urgent jobs take places of lesser ones of their queue, tasks those of others of their job (spec 02 6)."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.engine.decisions import Evict, PodCondition
from stromboli.testing import Result, World
from tests.eviction_policies import LOOSE, STOCK
from tests.manifests import pod, policy

PREEMPT = "enqueue, allocate, preempt"


def crowd(nodes: str = "n1 cpu=2", on: str = "n1 n1", **terms: Any) -> World:
    """Pods of low priority that fill the cluster."""
    world = World(nodes=nodes)
    return world.job(
        "old", **{"pods": len(on.split()), "minimum": 0, "cpu": 1, "priority": 1, "running_on": on, **terms}
    )


# -- between jobs


def test_an_urgent_job_takes_the_place_of_a_lesser_one() -> None:
    result = crowd().job("new", cpu=1, priority=9).run(PREEMPT, STOCK)
    assert (result.evicted, result.pipelined) == (["default/old-1"], {"default/new-0": "n1"})


@pytest.mark.parametrize(
    "terms",
    [
        {"priority": 9},
        {"priority": 10},
        {"queue": "other"},
        {"minimum": 2},
        {"annotations": {"volcano.sh/preemptable": "false"}},
        {"namespace": "kube-system"},
    ],
    ids=str,
)
def test_pods_that_are_no_victims_stay(terms: dict[str, Any]) -> None:
    """Of the same or a higher priority, of another queue, needed by its gang, marked, or of the system."""
    world = World(nodes="n1 cpu=2", queues="other")
    world.job("old", **{"pods": 2, "minimum": 0, "cpu": 1, "priority": 1, "running_on": "n1 n1", **terms})
    result = world.job("new", cpu=1, priority=9).run(PREEMPT, STOCK)
    assert (result.evicted, result.pipelined) == ([], {})


def test_a_pod_that_is_bound_but_does_not_run_may_go() -> None:
    world = World(nodes="n1 cpu=1").job("old", pods=0, minimum=0, priority=1)
    world.add(pod("old-0", "old", cpu=1, on="n1", status={"phase": "Pending"}))
    assert world.job("new", cpu=1, priority=9).run(PREEMPT, STOCK).evicted == ["default/old-0"]


def test_the_lesser_job_goes_first_and_of_it_the_last_task() -> None:
    world = World(nodes="n1 cpu=4")
    world.job("middle", pods=2, minimum=0, cpu=1, priority=5, running_on="n1 n1")
    world.job("low", pods=2, minimum=0, cpu=1, priority=1, running_on="n1 n1")
    world.job("new", cpu=3, priority=9)
    result = world.run(PREEMPT, STOCK)
    order = [decision.name for decision in result.decisions if isinstance(decision, Evict)]
    assert order == ["low-1", "low-0", "middle-1"]


def test_a_gang_that_cannot_start_whole_evicts_no_pod() -> None:
    result = crowd().job("new", pods=3, cpu=1, priority=9).run(PREEMPT, STOCK)
    assert (result.evicted, result.pipelined) == ([], {})


def test_a_pod_that_may_never_preempt_waits_while_its_sibling_preempts() -> None:
    world = crowd().job("new", pods=0, minimum=1, priority=9)
    world.add(pod("new-a-0", "new", cpu=1, spec={"preemptionPolicy": "Never", "priority": 9}))
    world.add(pod("new-a-1", "new", cpu=1, spec={"priority": 9}))
    assert world.run(PREEMPT, STOCK).pipelined == {"default/new-a-1": "n1"}


def test_a_task_that_fits_is_promised_the_room_without_an_eviction() -> None:
    result = crowd("n1 cpu=3").job("new", cpu=1, priority=9).run("enqueue, preempt", STOCK)
    assert (result.evicted, result.pipelined) == ([], {"default/new-0": "n1"})


def test_a_job_bound_to_a_network_topology_is_passed_over() -> None:
    topology = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    result = crowd().job("new", cpu=1, priority=9, group=topology).run("enqueue, preempt", STOCK)
    assert result.evicted == []


def test_a_best_effort_pod_takes_the_place_of_its_like_only() -> None:
    def run(cpu: int) -> Result:
        world = World(nodes="n1 cpu=2,pods=1").job("old", minimum=0, cpu=cpu, priority=1, running_on="n1")
        return world.job("new", priority=9).run("enqueue, preempt", STOCK)

    assert run(cpu=1).evicted == []
    assert run(cpu=0).evicted == ["default/old-0"]


def test_what_was_cleared_for_a_best_effort_pod_stays_its_own_in_backfill() -> None:
    """backfill lets go of it to look for a place that is free now, and finds none."""
    world = World(nodes="n1 cpu=2,pods=1").job("old", minimum=0, priority=1, running_on="n1")
    result = world.job("new", priority=9).run("enqueue, allocate, preempt, backfill", STOCK)
    assert (result.evicted, result.pipelined) == (["default/old-0"], {"default/new-0": "n1"})
    assert [
        decision.nominated_node for decision in result.decisions if isinstance(decision, PodCondition)
    ] == ["n1"]
    assert world.step().binds == {"default/new-0": "n1"}


# -- within a job


def within(running: int | None, waiting: int | None) -> Result:
    """A job of one priority, and two tasks that annotate theirs."""
    world = World(nodes="n1 cpu=1").job("job", pods=0, minimum=0, phase="Running")

    def marked(priority: int | None) -> dict[str, Any]:
        return (
            {}
            if priority is None
            else {"metadata": {"annotations": {"volcano.sh/task-priority": str(priority)}}}
        )

    world.add(pod("job-a-0", "job", cpu=1, on="n1", **marked(running)))
    world.add(pod("job-a-1", "job", cpu=1, **marked(waiting)))
    return world.run(PREEMPT, LOOSE)


def test_within_a_job_the_tasks_own_priorities_count() -> None:
    result = within(1, 5)
    assert (result.evicted, result.pipelined) == (["default/job-a-0"], {"default/job-a-1": "n1"})
    assert within(5, 5).evicted == within(5, 1).evicted == within(None, None).evicted == []


def test_between_jobs_the_jobs_priorities_count_whatever_their_tasks_say() -> None:
    world = World(nodes="n1 cpu=1").job("old", pods=0, minimum=0, priority=1, phase="Running")
    loud = {"metadata": {"annotations": {"volcano.sh/task-priority": "1000"}}}
    world.add(pod("old-a-0", "old", cpu=1, on="n1", **loud))
    assert world.job("new", cpu=1, priority=9).run(PREEMPT, STOCK).evicted == ["default/old-a-0"]


# -- the nominated node (6.2)

TERMINATING = {"terminating": True}
LEAVING = {
    "status": {
        "phase": "Running",
        "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}],
    }
}


def nominated(
    node: str, leaver: dict[str, Any] | None = None, nodes: str = "n1 cpu=2; n2 cpu=1"
) -> list[str]:
    """Who goes for a pod of 2 cpu that was nominated; n1 is full of lesser pods."""
    world = World(nodes=nodes).job("old", pods=0, minimum=0, priority=1, phase="Running")
    world.add(pod("old-0", "old", cpu=1, on="n1", spec={"priority": 1}))
    world.add(pod("old-1", "old", cpu=1, on="n1", spec={"priority": 1}, **leaver or {}))
    world.job("new", pods=0, minimum=1, priority=9)
    world.add(pod("new-0", "new", cpu=2, spec={"priority": 9}, status={"nominatedNodeName": node}))
    return world.run("enqueue, preempt", STOCK).evicted


def test_a_nomination_for_a_node_that_is_gone_or_that_has_room_ends_the_search() -> None:
    assert nominated("nowhere") == []
    assert nominated("n2", nodes="n1 cpu=2; n2 cpu=2") == []


def test_a_nominated_pod_waits_while_a_victim_leaves_its_node() -> None:
    assert nominated("n1") == ["default/old-0", "default/old-1"]
    assert nominated("n1", TERMINATING | LEAVING) == []
    assert nominated("n1", TERMINATING) == ["default/old-0"], "who leaves for another reason does not count"


def test_a_nomination_for_a_node_that_can_never_serve_does_not_hold_the_pod_back() -> None:
    assert nominated("n2", nodes="n1 cpu=2; n2 cpu=8 +dedicated=team") == ["default/old-0", "default/old-1"]


# -- comparing nodes by whom they lose (6.4)


def aware(world: World, **more: Any) -> Result:
    arguments = {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": 100, **more}
    return world.run(policy=policy("enqueue, preempt", LOOSE, preempt=arguments))


def placed(*pods: tuple[str, int, int, str], nodes: str = "n1 cpu=2; n2 cpu=2", need: int = 2) -> World:
    """Pods as (node, cpu, priority, start), each a job of its own, of a job priority below that of the new one."""
    world = World(nodes=nodes)
    for number, (node, cpu, priority, started) in enumerate(pods):
        name = f"p{number}"
        world.job(name, pods=0, minimum=0, priority=1, phase="Running")
        status = {"startTime": started} if started else {}
        world.add(pod(name, name, cpu=cpu, on=node, spec={"priority": priority}, status=status))
    return world.job("new", cpu=need, priority=50)


def names_of(result: Result) -> list[str]:
    return [pod.removeprefix("default/") for pod in result.evicted]


def test_the_node_whose_most_important_victim_is_least_important_is_taken() -> None:
    assert names_of(aware(placed(("n1", 2, 7, ""), ("n2", 2, 3, "")))) == ["p1"]


def test_then_the_one_that_loses_least_in_sum_which_is_also_fewest() -> None:
    assert names_of(aware(placed(("n1", 1, 3, ""), ("n1", 1, 3, ""), ("n2", 2, 3, "")))) == ["p2"]
    assert names_of(
        aware(placed(("n1", 1, 7, ""), ("n1", 1, 6, ""), ("n2", 1, 7, ""), ("n2", 1, 2, "")))
    ) == ["p2", "p3"]


def test_then_the_one_whose_victims_began_last() -> None:
    early, late = "2026-10-01T00:00:00Z", "2026-10-02T00:00:00Z"
    assert names_of(aware(placed(("n1", 2, 3, early), ("n2", 2, 3, late)))) == ["p1"]
    assert names_of(aware(placed(("n1", 2, 3, late), ("n2", 2, 3, "")))) == ["p1"], "not begun counts as now"


def test_then_the_first_node() -> None:
    assert names_of(aware(placed(("n2", 2, 3, ""), ("n1", 2, 3, "")))) == ["p1"]


def test_an_unneeded_victim_is_restored() -> None:
    """Small ones go first by order; when the large one had to go too, the small ones may stay."""
    world = World(nodes="n1 cpu=4")
    world.job("small", pods=1, minimum=0, cpu=1, priority=1, running_on="n1")
    world.job("large", pods=1, minimum=0, cpu=3, priority=5, running_on="n1")
    world.job("new", cpu=3, priority=50)
    assert names_of(aware(world)) == ["large-0"]


def test_no_more_nodes_are_compared_than_asked_for() -> None:
    world = placed(("n1", 2, 7, ""), ("n2", 2, 3, ""))
    assert names_of(aware(world, minCandidateNodesPercentage=0, minCandidateNodesAbsolute=1)) == ["p0"]
    world = placed(("n1", 2, 7, ""), ("n2", 2, 3, ""))
    assert names_of(aware(world, maxCandidateNodesAbsolute=1)) == ["p0"]


# -- with the options beyond Volcano


def test_room_comes_before_evictions() -> None:
    """The pod would rather be where the lesser one is."""
    wish = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}
    preferred = [{"weight": 100, "preference": {"matchExpressions": [wish]}}]
    fond = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}

    def run(**arguments: Any) -> Result:
        world = World(nodes="n1 cpu=4; n2 cpu=4").job("old", minimum=0, cpu=3, priority=1, running_on="n1")
        world.job("new", cpu=2, priority=9, spec={"affinity": fond})
        return world.run(policy=policy("enqueue, preempt", STOCK, preempt=arguments))

    assert run().evicted == ["default/old-0"]
    gentle = run(fewestVictims=True)
    assert (gentle.evicted, gentle.pipelined) == ([], {}), "allocate sees to it"


def test_victims_that_turn_out_not_to_be_needed_stay() -> None:
    """The small one goes first by order, then the large one, which alone would have done."""

    def run(**arguments: Any) -> list[str]:
        world = World(nodes="n1 cpu=4")
        world.job("small", minimum=0, cpu=1, priority=1, running_on="n1")
        world.job("large", minimum=0, cpu=3, priority=5, running_on="n1")
        world.job("new", cpu=3, priority=9)
        return world.run(policy=policy(PREEMPT, STOCK, preempt=arguments)).evicted

    assert run() == ["default/large-0", "default/small-0"]
    assert run(fewestVictims=True) == ["default/large-0"]


def test_a_victim_that_one_job_did_not_need_can_be_evicted_for_the_next() -> None:
    world = World(nodes="n1 cpu=4")
    world.job("small", minimum=0, cpu=1, priority=1, running_on="n1")
    world.job("large", minimum=0, cpu=3, priority=5, running_on="n1")
    world.job("first", cpu=3, priority=9)
    world.job("second", cpu=1, priority=9)
    result = world.run(policy=policy(PREEMPT, STOCK, preempt={"fewestVictims": True}))
    assert result.evicted == ["default/large-0", "default/small-0"]
    assert result.pipelined == {"default/first-0": "n1", "default/second-0": "n1"}


def test_a_gang_goes_whole_over_all_nodes_or_not_at_all() -> None:
    def run(keep: bool = False, **arguments: Any) -> list[str]:
        world = World(nodes="n1 cpu=1; n2 cpu=1").job("old", pods=0, minimum=2, priority=1, phase="Running")
        mark = {"metadata": {"annotations": {"volcano.sh/preemptable": "false"}}} if keep else {}
        world.add(pod("old-0", "old", cpu=1, on="n1")).add(pod("old-1", "old", cpu=1, on="n2", **mark))
        world.job("new", cpu=1, priority=9)
        return world.run(policy=policy(PREEMPT, LOOSE, preempt=arguments)).evicted

    assert run() == ["default/old-0"]
    assert run(doNoHarm=True) == ["default/old-0", "default/old-1"]
    assert run(keep=True, doNoHarm=True) == []


def test_a_gang_keeps_the_roles_that_it_must_have() -> None:
    """The last worker is no surplus, although the gang would still have enough members."""

    def run(**arguments: Any) -> list[str]:
        world = World(nodes="n1 cpu=3")
        terms: dict[str, Any] = {"roles": {"ps": 2, "worker": 1}, "role_minimums": {"ps": 1, "worker": 1}}
        world.job("old", minimum=2, cpu=1, priority=1, running_on="n1 n1 n1", **terms)
        world.job("new", cpu=1, priority=9)
        return world.run(policy=policy(PREEMPT, LOOSE, preempt=arguments)).evicted

    assert run() == ["default/old-2"]
    assert run(doNoHarm=True) != ["default/old-2"]


def test_the_gate_lets_the_urgent_through_and_the_preset_preempts_for_them() -> None:
    world = crowd().job("new", pods=2, cpu=1, priority=9, min_resources={"cpu": 2})
    result = world.run(policy="high-priority")
    assert result.evicted == ["default/old-0", "default/old-1"]
    assert world.step().bound_per_job == {"default/new": 2}


def test_of_several_nodes_the_priority_of_the_last_victim_counts_first() -> None:
    """# quirk: spec 02 6.4: of the victims' priorities that of the first listed counts, not the highest."""
    world = World(nodes="n1 cpu=2; n2 cpu=2").job("old", pods=0, minimum=0)
    for number, (node, priority) in enumerate([("n1", 1), ("n1", 5), ("n2", 2), ("n2", 2)]):
        world.add(pod(f"old-x-{number}", "old", cpu=1, on=node, spec={"priority": priority}))
    aware = {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": 100}
    text = policy("enqueue, preempt", "gang | conformance predicates", preempt=aware)
    text = text.replace("- name: gang", "- name: gang\n    enablePreemptable: false")
    assert world.job("new", cpu=2).run(policy=text).pipelined == {"default/new-0": "n1"}
