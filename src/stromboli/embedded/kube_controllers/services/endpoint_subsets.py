"""The Endpoints of a Service: addresses of its pods, grouped by the ports at which they serve."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.pods import is_finished, is_ready, is_terminating
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.services.service import Service
from stromboli.embedded.store.stored_pods import StoredPod

MOST_ADDRESSES = 1000
"""In one Endpoints object, as in Kubernetes; EndpointSlices have them all."""
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
MANAGED_BY = "endpoints.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"
CONTROLLER = "endpoint-controller"


def endpoints_of(service: Service, pods: Iterable[StoredPod]) -> Content:
    """The Endpoints that a Service is to have."""
    subsets = _subsets(service, pods)
    labels = {key: value for key, value in service.labels.items() if key != HEADLESS}
    if service.is_headless:
        labels[HEADLESS] = ""
    metadata: Content = {
        "name": service.name,
        "namespace": service.namespace,
        "labels": {**labels, MANAGED_BY: CONTROLLER},
    }
    if _truncate(subsets):
        metadata["annotations"] = {OVER_CAPACITY: "truncated"}
    content: Content = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}
    if subsets:
        content["subsets"] = subsets
    return content


def _subsets(service: Service, pods: Iterable[StoredPod]) -> list[Content]:
    """Ports that the same addresses serve are together."""
    addresses: dict[str, Content] = {}
    ports: dict[bytes, Content] = {}
    by_port: dict[bytes, dict[str, bool]] = {}
    for pod in pods:
        address = pod.address
        if is_finished(pod) or not address or (is_terminating(pod) and not service.publishes_unready):
            continue
        key = f"{address} {pod.metadata.uid}"
        addresses[key] = _address(service, pod, address)
        ready = service.publishes_unready or is_ready(pod)
        served = service.ports_of(pod)
        for encoded, port in zip(served.encoded, served.ports, strict=True):
            if encoded not in by_port:
                ports[encoded] = {field: value for field, value in port.items() if value != ""}
                by_port[encoded] = {}
            by_port[encoded][key] = ready
        if not service.spec.get("ports") and service.is_headless:
            by_port.setdefault(b"", {})[key] = ready
    groups: dict[frozenset[tuple[str, bool]], list[bytes]] = {}
    for encoded, members in by_port.items():
        groups.setdefault(frozenset(members.items()), []).append(encoded)
    return [
        _subset(addresses, group, [ports[each] for each in sorted(encoded) if each])
        for group, encoded in groups.items()
    ]


def _address(service: Service, pod: StoredPod, address: str) -> Content:
    entry: Content = {"ip": address, "targetRef": pod.reference}
    if pod.spec.node_name:
        entry["nodeName"] = pod.spec.node_name
    if hostname := service.hostname_of(pod):
        entry["hostname"] = hostname
    return entry


def _subset(
    addresses: dict[str, Content], group: Iterable[tuple[str, bool]], ports: list[Content]
) -> Content:
    by_address = sorted(group)
    subset = {
        "addresses": [addresses[key] for key, ready in by_address if ready],
        "notReadyAddresses": [addresses[key] for key, ready in by_address if not ready],
        "ports": ports,
    }
    return {field: entries for field, entries in subset.items() if entries}


def _truncate(subsets: list[Content]) -> bool:
    """Keep the first addresses, those that are ready before others; whether some had to go."""
    left = MOST_ADDRESSES
    total = 0
    for field in ("addresses", "notReadyAddresses"):
        for subset in subsets:
            entries = subset.get(field) or []
            total += len(entries)
            if len(entries) > left:
                subset[field] = entries[:left]
            left -= len(subset.get(field) or ())
            if entries and not subset[field]:
                del subset[field]
    subsets[:] = [subset for subset in subsets if "addresses" in subset or "notReadyAddresses" in subset]
    return total > MOST_ADDRESSES
