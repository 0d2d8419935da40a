"""gangpreempt: an urgent gang takes the places of lesser gangs of its queue, as a whole (spec 02 7)."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.engine.decisions import Evict, PodCondition
from stromboli.engine.plugin import Eviction, Plugin
from stromboli.engine.points import in_turn
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.testing import Result, World
from tests.eviction_policies import STOCK
from tests.manifests import pod, policy

ACTIONS = "enqueue, allocate, gangpreempt"
THREE = "n1 cpu=2; n2 cpu=2; n3 cpu=2"


def gang(world: World, name: str, on: str, minimum: int, **terms: Any) -> World:
    count = len(on.split())
    return world.job(
        name, **{"pods": count, "minimum": minimum, "cpu": 1, "priority": 1, "running_on": on, **terms}
    )


def run(world: World, plugins: str = STOCK, **arguments: Any) -> Result:
    return world.run(policy=policy(ACTIONS, plugins, gangpreempt=arguments))


def test_the_surplus_of_a_gang_goes_before_any_gang_goes_whole() -> None:
    world = gang(World(nodes="n1 cpu=4"), "small", "n1", 1)
    world = gang(world, "wide", "n1 n1 n1", 1, priority=5)
    result = run(world.job("new", pods=2, cpu=1, priority=9))
    assert result.evicted == ["default/wide-0", "default/wide-1"]
    assert result.pipelined == {"default/new-0": "n1", "default/new-1": "n1"}


def test_a_gang_without_surplus_goes_whole_even_if_less_would_do() -> None:
    world = gang(World(nodes=THREE), "old", "n1 n1 n2 n2 n3 n3", 6)
    result = run(world.job("new", cpu=1, priority=9))
    assert len(result.evicted) == 6


def test_whole_gangs_can_be_excluded() -> None:
    world = gang(World(nodes=THREE), "old", "n1 n1 n2 n2 n3 n3", 6)
    assert run(world.job("new", cpu=1, priority=9), allowWholeBundle=False).evicted == []
    world = gang(World(nodes=THREE), "old", "n1 n1 n2 n2 n3 n3", 5)
    assert len(run(world.job("new", cpu=1, priority=9), allowWholeBundle=False).evicted) == 1


def test_a_whole_gang_stays_if_one_of_its_members_must() -> None:
    world = World(nodes="n1 cpu=2").job("old", pods=0, minimum=2, priority=1, phase="Running")
    world.add(pod("old-0", "old", cpu=1, on="n1"))
    critical = {"spec": {"priorityClassName": "system-node-critical"}}
    world.add({"kind": "PriorityClass", "metadata": {"name": "system-node-critical"}, "value": 1})
    world.add(pod("old-1", "old", cpu=1, on="n1", **critical))
    assert run(world.job("new", cpu=1, priority=9)).evicted == []


def test_the_whole_of_the_demand_counts_and_not_only_the_minimum() -> None:
    """quirk: spec 02 7.3: of a job of three pods that needs one, all three must find a place."""
    world = gang(World(nodes="n1 cpu=2"), "old", "n1 n1", 0)
    assert run(world.job("new", pods=3, minimum=1, cpu=1, priority=9)).evicted == []


def test_equal_priorities_other_queues_and_jobs_that_do_not_yield_are_safe() -> None:
    for terms in ({"priority": 9}, {"queue": "other"}, {"annotations": {"volcano.sh/preemptable": "false"}}):
        world = gang(World(nodes="n1 cpu=2", queues="other"), "old", "n1 n1", 0, **terms)
        assert run(world.job("new", cpu=1, priority=9)).evicted == [], terms


@pytest.mark.parametrize("mark", [{"annotations"}, {"labels"}])
def test_a_podgroup_may_refuse_for_all_its_pods(mark: set[str]) -> None:
    world = World(nodes="n1 cpu=1")
    (field,) = mark
    world.add(
        {
            "kind": "PodGroup",
            "metadata": {"name": "old", field: {"volcano.sh/preemptable": "false"}},
            "spec": {"minMember": 0},
            "status": {"phase": "Running"},
        }
    )
    world.add(pod("old-0", "old", cpu=1, on="n1"))
    assert run(world.job("new", cpu=1, priority=9)).evicted == []


def test_one_pod_that_may_never_preempt_keeps_its_whole_job_from_it() -> None:
    """spec 02 D6; Volcano does not ask."""
    world = gang(World(nodes="n1 cpu=2"), "old", "n1 n1", 0).job("new", pods=0, minimum=1, priority=9)
    world.add(pod("new-0", "new", cpu=1)).add(pod("new-1", "new", cpu=1, spec={"preemptionPolicy": "Never"}))
    assert run(world).evicted == []


def test_the_lesser_and_then_the_younger_job_goes_first() -> None:
    world = World(nodes="n1 cpu=3")
    for name, priority in (("older", 1), ("younger", 1), ("higher", 2)):
        gang(world, name, "n1", 0, priority=priority)
    assert run(world.job("new", cpu=1, priority=9)).evicted == ["default/younger-0"]


def test_bundles_are_added_until_every_pod_has_a_node() -> None:
    """Two single cpus on two nodes are enough in sum but not for a pod of two."""
    world = World(nodes="n1 cpu=2; n2 cpu=2")
    gang(world, "a", "n1", 0, priority=4)
    gang(world, "b", "n1", 0, priority=3)
    gang(world, "c", "n2", 0, priority=2)
    gang(world, "d", "n2", 0, priority=1)
    result = run(world.job("new", cpu=2, priority=9))
    assert result.pipelined == {"default/new-0": "n2"}
    assert result.evicted == ["default/c-0", "default/d-0"]


def test_victims_that_were_not_needed_are_spared_if_asked_to() -> None:
    world = gang(World(nodes=THREE), "old", "n1 n1 n2 n2 n3 n3", 0)
    assert len(run(world.job("new", cpu=1, priority=9)).evicted) == 6
    world = gang(World(nodes=THREE), "old", "n1 n1 n2 n2 n3 n3", 0)
    assert len(run(world.job("new", cpu=1, priority=9), fewestVictims=True).evicted) == 1


def test_the_beneficiary_is_nominated_and_its_capacity_reserved_with_hold_for() -> None:
    world = gang(World(nodes="n1 cpu=1"), "old", "n1", 0)
    result = run(world.job("new", cpu=1, priority=9), holdFor="1m")
    assert [
        decision.nominated_node for decision in result.decisions if isinstance(decision, PodCondition)
    ] == ["n1"]
    assert [held.node.name for held in world.cluster.reservations] == ["n1"]


def test_the_decision_says_why() -> None:
    world = gang(World(nodes="n1 cpu=1"), "old", "n1", 0)
    (decision,) = (
        decision
        for decision in run(world.job("new", cpu=1, priority=9)).decisions
        if isinstance(decision, Evict)
    )
    assert (decision.action, decision.reason, decision.beneficiary) == (
        "gangpreempt",
        "gangpreempt",
        "default/new",
    )
    assert decision.chosen_by.startswith("tier 1 (")


def test_a_gang_bound_to_a_network_topology_takes_part() -> None:
    """preempt passes it over; this is its action."""
    topology = {"networkTopology": {"mode": "soft"}}
    world = gang(World(nodes="n1 cpu=1"), "old", "n1", 0)
    assert run(world.job("new", cpu=1, priority=9, group=topology)).evicted == ["default/old-0"]


def test_it_may_be_kept_to_the_gangs_that_preempt_leaves_out() -> None:
    def evicted(**terms: Any) -> list[str]:
        world = gang(World(nodes="n1 cpu=1"), "old", "n1", 0)
        return run(world.job("new", cpu=1, priority=9, **terms), onlyTopologyJobs=True).evicted

    assert evicted() == []
    assert evicted(group={"networkTopology": {"mode": "soft"}}) == ["default/old-0"]


def test_no_gang_is_left_crippled_if_no_harm_shall_be_done() -> None:
    """One of two may not go; Volcano calls the other alone the whole of what it was offered."""

    def evicted(**arguments: Any) -> list[str]:
        world = World(nodes="n1 cpu=2").job("old", pods=0, minimum=2, priority=1, phase="Running")
        stays = {"metadata": {"annotations": {"volcano.sh/preemptable": "false"}}}
        world.add(pod("old-0", "old", cpu=1, on="n1", **stays)).add(pod("old-1", "old", cpu=1, on="n1"))
        return run(world.job("new", cpu=1, priority=9), **arguments).evicted

    assert evicted() == ["default/old-1"]
    assert evicted(doNoHarm=True) == []


def test_no_eviction_is_tried_for_a_pod_that_would_fit_nowhere_even_then() -> None:
    """What all could leave would be enough, but not on one node: so it is seen from the numbers."""
    world = World(nodes="n1 cpu=3; n2 cpu=3; n3 cpu=3")
    world.job("stays", pods=3, minimum=0, cpu=1, priority=9, running_on="n1 n2 n3")
    world.job("low", pods=6, minimum=0, cpu=1, priority=1, running_on="n1 n1 n2 n2 n3 n3")
    result = world.job("new", cpu=3, priority=5).run("enqueue, gangpreempt", STOCK)
    assert result.evicted == []
    assert len(result.outcome.session.journal.rollbacks) == 1, "the job's own statement"


def crowd(running: int, starving: int) -> World:
    """Gangs of two that run on a node each, and urgent ones that want their places."""
    world = World(nodes="; ".join(f"n{number} cpu=2" for number in range(running)))
    for number in range(running):
        gang(world, f"old-{number}", f"n{number} n{number}", 2)
    for number in range(starving):
        world.job(f"new-{number}", pods=2, cpu=1, priority=9)
    return world


class Visits(Plugin):
    """Counts for how many victims it is asked, by votes and by keys of their jobs."""

    name = "visits"
    asked = 0
    keyed = 0

    @in_turn
    def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task]:
        Visits.asked += len(candidates)
        return candidates

    def job_order(self, job: Job) -> int:
        Visits.keyed += job.counts[Status.RUNNING] > 0
        return 0


@pytest.mark.parametrize("arguments", [{}, {"fewestVictims": True}])
def test_gangs_look_at_no_more_victims_if_more_run(arguments: dict[str, Any]) -> None:
    """What runs is put in order once; after that a gang costs what the one before it changed."""

    def visits(running: int, starving: int) -> tuple[int, int]:
        Visits.asked = Visits.keyed = 0
        text = policy(ACTIONS, "visits " + STOCK, gangpreempt=arguments)
        result = crowd(running, starving).run(policy=text, plugin_classes=[Visits])
        assert len(result.evicted) == 2 * starving
        return Visits.asked, Visits.keyed - running

    asked, keyed = visits(10, 4)
    assert visits(40, 4) == (asked, keyed)
    assert visits(40, 16)[0] <= 5 * asked
    assert visits(40, 16)[1] <= 5 * keyed


def test_a_tier_that_allows_none_of_the_first_victims_is_asked_about_all() -> None:
    """The first victims in order are refused by the first tier: it decides all the same, not the second one."""

    class Last(Plugin):
        name = "last"

        @in_turn
        def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task]:
            return [task for task in candidates if task.job and task.job.name == "old-0"]

    text = policy(ACTIONS, "last | priority gang conformance predicates nodeorder")
    assert crowd(9, 1).run(policy=text, plugin_classes=[Last]).evicted == [
        "default/old-0-0",
        "default/old-0-1",
    ]


def test_a_plugin_that_votes_on_all_victims_at_once_is_asked_about_all() -> None:
    seen = []

    class LastTwo(Plugin):
        """Allows the last two."""

        name = "last-two"

        def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task]:
            seen.append(len(candidates))
            return candidates[-2:]

    text = policy(ACTIONS, "last-two priority gang conformance | predicates nodeorder")
    assert len(crowd(9, 1).run(policy=text, plugin_classes=[LastTwo]).evicted) == 2
    assert seen == [18]
