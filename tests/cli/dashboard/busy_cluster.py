"""A cluster of `stromboli up` with enough to look at: racks, a tree of queues, jobs that run and jobs that wait.

It is always the same, so that the screenshots of the documentation are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.embedded.up_process import Up, eventually

Manifest = dict[str, Any]
POLICY = """
actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: capacity
    enableHierarchy: true
  - name: nodeorder
  - name: binpack
  - name: network-topology-aware
"""
NODES = (
    *("--nodes", "gpu=32x64cpu,512Gi,8gpu"),
    *("--nodes", "cpu=6x64cpu,256Gi"),
    *("--nodes", "real=2x4cpu,8Gi,real"),
    *("--racks", "8", "--switches", "2"),
)
MARKUP = "<img src=x onerror=window.__hacked=1><script>window.__hacked=1</script>"
"""What somebody who means harm writes wherever he may write."""


def queue(name: str, parent: str = "", **amounts: Manifest) -> Manifest:
    """Amounts are `deserved`, `guarantee` and `capability`."""
    spec: Manifest = {"reclaimable": True, **({"parent": parent} if parent else {}), **amounts}
    if "guarantee" in spec:
        spec["guarantee"] = {"resource": spec["guarantee"]}
    metadata = {"name": name, "annotations": {"note": MARKUP}}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": metadata,
        "spec": spec,
    }


def resources(cpu: int, gpu: int = 0, memory: str = "") -> Manifest:
    amounts = {"cpu": str(cpu)}
    if memory:
        amounts["memory"] = memory
    return {**amounts, "nvidia.com/gpu": str(gpu)} if gpu else amounts


def job(
    name: str,
    namespace: str,
    queue: str,
    request: Manifest,
    pods: int = 1,
    runs: str = "",
    command: list[str] | None = None,
    **more: Any,
) -> Manifest:
    """A gang of equal pods; `runs` is for how long simulated ones run."""
    container: Manifest = {"name": "main", "image": "none", "resources": {"requests": request}}
    if "nvidia.com/gpu" in request:
        container["resources"]["limits"] = {"nvidia.com/gpu": request["nvidia.com/gpu"]}
    if command:
        container["command"] = command
    annotations = {"note": MARKUP, **({"stromboli.sh/run-time": runs} if runs else {})}
    pod = {"restartPolicy": "Never", "containers": [container], **more}
    task = {
        "name": "worker",
        "replicas": pods,
        "template": {"metadata": {"annotations": annotations}, "spec": pod},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "annotations": {"note": MARKUP}},
        "spec": {"minAvailable": pods, "schedulerName": "volcano", "queue": queue, "tasks": [task]},
    }


def namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


QUEUES = (
    queue("research", deserved=resources(1200, 160, "6Ti"), capability=resources(2000, 256, "12Ti")),
    queue("vision", "research", deserved=resources(400, 48, "2Ti")),
    queue("language", "research", deserved=resources(800, 112, "4Ti")),
    queue("production", deserved=resources(800, 96, "4Ti"), guarantee=resources(64, 16, "256Gi")),
)
JOBS = (
    job("llm-pretrain", "research", "language", resources(32, 8, "128Gi"), 16),
    job("resnet", "research", "vision", resources(16, 4, "64Gi"), 6),
    job("sweep", "research", "vision", resources(4, 1, "16Gi"), 24),
    job("serve", "production", "production", resources(8, 1, "32Gi"), 12),
    job("etl", "production", "production", resources(12, memory="24Gi"), 10),
    job("nightly", "production", "production", resources(2), 4, runs="2s"),
    job("foundation", "research", "language", resources(48, 8, "256Gi"), 40),
    job("evaluate", "production", "production", resources(16, 7, "64Gi"), 9),
    job("finetune", "research", "language", resources(32, 8, "64Gi"), 14),
)
LOUD = job(
    "loud",
    "default",
    "default",
    resources(1),
    command=["sh", "-c", f"echo '{MARKUP}'; echo '{MARKUP}' >&2; sleep 3600"],
    nodeSelector={"stromboli.sh/node": "real"},
)


def event(name: str, kind: str, about: str, namespace: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {"kind": kind, "namespace": namespace, "name": about},
        "reason": "Evict",
        "message": f"Pod is evicted, because of {MARKUP}",
        "type": "Warning",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }


def start(folder: Path) -> Up:
    """It runs, and everything is where it will stay."""
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    up = Up(folder / "data", *NODES, "--policy", str(policy), "--schedule-period", "500ms")
    up.start()
    try:
        _submit(up)
    except BaseException:
        up.stop()
        raise
    return up


def _submit(up: Up) -> None:
    spaces = [namespace(name) for name in ("research", "production")]
    up.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([*spaces, *QUEUES]))
    for each in (*JOBS, LOUD):
        up.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(each))
    up.kubectl("create", "-f", "-", stdin=yaml.safe_dump(event("bad", "Pod", "loud-worker-0", "default")))
    eventually(lambda: phase_of(up, "nightly", "production") == "Completed", 60)
    eventually(lambda: phase_of(up, "loud", "default") == "Running", 60)
    for name in ("llm-pretrain", "resnet", "sweep"):
        eventually(lambda name=name: phase_of(up, name, "research") == "Running", 60)


def phase_of(up: Up, name: str, namespace: str) -> str:
    state = up.json("get", "vcjob", name, "-n", namespace).get("status", {}).get("state", {})
    return str(state.get("phase", ""))
