"""The world `01-drain` (volcano#5805): a running gang lost a pod, and newcomers want the same capacity."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
import yaml

from stromboli.api.durations import FOREVER, Duration
from stromboli.embedded.cluster_services import ServiceConfig
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import find_access
from stromboli.testing import World
from tests.manifests import group, node, phases, pod, policy
from tests.worlds.planning import CATALOG, WORLDS, live, planned, policy_named

OURS = ("full", "fair-share", "full-capacity", "preset:full", "preset:fair-share", "preset:basic")
JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")
PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node")


@pytest.mark.parametrize("world", ["plan", "gang-older", "filler-older"])
@pytest.mark.parametrize("policy", [*OURS, "preset:high-priority"])
def test_a_running_gang_gets_its_pod_back_before_a_newcomer_starts(policy: str, world: str) -> None:
    plan = planned(policy, f"01-drain/{world}.yaml").whole
    assert plan.binds == {"default/gang-1": "n2"}
    assert set(plan.pending) == {"default/filler"}


@pytest.mark.parametrize("phase", ["", "Pending", "Inqueue", "Running", "Unknown"])
@pytest.mark.parametrize("policy", [*OURS, "preset:high-priority"])
def test_it_gets_its_pod_back_whatever_phase_its_group_shows(policy: str, phase: str) -> None:
    """Such as Pending if the group was created again, or if none of its pods had started yet."""
    world = live(policy, "01-drain/plan.yaml")
    world.add(group("gang", 2, phase=phase, minResources={"cpu": "8"}))
    assert world.step(2).binds == {"default/gang-1": "n2"}


@pytest.mark.parametrize("policy", [*OURS, "preset:high-priority"])
def test_a_gang_without_min_resources_gets_its_pod_back_too(policy: str) -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=4", policy=policy_named(policy).source)
    world.add(group("filler", 1), pod("filler-0", "filler", cpu=4))
    world.add(group("gang", 2, phase="Running"), pod("gang-0", "gang", on="n1", cpu=4, phase="Running"))
    assert world.add(pod("gang-1", "gang", cpu=4)).step(2).binds == {"default/gang-1": "n2"}


@pytest.mark.parametrize("policy", ["stock", "stock-capacity", "preset:default"])
def test_a_gang_that_newcomers_keep_waiting_is_reported_as_below_its_minimum(policy: str) -> None:
    gang = planned(policy, "01-drain/plan.yaml").whole.pending["default/gang"]
    assert gang.message.startswith("it runs below its minimum (1 of 2 pods): ")
    assert gang.sentence.startswith("PodGroup gang waits: it runs below its minimum (1 of 2 pods): ")


def drained(queues: str, gang_queue: str = "default", share: str = "proportion") -> World:
    """A gang of two pods that lost one of them, on two nodes of four CPUs."""
    policy = policy_named("preset:full").source.replace("- name: proportion", f"- name: {share}")
    world = World(nodes="n1 cpu=4; n2 cpu=4", queues=queues, policy=policy)
    spec = {"minResources": {"cpu": "8"}, "queue": gang_queue}
    world.add(group("gang", 2, phase="Running", **spec))
    world.add(pod("gang-0", "gang", on="n1", cpu=4, phase="Running"), pod("gang-1", "gang", cpu=4))
    return world


SHARES = pytest.mark.parametrize("share", ["proportion", "capacity"])


@SHARES
@pytest.mark.parametrize("newcomer", ["a", "z"])
@pytest.mark.parametrize("queues", ["a; m; z", "a weight=9; m; z weight=9"])
def test_the_queue_of_a_running_gang_comes_before_queues_of_newcomers(
    queues: str, newcomer: str, share: str
) -> None:
    """Even if the gang holds all that its queue deserves beside the newcomer."""
    world = drained(queues, "m", share).job("new", cpu=4, queue=newcomer)
    assert world.step().binds == {"default/gang-1": "n2"}


@SHARES
def test_a_gang_gets_its_pod_back_only_within_the_capability_of_its_queue(share: str) -> None:
    assert not drained("a; m capability=cpu:7", "m", share).step(2).binds


def test_a_gang_that_waits_for_its_pod_lets_no_other_job_of_its_queue_exceed_the_share() -> None:
    """The pod that it lost fits on no node; two queues want all that is free."""

    def started(minimum: int) -> dict[str, int]:
        text = policy("enqueue, allocate", "priority gang | predicates proportion", enqueue=RESERVE)
        world = World(nodes="n1 cpu=16", queues="m; z", policy=text)
        world.add(group("gang", minimum, phase="Running", queue="m"), pod("gang-0", "gang", on="n1", cpu=1))
        lost = {"nodeSelector": {"kubernetes.io/hostname": "gone"}}
        world.add(pod("gang-1", "gang", cpu=4, spec=lost))
        for number in range(20):
            for queue in "mz":
                world.job(f"{queue}{number}", cpu=1, queue=queue, phase="Inqueue")
        binds = [name.removeprefix("default/")[0] for name in world.step(5).binds]
        return {queue: binds.count(queue) for queue in "mz"}

    assert started(minimum=2) == started(minimum=1) == {"m": 7, "z": 8}


def test_a_queue_beyond_its_share_is_reclaimed_from_while_one_of_its_gangs_lacks_a_pod() -> None:
    text = policy("enqueue, allocate, reclaim", "priority | predicates proportion", enqueue=RESERVE)
    world = World(nodes="n1 cpu=8", queues="m; z", policy=text)
    world.job("old", pods=7, minimum=1, cpu=1, queue="m", running_on=["n1"] * 7)
    world.add(group("gang", 2, phase="Running", queue="m"), pod("gang-0", "gang", on="n1", cpu=1))
    world.add(pod("gang-1", "gang", cpu=1)).job("new", cpu=1, queue="z")
    assert len(world.step().evictions) == 1


RESERVE = {"reserveMinimum": True}


def test_a_queue_of_higher_priority_still_comes_first() -> None:
    world = drained("a priority=5; m", "m").add(group("new", 1, queue="a"), pod("new-0", "new", cpu=4))
    assert world.step().binds == {"default/new-0": "n2"}


def test_a_newcomer_of_higher_priority_still_comes_first() -> None:
    assert drained("").job("new", cpu=4, priority=7).step().binds == {"default/new-0": "n2"}


def test_a_gang_that_had_its_turn_does_not_carry_other_jobs_of_its_queue() -> None:
    """Its second pod fits nowhere; the next job of its queue waits behind a queue with a smaller share."""
    policy = policy_named("full-capacity").source
    world = World(nodes="n1 cpu=4; n2 cpu=3", queues="m deserved=cpu:4; z deserved=cpu:4", policy=policy)
    world.add(group("gang", 2, phase="Running", queue="m"))
    world.add(pod("gang-0", "gang", on="n1", cpu=4, phase="Running"), pod("gang-1", "gang", cpu=4))
    world.job("mine", cpu=3, queue="m").job("theirs", cpu=3, queue="z")
    assert world.step().binds == {"default/theirs-0": "n2"}


@pytest.mark.parametrize(("policy", "phase"), [("preset:full", "Pending"), ("stock", "Inqueue")])
def test_the_gate_keeps_what_a_running_gang_lacks(policy: str, phase: str) -> None:
    """While the node of its lost pod is cordoned, a newcomer is not admitted in its place, as it is by Volcano."""
    world = World(policy=policy_named(policy).source)
    world.add(node("n1"), node("n2", spec={"unschedulable": True}))
    world.add(
        group("gang", 2, phase="Running", minResources={"cpu": "8"}), pod("gang-0", "gang", on="n1", cpu=4)
    )
    world.add(group("filler", 1, phase="Pending", minResources={"cpu": "4"}))
    world.step(3)
    assert phases(world)["filler"] == phase


@pytest.mark.parametrize(("failed", "phase"), [("gang-1", "Inqueue"), ("", "Pending")])
def test_the_gate_keeps_nothing_for_a_pod_that_stays_failed(failed: str, phase: str) -> None:
    world = World(policy=policy_named("preset:full").source).add(node("n1"), node("n2"))
    world.add(group("gang", 2, phase="Running", minResources={"cpu": "8"}))
    world.add(pod("gang-0", "gang", on="n1", cpu=4))
    if failed:
        world.add(pod(failed, "gang", on="n2", cpu=4, phase="Failed"))
    world.add(group("filler", 1, phase="Pending", minResources={"cpu": "4"}))
    world.step(3)
    assert phases(world)["filler"] == phase


def test_the_gate_keeps_capacity_for_a_pod_that_replaces_a_failed_one() -> None:
    world = World(policy=policy_named("preset:full").source)
    world.add(node("n1"), node("n2", spec={"unschedulable": True}))
    world.add(group("gang", 2, phase="Running", minResources={"cpu": "8"}))
    world.add(pod("gang-0", "gang", on="n1", cpu=4), pod("gang-1", "gang", on="n2", cpu=4, phase="Failed"))
    world.add(pod("gang-2", "gang", cpu=4), group("filler", 1, phase="Pending", minResources={"cpu": "4"}))
    world.step(3)
    assert phases(world)["filler"] == "Pending"


# -- on `stromboli up`


async def pods_of(client: Client) -> dict[str, tuple[str, str]]:
    """Return phase and node of each pod by name."""
    items = msgspec.json.decode(await client.list(PODS, "default"))["items"]
    return {
        item["metadata"]["name"]: (item["status"]["phase"], item["spec"].get("nodeName", ""))
        for item in items
        if "deletionTimestamp" not in item["metadata"]
    }


async def settled(client: Client, **pods: str) -> dict[str, str]:
    """Wait until pods (with `_` for `-`) have these phases; return their nodes."""
    wanted = {name.replace("_", "-"): phase for name, phase in pods.items()}
    async with asyncio.timeout(60):
        while True:
            known = await pods_of(client)
            if {name: phase for name, (phase, _) in known.items()} == wanted:
                return {name: node for name, (_, node) in known.items()}
            await asyncio.sleep(0.05)


async def cordon(client: Client, name: str, value: bool) -> None:
    await client.patch(NODES, name, {"spec": {"unschedulable": value}})


def test_a_drained_gang_is_whole_again_once_its_node_returns(tmp_path: Path) -> None:
    gang, filler = (
        yaml.safe_load((WORLDS / "01-drain" / f"{name}.yaml").read_text()) for name in ("gang", "filler")
    )

    async def scenario() -> None:
        delays = StageDelays(Duration(0.05, 0.05), FOREVER, 0.05)
        config = ServiceConfig(
            node_manifests(["2x4cpu"]), CATALOG, policy_named("preset:full"), delays, period=0.1
        )
        data = DataFolder(tmp_path / "data")
        async with (
            EmbeddedCluster(data, config) as embedded,
            Client(find_access(str(embedded.kubeconfig))) as client,
        ):
            await client.create(JOBS, gang, "default")
            nodes = await settled(client, train_w_0="Running", train_w_1="Running")
            await cordon(client, nodes["train-w-1"], True)
            await client.delete(PODS, "train-w-1", "default")
            await client.create(JOBS, filler, "default")
            await settled(client, train_w_0="Running", train_w_1="Pending")
            await cordon(client, nodes["train-w-1"], False)
            assert await settled(client, train_w_0="Running", train_w_1="Running") == nodes
        data.release()

    asyncio.run(scenario())
