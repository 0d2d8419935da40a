"""The objects that are scheduled: nodes, and pods in gangs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

NAMESPACE = "bench"
GROUP_NAME = "scheduling.k8s.io/group-name"
OURS, THEIRS = "stromboli", "kube-scheduler"
_SCHEDULER_NAMES = {OURS: "volcano", THEIRS: "default-scheduler"}


class Shape(NamedTuple):
    """So many gangs of so many pods."""

    gangs: int
    size: int

    @property
    def pods(self) -> int:
        return self.gangs * self.size

    @property
    def name(self) -> str:
        return f"{self.gangs}x{self.size}"


def node(number: int) -> dict[str, Any]:
    name, sizes = f"node-{number}", {"cpu": "32", "memory": "128Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": sizes, "capacity": sizes},
    }


def group(gang: int, size: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": f"gang-{gang}", "namespace": NAMESPACE},
        "spec": {"minMember": size, "queue": "default"},
    }


def pod(gang: int, member: int, scheduler: str, on: str = "") -> dict[str, Any]:
    """Of a gang, for one of the two; kube-scheduler has plain pods. `on` is where it runs already."""
    requests = {"cpu": "500m", "memory": "1Gi"}
    container = {"name": "main", "image": "none", "resources": {"requests": requests}}
    name = f"gang-{gang}"
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-{member}", "namespace": NAMESPACE, "labels": {"job": name}},
        "spec": {"schedulerName": _SCHEDULER_NAMES[scheduler], "containers": [container]},
    }
    if scheduler == OURS:
        made["metadata"]["annotations"] = {GROUP_NAME: name}
    if on:
        made["spec"]["nodeName"] = on
    return made


def groups(shape: Shape) -> Iterator[dict[str, Any]]:
    return (group(gang, shape.size) for gang in range(shape.gangs))


def pods(shape: Shape, scheduler: str) -> Iterator[dict[str, Any]]:
    return (pod(gang, member, scheduler) for gang in range(shape.gangs) for member in range(shape.size))
