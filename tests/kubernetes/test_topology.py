"""Gangs in HyperNodes that the controller discovers by labels: placed, kept together, moved whole."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.faults import Between, Fault, Trouble
from tests.kubernetes.scheduler_cluster import NAMESPACE, POLICY, SchedulerCluster

RACK, SWITCH = "example.com/rack", "example.com/switch"
HYPER_NODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
IN_ONE_RACK = {"mode": "hard", "highestTierAllowed": 1}
DISCOVERY = f"""
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      net:
      - nodeLabel: {SWITCH}
      - nodeLabel: {RACK}
      - nodeLabel: kubernetes.io/hostname
"""


def add_racks(cluster: SchedulerCluster, *racks: str) -> None:
    """`left-1`: a rack of two nodes with 4 CPUs below the switch `left`."""
    for rack in racks:
        switch = rack.partition("-")[0]
        cluster.add_nodes(2, cpu=4, prefix=rack, labels={RACK: rack, SWITCH: switch})


def discover(cluster: SchedulerCluster, *more: str) -> None:
    """Start the controllers, and wait until every rack and switch has its HyperNode."""
    cluster.plane.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "volcano-controller-configmap", "namespace": "volcano-system"},
            "data": {"volcano-controller.conf": DISCOVERY},
        }
    )
    cluster.start_controllers("hyperNode-controller", *more)
    nodes = cluster.read("/api/v1/nodes")["items"]
    labels = [node["metadata"]["labels"] for node in nodes]
    wanted = {label[key] for label in labels for key in (RACK, SWITCH)}
    cluster.wait(lambda: discovered(cluster) == wanted, "all HyperNodes")


def discovered(cluster: SchedulerCluster) -> set[str]:
    """The racks and switches that have a HyperNode."""
    labels = [item["metadata"]["labels"] for item in cluster.read(HYPER_NODES)["items"]]
    return {value for label in labels for key, value in label.items() if key in (RACK, SWITCH)}


def use(cluster: SchedulerCluster, actions: str = "enqueue, allocate, backfill") -> None:
    """A policy with the topology plugin and these actions."""
    policy = POLICY.replace("enqueue, allocate, backfill", actions)
    cluster.policy.write_text(policy + "  - name: network-topology-aware\n")


def racks_of(cluster: SchedulerCluster, job: str) -> set[str]:
    """The racks in which a job has pods."""
    return {pod["spec"]["nodeName"].rpartition("-")[0] for pod in cluster.bound(job)}


def test_a_gang_follows_hyper_nodes_that_come_from_labels(cluster: SchedulerCluster) -> None:
    use(cluster)
    add_racks(cluster, "left-1", "left-2", "right-1")
    discover(cluster)
    cluster.start_scheduler()
    cluster.submit("small", pods=3, topology=IN_ONE_RACK)
    cluster.wait_for_running("small", 3)
    for name in ("first", "second"):
        cluster.submit(name, pods=8, topology=IN_ONE_RACK)
        cluster.wait_for_running(name, 8)
    places = [racks_of(cluster, name) for name in ("small", "first", "second")]
    assert sorted(rack for place in places for rack in place) == ["left-1", "left-2", "right-1"]
    cluster.submit("third", pods=8, topology=IN_ONE_RACK)
    assert cluster.holds_for(1.5, lambda: not cluster.bound("third"))
    add_racks(cluster, "right-2")
    cluster.wait_for_running("third", 8)
    assert racks_of(cluster, "third") == {"right-2"}
    cluster.check_capacity()


def test_a_gang_keeps_to_its_rack_when_the_scheduler_is_killed_half_way(
    cluster: SchedulerCluster, proxy: Between
) -> None:
    bound = {f"/train-{number}/binding" for number in range(3)}

    def rule(method: str, path: str, count: int) -> Fault:
        is_lost = path.endswith("/binding") and not path.endswith(tuple(bound))
        return Trouble.LOSE_REQUEST if is_lost else None

    use(cluster)
    add_racks(cluster, "left-1", "left-2")
    discover(cluster)
    proxy.rule = rule
    first = cluster.start_scheduler("--leader-elect=false", server=proxy.url)
    cluster.submit("train", pods=6, topology=IN_ONE_RACK)
    cluster.wait(lambda: len(cluster.bound("train")) == 3, "a part of the gang to be bound")
    first.kill()
    (rack,) = racks_of(cluster, "train")
    fill(cluster, *{"left-1", "left-2"} - {rack}, leave=3)
    second = cluster.start_scheduler("--leader-elect=false")
    cluster.wait_for_running("train", 6)
    assert racks_of(cluster, "train") == {rack}

    second.kill()
    cluster.delete("pod", "train-4")
    fill(cluster, rack)
    cluster.start_scheduler("--leader-elect=false")
    cluster.plane.apply(cluster.pod("train", 4))
    cluster.wait(lambda: "must stay in HyperNode" in why(cluster, "train-4"), "the pod to say why it waits")
    assert len(cluster.bound("train")) == 5
    cluster.delete("pod", f"filler-{rack}-0-0")
    cluster.wait_for_running("train", 6)
    assert racks_of(cluster, "train") == {rack}
    cluster.check_capacity()


def fill(cluster: SchedulerCluster, rack: str, leave: int = 0) -> None:
    """Put pods of somebody else onto the nodes of a rack, until so many CPUs are left."""
    taken = [pod["spec"]["nodeName"] for pod in cluster.bound()]
    places = [
        (f"{rack}-{node}", number) for node in range(2) for number in range(4 - taken.count(f"{rack}-{node}"))
    ]
    pods = [cluster.pod(f"filler-{node}", number) for node, number in places[: len(places) - leave]]
    for pod, (node, _) in zip(pods, places, strict=False):
        pod["spec"] |= {"nodeName": node, "schedulerName": "other"}
    cluster.plane.apply(*pods)


def why(cluster: SchedulerCluster, name: str) -> str:
    """What the condition of a pod says about its placement."""
    pod = cluster.read(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")
    conditions = pod["status"].get("conditions", ())
    return "".join(entry.get("message", "") for entry in conditions if entry["type"] == "PodScheduled")


def job(name: str, pods: int, priority: str) -> dict[str, Any]:
    """A Volcano job that keeps to one rack, and starts anew as a whole when a pod is evicted."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"labels": {"job": name}, "annotations": {"volcano.sh/preemptable": "true"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": pods,
            "priorityClassName": priority,
            "networkTopology": IN_ONE_RACK,
            "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
            "tasks": [{"name": "worker", "replicas": pods, "template": template}],
        },
    }


