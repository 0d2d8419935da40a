"""A device plugin that reads the annotations of pods, step by step as volcano-vgpu-device-plugin does."""

from __future__ import annotations

from typing import NamedTuple

LATER = 2**64 - 1


class Device(NamedTuple):
    uuid: str
    type: str
    memory: int
    cores: int


def decode_container(text: str) -> list[Device]:
    devices = []
    for entry in text.split(":"):
        if "," in entry:
            uuid, type_, memory, cores = entry.split(",")
            devices.append(Device(uuid, type_, int(memory), int(cores)))
    return devices


def decode_pod(text: str) -> list[list[Device]]:
    return [decode_container(part) for part in text.split(";")] if text else []


def encode_pod(containers: list[list[Device]]) -> str:
    return ";".join(
        "".join(f"{device.uuid},{device.type},{device.memory},{device.cores}:" for device in devices)
        for devices in containers
    )


def mig_slot(uuid: str) -> tuple[str, str, int]:
    """Card, group and position of a slot."""
    card, _, rest = uuid.partition("[")
    group, position = rest.partition("]")[0].split("-")
    return card, group, int(position)


def pending_pod(pods: dict[str, dict[str, str]], node: str, amount: int) -> str | None:
    """The pod that kubelet asks about: by node and number of devices, the first by time."""
    fitting = {
        name: int(annotations["volcano.sh/vgpu-time"])
        for name, annotations in pods.items()
        if annotations.get("volcano.sh/vgpu-node") == node
        and sum(map(len, decode_pod(annotations["volcano.sh/devices-to-allocate"]))) == amount
    }
    return min(fitting, key=lambda name: fitting[name], default=None)


def serve(pods: dict[str, dict[str, str]], node: str, amount: int) -> list[Device]:
    """Kubelet starts a container with so many devices: which ones it gets; the annotations follow."""
    name = pending_pod(pods, node, amount)
    assert name is not None
    annotations = pods[name]
    containers = decode_pod(annotations["volcano.sh/devices-to-allocate"])
    turn = next(i for i, devices in enumerate(containers) if any(d.type == "NVIDIA" for d in devices))
    served, containers[turn] = containers[turn], []
    left = encode_pod(containers)
    annotations["volcano.sh/devices-to-allocate"] = left
    if "NVIDIA" not in left:
        annotations |= {"volcano.sh/bind-phase": "success", "volcano.sh/vgpu-time": str(LATER)}
    return served
