"""Evicting actions make room for a gang where it may be: within one of its HyperNodes (spec 02 5 and 7)."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from stromboli.engine.decisions import Evict, PodCondition
from stromboli.engine.plugin import Eviction, Plugin
from stromboli.model.task import Task
from stromboli.testing import Result, World
from tests.manifests import (
    events,
    hyper_node,
    job_named,
    native_group,
    pod,
    policy,
    priority_class,
    sub_group_policy,
)
from tests.manifests import (
    node as node_manifest,
)

PLUGINS = "priority gang conformance | predicates nodeorder network-topology-aware"
SHARES = "priority gang conformance | predicates proportion nodeorder network-topology-aware"
LEAVES = {"s0": ("n0", "n1"), "s1": ("n2", "n3")}


def hard(tier: int, **policies: Any) -> dict[str, Any]:
    """Terms of a gang that may not span more than a tier."""
    return {"group": {"networkTopology": {"mode": "hard", "highestTierAllowed": tier}, **policies}}


def world(cpu: int = 2, **more: Any) -> World:
    """Two switches with two nodes each, below a third switch."""
    nodes = "; ".join(f"n{number} cpu={cpu}" for number in range(4))
    made = World(nodes=nodes, **more)
    made.add(*(hyper_node(name, nodes=members) for name, members in LEAVES.items()))
    return made.add(hyper_node("s2", 2, children=LEAVES))


def fill(made: World, **priorities: int) -> World:
    """A job on each node that is named, of that priority; each task of it may go by itself."""
    for node, priority in priorities.items():
        made.job(f"on-{node}", minimum=0, cpu=2, priority=priority, running_on=node)
    return made


def preempt(made: World, actions: str = "enqueue, allocate, gangpreempt", **arguments: Any) -> Result:
    return made.run(policy=policy(actions, PLUGINS, gangpreempt=arguments))


def victims(result: Result) -> list[str]:
    return sorted(name.removeprefix("default/") for name in result.evicted)


# -- gangpreempt


def test_a_hard_gang_clears_one_switch_and_leaves_the_others_alone() -> None:
    made = fill(world(), n0=5, n1=5, n2=1, n3=1).job("new", pods=2, cpu=2, priority=9, **hard(1))
    result = preempt(made)
    assert len(result.evicted) == 2
    assert set(result.pipelined.values()) in ({"n0", "n1"}, {"n2", "n3"})
    assert {f"default/on-{node}-0" for node in result.pipelined.values()} == set(result.evicted)


def test_a_switch_whose_pods_are_of_no_lower_priority_is_passed_over() -> None:
    made = fill(world(), n0=1, n1=9, n2=1, n3=1).job("new", pods=2, cpu=2, priority=9, **hard(1))
    assert victims(preempt(made)) == ["on-n2-0", "on-n3-0"]
    made = fill(world(), n0=1, n1=1, n2=1, n3=9).job("new", pods=2, cpu=2, priority=9, **hard(1))
    assert victims(preempt(made)) == ["on-n0-0", "on-n1-0"]


def test_no_pod_is_evicted_where_no_switch_could_hold_the_gang() -> None:
    made = fill(world(), n0=1, n1=1, n2=1, n3=1).job("new", pods=3, cpu=2, priority=9, **hard(1))
    assert (preempt(made).evicted, preempt(made).pipelined) == ([], {})


def test_a_wider_tier_lets_it_take_from_both_switches() -> None:
    made = fill(world(), n0=1, n1=1, n2=1, n3=1).job("new", pods=3, cpu=2, priority=9, **hard(2))
    result = preempt(made)
    assert len(result.evicted) == 3
    assert len(result.pipelined) == 3


def test_a_soft_gang_takes_from_wherever_it_must() -> None:
    made = fill(world(), n0=1, n1=9, n2=1, n3=9)
    made.job("new", pods=2, cpu=2, priority=9, group={"networkTopology": {"mode": "soft"}})
    assert victims(preempt(made)) == ["on-n0-0", "on-n2-0"]


def test_a_gang_that_runs_below_a_switch_clears_no_other() -> None:
    made = fill(world(), n1=5, n2=1, n3=1)
    made.job("new", pods=2, cpu=2, priority=9, running_on="n0", phase="Inqueue", **hard(1))
    assert victims(preempt(made)) == ["on-n1-0"]
    made = fill(world(), n1=9, n2=1, n3=1)
    made.job("new", pods=2, cpu=2, priority=9, running_on="n0", phase="Inqueue", **hard(1))
    assert victims(preempt(made)) == []


def test_the_number_of_domains_that_are_tried_has_a_limit() -> None:
    """Of two switches the second is full of equals; with one try, nobody gets as far as the first."""
    for limit, gone in ((1, 0), (2, 2), (0, 2)):
        made = fill(world(), n0=9, n1=9, n2=1, n3=1).job("new", pods=2, cpu=2, priority=9, **hard(1))
        assert len(preempt(made, maxDomains=limit).evicted) == gone


def test_a_domain_that_could_not_have_the_room_does_not_count_where_the_fewest_are_to_go() -> None:
    for fewest, gone in ((False, 0), (True, 2)):
        made = fill(world(), n0=9, n1=9, n2=1, n3=1).job("new", pods=2, cpu=2, priority=5, **hard(1))
        assert len(preempt(made, fewestVictims=fewest, maxDomains=1).evicted) == gone


@pytest.mark.parametrize(("preset", "queue"), [("high-priority", "theirs"), ("fair-share", "mine")])
def test_the_presets_make_room_below_every_switch(preset: str, queue: str) -> None:
    """Volcano always looks at the same eight HyperNodes."""
    made = World(nodes="; ".join(f"n{number:02} cpu=1" for number in range(20)), queues="mine; theirs")
    for number in range(20):
        made.add(hyper_node(f"s{number:02}", nodes=[f"n{number:02}"]))
        made.job(f"old-{number}", cpu=1, priority=1, queue="theirs", running_on=f"n{number:02}")
    for number in range(10):
        made.job(f"new-{number}", cpu=1, priority=9, queue=queue, **hard(1))
    assert len(made.run(policy=preset).pipelined) == 10


@pytest.mark.parametrize("preset", ["high-priority", "full"])
def test_the_presets_preempt_for_gangs_with_a_topology_and_for_others(preset: str) -> None:
    made = world().job("old", pods=3, cpu=2, priority=1, running_on="n0 n1 n2")
    made.job("lone", cpu=2, priority=2, running_on="n3")
    made.job("hard", pods=2, cpu=2, priority=9, **hard(1)).job("plain", cpu=2, priority=8)
    evictions = [each for each in made.run(policy=preset).decisions if isinstance(each, Evict)]
    assert {(each.action, each.beneficiary) for each in evictions} == {
        ("gangpreempt", "default/hard"),
        ("preempt", "default/plain"),
    }


def test_each_sub_group_has_a_switch_of_its_own_if_it_must() -> None:
    """Two sub-groups of two pods, none of which may cross a switch."""
    made = fill(world(), n0=1, n1=1, n2=1, n3=1)
    blocks = {**sub_group_policy("block", "block", size=2, least=2), **hard(1)["group"]}
    made.job("new", pods=0, minimum=4, priority=9, **hard(2, subGroupPolicy=[blocks]))
    for index in range(4):
        made.add(pod(f"new-{index}", "new", cpu=2, labels={"block": str(index % 2)}))
    result = preempt(made)
    assert len(result.evicted) == 4
    leaf = {node: name for name, nodes in LEAVES.items() for node in nodes}
    used = [{leaf[result.pipelined[f"default/new-{index}"]] for index in pair} for pair in ((0, 2), (1, 3))]
    assert sorted(map(sorted, used)) == [["s0"], ["s1"]]
    nominated = {sub_job.nominated_hyper_node for sub_job in job_named(made.cluster, "new").sub_jobs.values()}
    assert nominated == {"s0", "s1"}


def test_free_capacity_below_another_switch_is_used_before_any_eviction() -> None:
    made = fill(world(), n2=1, n3=1).job("new", pods=2, cpu=2, priority=9, **hard(1))
    assert len(preempt(made, "enqueue, gangpreempt").evicted) == 2
    made = fill(world(), n2=1, n3=1).job("new", pods=2, cpu=2, priority=9, **hard(1))
    assert preempt(made, "enqueue, gangpreempt", fewestVictims=True).evicted == []


@pytest.mark.parametrize("trimmed", [False, True])
def test_a_gang_that_spans_switches_goes_as_a_whole_if_no_harm_may_be_done(trimmed: bool) -> None:
    """Volcano evicts the pods below the switch alone, and those elsewhere are of no use."""
    for no_harm, gone in ((False, 2), (True, 3)):
        made = fill(world(), n3=9).job("old", pods=3, cpu=2, priority=1, running_on="n0 n1 n2")
        made.job("new", pods=2, cpu=2, priority=9, **hard(1))
        result = preempt(made, doNoHarm=no_harm, fewestVictims=trimmed)
        assert len(result.evicted) == gone
        assert set(result.pipelined.values()) == {"n0", "n1"}


@pytest.mark.parametrize(("may_go", "gone"), [("true", 3), ("false", 0)])
def test_a_gang_that_spans_switches_stays_if_a_pod_elsewhere_may_not_go(may_go: str, gone: int) -> None:
    made = fill(world(), n3=9).job("old", pods=2, minimum=3, cpu=2, priority=1, running_on="n0 n1")
    made.add(pod("old-x", "old", cpu=2, on="n2", annotations={"volcano.sh/preemptable": may_go}))
    made.job("new", pods=2, cpu=2, priority=9, **hard(1))
    assert len(preempt(made, doNoHarm=True).evicted) == gone


def test_room_elsewhere_does_not_count_for_the_switch_that_is_cleared() -> None:
    """The gang below the first switch would free four places, but only two of them there."""
    made = world(cpu=4).job("old", pods=4, cpu=2, priority=1, running_on="n0 n1 n2 n3")
    made.job("high", pods=4, cpu=2, priority=9, running_on="n0 n1 n2 n3")
    made.job("new", pods=3, cpu=2, priority=5, **hard(1))
    assert preempt(made, doNoHarm=True).evicted == []


def test_what_a_gang_can_spare_below_a_switch_goes_without_its_pods_elsewhere() -> None:
    made = world().job("old", pods=4, minimum=2, cpu=2, priority=1, running_on="n0 n1 n2 n3")
    made.job("new", pods=2, cpu=2, priority=9, **hard(1))
    assert len(preempt(made, doNoHarm=True).evicted) == 2


def test_a_gang_starts_below_the_switch_that_was_cleared_for_it() -> None:
    made = fill(world(), n0=5, n1=5, n2=5, n3=5).job("new", pods=2, cpu=2, priority=9, **hard(1))
    first = preempt(made, holdFor="5m")
    (sub_job,) = job_named(made.cluster, "new").sub_jobs.values()
    cleared = sub_job.nominated_hyper_node
    assert set(first.pipelined.values()) == set(LEAVES[cleared])
    other = next(name for name in LEAVES if name != cleared)
    for node in LEAVES[other]:
        made.finish(f"on-{node}-0")
    second = made.step()
    assert set(second.binds.values()) == set(LEAVES[cleared])
    assert sub_job.nominated_hyper_node == ""


def test_a_gang_starts_elsewhere_if_the_room_that_was_made_for_it_is_taken() -> None:
    made = fill(world(), n0=5, n1=5, n2=9, n3=9).job("new", pods=2, cpu=2, priority=9, **hard(1))
    preempt(made)
    (sub_job,) = job_named(made.cluster, "new").sub_jobs.values()
    assert sub_job.nominated_hyper_node == "s0"
    made.job("intruder", cpu=2, priority=99, running_on="n0")
    assert made.step().binds == {}
    for node in LEAVES["s1"]:
        made.finish(f"on-{node}-0")
    assert set(made.step().binds.values()) == set(LEAVES["s1"])
    assert sub_job.nominated_hyper_node == ""


def test_a_gang_takes_the_best_switch_if_the_one_that_was_cleared_for_it_is_gone() -> None:
    def chosen(nominated: str) -> set[str]:
        made = world(cpu=4).job("old", cpu=1, running_on="n2").job("new", pods=2, cpu=2, **hard(1))
        made.run(policy=policy("enqueue", PLUGINS))
        (sub_job,) = job_named(made.cluster, "new").sub_jobs.values()
        sub_job.nominated_hyper_node = nominated
        nodes = set(made.run(policy=policy("allocate", PLUGINS)).binds.values())
        return {leaf for leaf, members in LEAVES.items() if nodes & set(members)}

    assert chosen("gone") == chosen("") == {"s1"}


def test_an_eviction_names_the_beneficiary_and_the_switch() -> None:
    made = fill(world(), n0=9, n1=9, n2=1, n3=1).job("new", pods=2, cpu=2, priority=9, **hard(1))
    result = preempt(made)
    reason = "gangpreempt for default/new in HyperNode s1, chosen by tier 1 (priority, gang, conformance)"
    assert events(result, "Evict", "Warning")["on-n2-0"] == f"Pod is evicted, because of {reason}"
    assert events(result, "Evict")["on-n2"] == f"on-n2-0: {reason}"
    evicted = [decision for decision in result.decisions if isinstance(decision, Evict)]
    assert {decision.domain for decision in evicted} == {"HyperNode s1"}


def test_plugins_receive_the_domain_in_which_capacity_is_needed() -> None:
    class Spare(Plugin):
        name = "spare"
        asked: ClassVar[list[str]] = []

        def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task] | None:
            assert eviction.domain is not None
            self.asked.append(eviction.domain.name)
            return [] if eviction.domain.name == "s0" else None

    made = fill(world(), n0=1, n1=1, n2=1, n3=1).job("new", pods=2, cpu=2, priority=9, **hard(1))
    text = policy("enqueue, allocate, gangpreempt", "spare " + PLUGINS.replace(" | ", " "))
    assert victims(made.run(policy=text, plugin_classes=[Spare])) == ["on-n2-0", "on-n3-0"]
    assert sorted(Spare.asked) == ["s0", "s1"]


# -- between queues


def lent(cpu: int = 2) -> World:
    """A cluster that one queue holds whole: a job of its own on each node."""
    made = world(cpu, queues="mine; theirs")
    for number in range(4):
        made.job(f"on-n{number}", minimum=0, cpu=cpu, queue="theirs", running_on=f"n{number}")
    return made


@pytest.mark.parametrize("action", ["gangreclaim", "reclaim"])
@pytest.mark.parametrize("arguments", [{}, {"fewestVictims": True, "doNoHarm": True, "holdFor": "5m"}])
def test_a_queue_takes_back_its_share_for_a_hard_gang_below_one_switch(
    action: str, arguments: dict[str, Any]
) -> None:
    made = lent().job("new", pods=2, cpu=2, queue="mine", **hard(1))
    result = made.run(policy=policy(f"enqueue, allocate, {action}", SHARES, **{action: arguments}))
    (sub_job,) = job_named(made.cluster, "new").sub_jobs.values()
    nodes = set(LEAVES[sub_job.nominated_hyper_node])
    assert set(result.pipelined.values()) == nodes
    assert set(result.evicted) == {f"default/on-{node}-0" for node in nodes}
    assert set(made.step().binds.values()) == nodes


@pytest.mark.parametrize("action", ["gangreclaim", "reclaim"])
def test_a_hard_gang_takes_nothing_back_where_no_switch_could_hold_it(action: str) -> None:
    made = lent(cpu=3).job("new", pods=2, cpu=4, queue="mine", **hard(1))
    assert made.run(f"enqueue, allocate, {action}", SHARES).evicted == []


def test_reclaim_gives_each_sub_group_a_switch_of_its_own_if_it_must() -> None:
    made = lent(cpu=1)
    blocks = {**sub_group_policy("block", "block", least=2), **hard(1)["group"]}
    made.job("new", pods=0, minimum=2, queue="mine", group={"subGroupPolicy": [blocks]})
    for index in range(2):
        made.add(pod(f"new-{index}", "new", cpu=1, labels={"block": str(index)}))
    result = made.run("enqueue, allocate, reclaim", SHARES)
    assert len(result.evicted) == 2
    assert len(made.step().binds) == 2


def test_a_native_group_that_keeps_to_a_label_clears_nodes_of_one_value() -> None:
    for action in ("gangpreempt", "preempt"):
        made = World()
        for number in range(4):
            made.add(node_manifest(f"n{number}", cpu=2, labels={"rack": f"r{number % 2}"}))
        fill(made, n0=1, n1=1, n2=1, n3=1)
        made.add(priority_class("high", 9))
        constraint = {"topology": [{"key": "rack"}]}
        made.add(native_group("new", 2, priorityClassName="high", schedulingConstraints=constraint))
        made.add(*(pod(f"new-{index}", native="new", cpu=2, priority=9) for index in range(2)))
        result = made.run(f"enqueue, allocate, {action}", PLUGINS)
        assert set(result.pipelined.values()) == {"n0", "n2"}, action
        assert victims(result) == ["on-n0-0", "on-n2-0"]
        assert " in rack=r0, " in events(result, "Evict", "Warning")["on-n0-0"]
        assert set(made.step().binds.values()) == {"n0", "n2"}


def nominated(result: Result) -> dict[str, str]:
    conditions = (decision for decision in result.decisions if isinstance(decision, PodCondition))
    return {condition.name: condition.nominated_node for condition in conditions if condition.nominated_node}


@pytest.mark.parametrize(("stay", "cleared"), [(("n1",), ["n2", "n3"]), (("n1", "n3"), [])])
def test_pods_are_nominated_where_room_is_made_and_not_where_it_was_tried(
    stay: tuple[str, ...], cleared: list[str]
) -> None:
    made = world(queues="mine; theirs")
    for name in ("n0", "n1", "n2", "n3"):
        notes = {"volcano.sh/preemptable": "false"} if name in stay else {}
        made.job(f"on-{name}", minimum=0, cpu=2, queue="theirs", running_on=name, annotations=notes)
    result = made.job("new", pods=2, cpu=2, queue="mine", **hard(1)).run("enqueue, allocate, reclaim", SHARES)
    assert sorted(nominated(result).values()) == cleared
    assert sorted(name[-4:-2] for name in result.evicted) == cleared
