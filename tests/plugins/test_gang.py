"""gang: all or nothing (spec 03 1)."""

import pytest

from stromboli.engine.decisions import PodGroupStatus
from stromboli.testing import World

ONE_NODE = "n1 cpu=2,memory=8Gi,pods=110"


def conditions_of(result, name):
    written = [
        decision
        for decision in result.decisions
        if isinstance(decision, PodGroupStatus) and decision.name == name
    ]
    return {condition.type: condition for status in written for condition in status.conditions}


def test_a_gang_that_does_not_fit_whole_gets_nothing():
    world = World(nodes=ONE_NODE).job("train", pods=3, cpu=1)
    assert world.run(plugins="gang").binds == {}


def test_a_gang_that_fits_starts_together():
    world = World(nodes=ONE_NODE).job("train", pods=2, cpu=1)
    assert world.run(plugins="gang").bound_per_job == {"default/train": 2}


def test_room_that_a_failed_gang_tried_is_free_for_the_next():
    world = World(nodes=ONE_NODE).job("big", pods=3, cpu=1).job("small", pods=2, cpu=1)
    assert world.run(plugins="gang").bound_per_job == {"default/small": 2}


def test_members_above_the_minimum_may_wait():
    world = World(nodes=ONE_NODE).job("elastic", pods=5, minimum=1, cpu=1)
    assert world.run(plugins="gang").bound_per_job == {"default/elastic": 2}


def test_every_role_must_have_its_minimum():
    world = World(nodes=ONE_NODE)
    world.job(
        "mpi", roles={"master": 1, "worker": 3}, role_minimums={"master": 1, "worker": 2}, minimum=3, cpu=1
    )
    assert world.run(plugins="gang").binds == {}


def test_role_minimums_above_the_gangs_minimum_are_ignored():
    world = World(nodes=ONE_NODE)
    world.job(
        "mpi", roles={"master": 1, "worker": 3}, role_minimums={"master": 1, "worker": 3}, minimum=2, cpu=1
    )
    assert world.run(plugins="gang").bound_per_job == {"default/mpi": 2}


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"pods": 1, "minimum": 2}, "Not enough valid tasks for gang-scheduling, valid: 1, min: 2"),
        (
            {"roles": {"worker": 2}, "role_minimums": {"master": 1}, "minimum": 2},
            "Not enough valid pods of each task for gang-scheduling",
        ),
        (
            {
                "pods": 2,
                "group": {"subGroupPolicy": [{"name": "s", "matchLabelKeys": ["x"], "minSubGroups": 1}]},
            },
            "Not enough valid subGroups of each task for gang-scheduling",
        ),
    ],
)
def test_a_job_with_too_few_pods_says_so(job, message):
    world = World(nodes=ONE_NODE).job("short", cpu=1, **job)
    result = world.run(plugins="gang")
    assert result.binds == {}
    assert message in conditions_of(result, "short")["Unschedulable"].message


def test_a_gang_that_waits_says_why_and_what_volcano_says():
    world = World(nodes=ONE_NODE).job("train", pods=3, cpu=1)
    condition = conditions_of(world.run(plugins="gang"), "train")["Unschedulable"]
    assert condition.reason == "NotEnoughResources"
    assert condition.message == (
        "PodGroup train waits: nodes are unavailable: Insufficient cpu; all nodes together have "
        "less cpu than its pods that must start together request: add nodes or request less (3/3 "
        "tasks in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable)"
    )


def test_a_gang_that_starts_is_called_scheduled():
    world = World(nodes=ONE_NODE).job("train", pods=2, cpu=1)
    condition = conditions_of(world.run(plugins="gang"), "train")["Scheduled"]
    assert condition.reason == "tasks in gang are ready to be scheduled"


def test_sub_groups_start_whole_and_enough_of_them():
    policy = {"name": "slice", "matchLabelKeys": ["slice"], "subGroupSize": 2, "minSubGroups": 2}
    world = World(nodes="n1 cpu=3,memory=8Gi,pods=110")
    world.job("sliced", pods=0, minimum=2, cpu=1, group={"minMember": 2, "subGroupPolicy": [policy]})
    for index in range(4):
        world.add(
            {
                "kind": "Pod",
                "metadata": {
                    "name": f"sliced-{index}",
                    "labels": {"slice": str(index // 2)},
                    "annotations": {"scheduling.k8s.io/group-name": "sliced"},
                },
                "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
            }
        )
    assert world.run(plugins="gang").binds == {}
    world.add(
        {"kind": "Node", "metadata": {"name": "n2"}, "status": {"allocatable": {"cpu": "1", "pods": "9"}}}
    )
    assert world.step().bound_per_job == {"default/sliced": 4}


@pytest.mark.parametrize(
    ("pods", "why"),
    [(1, "its job would have no running pod left"), (2, "its gang would fall below its minimum")],
)
def test_why_a_job_is_spared_names_a_gang_only_if_it_is_one(pods, why):
    world = World(nodes=ONE_NODE).job("old", pods=pods, cpu=1, running_on=" ".join(["n1"] * pods))
    world.job("new", cpu=1).run(plugins="gang")
    candidates = [world.task(f"old-{index}") for index in range(pods)]
    assert world.plugin("gang").why_spared(world.task("new-0"), candidates) == why
