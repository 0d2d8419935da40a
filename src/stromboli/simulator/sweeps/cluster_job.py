"""A sweep as a Job of `batch.volcano.sh`: an indexed task, each pod of which runs its share of the runs."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stromboli.simulator.sweeps.portable_plan import portable
from stromboli.simulator.sweeps.results_folder import PLAN
from stromboli.simulator.sweeps.sweep_plan import SweepPlan

Manifest = dict[str, Any]

TASK = "runs"
RESULTS_MOUNT = "/stromboli-results"
PLAN_MOUNT = "/stromboli-plan"
MOST_CONFIG_MAP_BYTES = 1_000_000
"""Of a plan with its inputs in a ConfigMap, for which Kubernetes allows 1 MiB."""
IMAGE_GROUP = 65532
"""Of the user that our image runs as: the volume is to be writable for it."""
SWEEP_LABEL = "stromboli.sh/sweep"
RUNS_ANNOTATION = "stromboli.sh/sweep-runs"
"""How many runs the Job is to do."""


class InputsTooLarge(Exception):
    """No ConfigMap holds the plan and its inputs; the message says how much that is."""


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Where and how the pods run."""

    namespace: str
    claim: str
    image: str
    parallelism: int
    queue: str = ""
    requests: Mapping[str, str] | None = None
    """Of each pod, which does one run at a time."""
    node_selector: Mapping[str, str] | None = None


def job_name(plan: SweepPlan) -> str:
    """The name of the Job: a grid that changes has another."""
    return f"sweep-{results_path(plan)}-{plan.digest[:8]}"


def results_path(plan: SweepPlan) -> str:
    """The folder of the results in the volume: a grid that changes goes on with what is there."""
    name = re.sub(r"[^a-z0-9-]+", "-", plan.name.lower()).strip("-")[:30].rstrip("-")
    return name or "grid"


def plan_path(name: str, plan: SweepPlan) -> str:
    """The folder of plan and inputs in the volume, if no ConfigMap holds them."""
    return f"{results_path(plan)}/plans/{name}"


def config_map(name: str, plan: SweepPlan, settings: JobSettings) -> Manifest:
    """The plan and its inputs as a ConfigMap; `InputsTooLarge` if they are more than it holds."""
    travelling, files = portable(plan)
    contents = {PLAN: travelling.encoded()}
    total = len(contents[PLAN]) + sum(file.stat().st_size for file in files.values())
    if total > MOST_CONFIG_MAP_BYTES:
        raise InputsTooLarge(
            f"the plan and its {len(files)} input files have {total:,} bytes, and a ConfigMap holds"
            f" {MOST_CONFIG_MAP_BYTES:,}"
        )
    contents |= {key: file.read_bytes() for key, file in zip(_keys(files), files.values(), strict=True)}
    data, binary = {}, {}
    for key, content in contents.items():
        try:
            data[key] = content.decode()
        except UnicodeDecodeError:
            binary[key] = base64.b64encode(content).decode()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(name, settings),
        "data": data,
        **({"binaryData": binary} if binary else {}),
    }


def _keys(files: Mapping[str, Path]) -> list[str]:
    """Keys of a ConfigMap are short and have no slashes; the volume gives files their names back."""
    return [f"input-{place}" for place in range(len(files))]


def sweep_job(name: str, plan: SweepPlan, settings: JobSettings, in_volume: bool) -> Manifest:
    """The Job. `in_volume`: plan and inputs lie in the volume, else in the ConfigMap of the same name."""
    volumes: list[Manifest] = [{"name": "results", "persistentVolumeClaim": {"claimName": settings.claim}}]
    mounts: list[Manifest] = [{"name": "results", "mountPath": RESULTS_MOUNT}]
    if not in_volume:
        volumes.append({"name": "plan", "configMap": {"name": name, "items": _items(plan)}})
        mounts.append({"name": "plan", "mountPath": PLAN_MOUNT, "readOnly": True})
    pod = {
        "restartPolicy": "OnFailure",
        "automountServiceAccountToken": False,
        "securityContext": {"fsGroup": IMAGE_GROUP, "fsGroupChangePolicy": "OnRootMismatch"},
        **({"nodeSelector": dict(settings.node_selector)} if settings.node_selector else {}),
        "containers": [_container(name, plan, settings, in_volume) | {"volumeMounts": mounts}],
        "volumes": volumes,
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": _metadata(name, settings) | {"annotations": {RUNS_ANNOTATION: str(len(plan.distinct))}},
        "spec": {
            "schedulerName": "volcano",
            **({"queue": settings.queue} if settings.queue else {}),
            "minAvailable": 1,
            "maxRetry": max(3, settings.parallelism),
            "plugins": {"env": []},
            "policies": [{"event": "PodFailed", "action": "RestartPod"}],
            "tasks": [{"name": TASK, "replicas": settings.parallelism, "template": {"spec": pod}}],
        },
    }


def _items(plan: SweepPlan) -> list[Manifest]:
    """Which key of the ConfigMap is which file."""
    files = portable(plan)[1]
    inputs = [{"key": key, "path": path} for key, path in zip(_keys(files), files, strict=True)]
    return [{"key": PLAN, "path": PLAN}, *inputs]


def _container(name: str, plan: SweepPlan, settings: JobSettings, in_volume: bool) -> Manifest:
    plan_folder = f"{RESULTS_MOUNT}/{plan_path(name, plan)}" if in_volume else PLAN_MOUNT
    return {
        "name": "sweep",
        "image": settings.image,
        "command": ["stromboli", "sweep", f"{plan_folder}/{PLAN}"],
        "args": [
            *("--share", f"$(VC_TASK_INDEX)/{settings.parallelism}"),
            *("--jobs", "1"),
            *("--results", f"{RESULTS_MOUNT}/{results_path(plan)}"),
            *("--in-pod", "$(POD_UID)"),
        ],
        "env": [{"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
        **({"resources": {"requests": dict(settings.requests)}} if settings.requests else {}),
    }


def _metadata(name: str, settings: JobSettings) -> Manifest:
    return {"name": name, "namespace": settings.namespace, "labels": {SWEEP_LABEL: name}}
