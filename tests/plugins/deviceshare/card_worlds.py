"""Small worlds of nodes with cards, for tests of `deviceshare`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stromboli.api import card_names
from stromboli.model.cards.pod_cards import CardGrant
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import Manifest, group, node, policy

MIB = 8000


def card_policy(actions: str = "allocate", plugins: str = "gang", **arguments: Any) -> str:
    """A policy with `deviceshare`: `card_policy(VGPUEnable=True)`."""
    return policy(
        actions,
        f"{plugins} |",
        ("deviceshare", {f"deviceshare.{name}": arguments[name] for name in arguments}),
    )


def card(uuid: str, memory: int = MIB, *, count: int = 10, health: str = "true", **more: str) -> str:
    """An entry of a registration, as the device plugin writes it."""
    return (
        f"{uuid},{count},{memory},{more.get('type', 'NVIDIA-A100')},{health},{more.get('mode', 'hami-core')}:"
    )


def vgpu_node(name: str, *cards: str, annotations: Mapping[str, str] | None = None, **sizes: Any) -> Manifest:
    """A node with these cards registered: two of 8000 MiB unless given."""
    entries = cards or (card(f"GPU-{name}-0"), card(f"GPU-{name}-1"))
    known = {card_names.VGPU_REGISTER: "".join(entries), **(annotations or {})}
    resources = {
        card_names.VGPU_NUMBER: 10 * len(entries),
        card_names.VGPU_MEMORY: 10**6,
        card_names.VGPU_CORES: 100 * len(entries),
    }
    return node(name, annotations=known, **{"cpu": 64, **resources, **sizes})


def card_pod(
    name: str,
    *containers: Mapping[str, int],
    job: str = "",
    on: str = "",
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    priority: str = "",
    **spec: Any,
) -> list[Manifest]:
    """A PodGroup of the pod's name, unless it has a job, and a pod whose containers have these limits."""
    limits = [{"resources": {"limits": dict(each), "requests": dict(each)}} for each in containers]
    meta = {
        "name": name,
        "namespace": "default",
        "labels": dict(labels or {}),
        "annotations": {"scheduling.k8s.io/group-name": job or name, **(annotations or {})},
    }
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {
            "containers": [{"name": f"c{i}", **limit} for i, limit in enumerate(limits)],
            **({"nodeName": on} if on else {}),
            **spec,
        },
        "status": {"phase": "Running" if on else "Pending"},
    }
    if priority:
        pod["spec"]["priorityClassName"] = priority
    terms = {"priorityClassName": priority} if priority else {}
    return [pod] if job else [group(name, 1, phase="Running" if on else "Inqueue", **terms), pod]


def vgpu(memory: int = 0, cores: int = 0, number: int = 1) -> dict[str, int]:
    """Limits of a container."""
    limits = {
        card_names.VGPU_NUMBER: number,
        card_names.VGPU_MEMORY: memory,
        card_names.VGPU_CORES: cores,
    }
    return {name: amount for name, amount in limits.items() if amount}


def held(ids: str) -> dict[str, str]:
    """The annotations of a running pod that was given these shares."""
    return {card_names.VGPU_IDS: ids, card_names.BIND_PHASE: "success"}


def world_of(text: str, *objects: Manifest | list[Manifest]) -> World:
    """A world of these objects, which a policy is about to decide for."""
    world = World(policy=text)
    for each in objects:
        world.add(*(each if isinstance(each, list) else [each]))
    return world


def shares_of(task: Task) -> list[str]:
    """The cards that a task was granted, container after container."""
    return [
        share.card
        for grant in task.grants
        if isinstance(grant, CardGrant)
        for container in grant.containers
        for share in container
    ]


def mig_config(text: str = "") -> Manifest:
    """The ConfigMap of the device plugin: an A100 has 4 slots of 10 GiB, or 2 of 20 GiB and 1 of 10 GiB."""
    geometries = """
nvidia:
  knownMigGeometries:
  - models: ["A100"]
    allowedGeometries:
    - group: small
      geometries: [{name: 1g.10gb, memory: 10240, count: 4}]
    - group: mixed
      geometries: [{name: 2g.20gb, memory: 20480, count: 2}, {name: 1g.10gb, memory: 10240, count: 1}]
"""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "volcano-vgpu-device-config", "namespace": "kube-system"},
        "data": {"device-config.yaml": text or geometries},
    }
