"""A job in one call: its PodGroup and its pods as manifests."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from stromboli.api import names
from stromboli.testing.lines import Manifest

Amount = int | float | str


def requests(cpu: Amount, memory: Amount, gpu: Amount, more: Mapping[str, Amount]) -> dict[str, str]:
    """A resource list; what is zero is not asked for."""
    wanted = {names.CPU: cpu, names.MEMORY: memory, names.NVIDIA_GPU: gpu, **more}
    return {name: str(amount) for name, amount in wanted.items() if amount not in (0, "0", "")}


def group(name: str, namespace: str, spec: Manifest, phase: str, annotations: Mapping[str, str]) -> Manifest:
    """A PodGroup; the spec's empty fields are left out."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations)},
        "spec": {key: value for key, value in spec.items() if value not in (None, "", {})},
        "status": {"phase": phase},
    }


def pod(name: str, namespace: str, job: str, resources: Mapping[str, str]) -> Manifest:
    """A pending pod of a job."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {},
            "annotations": {names.GROUP_NAME: job},
        },
        "spec": {
            "schedulerName": names.SCHEDULER_NAME,
            "containers": [{"name": "main", "resources": {"requests": dict(resources)}}],
        },
        "status": {"phase": names.POD_PENDING},
    }


def spread_roles(roles: Mapping[str, int], pods: int) -> list[str]:
    """Which role each pod has: so many of each, in order."""
    listed = [role for role, count in roles.items() for _ in range(count)]
    return listed or [""] * pods


def give_role(manifest: Manifest, role: str) -> None:
    if role:
        manifest["metadata"]["annotations"][names.TASK_SPEC] = role


def run_on(manifest: Manifest, node: str) -> None:
    """Let a pod run already."""
    manifest["spec"]["nodeName"] = node
    manifest["status"]["phase"] = names.POD_RUNNING


def merged(base: Manifest, more: Mapping[str, Any]) -> Manifest:
    """The manifest with more fields, mapping into mapping."""
    result = copy.deepcopy(base)
    for key, value in more.items():
        inner = result.get(key)
        both = isinstance(inner, dict) and isinstance(value, Mapping)
        result[key] = merged(inner, value) if both and isinstance(inner, dict) else copy.deepcopy(value)
    return result


def places(running_on: str | Sequence[str]) -> list[str]:
    """Nodes by name, from a list or a text such as `n1 n1 n2`."""
    return running_on.split() if isinstance(running_on, str) else list(running_on)
