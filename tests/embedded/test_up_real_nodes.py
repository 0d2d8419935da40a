"""Pods on real nodes of `stromboli up`: gangs of processes, their logs, volumes and GPUs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.embedded.nodes.machine.fake_nvidia_smi import install, row, uuid
from tests.embedded.up_process import Up, eventually

GANG = Path(__file__).parents[2] / "examples" / "laptop" / "gang.yaml"
pytestmark = pytest.mark.programs("kubectl")

TALKS = """
apiVersion: v1
kind: Pod
metadata: {name: talks}
spec:
  nodeName: real-1
  restartPolicy: OnFailure
  containers:
  - name: main
    image: none
    command: [sh, -c, "echo one; echo two; sleep 1; echo three; test -e done || { touch done; exit 1; }"]
"""
_TEMPLATE = """
  template:
    metadata: {labels: {app: %s}}
    spec:
      nodeSelector: {stromboli.sh/node: real}
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: none
        command: [sh, -c, 'echo started >> "$STROMBOLI_ROOT/data/log"; exec sleep 1000']
        volumeMounts: [{name: d, mountPath: /data}]
"""
_CLAIM = "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
CLAIMS = f"""
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data}}
{_CLAIM}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: shared}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: shared}}}}
{_TEMPLATE % "shared"}
      volumes: [{{name: d, persistentVolumeClaim: {{claimName: data}}}}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: own}}
spec:
  serviceName: own
  replicas: 1
  selector: {{matchLabels: {{app: own}}}}
{_TEMPLATE % "own"}
  volumeClaimTemplates:
  - metadata: {{name: d}}
    {_CLAIM}
"""
GPU_POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  schedulerName: volcano
  restartPolicy: Never
  containers:
  - {name: main, image: none, command: [%s], resources: {limits: {nvidia.com/gpu: 1}}}
"""


def test_a_gang_of_real_processes_runs_and_speaks(cluster: Up, space: str) -> None:
    text = GANG.read_text().replace(
        "schedulerName: volcano", "schedulerName: volcano\n  nodeSelector: {stromboli.sh/node: real}"
    )
    cluster.kubectl("apply", "-f", "-", stdin=text)
    pods = [f"pod/ring-{number}" for number in range(3)]
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=40s", *pods)
    runs = []
    for rank in range(3):
        assert cluster.kubectl("logs", f"ring-{rank}") == f"rank {rank} of 3 in ring-{rank}\n"
        status = cluster.json("get", "pod", f"ring-{rank}")["status"]
        runs.append(status["containerStatuses"][0]["state"]["terminated"])
    assert max(run["startedAt"] for run in runs) <= min(run["finishedAt"] for run in runs)
    assert cluster.json("get", "podgroup", "ring")["status"]["phase"] in ("Running", "Completed")


def test_logs_followed_cut_and_of_the_run_before(cluster: Up, space: str) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=TALKS)
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s", "pod/talks")
    assert cluster.kubectl("logs", "talks") == "one\ntwo\nthree\n"
    assert cluster.kubectl("logs", "talks", "--tail=1") == "three\n"
    assert cluster.kubectl("logs", "talks", "--previous") == "one\ntwo\nthree\n"
    assert cluster.kubectl("logs", "talks", "-f", "--timestamps").splitlines()[0].endswith("Z one")
    assert "not found" in cluster.kubectl("logs", "none", ok=False)
    assert cluster.json("get", "pod", "talks")["status"]["containerStatuses"][0]["restartCount"] == 1
    assert "Started container main" in cluster.kubectl("describe", "pod", "talks")


def test_claims_of_workloads_are_bound_to_folders_that_outlive_their_pods(cluster: Up, space: str) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=CLAIMS)
    cluster.kubectl("rollout", "status", "deployment/shared", "--timeout=60s")
    cluster.kubectl("rollout", "status", "statefulset/own", "--timeout=60s")
    claims = {item["metadata"]["name"]: item for item in cluster.json("get", "pvc")["items"]}
    assert {name: claim["status"]["phase"] for name, claim in claims.items()} == {
        "data": "Bound",
        "d-own-0": "Bound",
    }
    volumes = {name: cluster.data / "volumes" / claim["spec"]["volumeName"] for name, claim in claims.items()}

    def starts(claim: str) -> int:
        file = volumes[claim] / "log"
        return file.read_text().count("started\n") if file.exists() else 0

    eventually(lambda: starts("data") == 2)
    cluster.kubectl("delete", "pod", "own-0")
    cluster.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/own-0")
    eventually(lambda: starts("d-own-0") == 2)
    cluster.kubectl("delete", "deployment/shared", "statefulset/own")
    cluster.kubectl("delete", "pvc", "--all", "--timeout=60s")
    eventually(lambda: not any(folder.exists() for folder in volumes.values()))


def test_the_gpu_of_a_killed_cluster_is_given_out_once_its_processes_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin = install(tmp_path, row(0))
    monkeypatch.setenv("PATH", f"{bin}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with Up(tmp_path / "data", "--real", "--schedule-period", "200ms") as up:
        [node] = up.json("get", "nodes")["items"]
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"
        assert node["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-H200"
        daemon = "setsid sleep 987 & echo $!; echo $CUDA_VISIBLE_DEVICES; wait"
        up.kubectl("apply", "-f", "-", stdin=GPU_POD % ("old", f"sh, -c, '{daemon}'"))
        up.kubectl("wait", "--for=condition=Ready", "--timeout=30s", "pod/old")
        eventually(lambda: len(up.kubectl("logs", "old").split()) == 2)
        pid, card = up.kubectl("logs", "old").split()
        assert card == uuid(0)
        up.kubectl("apply", "-f", "-", stdin=GPU_POD % ("next", f"sh, -c, 'cat /proc/{pid}/status || true'"))
        up.stop(signal.SIGKILL)
        up.start()
        up.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=30s", "pod/next")
        log = up.kubectl("logs", "next")
        assert "No such file" in log or "Z (zombie)" in log
        assert up.json("get", "pod", "old")["status"]["phase"] == "Failed"
        assert [each["metadata"]["name"] for each in up.json("get", "nodes")["items"]] == [
            node["metadata"]["name"]
        ]
        assert "2 GPUs for real nodes: this machine has 1" in up.stromboli(
            "up", "--nodes", "2cpu,2gpu,real", ok=False
        )
