"""Parts of GPUs on an API server: the ConfigMap, the annotations of bound pods, and a restart."""

from __future__ import annotations

import json
from typing import Any

from tests.kubernetes.scheduler_cluster import NAMESPACE, SIMULATED_LABELS, SchedulerCluster
from tests.plugins.deviceshare.card_worlds import card, card_pod, card_policy, mig_config, vgpu, vgpu_node

CONFIG = "/api/v1/namespaces/kube-system/configmaps/volcano-vgpu-device-config"


def submit(cluster: SchedulerCluster, name: str, memory: int) -> None:
    group, pod = card_pod(name, vgpu(memory))
    group["metadata"]["namespace"] = pod["metadata"]["namespace"] = NAMESPACE
    del group["status"], pod["status"]
    pod["spec"] |= {"schedulerName": "volcano", "terminationGracePeriodSeconds": 0}
    pod["spec"]["containers"][0]["image"] = "none"
    cluster.plane.apply(group, pod)


def annotations(cluster: SchedulerCluster, name: str) -> dict[str, str]:
    (pod,) = [pod for pod in cluster.pods() if pod["metadata"]["name"] == name]
    known: dict[str, str] = pod["metadata"]["annotations"]
    return known


def bound(cluster: SchedulerCluster) -> set[str]:
    pods: list[Any] = cluster.pods()
    return {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")}


def test_slots_are_cut_as_the_config_map_says_and_stay_given_out_over_a_restart(
    cluster: SchedulerCluster,
) -> None:
    cluster.policy.write_text(card_policy("enqueue, allocate", "gang", VGPUEnable=True))
    node = vgpu_node("gpu-0", card("GPU-0", 51200, mode="mig"))
    node["metadata"]["labels"] = dict(SIMULATED_LABELS)
    cluster.plane.apply(mig_config(), node)
    try:
        first = cluster.start_scheduler("--leader-elect=false")
        submit(cluster, "p", 20000)
        cluster.wait(lambda: bound(cluster) == {"p"}, "p to be bound")
        given = annotations(cluster, "p")
        assert given["volcano.sh/vgpu-ids-new"] == "GPU-0[mixed-0],NVIDIA,20000,0:"
        assert given["volcano.sh/devices-to-allocate"] == given["volcano.sh/vgpu-ids-new"]
        assert given["volcano.sh/vgpu-node"] == "gpu-0"
        phases = ("allocating", "success")  # of which the nodes of the embedded cluster write the second
        assert given["volcano.sh/bind-phase"] in phases
        first.kill()
        cluster.start_scheduler("--leader-elect=false")
        for name in ("q", "r", "s"):
            submit(cluster, name, 10000 if name == "r" else 20000)
        cluster.wait(lambda: len(bound(cluster)) == 3, "a slot of each size to be given out")
        names = {name: annotations(cluster, name)["volcano.sh/vgpu-ids-new"] for name in bound(cluster)}
        slots = sorted(text.partition(",")[0] for text in names.values())
        assert slots == ["GPU-0[mixed-0]", "GPU-0[mixed-1]", "GPU-0[mixed-2]"], json.dumps(names)
    finally:
        cluster.plane.request("DELETE", CONFIG)
