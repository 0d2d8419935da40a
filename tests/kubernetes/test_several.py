"""Several schedulers in one cluster: by shards, by hash; and pods that wait at the gate of their queue."""

from __future__ import annotations

from typing import Any

from tests.kubernetes.scheduler_cluster import NAMESPACE, POLICY, SchedulerCluster

GATE = "scheduling.volcano.sh/queue-allocation-gate"
SHARDS = "/apis/shard.volcano.sh/v1alpha1/nodeshards"


def shard(name: str, *nodes: str) -> dict[str, Any]:
    return {
        "apiVersion": "shard.volcano.sh/v1alpha1",
        "kind": "NodeShard",
        "metadata": {"name": name},
        "spec": {"nodesDesired": list(nodes)},
    }


def nodes_of(cluster: SchedulerCluster, job: str) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in cluster.bound(job)}


def test_two_schedulers_with_hard_shards_hand_a_node_over(cluster: SchedulerCluster) -> None:
    cluster.add_nodes(3, cpu=4)
    cluster.plane.apply(shard("one", "node-0", "node-1"), shard("two", "node-2"))
    for name in ("one", "two"):
        cluster.start_scheduler(
            "--leader-elect=false",
            "--scheduler-sharding-mode=hard",
            f"--scheduler-sharding-name={name}",
            f"--scheduler-name={name}",
        )
    cluster.wait(lambda: in_use(cluster, "one") == ["node-0", "node-1"], "the first to say what it uses")
    cluster.submit("first", pods=8, scheduler="one")
    cluster.submit("second", pods=4, scheduler="two")
    cluster.wait_for_running("first", 8)
    cluster.wait_for_running("second", 4)
    assert nodes_of(cluster, "first") == {"node-0", "node-1"}
    assert nodes_of(cluster, "second") == {"node-2"}
    cluster.delete("pods", "-l", "job=first")
    cluster.plane.apply(shard("one", "node-0"), shard("two", "node-1", "node-2"))
    cluster.submit("third", pods=4, scheduler="two")
    cluster.wait_for_running("third", 4)
    assert nodes_of(cluster, "third") == {"node-1"}
    assert (in_use(cluster, "one"), in_use(cluster, "two")) == (["node-0"], ["node-1", "node-2"])


def sharding_config(first: int) -> dict[str, Any]:
    """So many nodes for the first scheduler, the fullest, and all others for the second."""
    text = f"""
schedulerConfigs:
- {{name: one, cpuUtilizationMax: 1, maxNodes: {first}}}
- {{name: two, cpuUtilizationMax: 1}}
"""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-sharding-configmap", "namespace": "volcano-system"},
        "data": {"sharding.yaml": text},
    }


def test_schedulers_keep_to_the_nodes_that_the_sharding_controller_gives_them(
    cluster: SchedulerCluster,
) -> None:
    cluster.add_nodes(3, cpu=4)
    cluster.plane.apply(sharding_config(1))
    controllers = cluster.start_controllers("sharding-controller")
    for name in ("one", "two"):
        cluster.start_scheduler(
            "--leader-elect=false",
            "--scheduler-sharding-mode=hard",
            f"--scheduler-sharding-name={name}",
            f"--scheduler-name={name}",
        )
    cluster.wait(lambda: in_use(cluster, "two") == ["node-1", "node-2"], "the second to use two nodes")
    cluster.submit("first", pods=4, scheduler="one")
    cluster.wait_for_running("first", 4)
    assert nodes_of(cluster, "first") == {"node-0"}
    cluster.submit("more", pods=4, scheduler="one")
    cluster.plane.apply(sharding_config(2))
    cluster.wait_for_running("more", 4)
    assert nodes_of(cluster, "more") == {"node-1"}
    assert (in_use(cluster, "one"), in_use(cluster, "two")) == (["node-0", "node-1"], ["node-2"])
    cluster.wait(lambda: "nodesToAdd" not in pending(cluster, "one"), "nothing more to come")
    assert "lastUpdateTime" in cluster.read(f"{SHARDS}/one")["status"]
    assert controllers.stop() == 0
    assert "forbidden" not in controllers.output


def pending(cluster: SchedulerCluster, name: str) -> set[str]:
    """What of a shard is still to come or to go."""
    status = cluster.read(f"{SHARDS}/{name}")["status"]
    return {field for field in ("nodesToAdd", "nodesToRemove") if status.get(field)}


def in_use(cluster: SchedulerCluster, name: str) -> list[str]:
    nodes: list[str] = cluster.read(f"{SHARDS}/{name}").get("status", {}).get("nodesInUse", [])
    return nodes


def test_two_schedulers_divide_nodes_and_jobs_by_hash(cluster: SchedulerCluster) -> None:
    cluster.add_nodes(8, cpu=4)
    for number in range(2):
        members = {"SCHEDULER_NUM": "2", "SCHEDULER_POD_NAME": f"scheduler-{number}"}
        cluster.start_scheduler("--leader-elect=false", env={"MULTI_SCHEDULER_ENABLE": "true", **members})
    jobs = [f"job-{number}" for number in range(6)]
    for job in jobs:
        cluster.submit(job, pods=1)
    for job in jobs:
        cluster.wait_for_running(job, 1)
    first, second = (scheduler.output for scheduler in cluster.schedulers)
    bound = [sum(f"job={NAMESPACE}/{job} " in output for output in (first, second)) for job in jobs]
    assert bound == [1] * 6
    cluster.check_capacity()


def test_pods_are_let_out_of_the_gate_as_their_queue_has_room(cluster: SchedulerCluster) -> None:
    cluster.policy.write_text(POLICY.replace("proportion", "capacity"))
    cluster.add_nodes(1, cpu=8)
    cluster.add_queue("small", capability={"cpu": "2"})
    cluster.start_scheduler("--feature-gates=SchedulingGatesQueueAdmission=true")
    cluster.submit("gated", pods=3, minimum=1, queue="small", gate=GATE)
    cluster.wait_for_running("gated", 2)
    assert cluster.holds_for(1.5, lambda: cluster.running("gated") == 2)
    (waiting,) = (pod for pod in cluster.pods("gated") if not pod["spec"].get("nodeName"))
    assert waiting["spec"]["schedulingGates"] == [{"name": GATE}]
    first = cluster.bound("gated")[0]["metadata"]["name"]
    cluster.delete("pod", first)
    cluster.wait(lambda: len(cluster.bound("gated")) == 2, "the last one to be let out")
