"""Several schedulers in one cluster: by shards, by hash; and pods that wait at the gate of their queue."""

from __future__ import annotations

from typing import Any

from tests.kubernetes.stage import NAMESPACE, POLICY, Stage

GATE = "scheduling.volcano.sh/queue-allocation-gate"
SHARDS = "/apis/shard.volcano.sh/v1alpha1/nodeshards"


def shard(name: str, *nodes: str) -> dict[str, Any]:
    return {
        "apiVersion": "shard.volcano.sh/v1alpha1",
        "kind": "NodeShard",
        "metadata": {"name": name},
        "spec": {"nodesDesired": list(nodes)},
    }


def nodes_of(stage: Stage, job: str) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in stage.bound(job)}


def test_two_schedulers_with_hard_shards_hand_a_node_over(stage: Stage) -> None:
    stage.add_nodes(3, cpu=4)
    stage.plane.apply(shard("one", "node-0", "node-1"), shard("two", "node-2"))
    for name in ("one", "two"):
        stage.start_scheduler(
            "--leader-elect=false",
            "--scheduler-sharding-mode=hard",
            f"--scheduler-sharding-name={name}",
            f"--scheduler-name={name}",
        )
    stage.wait(lambda: in_use(stage, "one") == ["node-0", "node-1"], "the first to say what it uses")
    stage.submit("first", pods=8, scheduler="one")
    stage.submit("second", pods=4, scheduler="two")
    stage.wait_for_running("first", 8)
    stage.wait_for_running("second", 4)
    assert nodes_of(stage, "first") == {"node-0", "node-1"}
    assert nodes_of(stage, "second") == {"node-2"}
    stage.delete("pods", "-l", "job=first")
    stage.plane.apply(shard("one", "node-0"), shard("two", "node-1", "node-2"))
    stage.submit("third", pods=4, scheduler="two")
    stage.wait_for_running("third", 4)
    assert nodes_of(stage, "third") == {"node-1"}
    assert (in_use(stage, "one"), in_use(stage, "two")) == (["node-0"], ["node-1", "node-2"])
    stage.plane.kubectl("delete", "nodeshards", "--all")


def in_use(stage: Stage, name: str) -> list[str]:
    found: list[str] = stage.read(f"{SHARDS}/{name}").get("status", {}).get("nodesInUse", [])
    return found


def test_two_schedulers_divide_nodes_and_jobs_by_hash(stage: Stage) -> None:
    stage.add_nodes(8, cpu=4)
    for number in range(2):
        members = {"SCHEDULER_NUM": "2", "SCHEDULER_POD_NAME": f"scheduler-{number}"}
        stage.start_scheduler("--leader-elect=false", env={"MULTI_SCHEDULER_ENABLE": "true", **members})
    jobs = [f"job-{number}" for number in range(6)]
    for job in jobs:
        stage.submit(job, pods=1)
    for job in jobs:
        stage.wait_for_running(job, 1)
    first, second = (one.said for one in stage.schedulers)
    bound = [sum(f"job={NAMESPACE}/{job} " in said for said in (first, second)) for job in jobs]
    assert bound == [1] * 6
    stage.check()


def test_pods_are_let_out_of_the_gate_as_their_queue_has_room(stage: Stage) -> None:
    stage.policy.write_text(POLICY.replace("proportion", "capacity"))
    stage.add_nodes(1, cpu=8)
    stage.add_queue("small", capability={"cpu": "2"})
    stage.start_scheduler("--feature-gates=SchedulingGatesQueueAdmission=true")
    stage.submit("gated", pods=3, minimum=1, queue="small", gate=GATE)
    stage.wait_for_running("gated", 2)
    assert stage.steady(1.5, lambda: stage.running("gated") == 2)
    (waiting,) = (pod for pod in stage.pods("gated") if not pod["spec"].get("nodeName"))
    assert waiting["spec"]["schedulingGates"] == [{"name": GATE}]
    first = stage.bound("gated")[0]["metadata"]["name"]
    stage.delete("pod", first)
    stage.wait(lambda: len(stage.bound("gated")) == 2, "the last one to be let out")
