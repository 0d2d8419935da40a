"""The EndpointSlices of a Service: which to create, change and delete, so that few of them change with a pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from stromboli.api.pods import is_finished, is_ready, is_terminating
from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.kube_controllers.services.endpoint_subsets import HEADLESS
from stromboli.embedded.kube_controllers.services.service import Service, ports_key
from stromboli.embedded.store.stored_pods import StoredPod

MOST_ENDPOINTS = 100
"""In a slice, as in Kubernetes."""
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
CONTROLLER = "endpointslice-controller.k8s.io"
ADDRESS_TYPE = "IPv4"
_RESERVED = (SERVICE_NAME, MANAGED_BY, HEADLESS)

Zone = Callable[[str], str | None]
"""The zone of a node, empty if it has none; None if there is no such node."""


@dataclass(slots=True)
class SliceChanges:
    """Slices with their whole content; those to change and to delete have a name."""

    create: list[Content] = field(default_factory=list)
    update: list[Content] = field(default_factory=list)
    delete: list[Content] = field(default_factory=list)


def slice_changes(
    service: Service, pods: Iterable[StoredPod], existing: Sequence[Content], zone: Zone
) -> SliceChanges:
    """What makes the slices of a Service show its pods."""
    changes = SliceChanges()
    by_ports: dict[bytes, list[Content]] = {}
    for each in existing:
        if each.get("addressType") == ADDRESS_TYPE and _is_owned(each, service):
            by_ports.setdefault(ports_key(each.get("ports") or ()), []).append(each)
        else:
            changes.delete.append(each)
    desired = _desired(service, pods, zone)
    for key, (ports, endpoints) in desired.items():
        _fill(service, ports, by_ports.pop(key, []), endpoints, changes)
    unwanted = [each for slices in by_ports.values() for each in slices]
    _keep_one(service, unwanted, bool(desired), changes)
    changes.delete += unwanted
    _reuse_deleted(service, changes)
    return changes


def _is_owned(slice: Content, service: Service) -> bool:
    owners = slice["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == service.uid for owner in owners)


def _desired(
    service: Service, pods: Iterable[StoredPod], zone: Zone
) -> dict[bytes, tuple[Sequence[Content], dict[str, Content]]]:
    """Endpoints by pod, for each set of ports."""
    desired: dict[bytes, tuple[Sequence[Content], dict[str, Content]]] = {}
    for pod in pods:
        place, address = zone(pod.spec.node_name), pod.address
        if is_finished(pod) or not address or (place is None and not service.publishes_unready):
            continue
        served = service.ports_of(pod)
        if served.key not in desired:
            desired[served.key] = (served.ports, {})
        desired[served.key][1][pod.metadata.uid] = _endpoint(service, pod, address, place or "")
    return desired


def _endpoint(service: Service, pod: StoredPod, address: str, zone: str) -> Content:
    serving, terminating = is_ready(pod), is_terminating(pod)
    endpoint: Content = {
        "addresses": [address],
        "conditions": {
            "ready": service.publishes_unready or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": pod.reference,
    }
    if hostname := service.hostname_of(pod):
        endpoint["hostname"] = hostname
    if pod.spec.node_name:
        endpoint["nodeName"] = pod.spec.node_name
    if zone:
        endpoint["zone"] = zone
    return endpoint


def _fill(
    service: Service,
    ports: Sequence[Content],
    slices: list[Content],
    desired: dict[str, Content],
    changes: SliceChanges,
) -> None:
    """Bring slices of the same ports up to date: those that change anyhow take what is new first."""
    changed: list[Content] = []
    unchanged: list[Content] = []
    emptied: list[Content] = []
    for each in slices:
        endpoints = each.get("endpoints") or []
        kept = [desired.pop(uid) for uid in map(_pod_uid, endpoints) if uid in desired]
        labels = _labels(service)
        same = kept == endpoints and each["metadata"].get("labels") == labels
        each["endpoints"], each["metadata"]["labels"] = kept, labels
        (unchanged if same else changed if kept else emptied).append(each)
    left = list(desired.values())
    for each in (*changed, *emptied):
        room = MOST_ENDPOINTS - len(each["endpoints"])
        each["endpoints"] += left[:room]
        left = left[room:]
    while left:
        part, left = left[:MOST_ENDPOINTS], left[MOST_ENDPOINTS:]
        fitting = [each for each in unchanged if len(each["endpoints"]) + len(part) <= MOST_ENDPOINTS]
        if fitting:
            fullest = max(fitting, key=lambda each: len(each["endpoints"]))
            fullest["endpoints"] += part
            unchanged.remove(fullest)
            changed.append(fullest)
        else:
            changes.create.append(_new_slice(service, ports, part))
    changed += [each for each in emptied if each["endpoints"]]
    emptied = [each for each in emptied if not each["endpoints"]]
    changes.update += changed
    changes.delete += emptied


def _pod_uid(endpoint: Content) -> str:
    return str((endpoint.get("targetRef") or {}).get("uid", ""))


def _keep_one(service: Service, unwanted: list[Content], has_others: bool, changes: SliceChanges) -> None:
    """A Service without pods has one slice without ports and endpoints."""
    if has_others:
        return
    labels = _labels(service)
    for each in unwanted:
        empty = not each.get("ports") and not each.get("endpoints")
        if empty and each["metadata"].get("labels") == labels:
            unwanted.remove(each)
            return
    changes.create.append(_new_slice(service, (), []))


def _reuse_deleted(service: Service, changes: SliceChanges) -> None:
    """A slice that would go becomes one that would be created."""
    reusable = [each for each in changes.delete if _is_owned(each, service)]
    while reusable and changes.create and reusable[-1].get("addressType") == ADDRESS_TYPE:
        old, new = reusable.pop(), changes.create.pop()
        changes.delete.remove(old)
        old["endpoints"], old["ports"] = new["endpoints"], new["ports"]
        old["metadata"]["labels"] = new["metadata"]["labels"]
        changes.update.append(old)


def _new_slice(service: Service, ports: Sequence[Content], endpoints: list[Content]) -> Content:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": f"{service.name}-",
            "namespace": service.namespace,
            "labels": _labels(service),
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "name": service.name,
                    "uid": service.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "addressType": ADDRESS_TYPE,
        "endpoints": endpoints,
        "ports": list(ports),
    }


def _labels(service: Service) -> dict[str, str]:
    labels = {key: value for key, value in service.labels.items() if key not in _RESERVED}
    if service.is_headless:
        labels[HEADLESS] = ""
    return {**labels, SERVICE_NAME: service.name, MANAGED_BY: CONTROLLER}
