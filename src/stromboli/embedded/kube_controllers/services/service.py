"""A Service as its endpoints are made from it, and the ports at which its pods serve."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stromboli.api.schemas.services.service_types import NONE
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.store.stored_pods import StoredPod


class Service:
    """A Service."""

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

    def hostname_of(self, pod: StoredPod) -> str:
        """The name by which others find a pod below the Service that governs it."""
        spec = pod.spec
        return spec.hostname if spec.hostname and spec.subdomain == self.name else ""

    def ports_of(self, pod: StoredPod) -> ServedPorts:
        """The ports of the Service that a pod has. Pods with the same ports share them."""
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