@pytest.mark.parametrize("action", ["gangpreempt", "gangreclaim"])
def test_a_gang_is_moved_as_a_whole_for_a_gang_that_needs_its_rack(
    cluster: SchedulerCluster, action: str
) -> None:
    use(cluster, f"enqueue, allocate, {action}, backfill")
    cluster.policy.write_text(cluster.policy.read_text().replace("proportion", "capacity"))
    for name, value in (("moves-aside", 1), ("needs-the-rack", 1000)):
        cluster.plane.apply(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
        )
    cluster.add_queue("default", deserved={"cpu": "1"})
    cluster.add_queue("owner", deserved={"cpu": "12"})
    add_racks(cluster, "left-1", "right-1")
    fill(cluster, "right-1")
    discover(cluster, "job-controller")
    cluster.start_scheduler("--leader-elect=false")
    cluster.plane.apply(job("movable", 4, "moves-aside"))
    cluster.wait_for_running("movable", 4)
    cluster.delete("pods", "-l", "job=filler-right-1-0")
    queue = "owner" if action == "gangreclaim" else "default"
    cluster.submit("urgent", pods=8, priority="needs-the-rack", queue=queue, topology=IN_ONE_RACK)
    cluster.wait_for_running("urgent", 8)
    assert racks_of(cluster, "urgent") == {"left-1"}
    cluster.wait_for_running("movable", 4)
    assert racks_of(cluster, "movable") == {"right-1"}
    assert cluster.schedulers[-1].output.count(f"action={action}") == 4
    cluster.check_capacity()
