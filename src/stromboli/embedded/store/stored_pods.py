"""The part of a stored pod that the API server's own rules and controllers read; most of a pod is not decoded."""

from __future__ import annotations

from typing import Any

import msgspec

from stromboli.embedded.store.records import Record


class Owner(msgspec.Struct, rename="camel", gc=False, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class PodMeta(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    owner_references: tuple[Owner, ...] | None = None
    deletion_timestamp: str | None = None


class ContainerPort(msgspec.Struct, rename="camel", gc=False):
    container_port: int = 0
    name: str = ""
    protocol: str = "TCP"


class Container(msgspec.Struct, rename="camel", gc=False):
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str = ""


class PodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None


class Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""


class Address(msgspec.Struct, gc=False):
    ip: str = ""


class PodStatus(msgspec.Struct, gc=False, rename="camel"):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: tuple[Address, ...] | None = msgspec.field(default=None, name="podIPs")
    conditions: tuple[Condition, ...] | None = None


class StoredPod(msgspec.Struct, gc=False):
    """A pod. Two that are equal have the same endpoints."""

    metadata: PodMeta
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def owner(self) -> Owner | None:
        """The owner that controls the pod."""
        return next((owner for owner in self.metadata.owner_references or () if owner.controller), None)

    @property
    def address(self) -> str:
        """The first IPv4 address; empty if it has none yet."""
        for entry in self.status.pod_ips or ():
            if ":" not in entry.ip:
                return entry.ip
        return "" if ":" in self.status.pod_ip else self.status.pod_ip

    @property
    def reference(self) -> dict[str, Any]:
        """The pod as the target of an endpoint."""
        meta = self.metadata
        return {"kind": "Pod", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid}

    def port(self, target: int | str, protocol: str) -> int | None:
        """The number of a port that a Service refers to by number or name; None if the pod has no such port."""
        if isinstance(target, int):
            return target
        sidecars = (each for each in self.spec.init_containers or () if each.restart_policy == "Always")
        for container in (*(self.spec.containers or ()), *sidecars):
            for port in container.ports or ():
                if port.name == target and port.protocol == protocol:
                    return port.container_port
        return None


_decode = msgspec.json.Decoder(StoredPod, strict=False).decode


def stored_pod(record: Record) -> StoredPod:
    return _decode(record.data)
