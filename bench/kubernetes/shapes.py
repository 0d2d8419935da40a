"""The objects that are scheduled: nodes, and pods in gangs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

NAMESPACE = "bench"
GROUP_NAME = "scheduling.k8s.io/group-name"
OURS, THEIRS = "stromboli", "kube-scheduler"
PLAIN = "stromboli with its controllers, plain pods"
"""Pods that name no PodGroup: a controller makes each of them one."""
BARE = "bare binder"
"""Decides nothing and binds what our scheduler would: the most that can be reached (`bare_binder.py`)."""


class Shape(NamedTuple):
    """So many gangs of so many pods."""

    gangs: int
    size: int
    prefix: str = "gang"
    """Of the names of the gangs."""

    @property
    def pods(self) -> int:
        return self.gangs * self.size

    @property
    def name(self) -> str:
        return f"{self.gangs}x{self.size}"

    @classmethod
    def parse(cls, text: str) -> Shape:
        """From `500x20`; `ValueError` if it says no shape."""
        match = re.fullmatch("([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", text)
        if match is None:
            raise ValueError(f"{text!r} is not so many gangs of so many pods, such as 500x20")
        return cls(int(match[1]), int(match[2]))

    def scaled(self, scale: float) -> Shape:
        """So many times the gangs; of a single gang, so many times the pods."""
        if self.gangs == 1:
            return self._replace(size=max(1, round(self.size * scale)))
        return self._replace(gangs=max(1, round(self.gangs * scale)))


def node(number: int) -> dict[str, Any]:
    name, sizes = f"node-{number}", {"cpu": "32", "memory": "128Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": sizes, "capacity": sizes},
    }


def group(gang: int, size: int, prefix: str = "gang") -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": f"{prefix}-{gang}", "namespace": NAMESPACE},
        "spec": {"minMember": size, "queue": "default"},
    }


def grouped(scheduler: str) -> bool:
    """Whether its pods come in PodGroups; kube-scheduler knows none."""
    return scheduler in (OURS, BARE)


def pod(gang: int, member: int, scheduler: str, on: str = "", prefix: str = "gang") -> dict[str, Any]:
    """Of a gang, for one of the schedulers. `on` is where it runs already."""
    requests = {"cpu": "500m", "memory": "1Gi"}
    container = {"name": "main", "image": "none", "resources": {"requests": requests}}
    name = f"{prefix}-{gang}"
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-{member}", "namespace": NAMESPACE, "labels": {"job": name}},
        "spec": {
            "schedulerName": "default-scheduler" if scheduler == THEIRS else "volcano",
            "containers": [container],
        },
    }
    if grouped(scheduler):
        made["metadata"]["annotations"] = {GROUP_NAME: name}
    if on:
        made["spec"]["nodeName"] = on
    return made


def groups(shape: Shape) -> Iterator[dict[str, Any]]:
    return (group(gang, shape.size, shape.prefix) for gang in range(shape.gangs))


def pods(shape: Shape, scheduler: str) -> Iterator[dict[str, Any]]:
    return (member for gang in range(shape.gangs) for member in gang_pods(shape, gang, scheduler))


def gang_pods(shape: Shape, gang: int, scheduler: str) -> Iterator[dict[str, Any]]:
    return (pod(gang, member, scheduler, prefix=shape.prefix) for member in range(shape.size))
