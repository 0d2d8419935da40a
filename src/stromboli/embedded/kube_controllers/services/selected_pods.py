"""What endpoints are made of: a Service and the pods that it selects, with just the fields that matter."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stromboli.api.schemas.services.service_types import NONE
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.store.records import Record

_ENDED = ("Succeeded", "Failed")


class ContainerPort(msgspec.Struct, rename="camel", gc=False):
    container_port: int = 0
    name: str = ""
    protocol: str = "TCP"


class Container(msgspec.Struct, rename="camel", gc=False):
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str = ""


class _Meta(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None


class _Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""


class _Address(msgspec.Struct, gc=False):
    ip: str = ""


class _Status(msgspec.Struct, gc=False, rename="camel"):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: tuple[_Address, ...] | None = msgspec.field(default=None, name="podIPs")
    conditions: tuple[_Condition, ...] | None = None


class SelectedPod(msgspec.Struct, gc=False):
    """A pod, as little of it as its endpoints show. Two that are equal have the same endpoints."""

    metadata: _Meta
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def is_ready(self) -> bool:
        return any(entry.type == "Ready" and entry.status == "True" for entry in self.status.conditions or ())

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def has_ended(self) -> bool:
        return self.status.phase in _ENDED

    @property
    def address(self) -> str:
        """The first of IPv4; empty if it has none yet."""
        for entry in self.status.pod_ips or ():
            if ":" not in entry.ip:
                return entry.ip
        return "" if ":" in self.status.pod_ip else self.status.pod_ip

    @property
    def target(self) -> Content:
        meta = self.metadata
        return {"kind": "Pod", "namespace": meta.namespace, "name": meta.name, "uid": meta.uid}

    def hostname_in(self, service: Service) -> str:
        """The name by which others find this pod below the Service that governs it."""
        spec = self.spec
        return spec.hostname if spec.hostname and spec.subdomain == service.name else ""

    def port(self, target: int | str, protocol: str) -> int | None:
        """The number of a port that a Service names by number or name; None if the pod has no such port."""
        if isinstance(target, int):
            return target
        sidecars = (each for each in self.spec.init_containers or () if each.restart_policy == "Always")
        for container in (*(self.spec.containers or ()), *sidecars):
            for port in container.ports or ():
                if port.name == target and port.protocol == protocol:
                    return port.container_port
        return None


_DECODER = msgspec.json.Decoder(SelectedPod, strict=False)


def selected_pod(record: Record) -> SelectedPod:
    return _DECODER.decode(record.data)


class Service:
    """A Service as its endpoints are made from it."""

    def __init__(self, content: Content):
        self.content = content
        self.metadata: Content = content["metadata"]
        self.spec: Content = content.get("spec") or {}
        self.name: str = self.metadata["name"]
        self.namespace: str = self.metadata["namespace"]
        self.uid: str = self.metadata["uid"]
        self.labels: dict[str, str] = self.metadata.get("labels") or {}
        self.selector: dict[str, str] | None = self.spec.get("selector")
        self.publishes_unready = bool(self.spec.get("publishNotReadyAddresses"))
        self.is_headless = self.spec.get("clusterIP") == NONE
        self.is_being_deleted = bool(self.metadata.get("deletionTimestamp"))
        self._ports: list[Content] = self.spec.get("ports") or []
        self._targets = [
            (port.get("targetPort", port["port"]), port.get("protocol") or "TCP") for port in self._ports
        ]
        self._served: dict[tuple[int | None, ...], ServedPorts] = {}

    def ports_of(self, pod: SelectedPod) -> ServedPorts:
        """The ports at which a pod serves: those of the Service that the pod has. Pods that serve alike share them."""
        numbers = tuple(pod.port(target, protocol) for target, protocol in self._targets)
        if numbers not in self._served:
            self._served[numbers] = ServedPorts(
                tuple(
                    _served(port, number) for port, number in zip(self._ports, numbers, strict=True) if number
                )
            )
        return self._served[numbers]


class ServedPorts:
    """Ports of endpoints, and their identity."""

    __slots__ = ("encoded", "key", "ports")

    def __init__(self, ports: tuple[Content, ...]):
        self.ports = ports
        self.encoded = tuple(map(encoded_port, ports))
        self.key = ports_key(ports)


def encoded_port(port: Content) -> bytes:
    return msgspec.json.encode(port, order="sorted")


def ports_key(ports: Iterable[Content]) -> bytes:
    """The same for the same ports in any order."""
    return b",".join(sorted(map(encoded_port, ports)))


def _served(port: Content, number: int) -> Content:
    served = {"name": port.get("name") or "", "port": number, "protocol": port.get("protocol") or "TCP"}
    if port.get("appProtocol") is not None:
        served["appProtocol"] = port["appProtocol"]
    return served
