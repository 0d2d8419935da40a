"""Native groups that request one value of a node label: all pods run on nodes with one value, or wait."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Evict
from stromboli.testing import World
from tests.eviction_policies import GENTLE
from tests.manifests import (
    Manifest,
    decoded,
    group,
    native_group,
    node,
    pod,
    policy,
    priority_class,
    queue,
)
from tests.properties.living import LivingWorld, binds, engine

PLUGINS = ("priority, gang, conformance", "predicates, proportion, binpack")


def racks(**sizes: str) -> list[Manifest]:
    """Racks with the CPUs of their nodes: `a="2 2"` is rack a with nodes a1 and a2."""
    return [
        node(f"{rack}{place}", cpu=cpu, labels={"rack": rack})
        for rack, nodes in sizes.items()
        for place, cpu in enumerate(nodes.split(), start=1)
    ]


def near(name: str, minimum: int = 0, key: str = "rack", **spec: Any) -> Manifest:
    return native_group(name, minimum, schedulingConstraints={"topology": [{"key": key}]}, **spec)


def members(name: str, count: int, first: int = 0, **terms: Any) -> list[Manifest]:
    return [pod(f"{name}-x-{number}", native=name, **terms) for number in range(first, first + count)]


def world_of(*objects: Manifest, actions: str = "enqueue, allocate, backfill") -> LivingWorld:
    return LivingWorld([queue(), *objects], lambda: engine(*PLUGINS, actions=actions))


def nodes_of(outcome: Outcome) -> list[str]:
    return sorted(where for _, where in binds(outcome.decisions))


def values_of(world: LivingWorld, key: str = "rack") -> dict[str, set[str]]:
    """The values of a label on the nodes of each group."""
    values: dict[str, set[str]] = {}
    for task in world.intake.cluster.tasks.values():
        if task.node is not None and task.job is not None:
            values.setdefault(task.job.name, set()).add(task.node.labels.get(key, "-"))
    return values


# -- which domain


def test_all_pods_of_a_gang_are_in_one_rack() -> None:
    outcome = world_of(*racks(a="2 1", b="2 2", c="3"), near("g", 4), *members("g", 4)).step()
    assert nodes_of(outcome) == ["b1", "b1", "b2", "b2"]


def test_a_gang_that_fits_into_no_rack_waits_though_the_cluster_has_capacity() -> None:
    world = world_of(*racks(a="2 1", b="2", c="3"), near("g", 4), *members("g", 4))
    assert not nodes_of(world.step())
    world.put(node("b2", cpu=2, labels={"rack": "b"}))
    assert nodes_of(world.step()) == ["b1", "b1", "b2", "b2"]


def test_nodes_without_the_label_are_in_no_domain() -> None:
    world = world_of(node("big", cpu=64), *racks(a="2 2"), near("g", 5), *members("g", 5))
    assert not nodes_of(world.step())


def test_a_label_that_no_node_has_keeps_the_group_waiting() -> None:
    assert not nodes_of(world_of(*racks(a="4"), near("g", 1, key="zone"), *members("g", 1)).step())


@pytest.mark.parametrize(
    ("nodes", "minimum", "pods", "chosen"),
    [
        ({"a": "4 4", "b": "4", "c": "4 4 4"}, 3, 3, "b"),  # the fullest with it
        ({"a": "3", "b": "4 4"}, 3, 5, "b"),  # more of its pods have room
        ({"a": "2", "b": "3"}, 0, 4, "b"),
        ({"a": "4 4", "b": "4 4"}, 3, 3, "a"),  # the rack of the first node
    ],
)
def test_the_domain_is_chosen_as_kube_scheduler_does(
    nodes: dict[str, str], minimum: int, pods: int, chosen: str
) -> None:
    world = world_of(*racks(**nodes), near("g", minimum), *members("g", pods))
    world.step()
    assert values_of(world) == {"g": {chosen}}


def test_pods_that_run_there_make_a_domain_fuller() -> None:
    others = [group("v", 1), pod("v-0", "v", on="b1", cpu=2)]
    world = world_of(*racks(a="4 4", b="4 4"), *others, near("g", 3), *members("g", 3))
    world.step()
    assert values_of(world)["g"] == {"b"}


def test_a_group_starts_now_rather_than_wait_for_a_better_domain() -> None:
    leaving = [group("v", 1), pod("v-0", "v", on="b1", cpu=3, terminating=True)]
    world = world_of(*racks(a="4 4", b="4"), *leaving, near("g", 3), *members("g", 3))
    assert {name[0] for name in nodes_of(world.step())} == {"a"}


def test_a_group_takes_the_nodes_that_were_cleared_for_it() -> None:
    cleared = members("g", 3, status={"nominatedNodeName": "a1"})
    world = world_of(*racks(a="4 4", b="4"), near("g", 3), *cleared)
    world.step()
    assert values_of(world) == {"g": {"a"}}


def test_groups_may_ask_for_different_labels() -> None:
    nodes = [
        node(f"n{number}", cpu=2, labels={"rack": f"r{number % 2}", "row": f"w{number // 2}"})
        for number in range(4)
    ]
    of_row = near("h", 3, key="row", version="v1beta1")
    world = world_of(*nodes, near("g", 3), *members("g", 3), of_row, *members("h", 3))
    world.step()
    assert [len(values_of(world, "rack")["g"]), len(values_of(world, "row")["h"])] == [1, 1]


def test_a_basic_group_starts_the_pods_that_fit_in_one_domain() -> None:
    world = world_of(*racks(a="2", b="3"), near("g"), *members("g", 4))
    assert nodes_of(world.step()) == ["b1", "b1", "b1"]
    assert not nodes_of(world.step())


# -- pods that run already


@pytest.mark.parametrize("restarted", [False, True])
def test_later_pods_follow_those_that_run(restarted: bool) -> None:
    world = world_of(*racks(a="2", b="8"), near("g", 2), *members("g", 2))
    world.step()
    assert values_of(world) == {"g": {"a"}}
    for more in members("g", 1, first=2):
        world.put(more)
    if restarted:
        world = LivingWorld(world.objects.values(), world.make_engine)
    assert not nodes_of(world.step())
    world.put(node("a2", cpu=1, labels={"rack": "a"}))
    assert nodes_of(world.step()) == ["a2"]


def test_the_replacement_of_a_lost_pod_stays_with_its_gang() -> None:
    world = world_of(*racks(a="1 1", b="8"), near("g", 2), *members("g", 2, on="a1"))
    world.drop(decoded(pod("g-x-1", native="g", on="a1")))
    world.drop(decoded(node("a2")))
    world.put(pod("g-x-2", native="g"))
    assert not nodes_of(world.step())
    world.put(node("a3", labels={"rack": "a"}))
    assert nodes_of(world.step()) == ["a3"]


def test_a_group_whose_nodes_are_all_lost_waits_until_its_pods_are_deleted() -> None:
    world = world_of(*racks(a="2", b="2"), near("g", 1), *members("g", 1, on="a1"), *members("g", 1, first=1))
    world.drop(decoded(node("a1")))
    assert not nodes_of(world.step())
    world.drop(decoded(pod("g-x-0")))
    assert nodes_of(world.step()) == ["b1"]


def test_pods_that_leave_pin_nothing() -> None:
    leaving = members("g", 1, on="a1", terminating=True)
    world = world_of(*racks(a="1", b="2"), near("g", 2), *leaving, *members("g", 2, first=1))
    assert nodes_of(world.step()) == ["b1", "b1"]


@pytest.mark.parametrize("other", ["b1", "bare"])
def test_a_group_that_runs_in_several_domains_gets_no_more_pods(other: str) -> None:
    running = [*members("g", 1, on="a1"), *members("g", 1, first=1, on=other)]
    world = world_of(*racks(a="4", b="4"), node("bare"), near("g", 1), *running, *members("g", 1, first=2))
    assert not nodes_of(world.step())


def test_it_follows_labels_that_change() -> None:
    world = world_of(*racks(a="1", b="2"), near("g", 1), *members("g", 1, on="a1"), *members("g", 1, first=1))
    assert not nodes_of(world.step())
    world.put(node("a1", cpu=1, labels={"rack": "b"}))
    assert nodes_of(world.step()) == ["b1"]


# -- what else places and evicts


def test_pods_that_ask_for_nothing_stay_with_their_group() -> None:
    free = members("g", 1, first=1, cpu=0)
    world = world_of(*racks(a="1", b="8"), near("g", 1), *members("g", 1, on="a1"), *free)
    assert nodes_of(world.step()) == ["a1"]


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_room_is_made_in_one_domain_and_kept_for_the_group(action: str) -> None:
    running = [pod(f"v-{number}", "v", on=where) for number, where in enumerate(("a1", "b1", "b1", "b2"))]
    world = World().add(
        *racks(a="1 1", b="2 2"),
        *running,
        group("v", 1, priorityClassName="low"),
        priority_class("low", -5),
        near("g", 4, priority=5),
        *members("g", 4),
    )
    config = policy(f"enqueue, allocate, {action}", " | ".join(PLUGINS).replace(",", ""), **{action: GENTLE})
    evicted = world.run(policy=config).evicted
    assert evicted == ["default/v-1", "default/v-2", "default/v-3"]
    world.add(group("w", 2, priorityClassName="low"), pod("w-0", "w"), pod("w-1", "w"))
    assert {name[0] for pod, name in world.step().binds.items() if pod.startswith("default/g")} == {"b"}


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
def test_no_eviction_is_tried_in_domains_that_could_not_free_enough(action: str) -> None:
    """Of forty hosts each could free room for one of two pods."""
    hosts = racks(**{f"h{number}-": "2" for number in range(40)})
    running = [
        pod(f"{job}-{number}", job, on=f"h{number}-1") for job in ("low", "high") for number in range(40)
    ]
    world = LivingWorld(
        [
            queue(),
            *hosts,
            *running,
            *(priority_class("low", -5), group("low", 1, priorityClassName="low"), group("high", 1)),
            *(near("g", 2), *members("g", 2)),
        ],
        lambda: engine(*PLUGINS, actions=f"enqueue, allocate, {action}"),
    )
    outcome = world.cycle()
    assert outcome.lost is None
    assert len(outcome.session.journal.rollbacks) < 10
    assert not any(isinstance(decision, Evict) for decision in outcome.decisions)
