"""Volumes, devices and shared cards on `stromboli up`, end to end with kubectl."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.embedded.up_process import Up, eventually

pytestmark = pytest.mark.programs("kubectl")

POLICY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true, deviceshare.NodeLockEnable: true}
"""
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: %(name)s}
spec:
  minAvailable: %(replicas)d
  queue: default
  %(job)s
  tasks:
  - name: worker
    replicas: %(replicas)d
    template:
      metadata: {annotations: {stromboli.sh/run-time: %(time)s}}
      spec:
        restartPolicy: Never
        %(pod)s
        containers:
        - {name: main, image: none, resources: %(resources)s}
"""
CLAIM = "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
VOLUME = f"volumes: [{{mountPath: /data, volumeClaim: {CLAIM}}}]"
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two-gpus}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu.stromboli.sh
          count: 2
          selectors: [{cel: {expression: 'device.attributes["gpu.stromboli.sh"].model == "A100"'}}]
"""


class Cluster(Up):
    def items(self, kind: str) -> list[Any]:
        return list(self.json("get", kind)["items"])

    def submit(self, name: str, replicas: int = 1, time: str = "forever", **parts: str) -> None:
        values = {"job": "", "pod": "", "resources": "{}", **parts}
        self.kubectl(
            "apply", "-f", "-", stdin=JOB % {"name": name, "replicas": replicas, "time": time, **values}
        )

    def phase(self, job: str) -> str:
        state = self.json("get", "jobs.batch.volcano.sh", job).get("status", {}).get("state", {})
        return str(state.get("phase", ""))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder: Path = tmp_path_factory.mktemp("claims")
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    nodes = ("--nodes", "2x8cpu,2gpu,dra,gpu-model=A100", "--nodes", "cards=8cpu,1gpu,vgpu")
    options = (*nodes, "--policy", str(policy), "--schedule-period", "200ms", "--start-delay", "50ms")
    with Cluster(folder / "data", *options) as up:
        yield up


def test_a_job_with_a_volume_runs_once_its_claim_is_bound_to_a_new_volume(cluster: Cluster) -> None:
    (standard,) = cluster.items("storageclasses")
    assert (standard["metadata"]["name"], standard["volumeBindingMode"]) == (
        "standard",
        "WaitForFirstConsumer",
    )
    cluster.submit("stores", time="300ms", job=VOLUME)
    eventually(lambda: cluster.phase("stores") == "Completed", 60)
    (claim,) = cluster.items("pvc")
    (volume,) = cluster.items("pv")
    assert claim["status"]["phase"] == volume["status"]["phase"] == "Bound"
    assert volume["spec"]["hostPath"]["path"].startswith(str(cluster.data / "volumes"))
    assert "volume.kubernetes.io/selected-node" in claim["metadata"]["annotations"]
    cluster.kubectl(
        "delete", "jobs.batch.volcano.sh", "stores"
    )  # its claim goes with it, and the volume with that
    eventually(lambda: not cluster.items("pv"), 60)


def test_a_gang_with_claims_from_a_template_gets_devices_and_frees_them(cluster: Cluster) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=TEMPLATE)
    claims = "resourceClaims: [{name: gpus, resourceClaimTemplateName: two-gpus}]"
    resources = "{claims: [{name: gpus}]}"
    cluster.submit("trains", replicas=2, pod=claims, resources=resources)
    eventually(lambda: cluster.phase("trains") == "Running", 60)
    made = cluster.items("resourceclaims")
    results = [result for each in made for result in each["status"]["allocation"]["devices"]["results"]]
    assert len({(result["pool"], result["device"]) for result in results}) == 4
    assert {each["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"] for each in made} == {
        "gpus"
    }
    assert "allocated,reserved" in cluster.kubectl("get", "resourceclaims")
    cluster.submit("waits", pod=claims, resources=resources, time="200ms")
    eventually(lambda: len(cluster.items("resourceclaims")) == 3, 60)
    assert cluster.phase("waits") != "Running"
    cluster.kubectl("delete", "jobs.batch.volcano.sh", "trains", "--wait=false")
    eventually(lambda: cluster.phase("waits") == "Completed", 60)
    eventually(lambda: not cluster.items("resourceclaims"), 60)


def test_pods_share_a_card_and_the_node_is_unlocked(cluster: Cluster) -> None:
    share = {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 20480, "volcano.sh/vgpu-cores": 40}
    for name in ("half", "other"):
        cluster.submit(name, resources=json.dumps({"limits": share}))
        eventually(lambda name=name: cluster.phase(name) == "Running", 60)  # type: ignore[misc]
    given = [
        pod["metadata"]["annotations"]
        for pod in cluster.items("pods")
        if pod["metadata"]["name"].startswith(("half-", "other-"))
    ]
    assert {each["volcano.sh/bind-phase"] for each in given} == {"success"}
    (card,) = {each["volcano.sh/vgpu-ids-new"].partition(",")[0] for each in given}
    node = cluster.json("get", "node", "cards-1")
    assert card in node["metadata"]["annotations"]["volcano.sh/node-vgpu-register"]
    assert "hamivgpu" not in node["metadata"]["annotations"]
