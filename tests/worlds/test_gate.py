"""The worlds `07-gate` and `08-card`: the gate admits what evictions, or free nodes, could start."""

from __future__ import annotations

import pytest

from stromboli.engine.decisions import Event
from stromboli.simulator.cycle_plan import Plan
from stromboli.testing import Result, World
from tests.manifests import group, phases, pod
from tests.worlds.planning import WORLDS, live, objects_of, planned, policy_named

EVICTING = (
    "full",
    "fair-share",
    "full-capacity",
    "fair-share-capacity",
    "full-capacity-tree",
    "preset:full",
    "preset:fair-share",
)
STOCK = ("stock", "stock-capacity", "stock-capacity-tree", "stock-net", "preset:default", "preset:basic")


def is_admitted(plan: Plan, job: str) -> bool:
    """Whether the first cycle admitted a job."""
    return plan.cycles[0].phases[f"default/{job}"] != "Pending"


@pytest.mark.parametrize("policy", EVICTING)
def test_a_job_of_a_queue_below_its_share_is_admitted_evicts_and_starts(policy: str) -> None:
    plan = planned(policy, "07-gate/reclaim.yaml").whole
    assert len(plan.binds) == len(plan.evictions) == 4
    assert plan.phases["default/jobb"] == "Running"


@pytest.mark.parametrize("policy", EVICTING)
def test_it_is_admitted_before_its_pods_exist(policy: str) -> None:
    assert is_admitted(planned(policy, "07-gate/reclaim-nopods.yaml"), "jobb")


@pytest.mark.parametrize("policy", EVICTING)
def test_it_starts_once_its_controller_created_its_pods(policy: str) -> None:
    world = live(policy, "07-gate/reclaim-nopods.yaml")
    assert world.step().phases["default/jobb"] == "Inqueue"
    pods = [
        each for each in objects_of("07-gate/reclaim.yaml") if each["metadata"]["name"].startswith("jobb-")
    ]
    result = world.add(*pods).step(3)
    assert len(result.evictions) == len(result.binds) == len(pods) == 4


@pytest.mark.parametrize("policy", [*EVICTING, *STOCK])
def test_the_gate_decides_the_same_with_and_without_pods(policy: str) -> None:
    worlds = ("nopods", "nopods-jobmin", "pods-jobmin")
    admitted = [is_admitted(planned(policy, f"07-gate/{world}.yaml", cycles=1), "c") for world in worlds]
    assert admitted == [policy in EVICTING] * 3


@pytest.mark.parametrize("policy", EVICTING)
@pytest.mark.parametrize("world", ["reclaim", "reclaim-nopods"])
def test_an_admitted_job_is_not_reported_as_refused(policy: str, world: str) -> None:
    world_now = live(policy, f"07-gate/{world}.yaml")
    result = world_now.step()
    assert "overused" not in " ".join(event for event in _events(result, "jobb"))
    (job,) = (job for job in world_now.cluster.jobs.values() if job.name == "jobb")
    assert job not in result.outcome.session.reports.refusals
    assert "overused" not in str(job.reported)


def _events(result: Result, job: str) -> list[str]:
    found = [each for each in result.decisions if isinstance(each, Event) and each.name == job]
    assert found
    return [each.message for each in found]


@pytest.mark.parametrize("policy", [*EVICTING, *STOCK])
@pytest.mark.parametrize("world", ["capability", "guarantee"])
def test_queues_with_limits_of_gpus_alone_get_what_is_free(policy: str, world: str) -> None:
    """A node lost a GPU, so that the limits of queues exceed the cluster (volcano#4684, #4819)."""
    assert sorted(planned(policy, f"08-card/{world}.yaml").whole.binds) == ["default/ja-0", "default/jb-0"]


@pytest.mark.parametrize(
    "policy",
    [*sorted(file.stem for file in (WORLDS / "policies").iterdir()), "preset:full", "preset:fair-share"],
)
@pytest.mark.parametrize("world", ["issue5911", "issue5911-nomin"])
def test_two_free_nodes_take_a_job_of_their_size_beside_a_node_that_shrank(policy: str, world: str) -> None:
    assert planned(policy, f"08-card/{world}.yaml").whole.binds == {
        "default/new-0": "n1",
        "default/new-1": "n2",
    }


@pytest.mark.parametrize("policy", [*EVICTING, *STOCK])
def test_a_completed_group_whose_pods_are_deleted_reserves_nothing(policy: str) -> None:
    """The pods of a completed Job of Kubernetes go with its nodes; its PodGroup stays as long as the Job does."""
    world = World(nodes="n1 cpu=4; n2 cpu=4", policy=policy_named(policy).source)
    old = [pod(f"old-{index}", "old", cpu=4) for index in range(2)]
    world.add(group("old", 2, phase="Pending", minResources={"cpu": "8"}), *old).step(3)
    for each in old:
        world.finish(each["metadata"]["name"])
    world.step()
    assert phases(world)["old"] == "Completed"
    for each in old:
        world.remove(each)
    world.step(2)
    assert phases(world)["old"] == "Completed"
    world.add(group("new", 2, phase="Pending", minResources={"cpu": "8"}))
    world.add(*(pod(f"new-{index}", "new", cpu=4) for index in range(2)))
    assert set(world.step(2).binds) == {"default/new-0", "default/new-1"}
